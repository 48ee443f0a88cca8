// How many messages came since the person last looked, for each room, and the count in the window's title. Remembered for this browser.

import * as api from './api.js';
import { loadForAll, storeForAll } from './storage.js';

const MOST = 100; // of a room; more are not counted
const AT_ONCE = 12; // rooms that are counted after one another

// “3”, or “99+”.
export const inFigures = count => (count >= MOST ? `${MOST - 1}+` : String(count));

// `me()` is the person of this window, whose messages are never unread. `changed()` is called when a count changed.
export function unread({ me, changed }) {
  const counts = new Map(); // by room: { count, at }, where `at` is the time of the newest message that was counted
  let hiddenSince = null; // while the window is hidden: the sum of the counts when it was hidden
  let counting = false;

  const seen = () => loadForAll('seen', {});
  const sum = () => [...counts.values()].reduce((total, { count }) => total + count, 0);

  // The messages of a room up to this time were seen.
  function look(room, at) {
    if (!room || !at || document.visibilityState === 'hidden') return;
    const all = seen();
    if (!(all[room] >= at)) storeForAll('seen', { ...all, [room]: at });
    if (counts.delete(room)) changed();
  }

  async function count(room, since) {
    const { messages = [] } = await api.history(room.id, api.NEWEST, MOST);
    const isNew = ({ at, role, from }) => at > since && !(role === 'user' && from === me());
    counts.set(room.id, { count: messages.filter(isNew).length, at: room.last_at });
  }

  // Counts in those rooms that have new messages. Rooms that this browser sees for the first time have nothing unread.
  async function read(rooms, current) {
    if (counting) return;
    counting = true;
    try {
      const known = seen();
      const fresh = rooms.filter(room => known[room.id] === undefined).map(room => [room.id, room.last_at ?? '0']);
      const ids = new Set(rooms.map(room => room.id));
      const kept = Object.entries(known).filter(([id]) => ids.has(id));
      if (fresh.length || kept.length < Object.keys(known).length) storeForAll('seen', Object.fromEntries([...kept, ...fresh]));
      for (const id of counts.keys()) if (!ids.has(id)) counts.delete(id);
      const isShown = room => room.id === current && document.visibilityState !== 'hidden';
      const shown = rooms.find(isShown);
      if (shown) look(shown.id, shown.last_at);
      const grown = rooms.filter(room => room.last_at > (known[room.id] ?? room.last_at ?? '0') && !isShown(room) && counts.get(room.id)?.at !== room.last_at);
      for (const room of grown.slice(0, AT_ONCE)) await count(room, known[room.id]).catch(() => {});
      // Another window may have shown a room meanwhile.
      const now = seen();
      for (const [id, { at }] of counts) if (now[id] >= at) counts.delete(id);
    } finally {
      counting = false;
    }
    changed();
  }

  // A message of the room shown.
  function note(room, event) {
    if (document.visibilityState !== 'hidden') return look(room, event.at);
    if ((event.role === 'user' && event.from === me()) || counts.get(room)?.at >= event.at) return;
    counts.set(room, { count: (counts.get(room)?.count ?? 0) + 1, at: event.at });
    changed();
  }

  document.addEventListener('visibilitychange', () => {
    hiddenSince = document.visibilityState === 'hidden' ? sum() : null;
    changed();
  });

  return {
    look,
    note,
    read,
    of: room => counts.get(room)?.count ?? 0,
    // What the window's title begins with.
    mark() {
      const more = hiddenSince === null ? 0 : sum() - hiddenSince;
      return more > 0 ? `(${inFigures(more)}) ` : '';
    },
  };
}
