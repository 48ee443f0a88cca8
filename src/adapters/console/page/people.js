// The person who speaks in this window. Several windows can speak as several people.

import { byId, el, name } from './dom.js';
import { store, storeForAll, load, loadForAll } from './storage.js';

const FIRST_NAME = 'Ana';
const MOST_NAMES = 6;
const LONGEST_NAME = 64;

export function people(changed) {
  const root = byId('people');
  let me = load('me') ?? loadForAll('people', [])[0] ?? FIRST_NAME;
  // Another window can change the shared list of names; this window keeps its own name.
  store('me', me);

  function speakAs(wanted) {
    const person = wanted.trim().slice(0, LONGEST_NAME);
    if (!person) return draw();
    me = person;
    store('me', me);
    storeForAll('people', [me, ...loadForAll('people', []).filter(other => other !== me)].slice(0, MOST_NAMES));
    draw();
    changed(me);
  }

  function draw() {
    const others = [...new Set([...loadForAll('people', []), FIRST_NAME, 'Ben'])].filter(other => other !== me).slice(0, MOST_NAMES);
    const input = el('input', { id: 'me', value: me, maxlength: LONGEST_NAME, autocomplete: 'off', spellcheck: 'false', dir: 'auto' });
    input.addEventListener('change', () => speakAs(input.value));
    input.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        input.blur();
        byId('message').focus();
      }
    });
    root.replaceChildren(
      el('div', { class: 'me' }, el('label', { for: 'me' }, 'You:'), input),
      el('ul', { class: 'others' }, others.map(other => el('li', null, el('button', { class: 'quiet-button', onclick: () => speakAs(other) }, 'Speak as ', name(other))))),
    );
  }

  draw();
  return { me: () => me };
}
