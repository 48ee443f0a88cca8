// How many messages came since the person last looked, for each room, whether one of them calls the person by name or waits for a confirmation, and the mark in the window's title. What was
// seen is remembered for this browser, and all windows share it.

import * as api from './api.js';
import { calls } from './calling.js';
import { el } from './dom.js';
import { changedElsewhere, loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';

const MOST = 100; // of a room; more are not counted
const AT_ONCE = 12; // rooms that are counted after one another
const NOTHING = { count: 0, calls: false };

// “3”, or “99+”.
const inFigures = count => (count >= MOST ? `${MOST - 1}+` : String(count));

export const unreadMark = count => (count ? el('span', { class: 'room-unread' }, inFigures(count), el('span', { class: 'visually-hidden' }, ` ${t('rooms.unread')}`)) : '');

// `me()` is the person of this window, whose messages are never unread. `changed()` is called when a count changed, and `called(room, message)` when a message that is
// not seen calls the person: once for all windows. `isMarked(room)` is whether the room counts in the window's title. `decides`: the person confirms calls of tools.
export function unread({ me, changed, called, isMarked = () => true, decides = false }) {
  const counts = new Map(); // by room: { count, calls, at }, where `at` is the time of the newest message that was counted
  let counting = false;

  const seen = () => loadForAll('seen', {});
  const isMine = ({ role, from }) => role === 'user' && from === me();
  const callsMe = message => calls(message.text, me());

  const waits = call => !call.outcome && call.confirmed === undefined && Date.parse(call.until) > Date.now();
  const needsMe = message => callsMe(message) || (decides && (message.calls ?? []).some(waits));

  // The messages of a room up to this time were seen.
  function look(room, at) {
    if (!room || !at || document.visibilityState === 'hidden') return;
    const all = seen();
    if (!(all[room] >= at)) storeForAll('seen', { ...all, [room]: at });
    if (counts.delete(room)) changed();
  }

  function tell(room, message) {
    const told = loadForAll('told', {});
    if (!message || told[room] >= message.at) return;
    storeForAll('told', { ...told, [room]: message.at });
    called(room, message);
  }

  async function count(room, since) {
    const { messages = [] } = await api.history(room.id, api.NEWEST, MOST);
    const fresh = messages.filter(message => message.at > since && !isMine(message));
    const calling = fresh.findLast(callsMe);
    counts.set(room.id, { count: fresh.length, calls: fresh.some(needsMe), at: room.last_at });
    tell(room.id, calling);
  }

  // Another window may have shown a room meanwhile.
  function forgetSeen() {
    const known = seen();
    for (const [id, { at }] of counts) if (known[id] >= at) counts.delete(id);
  }
  changedElsewhere('seen', () => {
    forgetSeen();
    changed();
  });

  // Keeps the times of these rooms alone.
  function prune(key, ids) {
    const all = Object.entries(loadForAll(key, {}));
    const kept = all.filter(([id]) => ids.has(id));
    if (kept.length < all.length) storeForAll(key, Object.fromEntries(kept));
  }

  // Counts in those rooms that have new messages. Rooms that this browser sees for the first time have nothing unread.
  async function read(rooms, current) {
    if (counting) return;
    counting = true;
    try {
      const ids = new Set(rooms.map(room => room.id));
      for (const key of ['seen', 'told']) prune(key, ids);
      const known = seen();
      const fresh = rooms.filter(room => known[room.id] === undefined).map(room => [room.id, room.last_at ?? '0']);
      if (fresh.length) storeForAll('seen', { ...known, ...Object.fromEntries(fresh) });
      for (const id of counts.keys()) if (!ids.has(id)) counts.delete(id);
      const isShown = room => room.id === current && document.visibilityState !== 'hidden';
      const shown = rooms.find(isShown);
      if (shown) look(shown.id, shown.last_at);
      // What came may be deleted again.
      const isNew = room => room.last_at > (known[room.id] ?? room.last_at ?? '0') || counts.has(room.id);
      const grown = rooms.filter(room => isNew(room) && !isShown(room) && counts.get(room.id)?.at !== room.last_at);
      for (const room of grown.slice(0, AT_ONCE)) await count(room, known[room.id]).catch(() => {});
      forgetSeen();
    } finally {
      counting = false;
    }
    changed();
  }

  // A message of the room shown.
  function note(room, event) {
    if (document.visibilityState !== 'hidden') return look(room, event.at);
    const before = counts.get(room) ?? NOTHING;
    if (isMine(event) || before.at >= event.at) return;
    counts.set(room, { count: before.count + 1, calls: before.calls || needsMe(event), at: event.at });
    if (callsMe(event)) tell(room, event);
    changed();
  }

  // In all rooms that are marked.
  function all() {
    const marked = [...counts].filter(([id]) => isMarked(id)).map(([, one]) => one);
    return { count: marked.reduce((total, one) => total + one.count, 0), calls: marked.some(one => one.calls) };
  }

  return {
    look,
    isMine,
    // When the room was last seen, if something is unread there.
    seenAt: room => (counts.get(room)?.count ? seen()[room] : null),
    note,
    read,
    of: room => counts.get(room) ?? NOTHING,
    all,
    // What the window's title begins with.
    mark() {
      const { count: number, calls: needs } = all();
      return number ? `(${inFigures(number)}${needs ? `, ${t('rooms.needs_you')}` : ''}) ` : '';
    },
  };
}
