// Completes "@" in the message field to a name of somebody present: arrow keys choose, Enter or Tab takes it, Esc leaves it.

import { el, name } from './dom.js';

const BEGUN = /(^|\s)@([\p{L}\p{M}\p{N}_.-]*)$/u;
const MOST = 6;
const LOOKED_BACK = 300;

// Companions first, then people who spoke lately, without the one who writes.
function present(room, me) {
  const people = new Set();
  for (let i = room.entries.length - 1; i >= Math.max(0, room.entries.length - LOOKED_BACK); i -= 1) {
    const entry = room.entries[i];
    if (entry.kind === 'message' && entry.role === 'user' && entry.from !== me) people.add(entry.from);
  }
  const companions = [...room.minds.values()].map(mind => ({ id: mind.id, shown: mind.name, written: /\s/u.test(mind.name) ? mind.id : mind.name }));
  // A name with a space in it cannot be told from the words after it.
  return [...companions, ...[...people].filter(who => !/\s/u.test(who)).map(who => ({ id: null, shown: who, written: who }))];
}

// `room()` is the room shown, `me()` who writes, `tone(id)` the accent of a companion; `changed()` follows a completion.
export function mention(field, { room, me, tone, changed }) {
  const list = el('ul', { id: 'mentions', class: 'mentions', role: 'listbox', 'aria-label': 'Names of those present', hidden: true });
  field.before(list);
  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('aria-controls', 'mentions');
  let found = [];
  let at = 0;

  function shut() {
    list.hidden = true;
    found = [];
    field.removeAttribute('aria-activedescendant');
  }

  function draw() {
    list.hidden = false;
    list.replaceChildren(
      ...found.map((one, i) =>
        el('li', { id: `mention-${i}`, role: 'option', 'aria-selected': String(i === at), 'data-tone': one.id === null ? null : tone(one.id), onpointerdown: event => (event.preventDefault(), take(one)) }, name(one.shown, { class: one.id === null ? null : 'who' })),
      ),
    );
    field.setAttribute('aria-activedescendant', `mention-${at}`);
  }

  const before = () => field.value.slice(0, field.selectionStart);

  function look() {
    const begun = room() && field.selectionStart === field.selectionEnd ? before().match(BEGUN) : null;
    if (!begun) return shut();
    const wanted = begun[2].toLowerCase();
    found = present(room(), me()).filter(one => one.shown.toLowerCase().startsWith(wanted) || one.written.toLowerCase().startsWith(wanted)).slice(0, MOST);
    // What is complete needs no list.
    if (!found.length || (found.length === 1 && found[0].written.toLowerCase() === wanted)) return shut();
    at = 0;
    draw();
  }

  function take(one) {
    const head = before().replace(BEGUN, `$1@`) + one.written;
    const tail = field.value.slice(field.selectionStart);
    field.value = `${head}${tail.startsWith(' ') ? '' : ' '}${tail}`;
    field.setSelectionRange(head.length + 1, head.length + 1);
    shut();
    changed();
  }

  field.addEventListener('input', look);
  field.addEventListener('click', look);
  field.addEventListener('blur', shut);
  field.addEventListener(
    'keydown',
    event => {
      if (list.hidden || event.isComposing) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        at = (at + step + found.length) % found.length;
        draw();
      } else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') take(found[at]);
      else if (event.key === 'Escape') shut();
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
}
