// What an empty room says: what this is, and three things to try, each a button that does it.

import { el, glyph, name } from './dom.js';

const BETWEEN_MS = 1400;

const ELSEWHERE = [
  ['Ben', 'The ferry was late again this morning.'],
  ['Dora', 'It always is when the wind turns.'],
  ['Ben', 'At least the coffee on board has become better.'],
];

const welcome = (title, ...content) => el('section', { class: 'first', 'aria-label': 'Welcome' }, el('h2', null, title), content);

export const noRoom = () => welcome('There is no room yet.', el('p', null, 'A room is where people and a companion talk. Make one on the left: it needs a name and a companion.'));

// `say(from, text)` sends a message; `me()` is who speaks in this window; `tone(id)` is the accent of a companion.
export function first(room, { say, me, tone }) {
  const companion = [...room.minds.values()][0];
  if (!companion) return welcome('Nobody listens here yet.', el('p', null, 'This room has no companion: choose one on the left, under “this room”.'));
  const who = companion.name;
  const whoNode = () => name(who, { class: 'who' });

  async function elsewhere(button) {
    button.disabled = true;
    for (const [from, text] of ELSEWHERE) {
      say(from, text);
      await new Promise(done => setTimeout(done, BETWEEN_MS));
    }
  }

  const thing = (label, act) => el('li', null, el('button', { class: 'try', onclick: event => act(event.currentTarget) }, label));
  const node = welcome(
    'Nothing was said here yet.',
    el(
      'p',
      null,
      whoNode(),
      ' listens in this room, and is not asked to answer every word: it decides whether and when to speak. ',
      'The ring beside its name fills as people talk and the bar runs down while it is quiet; when one is full or the other empty, it considers. ',
      'Each time it does, a small line in the talk says so, ',
      glyph('yes'),
      ' yes or ',
      glyph('no'),
      ' no, and opens into the reason.',
    ),
    el('h3', null, 'Three things to try'),
    el(
      'ul',
      { class: 'tries' },
      thing(['Say hello to ', name(who)], () => say(me(), `Hello ${who}!`)),
      thing(['Talk about something else and watch ', name(who), ' decide'], elsewhere),
      thing('Ask nobody in particular', () => say(me(), 'Does anybody here know a good name for a boat?')),
    ),
  );
  node.dataset.tone = tone(companion.id);
  return node;
}
