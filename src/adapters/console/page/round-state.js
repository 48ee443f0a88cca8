// A round as the server sends it (docs/live.md, `rounds`), with the decisions and errors that are shown with it. Pure, like `state.js`.

export const MOST_IMPORTANCE = 10;

const number = value => (Number.isFinite(value) ? value : null);
const list = value => (Array.isArray(value) ? value : []);
const ids = value => list(value).filter(id => typeof id === 'string');
const id = value => (typeof value === 'string' ? value : null);

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

export const newRound = r => ({ key: `r${r.seq}`, kind: 'round', seq: number(r.seq), ballots: new Map(), version: 0 });

const changed = round => {
  round.version += 1;
  return true;
};

// `phase`: `open`, `held` (votes wait until the floor is free), `waiting` (a speaker is selected and about to speak), `speaking`, `over`.
export function setRound(round, r) {
  const [asked, missing, awaited, candidates] = [r.asked, r.missing, r.awaited, r.candidates].map(ids);
  const states = r.states ?? {};
  const ballotOf = companion => ({
    asked: asked.includes(companion),
    isMissing: missing.includes(companion),
    isAwaited: awaited.includes(companion),
    wants: candidates.includes(companion),
    state: stateFrom(states[companion]),
    answer: number(r.answers?.[companion]), // the seq of its decision or error
    entry: round.ballots.get(companion)?.entry ?? null,
  });
  return changed(
    Object.assign(round, {
      at: r.at,
      message: number(r.message_id),
      ballots: new Map([...new Set([...asked, ...Object.keys(states)])].map(companion => [companion, ballotOf(companion)])),
      candidates, // in their order of speaking
      phase: r.phase ?? 'over',
      closedAt: r.closed_at ?? null,
      selected: id(r.selected),
      held: new Set(ids(r.held)), // the companions whose votes wait until the floor is free
      declined: id(r.declined), // why nobody was selected of those whose votes were held
      instead: id(r.instead), // who was selected while votes of this round were held
      speaker: id(r.speaker), // who has the floor; not the selected companion if its reply failed
      isLate: r.late === true, // whether the speaker lost the floor and writes on
      speakAt: r.speak_at ?? null,
      reason: id(r.reason),
      outcome: id(r.outcome), // `posted`, `failed`, `cancelled`, `dropped` or `outvoted`
    }),
  );
}

// A State that is published before anything of it is on record: the companion listens after all.
export function recordState(round, s) {
  const state = stateFrom(s);
  const ballot = state && round.ballots.get(state.from);
  if (!ballot?.isAwaited || round.phase !== 'open') return false;
  Object.assign(ballot, { state, isAwaited: false });
  return changed(round);
}

// The decision or error that answers a round is shown there.
export function attach(round, entry) {
  const ballot = round.ballots.get(entry.companion);
  if (!ballot || ballot.answer !== entry.seq) return false;
  ballot.entry = entry;
  entry.round = round;
  return changed(round);
}

// Whether the speaker of this round has the floor, or is about to get it.
export const isUnderWay = round => (round.phase === 'waiting' || round.phase === 'speaking') && !round.isLate;
