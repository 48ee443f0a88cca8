// Dialogs: which models answer and how to connect one, and the keyboard shortcuts and symbols.

import * as api from './api.js';
import { byId, el, glyph, say } from './dom.js';
import * as words from './words.js';

const POLL_MS = 30_000;

export function dialog(title, ...content) {
  const close = el('button', { class: 'quiet-button', onclick: () => box.close() }, 'Close (Esc)');
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
    el('p', null, 'No model is configured, so a built-in stand-in answers. It follows simple rules and speaks from templates, so that you can try out everything else. Nothing leaves this computer.'),
    el('p', null, 'To connect a real model, start the server with these three environment variables. Any OpenAI-compatible endpoint works: OpenRouter, Ollama, vLLM, llama.cpp and others.'),
    el('pre', { class: 'lines', tabindex: '0' }, CONNECT.join('\n')),
    el('p', { class: 'muted' }, 'One model then does both: it makes the decisions and writes the statements. Set TERTULIA__MODELS__SIDE__… to use a cheaper model for the decisions. A local model may not need an API key.'),
  );
}

function explainModels(ready) {
  const row = (term, model) => [el('dt', null, term), el('dd', null, model ? `${model.model ?? '?'} · ${model.provider ?? '?'}` : 'none')];
  const parts = Array.isArray(ready.parts) ? ready.parts : [];
  dialog(
    ready.ready === false ? 'Not ready' : 'Models',
    el('dl', { class: 'facts' }, row('Decisions', ready.models?.side), row('Statements', ready.models?.main)),
    parts.length ? [el('h3', null, 'Server'), el('dl', { class: 'facts' }, parts.map(({ part, ready: isReady, detail }) => [el('dt', null, words.spaced(part)), el('dd', { class: isReady ? null : 'danger', dir: 'auto' }, detail || (isReady ? 'ready' : 'not ready'))]))] : null,
  );
}

// Keeps the button with the model's name up to date.
export function modelIndicator() {
  const button = byId('model');
  let ready = null;
  const isRehearsal = () => [ready?.models?.main, ready?.models?.side].some(model => model?.provider === 'rehearsal');
  button.addEventListener('click', () => (isRehearsal() && ready.ready !== false ? explainRehearsal() : explainModels(ready)));

  async function poll() {
    const answer = await api.readiness().catch(() => null);
    if (!answer) return;
    ready = answer;
    button.hidden = false;
    button.classList.toggle('loud', answer.ready === false);
    if (answer.ready === false) say(button, 'Not ready ▸ See why');
    else if (isRehearsal()) say(button, 'Rehearsal: no real model ▸ Connect one');
    else say(button, answer.models?.main?.model ?? 'Models');
  }
  poll();
  setInterval(poll, POLL_MS);
  return { poll };
}

const KEYS = [
  ['Enter', 'send the message'],
  ['Shift Enter', 'start a new line'],
  ['↑', 'edit your last message, if the field is empty'],
  ['Esc', 'cancel an edit or a reply, close what is open, return to the field'],
  ['@', 'mention someone: ↑ ↓ select a name, Enter inserts it'],
  ['/', 'find in messages, outside of a field'],
  ['Enter, Shift Enter', 'previous or next match, while finding'],
  ['↑ ↓', 'in the conversation: move through messages and decisions; → reaches Why?, Reply, Edit and Delete'],
  ['← →', 'on the timeline: select a mark'],
  ['M', 'mute or unmute the microphone, in a voice call'],
  ['Space', 'hold to talk while muted, in a voice call'],
  ['Esc', 'stop the companion that speaks, in a voice call'],
  ['?', 'show this list, outside of a field'],
];

// `reopenAfter`: after how many messages by people a companion that has ended the conversation rejoins.
export function showKeys(reopenAfter) {
  dialog(
    'Keyboard shortcuts and symbols',
    el('dl', { class: 'keys' }, KEYS.map(([key, action]) => [el('dt', null, key.split(', ').map((one, i) => [i ? ', ' : null, one.split(' ').map((part, j) => [j ? ' ' : null, el('kbd', null, part)])].flat(2))), el('dd', null, action)])),
    el('h3', null, 'What the symbols mean'),
    el(
      'ul',
      { class: 'symbols' },
      el('li', null, el('strong', null, 'Ring'), ': fills with each message. When it is full, the companion considers speaking.'),
      el('li', null, el('strong', null, 'Bar'), ': runs down while the room is quiet. When it is empty, the companion considers speaking.'),
      el('li', null, glyph('round'), ' A round: how much each companion wants to speak, from 0 to 10. ★ was selected, – listens.'),
      el('li', null, el('strong', null, 'Companion streak, Repetition'), ': fill as companions keep talking without a person, or repeat each other. When the companion streak is full (loop guard), they wait for a person. When the repetition is full, they are instructed to change the topic or end the conversation.'),
      el('li', null, el('strong', null, '●○○'), ` Wrapping up, ready to say goodbye, conversation ended. A companion that has ended the conversation rejoins when it is addressed, or after ${words.byPeople(reopenAfter)}.`),
      el('li', null, glyph('yes'), ' The companion decided to speak.'),
      el('li', null, glyph('no'), ' The companion decided to stay silent. It will not consider these messages again.'),
      el('li', null, glyph('error'), ' No answer: the companion is asked again. Reply failed: nothing is posted.'),
      el('li', null, el('strong', null, 'A name'), ' in a message asks that companion at once.'),
    ),
  );
}

export const legend = () => [el('span', null, 'Ring: messages until it considers speaking'), el('span', null, 'Bar: silence until it considers speaking'), el('span', null, glyph('yes'), ' yes  ', glyph('no'), ' no  ', glyph('error'), ' no answer')];
