// Two small meters that fill before a limit is reached: the companion streak, and the repetition score of the last statements.

import { el, say } from './dom.js';
import { REPETITION_LIMIT } from './loop-guard.js';
import * as words from './words.js';

function meter(name) {
  const fill = el('span', { class: 'meter-full' });
  const label = el('span', { 'aria-hidden': 'true' }, name);
  const explanation = el('span', { class: 'meter-words', 'aria-hidden': 'true' });
  const node = el('div', { class: 'meter', role: 'meter', tabindex: '0', 'aria-label': name, 'aria-valuemin': '0' }, label, el('span', { class: 'meter-bar', 'aria-hidden': 'true' }, fill), explanation);
  return {
    node,
    set(value, max, sentence, shown = '') {
      node.setAttribute('aria-valuemax', max);
      node.setAttribute('aria-valuenow', Math.min(max, value));
      node.setAttribute('aria-valuetext', sentence);
      node.toggleAttribute('data-tripped', value >= max);
      node.style.setProperty('--full', Math.min(1, value / max).toFixed(3));
      say(label, shown ? `${name} ${shown}` : name);
      say(explanation, sentence);
    },
  };
}

function streakSentence({ streak, maxStreak, turns, maxTurns }) {
  const turnLimit = maxTurns ? ` This conversation has used ${turns.toLocaleString()} of its ${words.count(maxTurns, 'answer')}.` : '';
  if (streak >= maxStreak) return `The companions have spoken ${words.times(streak)} in a row and wait for a person.${turnLimit}`;
  if (!streak) return `No companion has spoken since the last message by a person. After ${words.count(maxStreak, 'answer')} in a row, the companions wait for a person.${turnLimit}`;
  const soFar = streak === 1 ? 'One companion has spoken since the last message by a person.' : `Companions have spoken ${words.times(streak)} in a row.`;
  return `${soFar} After ${words.count(maxStreak, 'answer')} in a row, they wait for a person.${turnLimit}`;
}

const capitalised = text => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function repetitionSentence({ score, detections }) {
  if (score === null) return 'How much the last answers of companions repeat each other. It is measured from the third answer on.';
  const measured = `The repetition score of the last answers is ${score.toFixed(2)}`;
  if (score <= REPETITION_LIMIT) return `${measured}. Above ${REPETITION_LIMIT}, ${words.repetitionEffect(1)}.`;
  return `${measured}: the conversation is repeating itself${detections > 1 ? ` (detected ${words.times(detections)})` : ''}. ${capitalised(words.repetitionEffect(detections))}.`;
}

export function meters(root) {
  const streak = meter('In a row');
  const repetition = meter('Repetition');
  root.hidden = true;
  root.append(streak.node, repetition.node);
  return ({ guard, companions }) => {
    // A single companion has nobody to keep talking to.
    root.hidden = companions.size < 2;
    root.toggleAttribute('data-warm', guard.streak > 0 || guard.score > 0);
    streak.set(guard.streak, guard.maxStreak, streakSentence(guard), `${guard.streak}/${guard.maxStreak}`);
    // A score equal to the limit does not trip the meter, only a score above it.
    const score = guard.score ?? 0;
    repetition.set(score > REPETITION_LIMIT ? REPETITION_LIMIT : Math.min(score, REPETITION_LIMIT - 0.001), REPETITION_LIMIT, repetitionSentence(guard));
  };
}
