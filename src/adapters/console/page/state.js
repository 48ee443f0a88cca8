// The model of one room: what was said and decided, in order, and what each companion is doing.
// Pure: events go in, and what changed comes out; no clock, no network, no document.

import { beginToSpeak, closeRound, endRound, openRound, roundFromResult, roundsFromVotes, takeAnswer, takeState, withdraw } from './election.js';
import { elsewhere } from './elsewhere.js';
import { guardFrom, heard, judged, MOST_ALIKE, newGuard, said } from './guard.js';
import { doing, isClosed, mindFrom } from './mind.js';
import { caughtUpEntry, circlesEntry, decisionEntry, errorEntry, failedEntry, messageEntry, noteEntry, stageEntry } from './record.js';

const GROUP_ORDER = { note: 0, stage: 0, circles: 0, caught_up: 0, round: 0, decision: 1, error: 1, failed: 2, message: 3 };

export function newRoom(id) {
  return {
    id,
    elsewhere: elsewhere(id), // the platform on which it is talked in, if not here
    entries: [], // by seq: messages, rounds, decisions, errors, failed replies, stages, notes
    seen: new Map(), // entries by key, so that nothing is shown twice
    gone: new Set(), // messages that were deleted, so that no late page brings them back
    minds: new Map(), // by companion
    asked: new Map(), // by companion: the question under way
    drafts: new Map(), // by companion: the reply under way
    replies: [], // for the timeline: { companion, began, ended, failed }
    pending: [], // messages of this window that were not accepted yet
    floor: null,
    round: null, // the newest round
    guard: newGuard(), // how near companions are to being stopped
    paused: false,
    keptAway: null, // why nothing goes on in it: { id, until, detail }
    last: 0, // the highest number seen
    current: 0, // what the state in `hello` already contains
    greeted: false, // whether it is known who is present
    complete: false, // whether the beginning of the room is loaded
    unreadable: false, // whether what was said before cannot be read
  };
}

const number = value => (Number.isFinite(value) ? value : null);
const text = value => (typeof value === 'string' ? value : '');
const list = value => (Array.isArray(value) ? value : []);

export function nameOf(room, id) {
  return room.minds.get(id)?.name ?? id ?? 'a companion';
}

// The lowest number loaded, or null in an empty room.
export function oldestMessage(room) {
  return room.entries.find(entry => entry.kind === 'message')?.seq ?? null;
}

function insert(room, entry) {
  if (entry.seq === null || room.seen.has(entry.key)) return false;
  if (entry.kind === 'message' && room.gone.has(entry.seq)) return false;
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

// A page of history and the decisions that belong to it; of the newest page, the live view tells the rounds.
export function addPage(room, messages, decisions, { complete, isNewest }) {
  for (const message of list(messages)) insert(room, messageEntry(message));
  for (const decision of list(decisions)) if (typeof decision.companion === 'string') insert(room, decisionEntry(decision));
  const oldest = room.entries.find(entry => entry.kind === 'round')?.seq ?? Infinity;
  if (!isNewest) for (const round of roundsFromVotes(room.entries.filter(entry => entry.seq < oldest), seq => spokeBefore(room, seq))) insert(room, round);
  room.last = Math.max(room.last, room.entries.at(-1)?.seq ?? 0);
  if (complete) room.complete = true;
}

export function setState(room, state) {
  const known = room.minds;
  room.minds = new Map();
  for (const c of list(state?.companions)) {
    if (!c || typeof c.id !== 'string') continue;
    const m = mindFrom(c);
    m.opensIn ??= known.get(c.id)?.opensIn ?? null;
    if (state.turn?.companion === c.id) m.speakAt = state.turn.speak_at ?? null;
    room.minds.set(c.id, m);
  }
  room.floor = state?.floor ?? null;
  const away = state?.kept_away;
  room.keptAway = away ? { id: text(away.id), until: text(away.until), detail: text(away.detail) } : null;
  room.guard = guardFrom(room.guard, state);
}

function mind(room, id) {
  if (!room.minds.has(id)) room.minds.set(id, mindFrom({ id }));
  return room.minds.get(id);
}

function endReply(room, companion, at, failed) {
  const reply = room.replies.findLast(r => r.companion === companion && !r.ended);
  if (reply) Object.assign(reply, { ended: at, failed });
  const draft = room.drafts.get(companion);
  room.drafts.delete(companion);
  return draft;
}

// A decision or an error that answers the round that is open is shown with it.
function answerRound(room, entry) {
  const kept = room.seen.get(entry.key) ?? entry;
  if (room.round) takeAnswer(room.round, kept);
}

function endOfRound(room, outcome, at) {
  // A statement or a failure ends what was decided, never what is being decided.
  const { round } = room;
  return round && (outcome === 'dropped' || round.phase !== 'open') ? endRound(round, outcome, at) : false;
}

// The newest statement of a companion before an event, as far as it is loaded.
const spokeBefore = (room, seq) => id => room.entries.findLast(entry => entry.kind === 'message' && entry.role === 'companion' && entry.from === id && entry.seq < seq)?.seq ?? null;

// People who talk on open again who has closed.
function heardByTheClosed(room) {
  for (const m of room.minds.values()) if (isClosed(m)) m.opensIn = Math.max(0, (m.opensIn ?? room.guard.reopenAfter) - 1);
}

const TALK = ['talk'];
const MINDS = ['minds'];
const BOTH = ['talk', 'minds'];
const NOTHING = [];

// What each event does; `now` tells whether it changes what companions do, or is a past that `hello` already contains.
const RULES = {
  hello(room, e) {
    setState(room, e.state);
    room.greeted = true;
    room.current = number(e.last) ?? 0;
    room.drafts.clear();
    room.asked.clear();
    for (const m of room.minds.values()) {
      if (m.doing === 'asked') room.asked.set(m.id, { trigger: m.trigger, at: m.since ?? e.at });
      if (m.doing === 'speaking') room.drafts.set(m.id, { ticket: null, text: '', at: m.since ?? e.at });
    }
    return BOTH;
  },
  message(room, e, now) {
    if (now && e.role === 'user' && !room.seen.has(`m${e.seq}`)) {
      heard(room.guard);
      heardByTheClosed(room);
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
    const gone = new Set(list(e.messages));
    for (const seq of gone) room.gone.add(seq);
    room.entries = room.entries.filter(entry => entry.kind !== 'message' || !gone.has(entry.seq));
    return TALK;
  },
  joined(room, e, now) {
    if (now) mind(room, e.companion).isExternal = Boolean(e.external);
    insert(room, noteEntry(e, 'joined'));
    return BOTH;
  },
  left(room, e, now) {
    insert(room, { ...noteEntry(e, 'left'), name: nameOf(room, e.companion) });
    if (room.round) withdraw(room.round, e.companion);
    if (now) {
      room.minds.delete(e.companion);
      room.asked.delete(e.companion);
      endReply(room, e.companion, e.at, true);
    }
    return BOTH;
  },
  caught_up(room, e) {
    // Nothing to read and nothing missing is no news.
    const entry = caughtUpEntry(e);
    return (entry.read || entry.missed) && insert(room, entry) ? TALK : NOTHING;
  },
  cleared(room, e, now) {
    insert(room, noteEntry(e, 'cleared'));
    endOfRound(room, 'dropped', e.at);
    if (!now) return BOTH;
    room.asked.clear();
    room.guard = { ...newGuard(), mostInARow: room.guard.mostInARow, mostTurns: room.guard.mostTurns, reopenAfter: room.guard.reopenAfter };
    for (const m of room.minds.values()) {
      endReply(room, m.id, e.at, true);
      Object.assign(m, { messageCount: 0, checkCount: 0, threshold: null, lullAt: null, closing: 'none', opensIn: null });
      doing(m, 'listening');
    }
    return BOTH;
  },
  evaluate(room, e, now) {
    if (!now) return NOTHING;
    const m = mind(room, e.companion);
    Object.assign(m, { messageCount: number(e.message_count) ?? m.messageCount, checkCount: number(e.check_count) ?? m.checkCount, threshold: number(e.threshold) ?? m.threshold, lullAt: null });
    doing(m, 'asked', e);
    room.asked.set(e.companion, { trigger: e.trigger, at: e.at });
    return BOTH;
  },
  decision(room, e, now) {
    const entry = decisionEntry(e);
    insert(room, entry);
    answerRound(room, entry);
    if (now) {
      const m = mind(room, e.companion);
      const isHeld = room.round?.phase === 'open' && entry.yes;
      if (room.asked.delete(e.companion)) doing(m, isHeld ? 'wants_to_speak' : 'listening', isHeld ? e : undefined);
    }
    return BOTH;
  },
  round_opened(room, e, now) {
    const round = openRound(e);
    if (!insert(room, round)) return NOTHING;
    endOfRound(room, 'dropped', e.at);
    room.round = round;
    if (now) for (const m of room.minds.values()) if (m.doing === 'wants_to_speak') doing(m, 'listening');
    return BOTH;
  },
  state(room, e) {
    return room.round && takeState(room.round, e) ? TALK : NOTHING;
  },
  round(room, e, now) {
    if (room.round?.phase !== 'open') {
      const known = roundFromResult(e);
      // A round that is known by now ends once.
      if (room.entries.some(entry => entry.kind === 'round' && entry.closedAt === e.at)) return NOTHING;
      insert(room, known);
      room.round = known;
    }
    closeRound(room.round, e, spokeBefore(room, e.seq));
    if (!now) return BOTH;
    if (room.round.selected) {
      room.guard.counts = true;
      doing(mind(room, room.round.selected), 'waiting_its_turn', e);
    }
    return BOTH;
  },
  closing(room, e, now) {
    insert(room, stageEntry(e));
    if (now) Object.assign(mind(room, e.companion), { closing: e.to ?? 'none', opensIn: e.to === 'terminal' ? room.guard.reopenAfter : null });
    if (now && e.cause !== 'state') room.guard.turns = e.to === 'none' ? 0 : room.guard.turns;
    return BOTH;
  },
  repetition(room, e, now) {
    const score = number(e.score) ?? 0;
    if (score > MOST_ALIKE) insert(room, circlesEntry(e, score));
    if (now) judged(room.guard, e);
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
      doing(mind(room, e.companion), 'back_off', e);
    }
    return BOTH;
  },
  respond(room, e, now) {
    if (!room.replies.some(r => r.companion === e.companion && r.began === e.at)) {
      room.replies.push({ companion: e.companion, began: e.at, ended: null, failed: false });
    }
    if (room.round) beginToSpeak(room.round, e.companion);
    if (!now) return NOTHING;
    room.asked.delete(e.companion);
    room.drafts.set(e.companion, { ticket: e.ticket ?? null, text: '', at: e.at });
    Object.assign(mind(room, e.companion), { lullAt: null });
    doing(mind(room, e.companion), 'speaking', e);
    return BOTH;
  },
  draft(room, e) {
    const draft = room.drafts.get(e.companion);
    // One that is late belongs to a reply that has ended.
    if (!draft || (draft.ticket !== null && e.ticket !== undefined && draft.ticket !== e.ticket)) return NOTHING;
    // What was written before this window watched comes with the next event that tells the whole.
    if (!e.whole && !draft.isWhole) return NOTHING;
    draft.text = e.whole ? text(e.text) : draft.text + text(e.text);
    draft.isWhole = true;
    return TALK;
  },
  statement(room, e, now) {
    endReply(room, e.companion, e.at, false);
    endOfRound(room, 'said', e.at);
    if (now) {
      if (!room.seen.has(`m${e.seq}`)) said(room.guard);
      doing(mind(room, e.companion), 'listening');
    }
    return BOTH;
  },
  failed(room, e, now) {
    const draft = endReply(room, e.companion, e.at, true);
    endOfRound(room, 'failed', e.at);
    insert(room, failedEntry(e, draft?.text));
    if (now) doing(mind(room, e.companion), 'listening');
    return BOTH;
  },
  // All that it wanted to speak about, or was to answer, was taken back.
  dropped(room, e) {
    const m = mind(room, e.companion);
    const draft = room.drafts.get(e.companion);
    const isSpeaking = draft && (draft.ticket === null || draft.ticket === e.ticket);
    if (!isSpeaking && m.doing !== 'wants_to_speak' && m.doing !== 'waiting_its_turn') return NOTHING;
    if (isSpeaking) endReply(room, e.companion, e.at, true);
    if (room.round?.phase !== 'open') endOfRound(room, 'dropped', e.at);
    doing(m, 'listening', e);
    return BOTH;
  },
  paused(room, e, now) {
    insert(room, noteEntry(e, e.paused ? 'paused' : 'unpaused'));
    if (!now) return TALK;
    if (!e.companion) room.paused = Boolean(e.paused);
    for (const m of e.companion ? [mind(room, e.companion)] : room.minds.values()) {
      m.paused = Boolean(e.paused);
      if (m.paused) m.lullAt = null;
      if (m.paused || m.doing === 'paused') doing(m, 'listening', e);
    }
    return BOTH;
  },
  tempered(room, e, now) {
    insert(room, { ...noteEntry(e, 'tempered'), interjection: e.interjection ?? null });
    if (now && e.interjection) mind(room, e.companion).interjection = e.interjection;
    return BOTH;
  },
  lull_armed(room, e) {
    Object.assign(mind(room, e.companion), { lullAt: e.lull_at ?? null, lullFrom: e.at ?? null });
    return MINDS;
  },
  lull_cancelled(room, e) {
    Object.assign(mind(room, e.companion), { lullAt: null, lullFrom: null });
    return MINDS;
  },
  counters(room, e) {
    const m = mind(room, e.companion);
    Object.assign(m, { messageCount: number(e.message_count) ?? m.messageCount, checkCount: number(e.check_count) ?? m.checkCount, threshold: number(e.next_interjection_at) });
    return MINDS;
  },
};

const NAMES_A_COMPANION = new Set(['joined', 'left', 'evaluate', 'decision', 'error', 'respond', 'draft', 'statement', 'failed', 'tempered', 'closing', 'lull_armed', 'lull_cancelled', 'counters', 'dropped']);

// Folds one event into the room and tells which parts of the page changed. What is unknown or unreadable changes nothing.
export function fold(room, e) {
  if (!e || !Object.hasOwn(RULES, e.event)) return NOTHING;
  if (NAMES_A_COMPANION.has(e.event) && typeof e.companion !== 'string') return NOTHING;
  const seq = number(e.seq);
  const now = seq === null || seq > room.current;
  const changed = RULES[e.event](room, e, now);
  if (seq !== null) room.last = Math.max(room.last, seq);
  return changed;
}

const TOLD = new Set(['decision', 'error', 'failed']);

// The newest things that this companion decided, was asked without an answer, or failed to say.
export function lastDecisions(room, companion, how_many) {
  const found = [];
  for (let i = room.entries.length - 1; i >= 0 && found.length < how_many; i -= 1) {
    const entry = room.entries[i];
    if (entry.companion === companion && TOLD.has(entry.kind)) found.push(entry);
  }
  return found;
}
