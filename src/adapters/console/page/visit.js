// A visit to one room: loads its newest page, follows it live, and loads older pages on demand.

import * as api from './api.js';
import * as clock from './clock.js';
import { connect } from './live.js';
import { addPage, fold, newRoom, oldestMessage, setState } from './state.js';

export const PAGE = 200;
const DECISIONS_AT_ONCE = 100;
const MOST_PIECES = 40;
const RETRY_MS = 3000;
const UNREADABLE = 500;
const MOST_REFRESHES = 10;

// `on.change(parts)`, `on.event(event, isNew)`, `on.connection(state, nextAttemptAt)`, `on.problem(problem)`, `on.cut(wasOpen)` when the connection has ended.
// `as()` is the name of who watches, for an operator. A guest has none: the server knows who it is, and shows decisions in the live view alone.
export function visit(id, on, { as = () => null, isGuest = false } = {}) {
  const room = newRoom(id);
  let live = null;
  let closed = false;
  let loading = null;
  let timer = null;
  let companionChanges = 0;

  // All decisions after one seq and before another. The server returns them oldest first, in pieces.
  async function decisionsBetween(after, before) {
    const found = [];
    let from = after;
    for (let piece = 0; piece < MOST_PIECES; piece += 1) {
      const { decisions = [] } = await api.decisions(id, from, DECISIONS_AT_ONCE);
      found.push(...decisions.filter(decision => decision.seq < before));
      const last = decisions.at(-1)?.seq;
      if (decisions.length < DECISIONS_AT_ONCE || !(last > from) || last >= before) break;
      from = last;
    }
    return found;
  }

  // The newest page comes without decisions: the live view sends them.
  async function page(before) {
    const { messages = [], deleted = [] } = await api.history(id, before, PAGE);
    const complete = messages.length < PAGE;
    const start = complete ? 0 : (messages[0]?.seq ?? 1) - 1;
    // If decisions cannot be loaded, the messages are shown without them.
    const decisions = before === api.NEWEST || isGuest ? [] : await decisionsBetween(start, before).catch(() => []);
    if (!closed) addPage(room, { messages, deleted }, decisions, { complete });
  }

  async function begin() {
    on.connection('connecting', null);
    try {
      await page(api.NEWEST);
    } catch (problem) {
      if (closed) return;
      if (!problem.isTransient) return on.problem(problem);
      if (problem.status !== UNREADABLE) {
        on.connection('lost', Date.now() + RETRY_MS);
        timer = setTimeout(begin, RETRY_MS);
        return;
      }
      // An unreadable record stays unreadable. The page still shows new events, or why there are none, but no earlier messages.
      room.unreadable = true;
      on.problem(problem);
    }
    if (closed) return;
    // The first connection also requests the decisions, errors, notes and rounds of the loaded page.
    room.liveAfter = room.unreadable ? api.NEWEST : Math.max(0, (oldestMessage(room) ?? 1) - 1);
    on.change(['talk', 'companions', 'loaded']);
    let greeted = false;
    live = connect({
      room: id,
      // Several frames may have the same seq, and the connection may break between them. So the last seq is requested again, and known entries are
      // dropped.
      after: () => (greeted && !room.unreadable ? Math.max(0, room.last - 1) : room.liveAfter),
      as,
      onFrame: frame => {
        if (frame.event === 'hello') {
          greeted = true;
          clock.reset();
        }
        clock.update(frame.at);
        const isNew = !Number.isFinite(frame.seq) || frame.seq > room.current;
        const parts = fold(room, frame);
        if (parts.includes('companions')) companionChanges += 1;
        on.event(frame, isNew);
        if (parts.length) on.change(parts);
      },
      onChange: on.connection,
      probe: on.cut,
    });
  }

  // Loads the page before the oldest message. Returns false if there is none.
  function older() {
    const oldest = oldestMessage(room);
    if (room.complete || oldest === null || closed) return Promise.resolve(false);
    loading ??= page(oldest)
      .then(() => {
        on.change(['talk']);
        return true;
      })
      .catch(() => new Promise(done => setTimeout(done, RETRY_MS, false)))
      .finally(() => {
        loading = null;
      });
    return loading;
  }

  begin();
  return {
    room,
    older,
    renew: () => live?.renew(),
    reconnect: () => {
      if (live) live.reconnect();
      else if (timer) {
        clearTimeout(timer);
        begin();
      }
    },
    async refresh() {
      for (let time = 0; time < MOST_REFRESHES && !closed; time += 1) {
        const before = companionChanges;
        const state = await api.roomState(id);
        // An event that arrives meanwhile may be newer than the state.
        if (before !== companionChanges) continue;
        setState(room, state);
        on.change(['companions']);
        return;
      }
    },
    close() {
      closed = true;
      clearTimeout(timer);
      live?.close();
    },
  };
}
