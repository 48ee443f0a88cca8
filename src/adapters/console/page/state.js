// The state of one room: messages and decisions in order, and what each companion is doing.
// Pure: `fold` takes an event and returns what changed. No clock, no network, no document.

import { companionFrom, isClosed, ownSettings, setDoing } from './companion.js';
import { closeRound, endRound, openRound, recordAnswer, recordState, roundFromResult, roundsFromVotes, startSpeaking, withdraw } from './election.js';
import { caughtUpEntry, decisionEntry, errorEntry, failedEntry, messageEntry, noteEntry, repetitionEntry, stageEntry } from './entries.js';
import { companionSpoke, guardFrom, newGuard, personSpoke, REPETITION_LIMIT, repetitionMeasured } from './loop-guard.js';
import { platformName } from './platforms.js';

const GROUP_ORDER = { note: 0, stage: 0, repetition: 0, caught_up: 0, round: 0, decision: 1, error: 1, failed: 2, message: 3 };

export function newRoom(id) {
  return {
    id,
    platform: platformName(id), // empty for a room of the console
    entries: [], // by seq: messages, rounds, decisions, errors, failed replies, stages, notes
    seen: new Map(), // entries by key, so that nothing is shown twice
    deleted: new Set(), // deleted messages, so that a page that loads late does not show them again
    companions: new Map(), // by id
    asked: new Map(), // by companion: the question in flight
    drafts: new Map(), // by companion: the reply in flight
    replies: [], // for the timeline: { companion, began, ended, failed }
    pending: [], // messages of this window that are not accepted yet
    floor: null,
    round: null, // the newest round
    guard: newGuard(), // how near the companions are to being stopped
    paused: false,
    unavailable: null, // why the room is not processed: { id, until, detail }
    last: 0, // the highest seq seen
    current: 0, // the seq up to which the state in `hello` contains everything
    greeted: false, // whether `hello` came, so that the companions are known
    complete: false, // whether the beginning of the room is loaded
    unreadable: false, // whether earlier messages cannot be read
  };
}

const number = value => (Number.isFinite(value) ? value : null);
const text = value => (typeof value === 'string' ? value : '');
const list = value => (Array.isArray(value) ? value : []);

export function nameOf(room, id) {
  return room.companions.get(id)?.name ?? id ?? 'a companion';
}

// The lowest seq of a loaded message, or null in an empty room.
export function oldestMessage(room) {
  return room.entries.find(entry => entry.kind === 'message')?.seq ?? null;
}

function insert(room, entry) {
  if (entry.seq === null || room.seen.has(entry.key)) return false;
  if (entry.kind === 'message' && room.deleted.has(entry.seq)) return false;
  room.seen.set(entry.key, entry);
  const before = other => other.seq > entry.seq || (other.seq === entry.seq && GROUP_ORDER[other.kind] > GROUP_ORDER[entry.kind]);
  let low = 0;
  let high = room.entries.length;
  if (high && !before(room.entries[high - 1])) low = high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(room.entries[middle])) high = middle;
    else low = middle + 1;
  }
  room.entries.splice(low, 0, entry);
  return true;
}

// Adds a page of history and its decisions. For the newest page, the live view sends the rounds.
export function addPage(room, messages, decisions, { complete, isNewest }) {
  for (const message of list(messages)) insert(room, messageEntry(message));
  for (const decision of list(decisions)) if (typeof decision.companion === 'string') insert(room, decisionEntry(decision));
  const oldest = room.entries.find(entry => entry.kind === 'round')?.seq ?? Infinity;
  if (!isNewest) for (const round of roundsFromVotes(room.entries.filter(entry => entry.seq < oldest), seq => spokeBefore(room, seq))) insert(room, round);
  room.last = Math.max(room.last, room.entries.at(-1)?.seq ?? 0);
  if (complete) room.complete = true;
}

export function setState(room, state) {
  const previous = room.companions;
  room.companions = new Map();
  for (const c of list(state?.companions)) {
    if (!c || typeof c.id !== 'string') continue;
    const m = companionFrom(c);
    m.opensIn ??= previous.get(c.id)?.opensIn ?? null;
    if (state.turn?.companion === c.id) m.speakAt = state.turn.speak_at ?? null;
    room.companions.set(c.id, m);
  }
  room.floor = state?.floor ?? null;
  const reason = state?.kept_away;
  room.unavailable = reason ? { id: text(reason.id), until: text(reason.until), detail: text(reason.detail) } : null;
  room.guard = guardFrom(room.guard, state);
}

function companionIn(room, id) {
  if (!room.companions.has(id)) room.companions.set(id, companionFrom({ id }));
  return room.companions.get(id);
}

function endReply(room, companion, at, failed) {
  const reply = room.replies.findLast(r => r.companion === companion && !r.ended);
  if (reply) Object.assign(reply, { ended: at, failed });
  const draft = room.drafts.get(companion);
  room.drafts.delete(companion);
  return draft;
}

// A decision or an error that answers the open round is shown with the round.
function answerRound(room, entry) {
  const known = room.seen.get(entry.key) ?? entry;
  if (room.round) recordAnswer(room.round, known);
}

function endNewestRound(room, outcome, at) {
  // A statement or a failure ends a round that is decided, never an open one.
  const { round } = room;
  return round && (outcome === 'dropped' || round.phase !== 'open') ? endRound(round, outcome, at) : false;
}

// The seq of a companion's newest loaded statement before an event, or null.
const spokeBefore = (room, seq) => id => room.entries.findLast(entry => entry.kind === 'message' && entry.role === 'companion' && entry.from === id && entry.seq < seq)?.seq ?? null;

// When people keep talking, a companion that has ended the conversation comes back.
function countForClosed(room) {
  for (const m of room.companions.values()) if (isClosed(m)) m.opensIn = Math.max(0, (m.opensIn ?? room.guard.reopenAfter) - 1);
}

const TALK = ['talk'];
const COMPANIONS = ['companions'];
const BOTH = ['talk', 'companions'];
const NOTHING = [];

// What each event changes. `now` is false for an event that the state in `hello` already contains: it must not change what companions do.
const RULES = {
  hello(room, e) {
    setState(room, e.state);
    room.greeted = true;
    room.current = number(e.last) ?? 0;
    room.drafts.clear();
    room.asked.clear();
    for (const m of room.companions.values()) {
      if (m.doing === 'asked') room.asked.set(m.id, { trigger: m.trigger, at: m.since ?? e.at });
      if (m.doing === 'speaking') room.drafts.set(m.id, { ticket: null, text: '', at: m.since ?? e.at });
    }
    return BOTH;
  },
  message(room, e, now) {
    if (now && e.role === 'user' && !e.kind && !room.seen.has(`m${e.seq}`)) {
      personSpoke(room.guard);
      countForClosed(room);
    }
    const mine = room.pending.findIndex(p => (e.id && p.id === e.id) || (p.seq && p.seq === e.seq));
    if (mine >= 0) room.pending.splice(mine, 1);
    return insert(room, messageEntry(e)) || mine >= 0 ? BOTH : NOTHING;
  },
  edited(room, e) {
    const entry = room.entries.find(other => other.key === `m${e.message}`);
    if (!entry) return NOTHING;
    Object.assign(entry, { text: text(e.text), edited: true, version: entry.version + 1 });
    return TALK;
  },
  deleted(room, e) {
    const deleted = new Set(list(e.messages));
    for (const seq of deleted) room.deleted.add(seq);
    room.entries = room.entries.filter(entry => entry.kind !== 'message' || !deleted.has(entry.seq));
    return TALK;
  },
  joined(room, e, now) {
    if (now) companionIn(room, e.companion).isExternal = Boolean(e.external);
    insert(room, noteEntry(e, 'joined'));
    return BOTH;
  },
  left(room, e, now) {
    insert(room, { ...noteEntry(e, 'left'), name: nameOf(room, e.companion) });
    if (room.round) withdraw(room.round, e.companion);
    if (now) {
      room.companions.delete(e.companion);
      room.asked.delete(e.companion);
      endReply(room, e.companion, e.at, true);
    }
    return BOTH;
  },
  caught_up(room, e) {
    // Where nothing was read and nothing is missing, there is nothing to show.
    const entry = caughtUpEntry(e);
    return (entry.read || entry.missed) && insert(room, entry) ? TALK : NOTHING;
  },
  cleared(room, e, now) {
    insert(room, noteEntry(e, 'cleared'));
    endNewestRound(room, 'dropped', e.at);
    if (!now) return BOTH;
    room.asked.clear();
    room.guard = { ...newGuard(), maxStreak: room.guard.maxStreak, maxTurns: room.guard.maxTurns, reopenAfter: room.guard.reopenAfter };
    for (const m of room.companions.values()) {
      endReply(room, m.id, e.at, true);
      Object.assign(m, { messageCount: 0, checkCount: 0, threshold: null, lullAt: null, closing: 'none', opensIn: null });
      setDoing(m, 'listening');
    }
    return BOTH;
  },
  evaluate(room, e, now) {
    if (!now) return NOTHING;
    const m = companionIn(room, e.companion);
    Object.assign(m, { messageCount: number(e.message_count) ?? m.messageCount, checkCount: number(e.check_count) ?? m.checkCount, threshold: number(e.threshold) ?? m.threshold, lullAt: null });
    setDoing(m, 'asked', e);
    room.asked.set(e.companion, { trigger: e.trigger, at: e.at });
    return BOTH;
  },
  decision(room, e, now) {
    const entry = decisionEntry(e);
    insert(room, entry);
    answerRound(room, entry);
    if (now) {
      const m = companionIn(room, e.companion);
      const isHeld = room.round?.phase === 'open' && entry.yes;
      // A companion that lost a round and then settles without a question, as at the limit of the companion streak, no longer wants to speak.
      const hasLost = m.doing === 'wants_to_speak' && room.round?.phase !== 'open' && !entry.yes;
      if (room.asked.delete(e.companion) || hasLost) setDoing(m, isHeld ? 'wants_to_speak' : 'listening', isHeld ? e : undefined);
    }
    return BOTH;
  },
  round_opened(room, e, now) {
    const round = openRound(e);
    if (!insert(room, round)) return NOTHING;
    endNewestRound(room, 'dropped', e.at);
    room.round = round;
    if (now) for (const m of room.companions.values()) if (m.doing === 'wants_to_speak') setDoing(m, 'listening');
    return BOTH;
  },
  state(room, e) {
    return room.round && recordState(room.round, e) ? TALK : NOTHING;
  },
  round(room, e, now) {
    if (room.round?.phase !== 'open') {
      const opened = roundFromResult(e);
      // A round that has been closed already is not closed again.
      if (room.entries.some(entry => entry.kind === 'round' && entry.closedAt === e.at)) return NOTHING;
      insert(room, opened);
      room.round = opened;
    }
    closeRound(room.round, e, spokeBefore(room, e.seq));
    if (!now) return BOTH;
    if (room.round.selected) {
      room.guard.counts = true;
      setDoing(companionIn(room, room.round.selected), 'waiting_its_turn', e);
    }
    return BOTH;
  },
  closing(room, e, now) {
    insert(room, stageEntry(e));
    if (now) Object.assign(companionIn(room, e.companion), { closing: e.to ?? 'none', opensIn: e.to === 'terminal' ? room.guard.reopenAfter : null });
    if (now && e.to === 'none' && e.cause !== 'state' && e.cause !== 'repetition') Object.assign(room.guard, { turns: 0, detections: 0 });
    return BOTH;
  },
  repetition(room, e, now) {
    const score = number(e.score) ?? 0;
    if (score > REPETITION_LIMIT) insert(room, repetitionEntry(e, score));
    if (now) repetitionMeasured(room.guard, e);
    return BOTH;
  },
  silence() {
    return NOTHING;
  },
  error(room, e, now) {
    const entry = errorEntry(e);
    insert(room, entry);
    answerRound(room, entry);
    if (now) {
      room.asked.delete(e.companion);
      setDoing(companionIn(room, e.companion), 'back_off', e);
    }
    return BOTH;
  },
  respond(room, e, now) {
    if (!room.replies.some(r => r.companion === e.companion && r.began === e.at)) {
      room.replies.push({ companion: e.companion, began: e.at, ended: null, failed: false });
    }
    if (room.round) startSpeaking(room.round, e.companion);
    if (!now) return NOTHING;
    room.asked.delete(e.companion);
    room.drafts.set(e.companion, { ticket: e.ticket ?? null, text: '', at: e.at });
    Object.assign(companionIn(room, e.companion), { lullAt: null });
    setDoing(companionIn(room, e.companion), 'speaking', e);
    return BOTH;
  },
  draft(room, e) {
    const draft = room.drafts.get(e.companion);
    // A late draft belongs to a reply that has ended.
    if (!draft || (draft.ticket !== null && e.ticket !== undefined && draft.ticket !== e.ticket)) return NOTHING;
    // What was written before this window connected comes with the next event that has the whole draft.
    if (!e.whole && !draft.isWhole) return NOTHING;
    draft.text = e.whole ? text(e.text) : draft.text + text(e.text);
    draft.isWhole = true;
    return TALK;
  },
  statement(room, e, now) {
    endReply(room, e.companion, e.at, false);
    endNewestRound(room, 'posted', e.at);
    if (now) {
      if (!room.seen.has(`m${e.seq}`)) companionSpoke(room.guard);
      setDoing(companionIn(room, e.companion), 'listening');
    }
    return BOTH;
  },
  failed(room, e, now) {
    const draft = endReply(room, e.companion, e.at, true);
    endNewestRound(room, 'failed', e.at);
    insert(room, failedEntry(e, draft?.text));
    if (now) setDoing(companionIn(room, e.companion), 'listening');
    return BOTH;
  },
  // Every message that it wanted to speak about, or was going to answer, was deleted.
  dropped(room, e) {
    const m = companionIn(room, e.companion);
    const draft = room.drafts.get(e.companion);
    const isSpeaking = draft && (draft.ticket === null || draft.ticket === e.ticket);
    if (!isSpeaking && m.doing !== 'wants_to_speak' && m.doing !== 'waiting_its_turn') return NOTHING;
    if (isSpeaking) endReply(room, e.companion, e.at, true);
    if (room.round?.phase !== 'open') endNewestRound(room, 'dropped', e.at);
    setDoing(m, 'listening', e);
    return BOTH;
  },
  paused(room, e, now) {
    insert(room, noteEntry(e, e.paused ? 'paused' : 'unpaused'));
    if (!now) return TALK;
    if (!e.companion) room.paused = Boolean(e.paused);
    for (const m of e.companion ? [companionIn(room, e.companion)] : room.companions.values()) {
      m.paused = Boolean(e.paused);
      if (m.paused) m.lullAt = null;
      if (m.paused || m.doing === 'paused') setDoing(m, 'listening', e);
    }
    return BOTH;
  },
  tempered(room, e, now) {
    insert(room, { ...noteEntry(e, 'tempered'), interjection: e.interjection ?? null });
    if (now && e.interjection) Object.assign(companionIn(room, e.companion), { interjection: e.interjection, ...ownSettings(e) });
    return BOTH;
  },
  lull_armed(room, e) {
    Object.assign(companionIn(room, e.companion), { lullAt: e.lull_at ?? null, lullFrom: e.at ?? null });
    return COMPANIONS;
  },
  lull_cancelled(room, e) {
    Object.assign(companionIn(room, e.companion), { lullAt: null, lullFrom: null });
    return COMPANIONS;
  },
  counters(room, e) {
    const m = companionIn(room, e.companion);
    Object.assign(m, { messageCount: number(e.message_count) ?? m.messageCount, checkCount: number(e.check_count) ?? m.checkCount, threshold: number(e.next_interjection_at) });
    return COMPANIONS;
  },
};

const NAMES_A_COMPANION = new Set(['joined', 'left', 'evaluate', 'decision', 'error', 'respond', 'draft', 'statement', 'failed', 'tempered', 'closing', 'lull_armed', 'lull_cancelled', 'counters', 'dropped']);

// Folds one event into the room, and returns the parts of the page that changed. Unknown and malformed events change nothing.
export function fold(room, e) {
  if (!e || !Object.hasOwn(RULES, e.event)) return NOTHING;
  if (NAMES_A_COMPANION.has(e.event) && typeof e.companion !== 'string') return NOTHING;
  const seq = number(e.seq);
  const now = seq === null || seq > room.current;
  const changed = RULES[e.event](room, e, now);
  if (seq !== null) room.last = Math.max(room.last, seq);
  return changed;
}

const DECISION_KINDS = new Set(['decision', 'error', 'failed']);

// A companion's newest decisions, questions without an answer, and failed replies.
export function lastDecisions(room, companion, limit) {
  const found = [];
  for (let i = room.entries.length - 1; i >= 0 && found.length < limit; i -= 1) {
    const entry = room.entries[i];
    if (entry.companion === companion && DECISION_KINDS.has(entry.kind)) found.push(entry);
  }
  return found;
}
