// What an empty room shows: what this page is, and three things to try, each a button that does it.

import { el, name } from './dom.js';
import { listed, pieces, t } from './texts.js';

const PAUSE_MS = 1400;

const SMALL_TALK = [
  ['Ben', 'welcome.small_talk_1'],
  ['Dora', 'welcome.small_talk_2'],
  ['Ben', 'welcome.small_talk_3'],
];

const suggestion = (label, act) => el('li', null, el('button', { class: 'suggestion', onclick: event => act(event.currentTarget) }, label));

const section = (title, ...content) => el('section', { class: 'welcome', 'aria-label': t('welcome.region') }, el('h2', null, t(title)), content);

const hello = (companion, say) => suggestion(pieces('welcome.hello', { who: name(companion.name) }), () => say(t('welcome.hello_text', { who: companion.name })));

export const noRoom = () => section('welcome.no_room', el('p', null, t('welcome.no_room_about')));

// Names as a sentence lists them: at most four, then “others”.
const MOST_NAMED = 4;
// The companions whose greetings are offered, and how much of each is shown, in characters.
const MOST_GREETERS = 8;
const SHOWN = 140;
const short = text => (text.length > SHOWN ? `${text.slice(0, SHOWN).trimEnd()}…` : text);
function everybody(companions, drawn = c => c.name) {
  const shown = companions.slice(0, MOST_NAMED).map(drawn);
  if (companions.length > MOST_NAMED) shown.push(t('base.others'));
  return listed(shown);
}

// What companions can say to begin, each with a button. More than three things to try at first would be too many.
function beginnings(room, { greetings, greet }) {
  const list = el('ul', { class: 'suggestions' });
  const more = el('details', { class: 'beginnings', hidden: true }, el('summary', null, t('welcome.begin')), list);
  for (const { id, name: who, isExternal } of [...room.companions.values()].slice(0, MOST_GREETERS)) {
    if (isExternal) continue;
    greetings(id).then(
      texts => {
        more.hidden &&= !texts.length;
        list.append(...texts.map(text => suggestion(pieces('profile.begin', { who: name(who), text: short(text) }), button => greet(id, text, button))));
      },
      () => {},
    );
  }
  return more;
}

// `send(from, text)` sends a message; `me()` is the speaker of this window; `tone(id)` is the accent of a companion; `greetings(id)` resolves to what it can say
// first, and `greet(id, text, button)` lets it.
export function welcome(room, { send, me, tone, greetings, greet, create }) {
  if (room.unreadable) return section('welcome.unreadable', el('p', null, t('welcome.unreadable_about')));
  const companions = [...room.companions.values()];
  const [companion] = companions;
  if (!companion) return section('welcome.no_companions', el('p', null, room.platform ? t('welcome.channel_join', { platform: room.platform }) : t('welcome.choose')), room.platform ? null : el('p', null, el('button', { class: 'suggestion', onclick: create }, t('maker.new'))));
  const named = c => name(c.name, { class: 'who', 'data-tone': tone(c.id) });
  const count = companions.length;
  const who = everybody(companions, named);
  if (room.platform) return section('welcome.no_messages', el('p', null, pieces('welcome.channel', { who, count, platform: room.platform })));

  async function smallTalk(button) {
    button.disabled = true;
    for (const [from, key] of SMALL_TALK) {
      send(from, t(key));
      await new Promise(done => setTimeout(done, PAUSE_MS));
    }
  }

  return section(
    'welcome.no_messages',
    el('p', null, pieces('welcome.about', { who, count })),
    el('h3', null, t('welcome.try')),
    el(
      'ul',
      { class: 'suggestions' },
      hello(companion, text => send(me(), text)),
      suggestion(t('welcome.small_talk'), smallTalk),
      count > 1
        ? suggestion(t('welcome.ask_all'), () => send(me(), t('welcome.ask_all_text', { who: everybody(companions).join('') })))
        : suggestion(t('welcome.ask_nobody'), () => send(me(), t('welcome.ask_nobody_text'))),
    ),
    beginnings(room, { greetings, greet }),
  );
}

// What a guest sees in a room in which nothing was said since the invitation. `say(text)` sends a message, and with `isDemo` no AI is connected.
export function welcomeGuest(room, { isDemo, say, tone }) {
  const companions = [...room.companions.values()];
  const who = everybody(companions, c => name(c.name, { class: 'who', 'data-tone': tone(c.id) }));
  return section(
    'welcome.guest',
    companions.length ? el('p', null, pieces('welcome.about', { who, count: companions.length })) : null,
    isDemo ? el('p', null, t('consent.demo')) : null,
    el('p', null, t('welcome.guest_since')),
    companions.length ? el('ul', { class: 'suggestions' }, hello(companions[0], say)) : null,
  );
}
