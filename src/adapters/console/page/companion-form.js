// The fields in which a companion is described: what is in them, what they say, and what is wrong with them.

import { el, plain } from './dom.js';
import { LOCALE, loadLater, t } from './texts.js';
import * as words from './words.js';

const KB = 1024;
const TYPING_MS = 400;
const MOST_PERSONA = 16 * KB;
// From here on it is said how much is left.
const NEARLY = 14 * KB;
const MOST_GREETINGS = 64;
const STARTS = ['host', 'sceptic', 'calm'];
// After how much silence a conversation may be started, in seconds.
const SILENCES = [600, 3600, 6 * 3600, 86_400, 7 * 86_400];

const bytesOf = text => new TextEncoder().encode(text).length;
const inKb = bytes => words.number(bytes / KB, 1);

export function span(secs) {
  const [size, unit] = secs % 86_400 === 0 ? [86_400, 'day'] : secs % 3600 === 0 ? [3600, 'hour'] : secs % 60 === 0 ? [60, 'minute'] : [1, 'second'];
  return (secs / size).toLocaleString(LOCALE, { style: 'unit', unit, unitDisplay: 'long' });
}

// A field with its label, a hint, and room for what is wrong with it.
function entry(key, label, input, hint = null) {
  const id = `companion-${key}`;
  const problem = el('small', { class: 'form-problem', id: `${id}-problem`, role: 'alert' });
  const about = hint && el('small', { class: 'muted', id: `${id}-about` }, hint);
  const labelNode = el('label', { for: id }, label);
  input.id = id;
  input.setAttribute('aria-describedby', [about?.id, problem.id].filter(Boolean).join(' '));
  return {
    node: el('div', { class: 'field' }, labelNode, input, about, problem),
    input,
    label: text => (labelNode.textContent = text),
    about: text => about && (about.textContent = text),
    refuse(text) {
      problem.textContent = plain(text);
      if (text) input.setAttribute('aria-invalid', 'true');
      else input.removeAttribute('aria-invalid');
    },
  };
}

const choice = (value, label) => el('option', { value }, label);

// A list of texts, each in a field of its own.
function greetingList(problemNode) {
  const list = el('div', { class: 'greetings' });
  const number = () => [...list.children].forEach((row, i) => row.firstChild.setAttribute('aria-label', t('maker.greeting', { number: i + 1 })));
  function add(text = '') {
    const input = el('textarea', { rows: 2, dir: 'auto', value: text });
    const row = el('div', { class: 'with-button' }, input, el('button', { type: 'button', class: 'quiet-button', onclick: remove }, t('maker.greeting_remove')));
    function remove() {
      const next = row.nextSibling ?? row.previousSibling;
      row.remove();
      number();
      list.dispatchEvent(new Event('input', { bubbles: true }));
      (next?.firstChild ?? more).focus();
    }
    list.append(row);
    number();
    more.disabled = list.children.length >= MOST_GREETINGS;
    return input;
  }
  const more = el('button', { type: 'button', class: 'quiet-button', onclick: () => add().focus() }, t('maker.greeting_add'));
  return { node: el('fieldset', { class: 'field' }, el('legend', null, t('maker.greetings')), el('small', { class: 'muted' }), list, el('p', null, more), problemNode), add, set: texts => (list.replaceChildren(), texts.forEach(add)), texts: () => [...list.querySelectorAll('textarea')].map(input => input.value.trim()).filter(Boolean), focus: () => (list.querySelector('textarea') ?? more).focus() };
}

// `options` is what can be chosen, `fields` what is written. `named()` is called when the name changes; `taken(name)` is the companion that has it already.
export function companionForm({ options, fields, elsewhere, named, taken }) {
  const everyday = new Set(options.common_names);
  const text = attributes => el('input', { autocomplete: 'off', dir: 'auto', ...attributes });
  const name = entry('name', t('maker.name'), text({ maxlength: 64, value: fields.name ?? '' }), ' ');
  const persona = entry('persona', '', el('textarea', { rows: 9, dir: 'auto', placeholder: t('maker.persona_placeholder'), readonly: Boolean(elsewhere), value: fields.persona ?? '' }), elsewhere ? plain(elsewhere) : t('maker.persona_about'));
  const size = el('small', { class: 'muted', 'aria-live': 'polite' });
  const starts = el('p', { class: 'presets' }, el('small', { class: 'muted' }, t('maker.starts')), STARTS.map(kind => el('button', { type: 'button', class: 'outlined small', onclick: () => begin(kind) }, t(`beginnings.${kind}`))));
  persona.node.append(size, starts);

  const usual = options.defaults.interjection;
  const levelBefore = words.levelOf(fields.interjection ?? usual, fields.quiet_hours ?? options.defaults.quiet_hours);
  const levels = el('fieldset', { class: 'field levels' }, el('legend', null), el('div', null, words.INTERJECTION_LEVELS.map(code => el('label', null, el('input', { type: 'radio', name: 'interjection', value: code, checked: code === levelBefore }), ' ', words.interjectionLevel(code)))));

  const chattiness = entry('chattiness', '', el('textarea', { rows: 2, dir: 'auto', placeholder: options.defaults.chattiness, value: fields.chattiness ?? '' }));
  const tone = entry('tone', t('maker.tone'), el('textarea', { rows: 2, dir: 'auto', value: fields.tone ?? '' }), t('maker.tone_about'));
  const about = entry('about', t('maker.about'), text({ maxlength: 200, value: fields.about ?? '' }), t('maker.about_about'));
  const aliasesBefore = (fields.aliases ?? []).join(', ');
  const aliases = entry('aliases', t('maker.aliases'), text({ value: aliasesBefore }), ' ');
  const greetingProblem = el('small', { class: 'form-problem', role: 'alert' });
  const greetings = greetingList(greetingProblem);
  greetings.set(fields.greetings ?? []);
  const silences = [...new Set([...SILENCES, fields.starts_after].filter(Number.isFinite))].sort((one, other) => one - other);
  const silence = entry('starts_after', t('maker.silence'), el('select', null, choice('', t('maker.never')), silences.map(secs => choice(String(secs), t('maker.after', { time: span(secs) })))));
  silence.input.value = fields.starts_after ?? '';
  const hoursBefore = words.hasHours(fields.quiet_hours) ? fields.quiet_hours : '';
  const quietHours = entry('quiet_hours', t('maker.quiet_hours'), text({ value: hoursBefore, placeholder: '23:00-08:00', spellcheck: 'false' }), t('maker.quiet_hours_about'));
  // What is written if there are no quiet hours, or none any more. Where all others have some, that has to be said.
  const unlessQuiet = () => (levelBefore !== 'spoken_to' && !hoursBefore ? fields.quiet_hours : options.defaults.quiet_hours === 'never' ? undefined : 'never');
  const adult = entry('adult', t('maker.adult'), el('input', { type: 'checkbox', checked: Boolean(fields.adult) }), t('maker.adult_about'));
  const own = fields.voice ?? {};
  const services = [...new Set([...options.voices.map(({ provider }) => provider), own.provider].filter(Boolean))];
  const provider = entry('provider', t('maker.voice_service'), el('select', null, choice('', t('maker.usual')), services.map(one => choice(one, words.model(one)))));
  provider.input.value = own.provider ?? '';
  const voices = el('datalist', { id: 'companion-voices' });
  const voice = entry('voice', t('maker.voice'), text({ list: voices.id, placeholder: t('maker.usual'), value: own.voice ?? '', spellcheck: 'false' }), t('maker.voice_about'));
  const offerVoices = () => voices.replaceChildren(...options.voices.filter(one => !provider.input.value || one.provider === provider.input.value).flatMap(one => one.voices).map(one => choice(one, one)));
  provider.input.addEventListener('change', offerVoices);
  offerVoices();
  const speed = entry('speed', t('maker.speed'), text({ type: 'number', min: 0.5, max: 2, step: 'any', placeholder: '1', value: own.speed ?? '' }));
  const models = [...new Set([...options.models, fields.model].filter(Boolean))];
  const model = entry('model', t('maker.model'), el('select', null, choice('', t('maker.usual')), models.filter(one => one !== 'main').map(one => choice(one, words.modelThatWrites(one)))));
  model.input.value = fields.model ?? '';
  const pictureUrl = entry('picture_url', t('maker.picture_url'), text({ type: 'url', placeholder: 'https://…', spellcheck: 'false', value: fields.picture_url ?? '' }));
  const more = el(
    'details',
    { class: 'more' },
    el('summary', null, t('maker.more')),
    [about, chattiness, tone, aliases].map(one => one.node),
    greetings.node,
    [quietHours, silence, adult, ...(services.length ? [provider, voice, speed] : []), ...(model.input.options.length > 1 ? [model] : []), pictureUrl].map(one => one.node),
    voices,
  );

  const whole = { name, persona, about, chattiness, tone, aliases, quiet_hours: quietHours, starts_after: silence, adult, provider, voice, speed, model, picture_url: pictureUrl };
  const who = () => plain(name.input.value.trim()) || t('maker.it');

  function relabel() {
    name.about(everyday.has(name.input.value.trim().toLowerCase()) ? t('maker.everyday', { name: who() }) : '');
    persona.label(t('maker.persona', { who: who() }));
    levels.querySelector('legend').textContent = t('maker.often', { who: who() });
    chattiness.label(t('maker.chattiness', { who: who() }));
    aliases.about(t('maker.aliases_about', { who: who() }));
    greetings.node.querySelector('small').textContent = t('maker.greetings_about', { who: who() });
  }
  function measure() {
    const bytes = bytesOf(persona.input.value);
    starts.hidden = Boolean(persona.input.value) || Boolean(elsewhere);
    size.textContent = bytes > NEARLY ? t('maker.bytes', { used: inKb(bytes), most: inKb(MOST_PERSONA) }) : '';
    persona.refuse(bytes > MOST_PERSONA ? t('maker.too_long', { most: inKb(MOST_PERSONA) }) : '');
    return bytes <= MOST_PERSONA;
  }
  function begin(kind) {
    persona.input.value = t(`beginnings.${kind}_text`);
    persona.input.dispatchEvent(new Event('input', { bubbles: true }));
    persona.input.focus();
  }
  let typing = null;
  async function tellTaken() {
    await loadLater();
    const other = taken(name.input.value);
    if (other) name.refuse(words.upper(t('refusals.companion_name_taken', { name: name.input.value.trim(), other: other.name })));
  }
  name.input.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(tellTaken, TYPING_MS);
    name.refuse('');
    relabel();
    named(who());
  });
  persona.input.addEventListener('input', measure);
  relabel();
  measure();

  const written = input => input.value.trim() || undefined;
  const number = input => (input.value === '' ? undefined : Number(input.value));
  return {
    nodes: [name.node, persona.node, levels, more],
    who,
    // What is written, as the server takes it. Line ends and spaces around a text say nothing.
    fields() {
      const level = levels.querySelector('input:checked').value;
      return {
        name: name.input.value.trim(),
        // An alias with a comma can only come from a file.
        aliases: aliases.input.value === aliasesBefore ? fields.aliases : aliases.input.value.split(/[,;\n]/u).map(one => one.trim()).filter(Boolean),
        persona: persona.input.value.trim() ? persona.input.value : undefined,
        chattiness: written(chattiness.input),
        about: written(about.input),
        interjection: level === 'spoken_to' || (fields.interjection === undefined && level === usual) ? fields.interjection : level,
        quiet_hours: level === 'spoken_to' ? (levelBefore === level ? fields.quiet_hours : 'always') : (written(quietHours.input) ?? unlessQuiet()),
        tone: written(tone.input),
        starts_after: number(silence.input),
        adult: adult.input.checked || undefined,
        model: written(model.input),
        voice: { provider: written(provider.input), voice: written(voice.input), speed: number(speed.input) },
        picture_url: written(pictureUrl.input),
        greetings: greetings.texts(),
      };
    },
    // Whether it can be sent. If not, what is wrong has the focus.
    isComplete() {
      for (const one of Object.values(whole)) one.refuse('');
      greetingProblem.textContent = '';
      if (!name.input.value.trim()) name.refuse(t('maker.name_missing'));
      const isShort = measure();
      const wrong = !name.input.value.trim() ? name : isShort ? null : persona;
      wrong?.input.focus();
      return !wrong;
    },
    // Shows what the server says of a field. Returns whether there is such a field.
    refuse({ field, about }) {
      const parts = field.split(/[.[\]]+/u);
      if (parts.includes('greetings')) {
        more.open = true;
        greetingProblem.textContent = plain(words.upper(about));
        greetings.focus();
        return true;
      }
      const one = whole[parts.findLast(part => Object.hasOwn(whole, part))];
      if (!one?.node.isConnected) return false;
      if (more.contains(one.node)) more.open = true;
      one.refuse(words.upper(about));
      one.input.focus();
      return true;
    },
    focus: () => name.input.focus(),
    open: () => (more.open = true),
  };
}
