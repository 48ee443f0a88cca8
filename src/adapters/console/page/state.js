// The state of one room: messages and decisions in order, and what each companion is doing.
// Pure: `fold` takes an event and returns what changed. No clock, no network, no document.

import { companionFrom, isClosed, ownSettings, setDoing } from './companion.js';
import { caughtUpEntry, decisionEntry, errorEntry, failedEntry, messageEntry, noteEntry, noticeOf, repetitionEntry, replanEntry, stageEntry, tombstoneEntry, wordsOf } from './entries.js';
import { isHeld, isStopped, isVotingIn, stopWanting } from './floor.js';
import { companionSpoke, guardFrom, newGuard, personSpoke, REPETITION_LIMIT, repetitionMeasured, statementReplaced } from './loop-guard.js';
import { platformName } from './platforms.js';
import { attach, newRound, recordState, setRound } from './round-state.js';
import { t } from './texts.js';

const GROUP_ORDER = { note: 0, stage: 0, repetition: 0, caught_up: 0, replan: 0, round: 0, decision: 1, error: 1, failed: 2, message: 3, tombstone: 3 };

export function newRoom(id) {
  return {
    id,
    platform: platformName(id), // empty for a room of the console
    entries: [], // by seq: messages, rounds, decisions, errors, failed replies, stages, notes
    seen: new Map(), // entries by key, so that nothing is shown twice
    deleted: new Set(), // deleted messages, so that a page that loads late does not show them again
    filtered: new Map(), // by message that an AI service refuses to read: the kinds of prompts and the models
    transcribed: new Set(), // voice notes in whose places their words are shown
    tombstones: new Set(), // those of them in the places of which something is shown
    hidden: new Set(), // messages that are deleted here as soon as that can no longer be undone
    continued: new Set(), // the deleted messages that another one extends
    replaced: new Map(), // the companions that write another message, by the deleted one
    companions: new Map(), // by id
    names: new Map(), // of companions by id, also of those that have left
    asked: new Map(), // by companion: the question in flight
    drafts: new Map(), // by companion: the reply in flight. Only one has the floor, the others are late
    replies: [], // for the timeline: { companion, began, ended, failed }
    people: [], // who has this room open now: { name, isGuest, isTyping }
    pending: [], // messages of this window that are not accepted yet
    rounds: [], // those that are not over, oldest first; until the next one opens, also those that are
    guard: newGuard(), // how near the companions are to being stopped
    paused: false,
    isDeleted: false, // whether it was deleted while it was shown
    unavailable: null, // why the room is not processed: { id, until, detail }
    liveAfter: 0, // the live view sends the events after this seq
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

// A companion without a name is called by its id with a capital, as the server does.
export function nameOf(room, id) {
  return room.companions.get(id)?.name ?? room.names.get(id) ?? (id ? id.charAt(0).toUpperCase() + id.slice(1) : t('messages.unknown_companion'));
}

// Learns the names of companions, wherever they are now.
export function learnNames(room, companions) {
  for (const { id, name } of companions) if (typeof id === 'string' && typeof name === 'string') room.names.set(id, name);
}

// Takes the names that companions have now. Returns whether one of them is new.
export function rename(room, companions) {
  const before = new Map(room.names);
  learnNames(room, companions);
  for (const [id, name] of room.names) if (room.companions.has(id)) room.companions.get(id).name = name;
  return [...room.names].some(([id, name]) => before.get(id) !== name);
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

// A reply can be a vote.
function recount(room, { replyTo }) {
  if (room.seen.get(`m${replyTo}`)?.calls.some(call => call.poll)) changeMessage(room, replyTo);
}

function insertMessage(room, m) {
  if (m.role === 'companion') learnNames(room, [{ id: m.from, name: m.name }]);
  const entry = messageEntry(m);
  if (entry.voiceNote?.note) room.transcribed.add(entry.voiceNote.note);
  recount(room, entry);
  return insert(room, entry);
}

// Adds a page of history and its decisions, with their rounds. Rounds of the events that the live view sends come from there alone, however late it is.
export function addPage(room, { messages, deleted }, decisions, { complete }) {
  for (const seq of list(deleted)) {
    room.deleted.add(seq);
    room.tombstones.add(seq);
  }
  for (const message of list(messages)) insertMessage(room, message);
  for (const decision of list(decisions)) {
    if (typeof decision.companion !== 'string') continue;
    const entry = decisionEntry(decision);
    insert(room, entry);
    if (decision.seq > room.liveAfter || !Number.isFinite(decision.round?.seq)) continue;
    const known = room.seen.get(`r${decision.round.seq}`);
    const round = known ?? newRound(decision.round);
    if (!known) setRound(round, decision.round);
    attach(round, room.seen.get(entry.key) ?? entry);
    insert(room, round);
  }
  if (complete) room.complete = true;
  insertTombstones(room);
  room.last = Math.max(room.last, room.entries.at(-1)?.seq ?? 0);
}

// Marks the places of deleted messages, as far back as the page is loaded.
function insertTombstones(room) {
  const oldest = room.complete ? 0 : (oldestMessage(room) ?? Infinity);
  for (const seq of room.tombstones) if (seq >= oldest) insert(room, tombstoneEntry(seq, room.replaced.get(seq)));
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
    learnNames(room, [m]);
  }
  const reason = state?.kept_away;
  room.unavailable = reason ? { id: text(reason.id), until: text(reason.until), detail: text(reason.detail) } : null;
  room.guard = guardFrom(room.guard, state);
}

function companionIn(room, id) {
  if (!room.companions.has(id)) room.companions.set(id, companionFrom({ id }));
  return room.companions.get(id);
}

// Ends a reply. Its draft is removed and returned; that of a later reply stays.
function endReply(room, e, failed) {
  const reply = room.replies.findLast(r => r.companion === e.companion && !r.ended);
  if (reply) Object.assign(reply, { ended: e.at, failed });
  const draft = room.drafts.get(e.companion);
  if (!draft || (Number.isFinite(e.ticket) && draft.ticket !== e.ticket)) return null;
  room.drafts.delete(e.companion);
  return draft;
}

// A decision or an error that answers a round is shown with the round, which is returned.
function answerRound(room, entry) {
  const known = room.seen.get(entry.key) ?? entry;
  room.rounds.find(round => attach(round, known));
  return known.round;
}

// A companion was selected.
function selectSpeaker(room, e) {
  room.guard.uncounted.delete(e.selected);
  setDoing(companionIn(room, e.selected), 'waiting_its_turn', e);
}

// Takes a round as it is now. A new one takes the place of those that are over.
function takeRound(room, r) {
  if (!Number.isFinite(r?.seq)) return;
  const known = room.seen.get(`r${r.seq}`);
  const round = known ?? newRound(r);
  setRound(round, r);
  insert(room, round);
  if (!room.rounds.includes(round)) room.rounds = [...room.rounds.filter(({ phase }) => phase !== 'over'), round];
}

// When people keep talking, a companion that has ended the conversation comes back.
function countForClosed(room) {
  for (const m of room.companions.values()) if (isClosed(m)) m.opensIn = Math.max(0, (m.opensIn ?? room.guard.reopenAfter) - 1);
}

const newDraft = (ticket, at, isSpoken = false) => ({ ticket, text: '', at, isWhole: false, isLate: false, isStopped: false, isSpoken });

// The entry of a statement that is begun again, by the ticket of the attempt that was stopped.
function replanOf(room, e, ticket) {
  const entry = replanEntry(e, ticket);
  insert(room, entry);
  return room.seen.get(entry.key) ?? entry;
}

// A companion writes another message in the place of one that is deleted then.
function replaces(room, { again, companion, continues }) {
  room.replaced.set(again, companion);
  if (continues) room.continued.add(again);
  const entry = room.seen.get(`x${again}`);
  if (entry) Object.assign(entry, { companion, version: entry.version + 1 });
}

// Other entries quote these messages, or name their authors.
function redrawQuotes(room, seqs) {
  for (const entry of room.entries) if (seqs.has(entry.stopMessage) || (entry.kind === 'round' && seqs.has(entry.message)) || entry.messages?.some(seq => seqs.has(seq))) entry.version += 1;
}

// Changes what is shown of a message. Without fields it is only drawn again.
function changeMessage(room, seq, fields) {
  const entry = room.entries.findLast(other => other.key === `m${seq}`);
  if (!entry) return NOTHING;
  Object.assign(entry, fields?.(entry), { version: entry.version + 1 });
  return TALK;
}

// A model refuses a message, or accepts it again. Another model, or the same in other prompts, may refuse it still.
function setFiltered(room, { message, asked, model }, isRefused) {
  const refusing = room.filtered.get(message) ?? new Set();
  if (isRefused) refusing.add(`${asked} ${model}`);
  else refusing.delete(`${asked} ${model}`);
  if (refusing.size) room.filtered.set(message, refusing);
  else room.filtered.delete(message);
  changeMessage(room, message);
  return TALK;
}

// What became of a call that a statement proposed.
function endCall(room, { call }, end) {
  const entry = room.entries.findLast(other => other.calls?.some(one => one.call === call));
  if (!entry) return NOTHING;
  Object.assign(entry, { calls: entry.calls.map(one => (one.call === call ? { ...one, ...end } : one)), version: entry.version + 1 });
  return TALK;
}

// Decisions name the message that they were about.
function redrawDecisions(room) {
  for (const entry of room.entries) if (entry.kind === 'decision' || entry.kind === 'round') entry.version += 1;
}

function setFloor(room, e, isLate) {
  const draft = room.drafts.get(e.companion);
  if (draft?.ticket === e.ticket) draft.isLate = isLate;
  return BOTH;
}

const TALK = ['talk'];
const COMPANIONS = ['companions'];
const BOTH = ['talk', 'companions'];
const PEOPLE = ['people'];
const NOTHING = [];

// What each event changes. `now` is false for an event that the state in `hello` already contains: it must not change what companions do.
const RULES = {
  hello(room, e) {
    setState(room, e.state);
    room.greeted = true;
    const before = [...room.filtered.keys()];
    room.filtered.clear();
    before.forEach(seq => changeMessage(room, seq));
    for (const one of list(e.state?.filtered)) setFiltered(room, one, true);
    room.current = number(e.last) ?? 0;
    room.asked.clear();
    for (const m of room.companions.values()) if (m.doing === 'asked') room.asked.set(m.id, { trigger: m.trigger, at: m.since ?? e.at });
    const drafts = room.drafts;
    room.drafts = new Map();
    const late = list(e.state?.late);
    for (const owed of [...late, e.state?.floor]) {
      if (typeof owed?.companion !== 'string') continue;
      const known = drafts.get(owed.companion);
      const draft = known?.ticket === owed.ticket ? { ...known, isWhole: false } : newDraft(owed.ticket, room.companions.get(owed.companion)?.since ?? e.at);
      room.drafts.set(owed.companion, { ...draft, isLate: late.includes(owed) });
    }
    return BOTH;
  },
  message(room, e, now) {
    if (now && e.role === 'user' && !e.kind && !room.seen.has(`m${e.seq}`)) {
      personSpoke(room.guard, [...room.companions.values()].filter(m => m.doing === 'speaking' || m.doing === 'waiting_its_turn').map(m => m.id));
      countForClosed(room);
    }
    const mine = room.pending.findIndex(p => (e.id && p.id === e.id) || (p.seq && p.seq === e.seq));
    if (mine >= 0) room.pending.splice(mine, 1);
    const isNew = insertMessage(room, e);
    if (isNew && now && room.paused && e.role === 'user' && !e.kind && room.companions.size) room.seen.get(`m${e.seq}`).whilePaused = true;
    return isNew || mine >= 0 ? BOTH : NOTHING;
  },
  tool_confirmed: (room, e) => endCall(room, e, { confirmed: e.confirmed === true }),
  tool_answered: (room, e) => endCall(room, e, { outcome: text(e.outcome) }),
  filtered: (room, e) => setFiltered(room, e, true),
  unfiltered: (room, e) => setFiltered(room, e, false),
  disclosed: (room, e) => changeMessage(room, e.message, () => ({ notice: noticeOf(e) })),
  help: (room, e) => changeMessage(room, e.message, entry => ({ help: { person: e.person ?? entry.from, text: text(e.text), tell: e.tell === true } })),
  help_told: (room, e) => changeMessage(room, e.message, () => ({ help: { person: null, tell: true } })),
  edited(room, e) {
    room.filtered.delete(e.message);
    const entry = room.entries.find(other => other.key === `m${e.message}`);
    if (!entry) return NOTHING;
    // A model has described its pictures. Nobody edited it.
    const captions = new Map((e.captions ?? []).map(({ file, text: caption }) => [Number(file), caption]));
    const files = entry.files.map(file => ({ ...file, description: captions.get(file.id) ?? file.description }));
    if (entry.versions) {
      const standing = number(e.version) ?? entry.versions.standing;
      entry.versions = { texts: entry.versions.texts.map((other, i) => (i === standing ? e.text : other)), standing };
    }
    Object.assign(entry, { text: wordsOf(e.text, files), files, edited: e.edited ?? entry.edited, version: entry.version + 1 });
    if (!captions.size) Object.assign(entry, { cut: null, truncated: false });
    redrawQuotes(room, new Set([e.message]));
    recount(room, entry);
    return TALK;
  },
  deleted(room, e, now) {
    const deleted = new Set(list(e.messages));
    for (const seq of list(e.unnamed)) changeMessage(room, seq, entry => ({ quoted: null, cut: entry.cut && { ...entry.cut, by: '' } }));
    const loaded = room.complete ? 0 : (oldestMessage(room) ?? Infinity);
    for (const seq of deleted) {
      room.deleted.add(seq);
      if (now && room.replaced.has(seq)) statementReplaced(room.guard);
      // With the messages of a person what was said in calls is deleted, too, which is no message. One number alone is a message.
      if (room.replaced.has(seq) || (!e.replaced && (room.seen.has(`m${seq}`) || (deleted.size === 1 && seq < loaded)))) room.tombstones.add(seq);
    }
    redrawQuotes(room, deleted);
    redrawDecisions(room);
    // Before the messages are gone, because the oldest one may be among them.
    insertTombstones(room);
    const isGone = entry => entry.kind === 'message' && deleted.has(entry.seq);
    room.entries.filter(isGone).forEach(entry => recount(room, entry));
    room.entries = room.entries.filter(entry => !isGone(entry));
    return TALK;
  },
  joined(room, e, now) {
    if (now) companionIn(room, e.companion).isExternal = Boolean(e.external);
    insert(room, noteEntry(e, 'joined'));
    return BOTH;
  },
  chosen(room, e) {
    insert(room, noteEntry({ ...e, companion: e.everybody ? null : e.companions[0] }, 'chosen'));
    return TALK;
  },
  left(room, e, now) {
    insert(room, noteEntry(e, 'left'));
    if (now) {
      room.companions.delete(e.companion);
      room.asked.delete(e.companion);
      endReply(room, e, true);
    }
    return BOTH;
  },
  caught_up(room, e) {
    // Where nothing was read and nothing is missing, there is nothing to show.
    const entry = caughtUpEntry(e);
    return (entry.read || entry.missed) && insert(room, entry) ? TALK : NOTHING;
  },
  cleared(room, e, now) {
    insert(room, noteEntry(e, e.anew ? 'begun_anew' : 'cleared'));
    if (!now) return BOTH;
    room.asked.clear();
    room.guard = { ...newGuard(), maxStreak: room.guard.maxStreak, maxTurns: room.guard.maxTurns, reopenAfter: room.guard.reopenAfter };
    for (const m of room.companions.values()) {
      endReply(room, { companion: m.id, at: e.at }, true);
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
    const round = answerRound(room, entry);
    if (now) {
      const m = companionIn(room, e.companion);
      const isVote = round?.phase === 'open' && entry.yes;
      const hasLost = !entry.yes && m.doing === 'wants_to_speak' && !isVotingIn(room, e.companion) && !isHeld(room, e.companion);
      if (room.asked.delete(e.companion) || hasLost) setDoing(m, isVote ? 'wants_to_speak' : 'listening', isVote ? e : undefined);
    }
    return BOTH;
  },
  round_opened: () => BOTH,
  state(room, e) {
    return room.rounds.some(round => String(round.message) === e.messageId && recordState(round, e)) ? TALK : NOTHING;
  },
  round(room, e, now) {
    const round = room.rounds.findLast(other => other.message === e.message_id);
    // Guests see no votes, so anybody may have wanted to speak.
    const candidates = round?.candidates.length ? round.candidates : room.companions.keys();
    for (const id of now ? candidates : []) if (!isVotingIn(room, id) && !isHeld(room, id)) stopWanting(room, id);
    if (now && typeof e.selected === 'string') selectSpeaker(room, e);
    return BOTH;
  },
  held_selected(room, e, now) {
    if (typeof e.selected !== 'string') return NOTHING;
    for (const id of now ? list(e.others) : []) stopWanting(room, id);
    if (now) selectSpeaker(room, e);
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
    const isAgain = number(e.again) !== null;
    if (isAgain) replaces(room, e);
    if (!now) return isAgain ? TALK : NOTHING;
    room.asked.delete(e.companion);
    room.drafts.set(e.companion, newDraft(e.ticket ?? null, e.at, e.modality === 'voice'));
    Object.assign(companionIn(room, e.companion), { lullAt: null });
    setDoing(companionIn(room, e.companion), 'speaking', e);
    return BOTH;
  },
  draft(room, e) {
    const draft = room.drafts.get(e.companion);
    // It may belong to a reply that has ended, or to an attempt that was stopped.
    // A statement that is spoken shows its sentences when they are heard.
    if (!draft || draft.isSpoken || draft.isStopped || (draft.ticket !== null && e.ticket !== undefined && draft.ticket !== e.ticket)) return NOTHING;
    // What was written before this window connected comes with the next event that has the whole draft.
    if (!e.whole && !draft.isWhole) return NOTHING;
    draft.text = e.whole ? text(e.text) : draft.text + text(e.text);
    draft.isWhole = true;
    return TALK;
  },
  // People said more: what was written so far is withdrawn, and the statement is begun again.
  replanning(room, e) {
    const entry = replanOf(room, e, e.ticket);
    if (!entry.messages.includes(e.message)) {
      entry.messages.push(e.message);
      entry.version += 1;
    }
    const draft = room.drafts.get(e.companion);
    if (draft?.ticket === e.ticket) Object.assign(draft, { text: '', isWhole: false, isStopped: true });
    return BOTH;
  },
  replanned(room, e, now) {
    const entry = replanOf(room, e, e.replaces);
    if (entry.hasBegun) return NOTHING;
    entry.hasBegun = true;
    entry.version += 1;
    if (!now) return TALK;
    room.drafts.set(e.companion, newDraft(e.ticket, e.at));
    setDoing(companionIn(room, e.companion), 'speaking', e);
    return BOTH;
  },
  // What people said while a spoken statement was prepared is taken in, and it is begun again.
  extended(room, e, now) {
    insert(room, noteEntry(e, 'extended'));
    if (!now) return TALK;
    room.drafts.set(e.companion, newDraft(e.ticket, e.at, true));
    setDoing(companionIn(room, e.companion), 'speaking', e);
    return BOTH;
  },
  sentence(room, e, now) {
    const draft = room.drafts.get(e.companion);
    if (!now || draft?.ticket !== e.ticket) return NOTHING;
    // A window that has connected in the middle has no earlier sentences.
    draft.text = draft.isSpoken ? draft.text + text(e.text) : text(e.text);
    Object.assign(draft, { isSpoken: true, isWhole: true });
    return TALK;
  },
  sentence_played(room, e) {
    if (!e.dropped) return NOTHING;
    insert(room, noteEntry(e, 'stalled'));
    return TALK;
  },
  interrupted(room, e) {
    insert(room, { ...noteEntry(e, 'interrupted'), verdict: text(e.verdict) });
    return TALK;
  },
  // The companion wrote for too long. It writes on without the floor, until its text is there and the floor is free.
  floor_expired(room, e) {
    insert(room, noteEntry(e, 'floor_expired'));
    return setFloor(room, e, true);
  },
  floor_taken: (room, e) => setFloor(room, e, false),
  statement(room, e, now) {
    endReply(room, e, false);
    if (now) {
      if (!room.seen.has(`m${e.seq}`)) companionSpoke(room.guard, e.companion);
      setDoing(companionIn(room, e.companion), 'listening');
    }
    return BOTH;
  },
  failed(room, e, now) {
    const draft = endReply(room, e, true);
    // The message that it was to replace stays.
    for (const [seq, companion] of room.replaced) if (companion === e.companion && !room.deleted.has(seq)) room.replaced.delete(seq);
    insert(room, failedEntry(e, isStopped(e) ? '' : draft?.text));
    if (now) setDoing(companionIn(room, e.companion), 'listening');
    return BOTH;
  },
  // Every message that it wanted to speak about, or was going to answer, was deleted.
  dropped(room, e) {
    const m = companionIn(room, e.companion);
    const draft = room.drafts.get(e.companion);
    const isSpeaking = draft && (draft.ticket === null || draft.ticket === e.ticket);
    if (!isSpeaking && m.doing !== 'wants_to_speak' && m.doing !== 'waiting_its_turn') return NOTHING;
    if (isSpeaking) endReply(room, e, true);
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
    insert(room, { ...noteEntry(e, 'tempered'), interjection: e.interjection ?? null, quietHours: e.quiet_hours ?? 'never' });
    if (now && e.interjection) Object.assign(companionIn(room, e.companion), { interjection: e.interjection, ...ownSettings(e) });
    return BOTH;
  },
  people(room, e) {
    room.people = list(e.people)
      .filter(person => typeof person?.name === 'string')
      .map(person => ({ name: person.name, isGuest: person.guest === true, isTyping: person.typing === true }));
    return PEOPLE;
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

const NAMES_A_COMPANION = new Set(['joined', 'left', 'evaluate', 'decision', 'error', 'respond', 'replanning', 'replanned', 'extended', 'sentence', 'sentence_played', 'interrupted', 'floor_expired', 'floor_taken', 'draft', 'statement', 'failed', 'tempered', 'closing', 'lull_armed', 'lull_cancelled', 'counters', 'dropped']);

// Folds one event into the room, and returns the parts of the page that changed. Unknown and malformed events change nothing.
export function fold(room, e) {
  if (!e || !Object.hasOwn(RULES, e.event)) return NOTHING;
  if (NAMES_A_COMPANION.has(e.event) && typeof e.companion !== 'string') return NOTHING;
  const seq = number(e.seq);
  const now = seq === null || seq > room.current;
  const rounds = list(e.rounds);
  for (const round of rounds) takeRound(room, round);
  const changed = RULES[e.event](room, e, now);
  if (seq !== null) room.last = Math.max(room.last, seq);
  return rounds.length && !changed.includes('talk') ? BOTH : changed;
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
