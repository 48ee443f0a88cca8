// The accent colour of each companion. It follows from the id, unless another companion in the room has that colour already. A companion that has got one keeps
// it in this browser, whoever comes and goes.

import { loadForAll, storeForAll } from './storage.js';

const TONES = 8;

const kept = new Map(Object.entries(loadForAll('tones', {})));

function hash(id) {
  let sum = 0x811c9dc5;
  for (let i = 0; i < id.length; i += 1) sum = Math.imul(sum ^ id.charCodeAt(i), 0x01000193) >>> 0;
  return sum % TONES;
}

export function tonesOf(room) {
  const ids = [...room.companions.keys()];
  const taken = new Set(ids.map(id => kept.get(id)));
  for (const id of ids.filter(one => !kept.has(one))) {
    let tone = hash(id);
    for (let i = 0; i < TONES && taken.has(tone); i += 1) tone = (tone + 1) % TONES;
    taken.add(tone);
    kept.set(id, tone);
    storeForAll('tones', Object.fromEntries(kept));
  }
  return id => kept.get(id) ?? hash(id ?? '');
}

// The first letter of a name, with its accents.
export function initial(name) {
  const letter = name.match(/\p{L}\p{M}*|\p{N}/u)?.[0] ?? '•';
  return letter.toUpperCase();
}
