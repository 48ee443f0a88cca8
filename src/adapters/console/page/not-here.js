// Says that a companion which a message names is not in this room, and offers to add it.

import { byId, el, name } from './dom.js';
import { pieces } from './texts.js';

// As a word of its own: `Cleo` is not in “Cleopatra”.
const isIn = (text, one) => new RegExp(`(?<![\\p{L}\\p{N}])${one.replace(/[\\^$.*+?()[\]{}|/]/gu, '\\$&')}(?![\\p{L}\\p{N}])`, 'iu').test(text);

// `room()` is the room shown as the server lists it, `configured()` are the companions of the server; `join(room, id)` adds one.
export function notHere({ field, room, configured, join, showProblem }) {
  const root = byId('not-here');

  async function add({ id }) {
    root.hidden = true;
    await join(room(), id).catch(showProblem);
  }

  function draw() {
    const { companions = [] } = room() ?? {};
    const absent = companions.length && [...configured()].find(one => isIn(field.value, one.name) && !companions.some(({ id }) => id === one.id));
    root.hidden = !absent;
    if (!absent) return;
    const who = () => name(absent.name);
    root.replaceChildren(el('span', null, pieces('compose.not_here', { who: who() })), ' ', el('button', { class: 'outlined', type: 'button', onclick: () => add(absent) }, pieces('compose.add', { who: who() })));
  }

  field.addEventListener('input', draw);
  return { hide: () => (root.hidden = true) };
}
