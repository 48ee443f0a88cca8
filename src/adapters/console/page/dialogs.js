// Dialogs: the question before something is done for good, and the keyboard shortcuts and symbols.

import { el, glyph } from './dom.js';
import * as words from './words.js';

// The second click of a double click on what opened a dialog does nothing in it.
const DOUBLE_CLICK_MS = 500;

export function dialog(title, ...content) {
  const close = el('button', { class: 'quiet-button', onclick: () => box.close() }, 'Close (Esc)');
  const box = el('dialog', { 'aria-label': title }, el('header', null, el('h2', null, title), close), content);
  const opened = performance.now();
  box.addEventListener('click', event => event.target === box && performance.now() - opened > DOUBLE_CLICK_MS && box.close());
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

// Asks before something is done that cannot be undone. Resolves to whether it shall be done.
export function confirmed(title, question, label) {
  return new Promise(resolve => {
    let isSure = false;
    const yes = el('button', { class: 'quiet-button danger', disabled: true, onclick: () => ((isSure = true), box.close()) }, label);
    const no = el('button', { class: 'solid', onclick: () => box.close() }, 'Keep');
    const box = dialog(title, el('p', { dir: 'auto' }, question), el('p', { class: 'actions' }, no, yes));
    box.addEventListener('close', () => resolve(isSure));
    no.focus();
    setTimeout(() => (yes.disabled = false), DOUBLE_CLICK_MS);
  });
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
      el('li', null, el('strong', null, 'Circle'), ': fills with each message. The number says after how many more messages the companion thinks about speaking.'),
      el('li', null, el('strong', null, 'Bar'), ': runs down while the room is quiet. When it is empty, the companion thinks about speaking.'),
      el('li', null, glyph('round'), ' A round: how much each companion wants to speak, from 0 to 10. ★ was selected, – listens.'),
      el('li', null, el('strong', null, 'In a row, Repetition'), ': fill as companions keep talking without a person, or repeat each other. After too many answers in a row, they wait for a person. When they repeat each other too much, they are told to change the topic or to end the conversation.'),
      el('li', null, el('strong', null, '●○○'), ` Wrapping up, ready to say goodbye, conversation ended. A companion that has ended the conversation rejoins when it is addressed, or after ${words.byPeople(reopenAfter)}.`),
      el('li', null, glyph('yes'), ' The companion decided to speak.'),
      el('li', null, glyph('no'), ' The companion decided to stay silent. It will not consider these messages again.'),
      el('li', null, glyph('error'), ' No answer: the companion is asked again. Reply failed: nothing is posted.'),
      el('li', null, el('strong', null, 'A name'), ' in a message asks that companion at once.'),
    ),
  );
}

export const legend = () => [el('span', null, 'Circle: messages until it thinks about speaking'), el('span', null, 'Bar: silence until then'), el('span', null, glyph('yes'), ' yes  ', glyph('no'), ' no  ', glyph('error'), ' no answer')];
