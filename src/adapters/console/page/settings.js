// The dialog “Settings”: voice, Discord, limits and prices, and what the server is. What is set here is tested, kept, and in force at once.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { LANGUAGE, LOCALE, has, pieces, t } from './texts.js';
import { asksBeforeLoss, maybeLost } from './unsaved.js';
import { forgetUsedUp, usageOfLimits } from './used-up.js';
import * as words from './words.js';

const PORTAL = 'https://discord.com/developers/applications';
const EARS = 'speech.services.page_ears';
const VOICE = 'speech.services.page_voice';
// Services by their protocols; the first one is the built-in one.
const SERVICES = { ears: ['', 'deepgram', 'flux', 'openai'], voice: ['', 'elevenlabs', 'cartesia', 'openai'] };
const NAMES = { deepgram: 'Deepgram', flux: 'Deepgram Flux', elevenlabs: 'ElevenLabs', cartesia: 'Cartesia' };
const LIMITS = ['models.guild_tokens_per_day', 'gate.guild_statements_per_day', 'gate.guild_evaluations_per_hour', 'gate.evaluations_per_hour', 'speech.guild_minutes_per_day', 'speech.guild_characters_per_day', 'tools.guild_calls_per_day', 'tools.person_calls_per_day'];
const OF_GUESTS = ['messages_per_day', 'voice_minutes_per_day', 'tokens_per_day'];
const PRICES = ['input_price', 'output_price', 'cache_read_price'];

const button = (label, act, look = 'outlined') => el('button', { type: 'button', class: look, onclick: act }, label);
// What is no number stays as it is. In “5,000” a comma or a point may divide thousands, or a fraction; in a whole number it divides thousands if this
// language writes them so.
const WHOLE = /^-?\d+$/u;
const FRACTION = /^-?(?![1-9]\d{0,2}[.,]\d{3}$)\d*[.,]?\d+$/u;
const { value: DIVIDER = ',' } = new Intl.NumberFormat(LOCALE).formatToParts(1_000_000).find(({ type }) => type === 'group') ?? {};
const undivided = text => (/^[1-9]\d{0,2}(?:\D\d{3})+$/u.test(text) && text.replaceAll(/\d/gu, '').replaceAll(DIVIDER, '').trim() === '' ? text.replaceAll(/\D/gu, '') : text);
const asNumber = (text, form) => {
  const written = form === WHOLE ? undivided(text) : text;
  return text === '' ? null : form.test(written) ? Number(written.replace(',', '.')) : text;
};
// On another computer words would be read on the way.
const PRIVATE = /^(https:\/\/|http:\/\/(localhost|127\.|\[::1\]))/iu;
const HOURS = /^(never|always|\d\d?:\d\d-\d\d?:\d\d)$/u;
// What is wrong with a value, as the key of a text, where the page can tell it. The server's own words are in English.
const WRONG = {
  'safety.privacy': value => value && !PRIVATE.test(value) && 'server_settings.privacy_about',
  'companion_defaults.quiet_hours': value => value && !HOURS.test(value) && 'server_settings.quiet_about',
};
// What a refusal is about that only the server can tell.
const MISTAKES = { 'prompt.time_zone': 'server_settings.zone_wrong' };
const wrongNumber = (value, form) => value !== null && !(value >= 0) && (form === WHOLE ? 'server_settings.whole' : 'server_settings.fraction');

// The names of languages in this one, by their English names, which the server knows.
function languageNames() {
  const [english, own] = ['en', LOCALE].map(code => new Intl.DisplayNames([code], { type: 'language', fallback: 'none' }));
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const codes = letters.flatMap(one => letters.map(other => one + other));
  return new Map(codes.map(code => [english.of(code)?.toLowerCase(), own.of(code)]));
}

// Plays a sentence once. The page may not load audio of its own making otherwise.
async function play(base64) {
  const context = new AudioContext();
  const bytes = Uint8Array.from(atob(base64), char => char.charCodeAt(0));
  const source = new AudioBufferSourceNode(context, { buffer: await context.decodeAudioData(bytes.buffer) });
  source.connect(context.destination);
  source.addEventListener('ended', () => context.close());
  source.start();
}

// `models()` are those in force, `openModels()` opens their dialog, and `section` is shown first.
export async function showSettings({ models, openModels, section = 'voice' }) {
  const body = el('div', { class: 'settings' }, el('p', { class: 'muted' }, t('base.loading')));
  const box = dialog(t('server_settings.title'), body);
  let view = null;

  // The fields of the part shown, by the keys of the settings: `read()` is the value, and `first` the value before.
  let fields = new Map();
  const known = (key, input, read, wrong = WRONG[key]) => fields.set(key, { input, read, wrong, first: JSON.stringify(read()) });
  function field(key, input, { read = () => input.value.trim() || null, label = t(`server_settings.keys.${key.replaceAll('.', '_')}`), about = null, wrong } = {}) {
    const { place } = view.fields[key];
    input.disabled = Boolean(place);
    input.name = key;
    known(key, input, read, wrong);
    const note = place ? t('server_settings.set_in', { place }) : about;
    return el('label', { class: 'field' }, el('span', null, label), input, note ? el('small', { class: 'muted', dir: 'auto' }, note) : null);
  }
  const valueOf = key => view.fields[key].value ?? '';
  const text = (key, { placeholder = '', ...options } = {}) => field(key, el('input', { value: String(valueOf(key)), autocomplete: 'off', spellcheck: 'false', placeholder }), options);
  const secret = (key, label) => field(key, el('input', { type: 'password', autocomplete: 'new-password', placeholder: view.fields[key].is_set ? t('ai.key_kept') : '' }), { label });
  function amount(key, options = {}) {
    const form = /price|guild_minutes/u.test(key) ? FRACTION : WHOLE;
    const input = el('input', { inputmode: form === WHOLE ? 'numeric' : 'decimal', value: String(valueOf(key)), autocomplete: 'off', placeholder: String(view.fields[key].default ?? (key.includes('price') ? '' : t('server_settings.no_limit'))) });
    return field(key, input, { read: () => asNumber(input.value.trim(), form), wrong: value => wrongNumber(value, form), ...options });
  }
  const choice = (key, values, options = {}) => {
    const input = el('select', null, values.map(([value, label]) => el('option', { value, selected: String(valueOf(key)) === value }, label)));
    return field(key, input, { read: () => input.value, ...options });
  };

  // What is not as it was. A secret that is not typed stays.
  const changes = () => Object.fromEntries([...fields].map(([key, { read, first }]) => [key, read(), first]).filter(([, value, first]) => JSON.stringify(value) !== first));

  const isChanged = () => Object.keys(changes()).length > 0;
  asksBeforeLoss(box, isChanged);
  // Whoever closes the models comes back.
  const toModels = async () => {
    if (!(await maybeLost(isChanged()))) return;
    box.close();
    const opened = await openModels();
    if (opened) opened.addEventListener('close', () => showSettings({ models, openModels, section }));
  };

  const result = el('div', { class: 'result', role: 'status' });
  let tried = null;
  // Says what is wrong at its field, if there is one.
  function refuse({ field: key, about, message, why }) {
    const { input: at, read, wrong } = fields.get(key) ?? {};
    const label = at?.closest('label')?.querySelector('span')?.textContent;
    const own = at && (LANGUAGE !== 'en' || !about) && !why && (wrong?.(read()) || (about?.startsWith('is missing') && 'server_settings.missing') || MISTAKES[key]);
    const said = own ? `${label}: ${t(own)}` : label ? `${label} ${about ?? message}` : (about ?? message);
    const node = el('p', { class: 'danger', id: 'settings-problem', role: 'alert', dir: 'auto' }, plain(words.sentence(said)));
    result.replaceChildren();
    if (!at) return void (result.append(node), result.scrollIntoView({ block: 'nearest' }));
    at.closest('label').append(node);
    at.setAttribute('aria-invalid', 'true');
    at.setAttribute('aria-describedby', node.id);
    at.focus();
    at.scrollIntoView({ block: 'center' });
  }
  function forgive() {
    body.querySelector('#settings-problem')?.remove();
    for (const at of body.querySelectorAll('[aria-invalid]')) ['aria-invalid', 'aria-describedby'].forEach(name => at.removeAttribute(name));
  }
  async function busy(node, run) {
    forgive();
    node.disabled = true;
    result.replaceChildren(el('p', { class: 'muted' }, t('server_settings.working')));
    try {
      await run();
    } catch (problem) {
      refuse(problem);
    }
    node.disabled = false;
  }
  // In the words of this page, and below them the service's.
  const failed = (error, said) => [`${words.sentence(words.error(error))} ${has(`fixes.${error}`) ? t(`fixes.${error}`) : ''}`, el('div', { class: 'muted' }, plain(words.ofModel(said)))];
  function showTrial({ lines, audio, understood, invitation }) {
    const shown = lines.filter(({ state }) => state !== 'good' || lines.length < 12);
    result.replaceChildren(
      el('ul', { class: 'tried' }, shown.map(({ state, about, said, error, click }) => el('li', { class: state === 'problem' ? 'danger' : null, dir: 'auto' }, el('strong', null, `${t(`server_settings.states.${state}`)} ${words.coded('server_settings.about.', about)}: `), ...(error ? failed(error, said) : [plain(said)]), click ? el('div', null, plain(click)) : null))),
      audio ? el('p', { class: 'actions' }, button(`▶ ${t('server_settings.listen')}`, () => play(audio))) : '',
      understood === undefined ? '' : el('p', null, understood ? pieces('server_settings.understood', { words: el('q', null, plain(understood)) }) : t('server_settings.understood_nothing')),
      invitation ? el('p', null, el('a', { href: invitation, target: '_blank', rel: 'noopener noreferrer' }, t('on_discord.invite'))) : '',
    );
    if (audio) play(audio).catch(() => {});
  }
  async function tryOut(about) {
    const trial = await api.trySettings(changes(), about);
    tried = JSON.stringify(changes());
    showTrial(trial);
    return trial.works;
  }
  async function keep() {
    view = await api.keepSettings(changes());
    forgetUsedUp();
    show(t('server_settings.kept'));
  }
  // Buttons that test and save. `tests`: which services are tested before they are saved.
  function actions(tests) {
    const save = el('button', { class: 'solid' }, t('base.save'));
    const test = tests && button(t('ai.test'), () => busy(test, () => tryOut(tests)));
    const form = el('form', { class: 'connect' });
    form.addEventListener('submit', event => {
      event.preventDefault();
      busy(save, async () => {
        const wrong = [...fields].find(([key, one]) => key in changes() && one.wrong?.(one.read()));
        if (wrong) return refuse({ field: wrong[0] });
        if (!isChanged()) return result.replaceChildren(el('p', null, t('server_settings.nothing')));
        if (tests && tried !== JSON.stringify(changes()) && !(await tryOut(tests))) return result.append(button(t('server_settings.anyway'), () => busy(save, keep)));
        return keep();
      });
    });
    return { form, buttons: el('p', { class: 'actions' }, save, test) };
  }

  // A service for speech: what it is, and what it needs. `usedBy` is the key of the setting that names its table.
  function service(kind, table, usedBy) {
    const name = table.split('.').pop();
    const of = key => `${table}.${key}`;
    const current = [valueOf(usedBy)].flat()[0];
    const isOurs = current === name;
    const protocol = el('select', null, SERVICES[kind].map(value => el('option', { value, selected: isOurs && valueOf(of('api')) === value }, NAMES[value] ?? t(value ? 'server_settings.own_service' : `server_settings.no_${kind}`))));
    const about = isOurs || current === 'rehearsal' ? t(`server_settings.${kind}_about`) : t('server_settings.other_service', { name: current });
    const chosen = field(usedBy, protocol, { label: t(`server_settings.${kind}`), about, read: () => (protocol.value ? (kind === 'ears' ? [name] : name) : null) });
    known(of('api'), protocol, () => protocol.value || null);
    const rest = el('div', { class: 'connect' }, secret(of('api_key'), t('ai.key')), text(of('base_url'), { label: t('ai.address'), placeholder: 'http://127.0.0.1:8000/v1', about: t('server_settings.address_about') }), text(of('model'), { label: t('ai.model') }), kind === 'voice' ? text(of('voice'), { label: t('server_settings.voice_name') }) : null, amount(of('price'), { label: t(`server_settings.price_${kind}`, { currency: view.currency }) }));
    // Without a service nothing of it is kept.
    for (const [key, entry] of fields) {
      const { read } = entry;
      if (key.startsWith(`${table}.`)) entry.read = () => (protocol.value ? read() : null);
    }
    const draw = () => (rest.hidden = !protocol.value);
    protocol.addEventListener('change', draw);
    draw();
    return [chosen, rest];
  }

  const parts = {
    voice() {
      const { form, buttons } = actions('speech');
      const language = choice('speech.language', view.speech_languages.map(code => [code, new Intl.DisplayNames([document.documentElement.lang], { type: 'language' }).of(code)]));
      form.append(el('p', null, t('server_settings.voice_what')), language, ...service('ears', EARS, 'speech.recognition'), ...service('voice', VOICE, 'speech.synthesis'), result, buttons);
      return form;
    },
    discord() {
      const { form, buttons } = actions('discord');
      const portal = el('a', { href: PORTAL, target: '_blank', rel: 'noopener noreferrer' }, t('on_discord.portal'));
      const isSet = view.fields['discord.token'].on_page;
      const off = isSet && button(t('server_settings.discord_off'), () => busy(off, async () => {
        view = await api.keepSettings({ 'discord.token': null });
        show(t('server_settings.kept'));
      }), 'quiet-button danger');
      form.append(el('ol', { class: 'steps' }, el('li', null, pieces('on_discord.make', { portal })), el('li', null, t('server_settings.discord_switch')), el('li', null, t('server_settings.discord_token')), el('li', null, t('server_settings.discord_invite'))), secret('discord.token', t('server_settings.keys.discord_token')), result, buttons, off || '');
      return form;
    },
    limits() {
      const { form, buttons } = actions(null);
      const group = (title, ...rows) => el('fieldset', null, el('legend', null, title), rows);
      const source = models()?.source;
      const prices = source === 'settings' ? ['main', 'side'].map(role => el('div', { class: 'prices' }, PRICES.map(price => amount(`models.${role}.${price}`, { label: t(`ai.price_${role === 'main' ? 'answers' : 'decisions'}_${{ input_price: 'in', output_price: 'out', cache_read_price: 'cached' }[price]}`) })))) : source === 'page' ? button(t('server_settings.set_prices'), toModels) : el('p', { class: 'muted' }, t('server_settings.free'));
      const guests = whose => group(t(`server_settings.guests_${whose}`), el('div', { class: 'prices' }, OF_GUESTS.map(limit => amount(`guests.${whose}.${limit}`, { label: t(`server_settings.guest_limits.${limit}`) }))));
      const together = el('p', { class: 'muted' });
      api.companionOptions().then(options => options.decides_together || together.append(...pieces('server_settings.together', { setting: el('code', null, 'turn_taking.voting = "together"') })), () => {});
      form.append(usageOfLimits(), group(t('server_settings.limits_of_all'), LIMITS.map(key => amount(key)), together), guests('each'), guests('together'), group(t('server_settings.prices'), el('p', { class: 'muted' }, t('ai.prices', { currency: view.currency })), prices), result, buttons);
      return form;
    },
    general() {
      const { form, buttons } = actions(null);
      const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const zone = text('prompt.time_zone', { about: t('server_settings.zone_about') });
      const own = languageNames();
      // The browser's languages, by the English names that the server knows.
      const spoken = new Set(navigator.languages.map(code => new Intl.DisplayNames(['en'], { type: 'language' }).of(code.split('-')[0]).toLowerCase()));
      const useZone = button(t('server_settings.use_zone', { zone: here }), () => {
        zone.querySelector('input').value = here;
        for (const option of languages.options) option.selected ||= spoken.has(option.value);
      });
      const languages = el('select', { multiple: true, size: 6 }, view.memory_languages.map(name => el('option', { value: name, selected: valueOf('memory.languages').includes(name) }, words.upper(own.get(name) ?? name))));
      const crisis = el('input', { type: 'checkbox' });
      crisis.checked = valueOf('safety.crisis') !== false;
      const help = el('textarea', { rows: 3, value: valueOf('safety.crisis_text'), maxlength: 1500 });
      form.append(
        zone,
        el('p', { class: 'actions' }, useZone),
        field('memory.languages', languages, { read: () => [...languages.selectedOptions].map(({ value }) => value), about: t('server_settings.memory_about') }),
        text('safety.operator', { about: t('server_settings.operator_about') }),
        text('safety.privacy', { placeholder: 'https://', about: t('server_settings.privacy_about') }),
        text('companion_defaults.quiet_hours', { placeholder: '23:00-08:00', about: t('server_settings.quiet_about') }),
        choice('safety.notice', ['once', 'daily', 'off'].map(value => [value, t(`server_settings.notices.${value}`)])),
        field('safety.crisis', crisis, { read: () => crisis.checked }),
        field('safety.crisis_text', help, { about: t('server_settings.crisis_about') }),
        result,
        buttons,
      );
      return form;
    },
  };

  const again = button(t('server_settings.read_again'), async () => (await maybeLost(isChanged())) && busy(again, async () => {
    view = await api.readSettings();
    show(view.problems.length ? '' : t('server_settings.was_read'));
  }), 'quiet-button');

  function show(said = '') {
    fields = new Map();
    tried = null;
    result.replaceChildren(said ? el('p', null, said) : '');
    const tabs = el('nav', { class: 'presets', 'aria-label': t('server_settings.title') }, button(t('ai.models'), toModels, 'outlined small'), Object.keys(parts).map(name => el('button', { type: 'button', class: 'outlined small', 'aria-pressed': String(name === section), onclick: async () => name !== section && (await maybeLost(isChanged())) && ((section = name), show()) }, t(`server_settings.parts.${name}`))));
    const problems = view.problems.length ? el('div', { class: 'failure' }, el('p', { class: 'danger' }, t('server_settings.mistakes')), el('ul', null, view.problems.map(problem => el('li', { dir: 'auto' }, plain(problem))))) : null;
    body.replaceChildren(tabs, ...[problems].filter(Boolean), parts[section](), el('p', { class: 'muted' }, t('server_settings.where')), again);
  }

  try {
    view = await api.settings();
    show();
  } catch (problem) {
    body.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: problem.message })));
  }
}
