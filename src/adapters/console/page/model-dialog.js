// The dialog in which a model is connected: where it is, its key, its name and its prices, with a test before.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { fieldsOf, jsonOf, linesOf, valuesOf } from './model-extra.js';
import { LOCALE, allInWords, has, t } from './texts.js';
import { asksBeforeLoss } from './unsaved.js';
import * as words from './words.js';

const SERVERS = [
  ['OpenRouter', 'https://openrouter.ai/api/v1'],
  ['OpenAI', 'https://api.openai.com/v1'],
  ['Ollama', 'http://127.0.0.1:11434/v1'],
  ['llama.cpp', 'http://127.0.0.1:8080/v1'],
];

// More names than these are only offered while one is typed.
const MOST_BUTTONS = 12;
// The seconds that a model may be given for a decision, when it needed more.
const MORE_SECS = [60, 180, 600];
// Of an answer to a test this much is shown, in characters.
const MOST_SHOWN = 160;

// An address of this computer or of its network.
const LOCAL = /^(localhost|[\d.]+|\[[\da-f:]+\]|[^./:]+)(:\d+)?(\/|$)/iu;

const field = (label, input, hint) => el('label', { class: 'field' }, el('span', null, label), input, hint ? el('small', { class: 'muted' }, hint) : null);

function inForce({ ready, current }) {
  const row = (term, model) => [el('dt', null, term), el('dd', null, model.model === model.provider ? model.model : `${model.model} · ${model.provider}`)];
  const parts = (ready?.parts ?? []).filter(({ part, ready: isReady }) => !isReady && part !== 'models');
  return [
    el('p', null, t(`ai.from_${current.source}`)),
    current.source === 'rehearsal' ? null : el('dl', { class: 'facts' }, row(t('ai.decisions'), current.side), row(t('ai.answers'), current.main)),
    adapted([...(current.side.adaptations ?? []), ...(current.main.adaptations ?? [])]),
    // Equal troubles of both models are one.
    el('div', { class: 'troubles' }, [...new Map(current.troubles.map(trouble => [trouble.error, trouble])).values()].map(({ role, error, detail }) => {
      const isShared = current.troubles.filter(other => other.error === error).length > 1;
      return failure(error, detail, isShared ? '' : t(role === 'side' ? 'ai.decisions' : 'ai.answers'));
    })),
    parts.length ? [el('h3', null, t('ai.not_ready')), el('dl', { class: 'facts' }, parts.map(({ part, detail, why }) => [el('dt', null, words.upper(words.part(part))), el('dd', { class: 'danger', dir: 'auto' }, words.sentence(allInWords(why, detail)))]))] : null,
  ];
}

// How models are asked otherwise than usual, because they refused the usual way. It is forgotten after a day.
function adapted(adaptations) {
  return adaptations.length ? el('ul', { class: 'adapted muted' }, [...new Set(adaptations)].map(text => el('li', null, `${words.upper(text)}.`))) : null;
}

// What is wrong and how to mend it in words, and below it what the server answered.
function failure(error, detail, role = '') {
  const what = words.upper(words.error(error));
  const fix = has(`fixes.${error}`) && !words.isUnknownHost(detail) ? t(`fixes.${error}`) : '';
  // The same advice for a terminal.
  const answer = fix ? detail.replace(/; is the server running, and is base_url right\?$/u, '.') : detail;
  return el('div', { class: 'failure' }, el('p', { class: 'danger' }, `${role ? t('ai.trouble', { what, role }) : `${what}.`} ${fix}`), el('p', { class: 'muted', dir: 'auto' }, plain(words.ofModel(answer))));
}

function triedLine(key, { model, works, adaptations, detail, secs, input_tokens, output_tokens, cost }, currency) {
  const price = cost === undefined ? t('ai.no_price') : `${cost.toLocaleString(LOCALE, { maximumSignificantDigits: 3 })} ${currency}`;
  return el('li', { class: works ? null : 'danger' }, el('strong', null, t(works ? `ai.${key}_works` : `ai.${key}_fails`)), ` (${t('ai.tried', { model, secs: secs || `< ${words.number(0.01, 2)}`, tokens: input_tokens + output_tokens, price })}): `, el('span', { dir: 'auto' }, plain(works && detail.length > MOST_SHOWN ? `${detail.slice(0, MOST_SHOWN)}…` : works ? detail : words.ofModel(detail))), adapted(adaptations ?? []));
}

// `current` are the models in force, `ready` is the readiness of the server; `changed(models)` is called when others are, and `tell(text)` shows a notice.
export function modelDialog({ ready, current, changed, tell }) {
  if (!current) return dialog(t('ai.models'), el('p', null, t('ai.unknown')));
  const isConnected = current.source !== 'rehearsal';
  const side = current.side.model !== current.main.model && current.side.provider === current.main.provider ? current.side : null;
  const input = (name, attributes) => el('input', { name, dir: 'ltr', autocomplete: 'off', spellcheck: 'false', ...attributes });
  const price = (name, value) => input(name, { type: 'number', min: '0', step: 'any', value: value ?? '' });
  const address = input('base_url', { type: 'url', required: true, placeholder: 'https://…/v1', value: isConnected ? (current.base_url ?? '') : '' });
  const key = input('api_key', { type: 'password', placeholder: t(current.has_key ? 'ai.key_kept' : current.has_spare_key ? 'ai.key_or_choose' : 'ai.key_none') });
  const options = el('datalist', { id: 'model-names' });
  const main = input('model', { required: true, list: 'model-names', value: isConnected ? current.main.model : '' });
  const decides = input('side', { list: 'model-names', placeholder: t('ai.model_same'), value: isConnected && side ? side.model : '' });
  const mainPrice = key => price(key, isConnected ? current.main[key] : null);
  const prices = { in: mainPrice('input_price'), cached: mainPrice('cache_read_price'), out: mainPrice('output_price'), sideIn: price('side_input_price', side?.input_price), sideCached: price('side_cache_read_price', side?.cache_read_price), sideOut: price('side_output_price', side?.output_price) };
  const lines = (values, hint) => el('textarea', { rows: 2, dir: 'ltr', autocomplete: 'off', spellcheck: 'false', placeholder: hint, value: isConnected ? linesOf(values) : '' });
  const headers = lines(current.extra_headers, 'x-gateway-key: …');
  const parameters = lines(current.extra_query, 'api-version: …');
  const json = model => {
    const area = el('textarea', { rows: 3, dir: 'ltr', autocomplete: 'off', spellcheck: 'false', placeholder: '{"reasoning_effort": "low"}', value: isConnected ? jsonOf(model?.extra_body) : '' });
    area.addEventListener('input', () => area.setCustomValidity(fieldsOf(area.value) ? '' : t('ai.extra_body_wrong')));
    return area;
  };
  const fields = { main: json(current.main), side: json(side) };
  // Limits in a settings file take precedence over those of this dialog.
  const { 'prompt.decision': setForm, ...limits } = current.set ?? {};
  const isLimited = Object.keys(limits).length > 0;
  const patience = input('timeout_secs', { type: 'number', min: '15', max: '600', disabled: isLimited, placeholder: current.side.timeout_secs, value: isConnected && !isLimited ? (current.timeout_secs ?? '') : '' });
  const short = el('input', { type: 'checkbox', name: 'short_decisions', checked: isConnected && current.short_decisions && !setForm, disabled: Boolean(setForm) });
  const vision = el('input', { type: 'checkbox', name: 'vision', checked: isConnected && Boolean(current.main.vision) });
  const spare = el('input', { type: 'checkbox' });
  const withSpare = el('label', { class: 'no-key', hidden: !current.has_spare_key }, spare, ` ${t('ai.key_of_server')}`);
  const result = el('div', { class: 'result', role: 'status' });
  const waiting = el('p', { class: 'waiting muted' });
  const button = (label, kind, onclick, type = 'button') => el('button', { class: kind, type, onclick }, label);
  const list = button(t('ai.show'), 'outlined', () => busy(list, showNames));
  const test = button(t('ai.test'), 'outlined', () => form.reportValidity() && busy(test, tryOut));
  const connect = button(t('ai.connect'), 'solid', null, 'submit');
  const back = current.source === 'page' ? button(t('ai.disconnect'), 'quiet-button danger', () => busy(back, disconnect)) : null;

  // A key belongs to its address: for another one it is asked for again.
  const isSameAddress = () => address.value.trim() === (current.base_url ?? '');
  // A key of the settings that belongs to no address goes nowhere unless it is chosen.
  const noKey = el('input', { type: 'checkbox' });
  const mayChoose = () => current.has_spare_key || (current.has_key && !isSameAddress());
  const withoutKey = el('label', { class: 'no-key', hidden: !mayChoose() }, noKey, ` ${t('ai.key_not_needed')}`);
  // Left out, it is the key in use, which the server gives to no other address.
  // A copied key often has a space or a line break at its end.
  const server = () => {
    const typed = key.value.trim();
    return {
      base_url: address.value.trim(),
      api_key: typed === '' && !noKey.checked ? undefined : typed,
      spare_key: (typed === '' && spare.checked) || undefined,
      extra_headers: valuesOf(headers.value),
      extra_query: valuesOf(parameters.value),
    };
  };
  for (const [one, other] of [[spare, noKey], [noKey, spare]]) one.addEventListener('change', () => one.checked && (other.checked = false));
  // An address is often copied without its beginning, or with what follows it in a request.
  address.addEventListener('change', () => {
    const typed = address.value.trim().replace(/\/chat\/completions\/?$/u, '');
    address.value = typed && !/^[a-z]+:\/\//iu.test(typed) ? `${LOCAL.test(typed) ? 'http' : 'https'}://${typed}` : typed;
  });
  address.addEventListener('input', () => {
    key.placeholder = t(!current.has_key ? (current.has_spare_key ? 'ai.key_or_choose' : 'ai.key_none') : isSameAddress() ? 'ai.key_kept' : 'ai.key_of_address');
    withoutKey.hidden = !mayChoose();
    if (withoutKey.hidden) noKey.checked = false;
  });
  const number = ({ value }) => (value === '' ? undefined : Number(value));
  // The price of writing to a cache, which few servers have, is not asked for. That of the same model stays.
  const priced = (before, name, input, output, cached) => ({
    input_price: number(input),
    output_price: number(output),
    cache_read_price: number(cached),
    cache_write_price: isConnected && before?.model === name && input.value !== '' ? before.cache_write_price : undefined,
  });
  const connection = () => ({
    ...server(),
    main: { model: main.value.trim(), ...priced(current.main, main.value.trim(), prices.in, prices.out, prices.cached), extra_body: fieldsOf(fields.main.value) ?? {}, vision: vision.checked ? 'auto' : undefined },
    side: decides.value.trim() ? { model: decides.value.trim(), ...priced(side, decides.value.trim(), prices.sideIn, prices.sideOut, prices.sideCached), extra_body: fieldsOf(fields.side.value) ?? {} } : undefined,
    timeout_secs: number(patience),
    short_decisions: short.checked || undefined,
  });

  const show = (...content) => result.replaceChildren(...content);
  // The newest test: what was tested, and what failed in it. A new one, or another key, is compared with it.
  let tested = null;
  const asTested = () => JSON.stringify(connection());
  async function busy(node, run) {
    const label = node.textContent;
    node.disabled = true;
    node.textContent = `${label}…`;
    show();
    try {
      await run();
    } catch (problem) {
      const { error, problem: detail } = problem.why ?? {};
      show(error ? failure(error, detail) : el('p', { class: 'danger', dir: 'auto' }, plain(words.ofModel(problem.message))));
    }
    node.disabled = false;
    node.textContent = label;
  }
  async function showNames() {
    if (!address.reportValidity()) return;
    const { models } = await api.modelNames(server());
    options.replaceChildren(...models.map(value => el('option', { value })));
    if (models.length === 1) main.value = models[0];
    const choose = name => {
      main.value = name;
      main.dispatchEvent(new Event('input', { bubbles: true }));
      test.focus();
    };
    if (models.length > MOST_BUTTONS) show(el('p', null, t('ai.choose_typing', { count: models.length })));
    else if (models.length) show(el('p', null, t('ai.choose', { count: models.length })), el('p', { class: 'actions' }, models.map(name => button(name, 'outlined small', () => choose(name)))));
    else show(el('p', null, t('ai.no_names')));
    main.focus();
  }
  // First a decision is awaited, then a statement. Returns what ends it.
  function countSeconds([first, second]) {
    const began = Date.now();
    const tick = () => {
      const secs = Math.round((Date.now() - began) / 1000);
      waiting.textContent = t('ai.waiting', { secs, most: secs <= first ? first : first + second });
    };
    const ticking = setInterval(tick, 1000);
    tick();
    return () => {
      clearInterval(ticking);
      waiting.textContent = '';
    };
  }
  function limitsOfTest() {
    const secs = number(patience);
    return secs ? [secs, Math.max(2 * secs, current.main.timeout_secs)] : [current.side.timeout_secs, current.main.timeout_secs];
  }
  // What to do about a model that was too slow: all limits follow from one number.
  function offerTime({ secs }, again) {
    if (isLimited) return result.append(el('p', null, t('ai.limits_set', { keys: Object.entries(limits).map(([key, place]) => `${key} (${place})`).join(', ') })));
    const more = MORE_SECS.find(one => one > Math.max(secs, limitsOfTest()[0]));
    if (!more) return;
    const give = button(t('ai.give', { secs: more }), 'outlined', () => {
      patience.value = more;
      short.checked = !setForm;
      slow.open = true;
      busy(test, again);
    });
    result.append(el('p', { class: 'actions' }, give));
    give.focus();
  }
  async function tryOut(again = tryOut) {
    const what = asTested();
    tested = null;
    const stopCounting = countSeconds(limitsOfTest());
    const { decision, statement } = await api
      .tryModels(connection())
      .catch(problem => {
        tested = { what, failed: plain(problem.message) };
        throw problem;
      })
      .finally(stopCounting);
    const failed = [decision, statement].filter(({ works }) => !works);
    tested = { what, failed: null };
    if (what !== asTested()) return show(el('p', { class: 'muted' }, t('ai.changed')));
    tested.failed = failed.length ? plain(failed[0].error ? words.error(failed[0].error) : failed[0].detail) : null;
    // What was wrong before the test is not what is wrong now.
    box.querySelector('.troubles').hidden = true;
    const late = failed.find(({ error }) => error === 'timeout');
    if (decision.error && (decision.error === statement.error || decision === late)) show(failure(decision.error, decision.detail));
    else show(el('ul', { class: 'tried' }, triedLine('deciding', decision, current.currency), triedLine('writing', statement, current.currency)));
    if (late) offerTime(late, again);
  }
  async function use() {
    const connected = await api.connectModels(connection());
    changed(connected);
    box.close();
    tell(t('ai.connected', { model: connected.main?.model ?? main.value.trim() }));
  }
  async function useIfItWorks() {
    await tryOut(useIfItWorks);
    if (tested.what !== asTested()) return;
    if (tested.failed) offerAnyway();
    else await use();
  }
  function offerAnyway() {
    const anyway = button(t('ai.anyway'), 'outlined', () => busy(connect, use));
    result.append(el('p', { class: 'actions' }, anyway));
    anyway.focus();
  }
  function askAnyway() {
    show(el('p', { class: 'danger', dir: 'auto' }, t('ai.anyway_question', { why: tested.failed })));
    offerAnyway();
  }
  async function disconnect() {
    changed(await api.disconnectModels());
    box.close();
  }

  const experts = el(
    'details',
    { open: [headers, parameters, fields.main, fields.side].some(({ value }) => value !== '') },
    el('summary', null, t('ai.experts')),
    field(t('ai.extra_headers'), headers, t('ai.extra_headers_about')),
    field(t('ai.extra_query'), parameters, t('ai.extra_query_about')),
    field(t('ai.extra_body_answers'), fields.main, t('ai.extra_body_about')),
    field(t('ai.extra_body_decisions'), fields.side, t('ai.extra_body_decisions_about')),
  );
  const slow = el(
    'details',
    { open: patience.value !== '' || short.checked },
    el('summary', null, t('ai.slow')),
    field(t('ai.timeout'), patience, isLimited ? '' : t('ai.timeout_about')),
    el('label', { class: 'no-key' }, short, ` ${t('ai.short')}`),
  );
  // What is wrong in a closed part cannot be shown.
  for (const part of [slow, experts]) part.addEventListener('invalid', () => (part.open = true), true);
  const form = el(
    'form',
    { class: 'connect' },
    el('p', { class: 'presets' }, SERVERS.map(([label, url]) => button(label, 'outlined small', () => {
      address.value = url;
      address.dispatchEvent(new Event('input', { bubbles: true }));
      key.focus();
    }))),
    field(t('ai.address'), address),
    field(t('ai.key'), key, t('ai.key_about')),
    withSpare,
    withoutKey,
    el('div', { class: 'with-button' }, field(t('ai.model'), main), list),
    options,
    el('label', { class: 'no-key' }, vision, ` ${t('ai.vision')}`),
    el(
      'details',
      { open: Boolean(side) },
      el('summary', null, t('ai.added')),
      field(t('ai.model_decides'), decides, t('ai.model_decides_about')),
      el('p', { class: 'muted' }, t('ai.prices', { currency: current.currency })),
      el('div', { class: 'prices' }, field(t('ai.price_answers_in'), prices.in), field(t('ai.price_answers_cached'), prices.cached), field(t('ai.price_answers_out'), prices.out), field(t('ai.price_decisions_in'), prices.sideIn), field(t('ai.price_decisions_cached'), prices.sideCached), field(t('ai.price_decisions_out'), prices.sideOut)),
    ),
    slow,
    experts,
    result,
    waiting,
    el('p', { class: 'actions' }, connect, test, back),
  );
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (tested?.what !== asTested()) return busy(connect, useIfItWorks);
    return tested.failed ? askAnyway() : busy(connect, use);
  });
  // What was said about other entries does not hold for these.
  form.addEventListener('input', () => {
    if (!result.firstChild || !tested || tested.what === asTested()) return;
    show(el('p', { class: 'muted' }, t('ai.changed')));
  });
  const heading = t(!isConnected ? 'ai.your_model' : current.troubles.length ? 'ai.change' : 'ai.use_another');
  const box = dialog(t(isConnected ? 'ai.models' : 'ai.connect_ai'), inForce({ ready, current }), el('h3', null, heading), form);
  const state = () => [asTested(), fields.main.value, fields.side.value].join();
  const before = state();
  asksBeforeLoss(box, () => state() !== before);
  return box;
}
