// The small explanations: which model answers and how to connect one, and the keys and signs.

import * as api from './api.js';
import { byId, el, glyph, say } from './dom.js';
import * as words from './words.js';

const AGAIN_MS = 30_000;

export function dialog(title, ...content) {
  const close = el('button', { class: 'quiet-button', onclick: () => box.close() }, 'close (Esc)');
  const box = el('dialog', { 'aria-label': title }, el('header', null, el('h2', null, title), close), content);
  box.addEventListener('click', event => event.target === box && box.close());
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

const CONNECT = ['TERTULIA__MODELS__MAIN__BASE_URL=https://openrouter.ai/api/v1', 'TERTULIA__MODELS__MAIN__MODEL=the-model-you-like', 'TERTULIA__MODELS__MAIN__API_KEY=your-key'];

function explainRehearsal() {
  dialog(
    'Rehearsal: no real model',
    el('p', null, 'Nothing is configured, so a built-in stand-in answers: it follows simple rules and speaks from templates, so that you can watch the whole machine move. Nothing leaves this computer.'),
    el('p', null, 'To connect a real model, start the server with these three lines in its environment. Any endpoint that speaks as OpenAI does will do: OpenRouter, Ollama, vLLM, llama.cpp and others.'),
    el('pre', { class: 'lines', tabindex: '0' }, CONNECT.join('\n')),
    el('p', { class: 'hush' }, 'One model serves both roles: it decides and it speaks. TERTULIA__MODELS__SIDE__… sets a cheaper one for the decisions. A local model may need no key.'),
  );
}

function explainModels(ready) {
  const row = (term, model) => [el('dt', null, term), el('dd', null, model ? `${model.model ?? '?'} · ${model.provider ?? '?'}` : 'none')];
  const parts = Array.isArray(ready.parts) ? ready.parts : [];
  dialog(
    ready.ready === false ? 'Not ready' : 'Models',
    el('dl', { class: 'facts' }, row('decides', ready.models?.side), row('speaks', ready.models?.main)),
    parts.length ? [el('h3', null, 'the server'), el('dl', { class: 'facts' }, parts.map(({ part, ready: well, detail }) => [el('dt', null, words.temper(part)), el('dd', { class: well ? null : 'danger', dir: 'auto' }, detail || (well ? 'well' : 'not ready'))]))] : null,
  );
}

// Keeps the indicator of the models true.
export function modelIndicator() {
  const button = byId('model');
  let ready = null;
  const isRehearsal = () => [ready?.models?.main, ready?.models?.side].some(model => model?.provider === 'rehearsal');
  button.addEventListener('click', () => (isRehearsal() && ready.ready !== false ? explainRehearsal() : explainModels(ready)));

  async function look() {
    const answer = await api.readiness().catch(() => null);
    if (!answer) return;
    ready = answer;
    button.hidden = false;
    button.classList.toggle('loud', answer.ready === false);
    if (answer.ready === false) say(button, 'not ready ▸ see why');
    else if (isRehearsal()) say(button, 'rehearsal: no real model ▸ connect one');
    else say(button, answer.models?.main?.model ?? 'models');
  }
  look();
  setInterval(look, AGAIN_MS);
  return { look };
}

const KEYS = [
  ['Enter', 'send'],
  ['Shift Enter', 'a new line'],
  ['↑', 'edit your last message, when the field is empty'],
  ['Esc', 'leave an edit or a reply, close what is open, back to the field'],
  ['@', 'somebody’s name: ↑ ↓ choose, Enter takes it'],
  ['/', 'find'],
  ['Enter, Shift Enter', 'older, newer, while finding'],
  ['↑ ↓', 'in the conversation: walk through messages and decisions; → reaches why?, reply, edit and delete'],
  ['← →', 'on the timeline: choose a mark'],
  ['?', 'this page'],
];

export function showKeys() {
  dialog(
    'Keys and signs',
    el('dl', { class: 'keys' }, KEYS.map(([key, what]) => [el('dt', null, key.split(', ').map((one, i) => [i ? ', ' : null, one.split(' ').map((part, j) => [j ? ' ' : null, el('kbd', null, part)])].flat(2))), el('dd', null, what)])),
    el('h3', null, 'what the signs mean'),
    el(
      'ul',
      { class: 'signs' },
      el('li', null, el('strong', null, 'ring'), ' fills with each message; when it is full, the companion considers speaking'),
      el('li', null, el('strong', null, 'bar'), ' runs down while it is quiet; when it is empty, the companion considers speaking'),
      el('li', null, glyph('round'), ' a round: how much each of several wants to speak, 0 to 10; ★ was chosen, – listens'),
      el('li', null, el('strong', null, 'in a row, alike'), ' warm up as companions talk on without a person, or repeat one another; when full, they are stopped'),
      el('li', null, el('strong', null, '●○○'), ' preparing to end, closing, closed; who is closed opens again when called'),
      el('li', null, glyph('yes'), ' it decided to speak'),
      el('li', null, glyph('no'), ' it decided to stay silent, and what it had heard is settled'),
      el('li', null, glyph('error'), ' no answer came, or the reply failed; nothing is lost, it is asked again'),
      el('li', null, el('strong', null, 'a name'), ' in a message asks that companion at once'),
    ),
  );
}

export const legend = () => [el('span', null, 'ring: messages until it considers'), el('span', null, 'bar: quiet until it considers'), el('span', null, glyph('yes'), ' yes  ', glyph('no'), ' no  ', glyph('error'), ' no answer')];
