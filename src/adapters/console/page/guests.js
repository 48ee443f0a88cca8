// Who is to be in a room: a box for each companion there is, and for each that a program outside plays.

import { el, name } from './dom.js';

const IDS = /^[A-Za-z0-9_-]{1,64}$/u;

// A companion that a program plays keeps the names that it was given.
const invited = ({ id, name: called, aliases }) => ({ id, external: true, ...(called ? { name: called } : {}), ...(aliases?.length ? { aliases } : {}) });

// `all` are the companions there are, `present` those in the room; without `mayBeOutside` no program can play one. `chosen()` is what the server is told, or throws in words.
export function guests(all, present, legend, mayBeOutside = true) {
  const boxes = el('div', { class: 'boxes' });
  const outside = el('input', { class: 'outside-id', maxlength: '64', autocomplete: 'off', spellcheck: 'false', placeholder: 'zed', 'aria-label': 'Id of a companion that a program outside plays' });
  const more = el('details', { class: 'outside-more' }, el('summary', null, 'one that a program plays'), outside);
  const here = new Map(present.map(c => [c.id, c]));

  function box(c, isExternal) {
    const input = el('input', { type: 'checkbox', value: c.id, 'data-external': isExternal });
    input.checked = here.has(c.id);
    return el('label', { class: 'box' }, input, ' ', name(c.name ?? c.id), isExternal ? [' ', el('span', { class: 'outside' }, 'external')] : null);
  }

  const known = new Set(all.map(c => c.id));
  boxes.append(...all.map(c => box(c, Boolean(here.get(c.id)?.external))), ...present.filter(c => !known.has(c.id)).map(c => box(c, true)));
  return {
    node: el('fieldset', { class: 'guests' }, el('legend', null, legend), boxes, mayBeOutside ? more : null),
    focus: () => (boxes.querySelector('input:checked') ?? boxes.querySelector('input'))?.focus(),
    chosen() {
      const wanted = [...boxes.querySelectorAll('input:checked')].map(input => (input.dataset.external === undefined ? input.value : invited(here.get(input.value) ?? { id: input.value })));
      const id = outside.value.trim();
      if (id && !IDS.test(id)) throw new Error('The id of a companion has letters, digits, dashes and underscores, up to 64.');
      if (id) wanted.push({ id, external: true });
      return wanted;
    },
  };
}
