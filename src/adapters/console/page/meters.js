// Two small meters that warm up before they trip: how often companions spoke in a row, and how much the last messages repeat one another.

import { el, say } from './dom.js';
import { MOST_ALIKE } from './guard.js';
import * as words from './words.js';

function meter(label) {
  const full = el('span', { class: 'meter-full' });
  const said = el('span', { class: 'meter-words', 'aria-hidden': 'true' });
  const node = el('div', { class: 'meter', role: 'meter', tabindex: '0', 'aria-label': label, 'aria-valuemin': '0' }, el('span', { 'aria-hidden': 'true' }, label), el('span', { class: 'meter-bar', 'aria-hidden': 'true' }, full), said);
  return {
    node,
    set(value, most, sentence) {
      node.setAttribute('aria-valuemax', most);
      node.setAttribute('aria-valuenow', Math.min(most, value));
      node.setAttribute('aria-valuetext', sentence);
      node.toggleAttribute('data-tripped', value >= most);
      node.style.setProperty('--full', Math.min(1, value / most).toFixed(3));
      say(said, sentence);
    },
  };
}

function inARow({ streak, mostInARow, turns, mostTurns }) {
  const limit = mostTurns ? ` In all ${words.count(turns, 'time')} of ${mostTurns} in this talk.` : '';
  if (streak >= mostInARow) return `The companions have spoken ${words.times(streak)} in a row: they wait for a person.${limit}`;
  if (!streak) return `No companion has spoken since a person did. After ${words.inWords(mostInARow)} in a row they wait for a person.${limit}`;
  return `Companions have spoken ${words.times(streak)} in a row. After ${words.inWords(mostInARow)} they wait for a person.${limit}`;
}

function alike({ score, detections }) {
  if (score === null) return 'How much the last five messages repeat one another; it is judged when companions talk with each other.';
  if (score <= MOST_ALIKE) return `The last messages are alike by ${score.toFixed(2)}. Over ${MOST_ALIKE} the talk goes in circles, and companions are told to end it.`;
  return `The last messages are alike by ${score.toFixed(2)}: the talk goes in circles${detections > 1 ? `, ${words.times(detections)} now` : ''}. The companions are told to change the topic or to end it.`;
}

export function meters(root) {
  const streak = meter('in a row');
  const circles = meter('alike');
  root.hidden = true;
  root.append(streak.node, circles.node);
  return ({ guard, minds }) => {
    // One companion alone has nobody to talk on with.
    root.hidden = minds.size < 2;
    root.toggleAttribute('data-warm', guard.streak > 0 || guard.score > 0);
    streak.set(guard.streak, guard.mostInARow, inARow(guard));
    // What is over the limit trips, not what reaches it.
    const score = guard.score ?? 0;
    circles.set(score > MOST_ALIKE ? MOST_ALIKE : Math.min(score, MOST_ALIKE - 0.001), MOST_ALIKE, alike(guard));
  };
}
