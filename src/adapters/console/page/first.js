// What an empty room says: what this is, and three things to try, each a button that does it.

import { el, glyph, name } from './dom.js';

const BETWEEN_MS = 1400;

const ELSEWHERE = [
  ['Ben', 'The ferry was late again this morning.'],
  ['Dora', 'It always is when the wind turns.'],
  ['Ben', 'At least the coffee on board has become better.'],
];

const thing = (label, act) => el('li', null, el('button', { class: 'try', onclick: event => act(event.currentTarget) }, label));

const welcome = (title, ...content) => el('section', { class: 'first', 'aria-label': 'Welcome' }, el('h2', null, title), content);

export const noRoom = () => welcome('There is no room yet.', el('p', null, 'A room is where people and companions talk. Make one on the left: it needs a name, and somebody to listen.'));

// Names as a sentence lists them; of many only some.
const MOST_NAMED = 4;
function listed(companions, drawn = c => c.name) {
  const shown = companions.slice(0, MOST_NAMED).map(drawn);
  if (companions.length > MOST_NAMED) shown.push('others');
  return shown.flatMap((one, i) => [i ? (i === shown.length - 1 ? ' and ' : ', ') : null, one]).filter(Boolean);
}

// `say(from, text)` sends a message; `me()` is who speaks in this window; `tone(id)` is the accent of a companion.
export function first(room, { say, me, tone }) {
  if (room.unreadable) return welcome('What was said here cannot be read.', el('p', null, 'What is said from now on is kept, and shown.'));
  const companions = [...room.minds.values()];
  const companion = companions[0];
  if (room.elsewhere) return silent(room.elsewhere, companions, tone);
  if (!companion) return welcome('Nobody listens here yet.', el('p', null, 'This room has no companion: choose some on the left, under “this room”.'));
  const who = companion.name;
  const whoNode = () => name(who, { class: 'who' });

  async function elsewhere(button) {
    button.disabled = true;
    for (const [from, text] of ELSEWHERE) {
      say(from, text);
      await new Promise(done => setTimeout(done, BETWEEN_MS));
    }
  }

  if (companions.length > 1) return several(companions, { say, me, tone, elsewhere });
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

// A channel of another platform, where nothing can be tried from here.
function silent(platform, companions, tone) {
  if (!companions.length) return welcome('Nobody listens here.', el('p', null, `Let a companion in on ${platform}, with /tertulia join, or choose some on the left, under “this channel”.`));
  const listening = [...listed(companions, c => name(c.name, { class: 'who', 'data-tone': tone(c.id) })), companions.length > 1 ? ' listen' : ' listens'];
  return welcome('Nothing was said here yet.', el('p', null, listening, ` in this channel. What people say there on ${platform} is shown here as it is said, with all that is decided about it.`));
}

// Several, who talk with each other as well.
function several(companions, { say, me, tone, elsewhere }) {
  const named = c => name(c.name, { class: 'who', 'data-tone': tone(c.id) });
  const everyone = listed(companions).join('');
  return welcome(
    'Nothing was said here yet.',
    el(
      'p',
      null,
      listed(companions, named),
      ' listen in this room, and each decides for itself whether and when to speak: when its ring has filled, as people talk, or its bar has run down, as it is quiet, it considers, ',
      glyph('yes'),
      ' yes or ',
      glyph('no'),
      ' no.',
    ),
    el(
      'p',
      null,
      'When several might speak, a round shows how much each of them wants to, ',
      el('span', { class: 'sample', 'aria-hidden': 'true' }, companions.slice(0, 3).map((c, i) => el('span', { class: `sample-bar sample-${i}`, 'data-tone': tone(c.id) }))),
      ' from 0 to 10, and one ★ is chosen.',
    ),
    el('p', null, 'What it says may move the others to answer, until they have nothing to add or have talked long enough without a person.'),
    el('h3', null, 'Three things to try'),
    el(
      'ul',
      { class: 'tries' },
      thing(['Say hello to ', name(companions[0].name)], () => say(me(), `Hello ${companions[0].name}!`)),
      thing('Talk about something else and watch them decide', elsewhere),
      thing('Ask them all, and let them talk', () => say(me(), `${everyone}: what do you think of each other?`)),
    ),
  );
}
