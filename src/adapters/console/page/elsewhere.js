// Channels of other platforms: what they are called, and which rooms are listed when there are many.

const MOST_LISTED = 12;
const MOST_FOUND = 50;
const FEW = 16;
const NAMES = { discord: 'Discord' };
// The first second of 2015, from which Discord counts.
const DISCORD_EPOCH_MS = 1_420_070_400_000n;

const platformOf = id => (id.includes(':') ? id.slice(0, id.indexOf(':')) : '');

// What the platform is called that a room is talked in on, or nothing for a room of the console.
export const elsewhere = id => {
  const platform = platformOf(id);
  return NAMES[platform] ?? platform;
};

export const titleOf = room => room.title || room.id;

// A title in two lines: what the channel is called, and where it is.
export function titleParts(room) {
  const [what, ...where] = titleOf(room).split(' · ');
  return room.title ? { what, where: where.join(' · ') } : { what: room.id, where: '' };
}

// Whether there are more rooms than can be looked over at once.
export const areMany = all => all.length > FEW;

const byTitle = (a, b) => titleOf(a).localeCompare(titleOf(b), undefined, { numeric: true }) || (a.id < b.id ? -1 : 1);
const newest = (a, b) => {
  const [one, other] = [a.last_at ?? '', b.last_at ?? ''];
  return one === other ? 0 : one < other ? 1 : -1;
};

// The rooms by platform, the console's first: of many those in which somebody spoke last, or in which the wanted words are found.
export function listed(all, current, wanted) {
  const words = wanted.trim().toLowerCase().split(/\s+/u).filter(Boolean);
  const isWanted = room => {
    const text = `${titleOf(room)} ${room.id} ${room.guild}`.toLowerCase();
    return words.every(word => text.includes(word));
  };
  const most = words.length ? MOST_FOUND : areMany(all) ? MOST_LISTED : FEW;
  const groups = new Map();
  for (const room of all) {
    const platform = elsewhere(room.id);
    if (!groups.has(platform)) groups.set(platform, []);
    if (isWanted(room)) groups.get(platform).push(room);
  }
  return [...groups]
    .map(([platform, rooms]) => {
      const first = [...rooms].sort((a, b) => (b.id === current) - (a.id === current) || newest(a, b));
      const shown = first.slice(0, most).sort(byTitle);
      return { platform, rooms: shown, more: rooms.length - shown.length };
    })
    .filter(({ platform, rooms }) => rooms.length || (!platform && !words.length))
    .sort((a, b) => (a.platform < b.platform ? -1 : 1));
}

// When a message was said, by its platform's id of it, where that tells.
export function saidAt(id, room) {
  if (platformOf(room) !== 'discord' || !/^\d{15,20}$/u.test(id)) return null;
  return new Date(Number((BigInt(id) >> 22n) + DISCORD_EPOCH_MS)).toISOString();
}
