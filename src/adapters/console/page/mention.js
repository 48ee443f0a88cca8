// Completes "@" in the message field to the name of a companion or person in the room: arrow keys select, Enter or Tab inserts, Esc closes.

import { ai } from './ai.js';
import { el, name } from './dom.js';
import { t } from './texts.js';

const PARTIAL = /(^|\s)@([\p{L}\p{M}\p{N}_.-]*)$/u;
const MOST = 6;
const LOOKED_BACK = 300;

// Companions first, then people who are here or spoke recently, without the writer.
function present(room, me) {
  const people = new Set(room.people.map(person => person.name).filter(who => who !== me));
  for (let i = room.entries.length - 1; i >= Math.max(0, room.entries.length - LOOKED_BACK); i -= 1) {
    const entry = room.entries[i];
    if (entry.kind === 'message' && entry.role === 'user' && entry.from !== me) people.add(entry.from);
  }
  const companions = [...room.companions.values()].map(companion => ({ id: companion.id, shown: companion.name, written: /\s/u.test(companion.name) ? companion.id : companion.name }));
  // A name with a space is not offered, because it would be unclear where the mention ends.
  return [...companions, ...[...people].filter(who => !/\s/u.test(who)).map(who => ({ id: null, shown: who, written: who }))];
}

// `room()` is the room shown, `me()` the writer, `tone(id)` the accent of a companion. `changed()` is called after a completion.
export function mention(field, { room, me, tone, changed }) {
  const list = el('ul', { id: 'mentions', class: 'mentions', role: 'listbox', 'aria-label': t('compose.mentions'), hidden: true });
  field.before(list);
  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('aria-controls', 'mentions');
  let found = [];
  let at = 0;

  function close() {
    list.hidden = true;
    found = [];
    field.removeAttribute('aria-activedescendant');
  }

  function draw() {
    list.hidden = false;
    list.replaceChildren(
      ...found.map((one, i) =>
        el('li', { id: `mention-${i}`, role: 'option', 'aria-selected': String(i === at), 'data-tone': one.id === null ? null : tone(one.id), onpointerdown: event => (event.preventDefault(), insert(one)) }, name(one.shown, { class: one.id === null ? null : 'who' }), one.id === null ? null : [' ', ai()]),
      ),
    );
    field.setAttribute('aria-activedescendant', `mention-${at}`);
  }

  const before = () => field.value.slice(0, field.selectionStart);

  function update() {
    const partial = room() && field.selectionStart === field.selectionEnd ? before().match(PARTIAL) : null;
    if (!partial) return close();
    const prefix = partial[2].toLowerCase();
    found = present(room(), me()).filter(one => one.shown.toLowerCase().startsWith(prefix) || one.written.toLowerCase().startsWith(prefix)).slice(0, MOST);
    // A complete name needs no list.
    if (!found.length || (found.length === 1 && found[0].written.toLowerCase() === prefix)) return close();
    at = 0;
    draw();
  }

  function insert(one) {
    const head = before().replace(PARTIAL, `$1@`) + one.written;
    const tail = field.value.slice(field.selectionStart);
    field.value = `${head}${tail.startsWith(' ') ? '' : ' '}${tail}`;
    field.setSelectionRange(head.length + 1, head.length + 1);
    close();
    changed();
  }

  field.addEventListener('input', update);
  field.addEventListener('click', update);
  field.addEventListener('blur', close);
  field.addEventListener(
    'keydown',
    event => {
      if (list.hidden || event.isComposing) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        at = (at + step + found.length) % found.length;
        draw();
      } else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') insert(found[at]);
      else if (event.key === 'Escape') close();
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
}
