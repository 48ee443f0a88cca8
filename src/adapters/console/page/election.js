// A round as the page knows it: who was asked, what each companion answered, who was selected and why. Pure, like `state.js`.

export const MOST_IMPORTANCE = 10;

const number = value => (Number.isFinite(value) ? value : null);
const list = value => (Array.isArray(value) ? value : []);
const ids = value => list(value).filter(id => typeof id === 'string');

// A State (docs/design/turn-taking.md T-4), or null if `s` is none.
function stateFrom(s) {
  if (!s || typeof s.from !== 'string') return null;
  return {
    from: s.from,
    speaks: s.state === 'speak',
    importance: Math.min(MOST_IMPORTANCE, Math.max(0, number(s.importance) ?? 0)),
    selected: s.selected === true,
    closing: typeof s.closing === 'string' ? s.closing : 'none',
  };
}

// `phase`: `open`, `held` (votes wait until the floor is free), `waiting` (a speaker is selected and about to speak), `speaking`, `over`.
export function openRound(e) {
  const round = {
    key: `r${e.seq}`,
    kind: 'round',
    seq: number(e.seq),
    at: e.at,
    message: number(e.message_id),
    deadline: e.deadline ?? null,
    ballots: new Map(), // by companion: { asked, state, entry }, where the entry is a decision or an error
    phase: 'open',
    closedAt: null,
    selected: null,
    held: new Set(), // the companions whose votes wait until the floor is free
    declined: null, // why nobody was selected of those whose votes were held
    instead: null, // who was selected while votes of this round were held
    speaker: null, // who has the floor; not the selected companion if its reply failed
    isLate: false, // whether the speaker lost the floor and writes on
    speakAt: null,
    reason: null,
    outcome: null, // `posted`, `failed`, `cancelled`, `dropped` or `outvoted`
    endedAt: null,
    isPartial: false, // whether its opening is not known, so that its votes may have come before it
    version: 0,
  };
  for (const id of ids(e.asked)) round.ballots.set(id, { asked: true, state: null, entry: null });
  for (const state of list(e.listening).map(stateFrom)) if (state) round.ballots.set(state.from, { asked: false, state, entry: null });
  return round;
}

// A round whose opening this page did not receive.
export function roundFromResult(e) {
  const states = list(e.states).map(stateFrom).filter(Boolean);
  const wasAsked = state => state.speaks || state.importance > 0;
  const round = openRound({ ...e, asked: states.filter(wasAsked).map(state => state.from), listening: list(e.states).filter(s => !wasAsked(stateFrom(s) ?? {})) });
  return Object.assign(round, { isPartial: true });
}

// Shows the votes of a round with it, if its opening is not known.
export function adoptVotes(round, entries) {
  if (!round.isPartial) return;
  for (const entry of entries) {
    const ballot = entry.kind === 'decision' && !entry.round && Number(entry.record.vote?.messageId) === round.message ? round.ballots.get(entry.companion) : null;
    if (!ballot || ballot.entry) continue;
    Object.assign(ballot, { asked: true, entry });
    entry.round = round;
    changed(round);
  }
}

const changed = round => {
  round.version += 1;
  return true;
};

export function recordState(round, e) {
  const state = stateFrom(typeof e.state === 'object' ? e.state : e);
  const ballot = state && round.ballots.get(state.from);
  if (!ballot || round.phase !== 'open') return false;
  ballot.state = state;
  return changed(round);
}

// A decision or an error belongs to the round that asked for it, and is shown there.
export function recordAnswer(round, entry) {
  const ballot = round.ballots.get(entry.companion);
  if (!ballot?.asked || ballot.entry || round.phase !== 'open' || entry.seq < round.seq) return false;
  if (entry.record?.vote && Number(entry.record.vote.messageId) !== round.message) return false;
  ballot.entry = entry;
  entry.round = round;
  ballot.state ??= stateFrom(entry.record?.vote);
  return changed(round);
}

export const isMissing = ballot => ballot.asked && (ballot.entry?.kind === 'error' || ballot.isLate === true);
export const isAwaited = ballot => ballot.asked && !ballot.state && !ballot.entry;
export const wantsToSpeak = ballot => Boolean(ballot.state?.speaks) && ballot.state.closing !== 'terminal';

// The companions that want to speak, in the order of selection: those called upon first, then by importance.
export function candidates(round) {
  const willing = [...round.ballots].filter(([, ballot]) => wantsToSpeak(ballot)).map(([id, ballot]) => ({ id, ...ballot.state }));
  return willing.sort((one, other) => other.selected - one.selected || other.importance - one.importance || (one.id < other.id ? -1 : 1));
}

// The rule that selected this candidate among all. `lastSpoke(id)` is the seq of a companion's newest statement, or null if none is known.
function reasonFor(selected, all, lastSpoke) {
  const winner = all.find(candidate => candidate.id === selected);
  if (!winner) return null;
  const named = all.filter(candidate => candidate.selected);
  if (all.length === 1) return winner.selected ? 'named' : 'only';
  if (winner.selected && named.length === 1) return 'named';
  const rivals = winner.selected ? named : all;
  const equals = rivals.filter(candidate => candidate.importance === winner.importance);
  const rule = equals.length === 1 ? 'important' : equals.some(({ id }) => lastSpoke(id) !== null) ? 'patient' : 'first';
  return winner.selected ? `named_${rule}` : rule;
}

export function closeRound(round, e, lastSpoke) {
  if (round.phase !== 'open') return false;
  for (const state of list(e.states).map(stateFrom)) {
    if (!state) continue;
    const ballot = round.ballots.get(state.from) ?? { asked: false, state: null, entry: null };
    // A companion that was still awaited did not vote: the server filled in its State.
    if (isAwaited(ballot) && !state.speaks) ballot.isLate = true;
    ballot.state = state;
    round.ballots.set(state.from, ballot);
  }
  round.closedAt = e.at;
  round.speakAt = e.speak_at ?? null;
  round.held = new Set(ids(e.held));
  round.phase = round.held.size ? 'held' : 'over';
  if (typeof e.selected === 'string') select(round, e.selected, candidates(round), lastSpoke);
  return changed(round);
}

function select(round, selected, all, lastSpoke) {
  Object.assign(round, { phase: 'waiting', selected, speaker: selected, reason: reasonFor(selected, all, lastSpoke) });
}

// The floor is free: one of the companions whose votes are held speaks next, whichever round it voted in. The others lose. Returns its round.
export function selectHeld(rounds, e, lastSpoke) {
  const waiting = [e.selected, ...ids(e.others)];
  const all = rounds.flatMap(round => candidates(round).filter(({ id }) => round.held.has(id) && waiting.includes(id)));
  const winner = rounds.find(round => round.held.has(e.selected));
  for (const round of rounds.filter(({ held }) => held.size)) {
    if (round === winner) select(round, e.selected, all, lastSpoke);
    else Object.assign(round, { phase: 'over', outcome: 'outvoted', instead: e.selected });
    round.held = new Set();
    changed(round);
  }
  return winner;
}

// A held vote was dropped, for this reason if it was declined.
export function release(round, companion, reason = null) {
  if (!round.held.delete(companion)) return false;
  if (!round.held.size) Object.assign(round, { phase: 'over', declined: reason });
  return changed(round);
}

const awaitsStatement = round => round.phase === 'waiting' || round.phase === 'speaking';

// Whether the speaker of this round has the floor, or is about to get it.
export const isUnderWay = round => awaitsStatement(round) && !round.isLate;

// The round that selected a companion that has not spoken yet.
export const roundOf = (rounds, companion) => rounds.findLast(round => awaitsStatement(round) && round.speaker === companion);

// A companion got the floor: the selected one, or the next candidate at the moment when a reply failed.
export function startSpeaking(rounds, companion, at) {
  const hasFailed = round => round.outcome === 'failed' && round.endedAt === at && round.speaker !== companion;
  const round = roundOf(rounds, companion) ?? rounds.findLast(hasFailed);
  if (!round) return false;
  Object.assign(round, { phase: 'speaking', speaker: companion, outcome: null });
  return changed(round);
}

export function endRound(round, outcome, at) {
  if (round.phase === 'over') return false;
  Object.assign(round, { phase: 'over', outcome, closedAt: round.closedAt ?? at, endedAt: at, isLate: false });
  round.held.clear();
  return changed(round);
}

// The speaker lost the floor and writes on, or took the floor again.
export function setLate(round, isLate) {
  round.isLate = isLate;
  return changed(round);
}

export function withdraw(round, companion) {
  if (round.phase !== 'open' || !round.ballots.delete(companion)) return false;
  return changed(round);
}

// Rounds of older pages, which have only votes. They do not show which companions listened without being asked, or never answered.
export function roundsFromVotes(entries, spokeBefore) {
  const rounds = [];
  for (const entry of entries) {
    const vote = entry.kind === 'decision' && !entry.round ? stateFrom(entry.record.vote) : null;
    if (!vote) continue;
    const message = Number(entry.record.vote.messageId);
    // Votes of several rounds may be mixed.
    let round = rounds.findLast(one => one.message === message);
    if (!round || round.ballots.has(vote.from)) {
      round = Object.assign(openRound({ seq: entry.seq, at: entry.at, message_id: message }), { phase: 'over', outcome: 'posted' });
      rounds.push(round);
    }
    round.ballots.set(vote.from, { asked: true, state: vote, entry });
    entry.round = round;
    round.closedAt = entry.at;
  }
  for (const one of rounds) {
    const all = [...one.ballots];
    const won = all.find(([, { entry }]) => entry.record.floor === 'won')?.[0];
    const isRecorded = all.some(([, { entry }]) => typeof entry.record.floor === 'string');
    one.selected = won ?? (isRecorded ? null : (candidates(one)[0]?.id ?? null));
    one.speaker = one.selected;
    one.reason = one.selected ? reasonFor(one.selected, candidates(one), spokeBefore(one.seq)) : null;
    if (!one.selected) one.outcome = null;
  }
  return rounds;
}
