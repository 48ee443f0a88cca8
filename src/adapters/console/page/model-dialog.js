// The dialog in which a model is connected: where it is, its key, its name and its prices, with a test before.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import * as words from './words.js';

const SERVERS = [
  ['OpenRouter', 'https://openrouter.ai/api/v1'],
  ['OpenAI', 'https://api.openai.com/v1'],
  ['Ollama', 'http://127.0.0.1:11434/v1'],
  ['llama.cpp', 'http://127.0.0.1:8080/v1'],
];

const MENDS = {
  key_rejected: 'Type the key of this address again, or make a new one where you got it.',
  unknown_model: 'Choose a model with “Show models”, and check that the address ends as its server says, usually in /v1.',
  no_credit: 'Add credit where you got the key, or connect another model.',
  out_of_tokens: 'Raise prompt.max_side_answer_tokens (decisions) or prompt.max_main_answer_tokens (statements), or choose a model that thinks less.',
  unreachable: 'Check that the server runs, and that the address is right.',
  timeout: 'Perhaps the model is still loading: test once more.',
  overloaded: 'Wait a little, and test once more.',
};

// More names than these are only offered while one is typed.
const MOST_BUTTONS = 12;
// Of an answer to a test this much is shown, in characters.
const MOST_SHOWN = 160;

// An address of this computer or of its network.
const LOCAL = /^(localhost|[\d.]+|\[[\da-f:]+\]|[^./:]+)(:\d+)?(\/|$)/iu;

const upper = text => text.charAt(0).toUpperCase() + text.slice(1);
const field = (label, input, hint) => el('label', { class: 'field' }, el('span', null, label), input, hint ? el('small', { class: 'muted' }, hint) : null);

function inForce({ ready, current }) {
  const row = (term, model) => [el('dt', null, term), el('dd', null, model.model === model.provider ? model.model : `${model.model} · ${model.provider}`)];
  const source = { rehearsal: 'Demo mode: no AI is connected, so companions answer with ready-made sentences. Nothing leaves this computer.', settings: 'These models are set in the settings. A model that you connect here takes their place.', page: 'These models were connected on this page.' }[current.source];
  const parts = (ready?.parts ?? []).filter(({ part, ready: isReady }) => !isReady && part !== 'models');
  return [
    el('p', null, source),
    el('dl', { class: 'facts' }, row('Decisions', current.side), row('Answers', current.main)),
    adapted([...(current.side.adaptations ?? []), ...(current.main.adaptations ?? [])]),
    // Equal troubles of both models are one.
    el('div', { class: 'troubles' }, [...new Map(current.troubles.map(trouble => [trouble.error, trouble])).values()].map(({ role, error, detail }) => {
      const isShared = current.troubles.filter(other => other.error === error).length > 1;
      return failure(isShared ? '' : ` (${role === 'side' ? 'decisions' : 'statements'})`, error, detail);
    })),
    parts.length ? [el('h3', null, 'Not ready'), el('dl', { class: 'facts' }, parts.map(({ part, detail }) => [el('dt', null, words.spaced(part)), el('dd', { class: 'danger', dir: 'auto' }, detail)]))] : null,
  ];
}

// How models are asked otherwise than usual, because they refused the usual way. It is forgotten after a day.
function adapted(adaptations) {
  return adaptations.length ? el('ul', { class: 'adapted muted' }, [...new Set(adaptations)].map(text => el('li', null, `${upper(text)}.`))) : null;
}

// What is wrong and how to mend it in words, and below it what the server answered.
function failure(what, error, detail) {
  return el('div', { class: 'failure' }, el('p', { class: 'danger' }, `${upper(words.error(error))}${what}. ${MENDS[error] ?? ''}`), el('p', { class: 'muted', dir: 'auto' }, plain(words.ofModel(detail))));
}

function triedLine(what, { model, works, adaptations, detail, secs, input_tokens, output_tokens, cost }, currency) {
  const price = cost === undefined ? 'no price set' : `${cost} ${currency}`;
  return el('li', { class: works ? null : 'danger' }, el('strong', null, `${what} ${works ? 'works' : 'does not work'}`), ` (${model}, ${secs || '< 0.01'} s, ${input_tokens + output_tokens} tokens, ${price}): `, el('span', { dir: 'auto' }, plain(works && detail.length > MOST_SHOWN ? `${detail.slice(0, MOST_SHOWN)}…` : works ? detail : words.ofModel(detail))), adapted(adaptations ?? []));
}

// `current` are the models in force, `ready` is the readiness of the server; `changed(models)` is called when others are.
export function modelDialog({ ready, current, changed }) {
  if (!current) return dialog('Models', el('p', null, 'The server does not say which models it uses.'));
  const isConnected = current.source !== 'rehearsal';
  const side = current.side.model !== current.main.model && current.side.provider === current.main.provider ? current.side : null;
  const input = (name, attributes) => el('input', { name, autocomplete: 'off', spellcheck: 'false', ...attributes });
  const price = (name, value) => input(name, { type: 'number', min: '0', step: 'any', value: value ?? '' });
  const address = input('base_url', { type: 'url', required: true, placeholder: 'https://…/v1', value: isConnected ? (current.base_url ?? '') : '' });
  const key = input('api_key', { type: 'password', placeholder: current.has_key ? 'kept; type to replace it' : current.has_spare_key ? 'type a key, or choose below' : 'a local server needs none' });
  const options = el('datalist', { id: 'model-names' });
  const main = input('model', { required: true, list: 'model-names', value: isConnected ? current.main.model : '' });
  const decides = input('side', { list: 'model-names', placeholder: 'the same model', value: isConnected && side ? side.model : '' });
  const prices = { in: price('input_price', isConnected ? current.main.input_price : null), out: price('output_price', isConnected ? current.main.output_price : null), sideIn: price('side_input_price', side?.input_price), sideOut: price('side_output_price', side?.output_price) };
  const spare = el('input', { type: 'checkbox' });
  const withSpare = el('label', { class: 'no-key', hidden: !current.has_spare_key }, spare, ' Use the key that is set on the server (in its environment or settings)');
  const result = el('div', { class: 'result', role: 'status' });
  const button = (label, kind, onclick, type = 'button') => el('button', { class: kind, type, onclick }, label);
  const list = button('Show models', 'outlined', () => busy(list, showNames));
  const test = button('Test', 'outlined', () => form.reportValidity() && busy(test, tryOut));
  const connect = button('Connect', 'solid', null, 'submit');
  const back = current.source === 'page' ? button('Disconnect', 'quiet-button danger', () => busy(back, disconnect)) : null;

  // A key belongs to its address: for another one it is asked for again.
  const isSameAddress = () => address.value.trim() === (current.base_url ?? '');
  // A key of the settings that belongs to no address goes nowhere unless it is chosen.
  const noKey = el('input', { type: 'checkbox' });
  const mayChoose = () => current.has_spare_key || (current.has_key && !isSameAddress());
  const withoutKey = el('label', { class: 'no-key', hidden: !mayChoose() }, noKey, ' This server needs no key');
  // Left out, it is the key in use, which the server gives to no other address.
  // A copied key often has a space or a line break at its end.
  const server = () => {
    const typed = key.value.trim();
    return { base_url: address.value.trim(), api_key: typed === '' && !noKey.checked ? undefined : typed, spare_key: (typed === '' && spare.checked) || undefined };
  };
  for (const [one, other] of [[spare, noKey], [noKey, spare]]) one.addEventListener('change', () => one.checked && (other.checked = false));
  // An address is often copied without its beginning, or with what follows it in a request.
  address.addEventListener('change', () => {
    const typed = address.value.trim().replace(/\/chat\/completions\/?$/u, '');
    address.value = typed && !/^[a-z]+:\/\//iu.test(typed) ? `${LOCAL.test(typed) ? 'http' : 'https'}://${typed}` : typed;
  });
  address.addEventListener('input', () => {
    key.placeholder = !current.has_key ? (current.has_spare_key ? 'type a key, or choose below' : 'a local server needs none') : isSameAddress() ? 'kept; type to replace it' : 'the key of this address';
    withoutKey.hidden = !mayChoose();
    if (withoutKey.hidden) noKey.checked = false;
  });
  const number = ({ value }) => (value === '' ? undefined : Number(value));
  const connection = () => ({
    ...server(),
    main: { model: main.value.trim(), input_price: number(prices.in), output_price: number(prices.out) },
    side: decides.value.trim() ? { model: decides.value.trim(), input_price: number(prices.sideIn), output_price: number(prices.sideOut) } : undefined,
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
      show(el('p', { class: 'danger', dir: 'auto' }, plain(words.ofModel(upper(problem.message)))));
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
    if (models.length > MOST_BUTTONS) show(el('p', null, `${words.count(models.length, 'model')}: begin to type a name, and choose one.`));
    else if (models.length) show(el('p', null, `${words.count(models.length, 'model')}. Choose one:`), el('p', { class: 'actions' }, models.map(name => button(name, 'outlined small', () => choose(name)))));
    else show(el('p', null, 'This server names no models.'));
    main.focus();
  }
  async function tryOut() {
    const what = asTested();
    tested = null;
    const { decision, statement } = await api.tryModels(connection()).catch(problem => {
      tested = { what, failed: plain(problem.message) };
      throw problem;
    });
    const failed = [decision, statement].filter(({ works }) => !works);
    tested = { what, failed: null };
    if (what !== asTested()) return show(el('p', { class: 'muted' }, 'Changed since the test: this is not tested.'));
    tested.failed = failed.length ? plain(failed[0].error ? words.error(failed[0].error) : failed[0].detail) : null;
    // What was wrong before the test is not what is wrong now.
    box.querySelector('.troubles').hidden = true;
    if (decision.error && decision.error === statement.error) return show(failure('', decision.error, decision.detail));
    show(el('ul', { class: 'tried' }, triedLine('Deciding', decision, current.currency), triedLine('Writing', statement, current.currency)));
  }
  async function use() {
    changed(await api.connectModels(connection()));
    box.close();
  }
  function askAnyway() {
    const anyway = button('Connect anyway', 'outlined', () => busy(connect, use));
    show(el('p', { class: 'danger', dir: 'auto' }, `The test failed: ${tested.failed}. Connect anyway?`), el('p', { class: 'actions' }, anyway));
    anyway.focus();
  }
  async function disconnect() {
    changed(await api.disconnectModels());
    box.close();
  }

  const form = el(
    'form',
    { class: 'connect' },
    el('p', { class: 'presets' }, SERVERS.map(([label, url]) => button(label, 'outlined small', () => {
      address.value = url;
      address.dispatchEvent(new Event('input', { bubbles: true }));
      key.focus();
    }))),
    field('Address of an AI service', address),
    field('API key', key, 'It is kept on this server, in a file that only its user can read, and is never shown again.'),
    withSpare,
    withoutKey,
    el('div', { class: 'with-button' }, field('Model', main), list),
    options,
    el(
      'details',
      { open: Boolean(side) },
      el('summary', null, 'Another model for decisions, and prices'),
      field('Model for decisions', decides, 'A small, fast model is enough, and cheaper.'),
      el('p', { class: 'muted' }, `Prices of a million tokens in ${current.currency}, to see what talks cost.`),
      el('div', { class: 'prices' }, field('Answers, input', prices.in), field('output', prices.out), field('Decisions, input', prices.sideIn), field('output', prices.sideOut)),
    ),
    result,
    el('p', { class: 'actions' }, connect, test, back),
  );
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (tested?.failed && tested.what === asTested()) return askAnyway();
    return busy(connect, use);
  });
  // What was said about other entries does not hold for these.
  form.addEventListener('input', () => {
    if (!result.firstChild || !tested || tested.what === asTested()) return;
    show(el('p', { class: 'muted' }, 'Changed since the test: this is not tested.'));
  });
  const heading = !isConnected ? 'Your model' : current.troubles.length ? 'Change the connection' : 'Use another model';
  const box = dialog(isConnected ? 'Models' : 'Connect an AI', inForce({ ready, current }), el('h3', null, heading), form);
  return box;
}
