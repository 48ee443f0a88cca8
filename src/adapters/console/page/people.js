// Who speaks in this window. Several windows may speak as several people.

import { byId, el, name } from './dom.js';
import { keep, keepAll, recall, recallAll } from './keep.js';

const FIRST_NAME = 'Ana';
const MOST_NAMES = 6;
const LONGEST_NAME = 64;

export function people(changed) {
  const root = byId('people');
  let me = recall('me') ?? recallAll('people', [])[0] ?? FIRST_NAME;
  // Another window may take another name; this one keeps its own.
  keep('me', me);

  function become(wanted) {
    const given = wanted.trim().slice(0, LONGEST_NAME);
    if (!given) return draw();
    me = given;
    keep('me', me);
    keepAll('people', [me, ...recallAll('people', []).filter(other => other !== me)].slice(0, MOST_NAMES));
    draw();
    changed(me);
  }

  function draw() {
    const others = [...new Set([...recallAll('people', []), FIRST_NAME, 'Ben'])].filter(other => other !== me).slice(0, MOST_NAMES);
    const input = el('input', { id: 'me', value: me, maxlength: LONGEST_NAME, autocomplete: 'off', spellcheck: 'false', dir: 'auto' });
    input.addEventListener('change', () => become(input.value));
    input.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        input.blur();
        byId('message').focus();
      }
    });
    root.replaceChildren(
      el('div', { class: 'me' }, el('label', { for: 'me' }, 'you:'), input),
      el('ul', { class: 'others' }, others.map(other => el('li', null, el('button', { class: 'quiet-button', title: 'Speak as this person', onclick: () => become(other) }, 'speak as ', name(other))))),
    );
  }

  draw();
  return { me: () => me };
}
