// What an empty room shows: what this page is, and three things to try, each a button that does it.

import { el, name } from './dom.js';
import * as words from './words.js';

const PAUSE_MS = 1400;

const SMALL_TALK = [
  ['Ben', 'The ferry was late again this morning.'],
  ['Dora', 'It always is when the wind turns.'],
  ['Ben', 'At least the coffee on board has got better.'],
];

const suggestion = (label, act) => el('li', null, el('button', { class: 'suggestion', onclick: event => act(event.currentTarget) }, label));

const section = (title, ...content) => el('section', { class: 'welcome', 'aria-label': 'Welcome' }, el('h2', null, title), content);

export const noRoom = () => section('There is no room yet', el('p', null, 'A room is where people and companions talk. Create one on the left: it needs a name and at least one companion.'));

// Names as a sentence lists them: at most four, then “others”.
const MOST_NAMED = 4;
function listed(companions, drawn = c => c.name) {
  const shown = companions.slice(0, MOST_NAMED).map(drawn);
  if (companions.length > MOST_NAMED) shown.push('others');
  return words.listed(shown);
}

// `send(from, text)` sends a message; `me()` is the speaker of this window; `tone(id)` is the accent of a companion.
export function welcome(room, { send, me, tone }) {
  if (room.unreadable) return section('Earlier messages cannot be read', el('p', null, 'New messages are stored and shown here.'));
  const companions = [...room.companions.values()];
  const companion = companions[0];
  if (room.platform) return onPlatform(room.platform, companions, tone);
  if (!companion) return section('No companions here yet', el('p', null, 'This room has no companions. Choose some on the left, under “This room”.'));

  async function smallTalk(button) {
    button.disabled = true;
    for (const [from, text] of SMALL_TALK) {
      send(from, text);
      await new Promise(done => setTimeout(done, PAUSE_MS));
    }
  }

  if (companions.length > 1) return withSeveral(companions, { send, me, tone, smallTalk });
  const node = section(
    'No messages yet',
    el(
      'p',
      null,
      name(companion.name, { class: 'who' }),
      ' listens in this room, but does not have to answer every message: it decides for itself whether and when to speak. ',
      'A line below a message says who answered, and why. “Details” shows more.',
    ),
    el('h3', null, 'Three things to try'),
    el(
      'ul',
      { class: 'suggestions' },
      suggestion(['Say hello to ', name(companion.name)], () => send(me(), `Hello ${companion.name}!`)),
      suggestion(['Talk about something else and watch ', name(companion.name), ' decide'], smallTalk),
      suggestion('Ask nobody in particular', () => send(me(), 'Does anybody here know a good name for a boat?')),
    ),
  );
  node.dataset.tone = tone(companion.id);
  return node;
}

// A channel of another platform, where nobody can write from this page.
function onPlatform(platform, companions, tone) {
  if (!companions.length) return section('No companions here yet', el('p', null, `Add a companion on ${platform} with /tertulia join, or choose some on the left, under “This channel”.`));
  const names = [...listed(companions, c => name(c.name, { class: 'who', 'data-tone': tone(c.id) })), companions.length > 1 ? ' listen' : ' listens'];
  return section('No messages yet', el('p', null, names, ` in this channel. Messages on ${platform} appear here as they are posted, together with every decision about them.`));
}

// Several companions, which also talk to each other.
function withSeveral(companions, { send, me, tone, smallTalk }) {
  const named = c => name(c.name, { class: 'who', 'data-tone': tone(c.id) });
  const everyone = listed(companions).join('');
  return section(
    'No messages yet',
    el(
      'p',
      null,
      listed(companions, named),
      ' listen in this room, and each decides for itself whether and when to speak. A line below a message says who answered, who stayed out, and why. “Details” shows more.',
    ),
    el('p', null, 'They may also answer each other, until they have nothing to add or have talked long enough without a person.'),
    el('h3', null, 'Three things to try'),
    el(
      'ul',
      { class: 'suggestions' },
      suggestion(['Say hello to ', name(companions[0].name)], () => send(me(), `Hello ${companions[0].name}!`)),
      suggestion('Talk about something else and watch them decide', smallTalk),
      suggestion('Ask all of them, and let them talk', () => send(me(), `${everyone}: what do you think of each other?`)),
    ),
  );
}
