// What keeps companions from talking for ever: their streak, and the repetition score of the last statements. Pure, like `state.js`.

// A score above it is repetition (docs/design/turn-taking.md T-13 and docs/design/closing.md C-10).
export const REPETITION_LIMIT = 0.7;

const DEFAULT_MAX_STREAK = 4;
const DEFAULT_REOPEN_AFTER = 9;
const number = value => (Number.isFinite(value) ? value : null);

export const newGuard = () => ({
  streak: 0,
  maxStreak: DEFAULT_MAX_STREAK,
  turns: 0,
  maxTurns: null,
  score: null, // from 0 (all different) to 1; null while nothing has been measured
  detections: 0,
  reopenAfter: DEFAULT_REOPEN_AFTER,
  uncounted: new Set(), // companions that have not spoken yet, and were selected before the newest message by a person
});

export function guardFrom(previous, state) {
  const { repetition, companions } = state ?? {};
  // The server also sends 0 when there is no score.
  const score = number(repetition?.score) || null;
  return {
    ...previous,
    streak: number(state?.streak) ?? previous.streak,
    maxStreak: number(state?.max_companion_streak) ?? previous.maxStreak,
    turns: number(state?.turns) ?? previous.turns,
    maxTurns: number(state?.max_turns),
    score: repetition === undefined ? previous.score : score,
    detections: number(repetition?.detections) ?? (repetition === undefined ? previous.detections : 0),
    reopenAfter: number(companions?.[0]?.reopen_after) ?? previous.reopenAfter,
  };
}

// `selected` are the companions that were selected and have not spoken yet.
export function personSpoke(guard, selected) {
  Object.assign(guard, { streak: 0, uncounted: new Set(selected) });
}

export function companionSpoke(guard, companion) {
  if (!guard.uncounted.delete(companion)) guard.streak += 1;
  guard.turns += 1;
}

// Another statement takes the place of one that was counted.
export function statementReplaced(guard) {
  Object.assign(guard, { streak: Math.max(0, guard.streak - 1), turns: Math.max(0, guard.turns - 1) });
}

export function repetitionMeasured(guard, e) {
  guard.score = number(e.score) ?? guard.score;
  guard.detections = number(e.detections) ?? guard.detections;
}
