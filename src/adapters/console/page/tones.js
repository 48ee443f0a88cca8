// The accent colour of each companion. It follows from the id, unless another companion in the room has that colour already.

const TONES = 8;

function hash(id) {
  let sum = 0x811c9dc5;
  for (let i = 0; i < id.length; i += 1) sum = Math.imul(sum ^ id.charCodeAt(i), 0x01000193) >>> 0;
  return sum % TONES;
}

export function tonesOf(room) {
  const tones = new Map();
  const taken = new Set();
  for (const id of room.companions.keys()) {
    let tone = hash(id);
    for (let i = 0; i < TONES && taken.has(tone); i += 1) tone = (tone + 1) % TONES;
    taken.add(tone);
    tones.set(id, tone);
  }
  return id => tones.get(id) ?? hash(id ?? '');
}

// The first letter of a name, with its accents.
export function initial(name) {
  const letter = name.match(/\p{L}\p{M}*|\p{N}/u)?.[0] ?? '•';
  return letter.toUpperCase();
}
