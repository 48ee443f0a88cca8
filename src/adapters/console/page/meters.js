// Two small meters that fill before a limit is reached: the companion streak, and the repetition score of the last statements.

import { el, say } from './dom.js';
import { REPETITION_LIMIT } from './loop-guard.js';
import { t } from './texts.js';
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
  const turnLimit = maxTurns ? ` ${t('meters.turns', { used: turns, count: maxTurns })}` : '';
  if (streak >= maxStreak) return t('meters.reached', { count: streak }) + turnLimit;
  return `${streak ? t('meters.so_far', { count: streak }) : t('meters.none')} ${t('meters.waits_after', { count: maxStreak })}${turnLimit}`;
}

function repetitionSentence({ score, detections }) {
  if (score === null) return t('meters.repetition_about');
  const shown = words.number(score, 2);
  if (score <= REPETITION_LIMIT) return t('meters.repetition_score', { score: shown, limit: words.number(REPETITION_LIMIT, 1) });
  return `${t('meters.repeating', { score: shown })} ${words.repetitionEffect(detections)}`;
}

export function meters(root) {
  const streak = meter(t('meters.streak'));
  const repetition = meter(t('meters.repetition'));
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
