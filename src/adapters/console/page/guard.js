// What keeps companions from talking for ever: how often they spoke in a row, and how much they repeat one another. Pure, like `state.js`.

// What is over it is repetition (docs/design/turn-taking.md T-13 and docs/design/closing.md C-10).
export const MOST_ALIKE = 0.7;

const USUAL_STREAK = 4;
const USUAL_REOPENING = 9;
const number = value => (Number.isFinite(value) ? value : null);

export const newGuard = () => ({
  streak: 0,
  mostInARow: USUAL_STREAK,
  turns: 0,
  mostTurns: null,
  score: null, // from 0 (all different) to 1; null while nothing was judged since a person spoke
  detections: 0,
  reopenAfter: USUAL_REOPENING,
  counts: true, // whether the statement that is awaited was chosen after the newest message by a person
});

export function guardFrom(known, state) {
  const { repetition, companions } = state ?? {};
  // A score of 0 stands for none as well.
  const score = number(repetition?.score) || null;
  return {
    ...known,
    streak: number(state?.streak) ?? known.streak,
    mostInARow: number(state?.max_companion_streak) ?? known.mostInARow,
    turns: number(state?.turns) ?? known.turns,
    mostTurns: number(state?.max_turns),
    score: repetition === undefined ? known.score : score,
    detections: number(repetition?.detections) ?? (repetition === undefined ? known.detections : 0),
    reopenAfter: number(companions?.[0]?.reopen_after) ?? known.reopenAfter,
  };
}

// A person spoke.
export function heard(guard) {
  Object.assign(guard, { streak: 0, score: null, detections: 0, counts: false });
}

// A companion spoke.
export function said(guard) {
  if (guard.counts) guard.streak += 1;
  guard.turns += 1;
}

export function judged(guard, e) {
  guard.score = number(e.score) ?? guard.score;
  guard.detections = number(e.detections) ?? guard.detections;
}
