// Rooms that are channels of other platforms: their titles, and which rooms are listed when there are many.

const MOST_LISTED = 12;
const MOST_FOUND = 50;
const FEW = 16;
const NAMES = { discord: 'Discord' };
// Discord's ids count milliseconds from the start of 2015.
const DISCORD_EPOCH_MS = 1_420_070_400_000n;

const platformOf = id => (id.includes(':') ? id.slice(0, id.indexOf(':')) : '');

// The name of the platform that a room belongs to, or an empty string for a room of the console.
export const platformName = id => {
  const platform = platformOf(id);
  return NAMES[platform] ?? platform;
};

export const titleOf = room => room.title || room.id;

// A title in two lines: the channel's name, and where it is.
export function titleParts(room) {
  const [channel, ...location] = titleOf(room).split(' · ');
  return room.title ? { channel, location: location.join(' · ') } : { channel: room.id, location: '' };
}

// Whether there are more rooms than a person takes in at a glance.
export const areMany = all => all.length > FEW;

const byTitle = (a, b) => titleOf(a).localeCompare(titleOf(b), undefined, { numeric: true }) || (a.id < b.id ? -1 : 1);
const newest = (a, b) => {
  const [one, other] = [a.last_at ?? '', b.last_at ?? ''];
  return one === other ? byTitle(a, b) : one < other ? 1 : -1;
};

// The rooms by platform, the console's first, with the newest messages first. Of many rooms, only those with the newest messages are listed, or those that match the search words.
// `extra` says how many more are listed of a platform.
export function listed(all, current, search, extra = new Map()) {
  const words = search.trim().toLowerCase().split(/\s+/u).filter(Boolean);
  const matches = room => {
    const text = `${titleOf(room)} ${room.id} ${room.guild}`.toLowerCase();
    return words.every(word => text.includes(word));
  };
  const most = words.length ? MOST_FOUND : areMany(all) ? MOST_LISTED : FEW;
  const groups = new Map();
  for (const room of all) {
    const platform = platformName(room.id);
    if (!groups.has(platform)) groups.set(platform, []);
    if (matches(room)) groups.get(platform).push(room);
  }
  return [...groups]
    .map(([platform, rooms]) => {
      const first = [...rooms].sort((a, b) => (b.id === current) - (a.id === current) || newest(a, b));
      const shown = first.slice(0, most + (extra.get(platform) ?? 0)).sort(newest);
      return { platform, rooms: shown, more: rooms.length - shown.length };
    })
    .filter(({ platform, rooms }) => rooms.length || (!platform && !words.length))
    .sort((a, b) => (a.platform < b.platform ? -1 : 1));
}

// When a message was posted, where the platform's id of the message contains the time.
export function postedAt(id, room) {
  if (platformOf(room) !== 'discord' || !/^\d{15,20}$/u.test(id)) return null;
  return new Date(Number((BigInt(id) >> 22n) + DISCORD_EPOCH_MS)).toISOString();
}
