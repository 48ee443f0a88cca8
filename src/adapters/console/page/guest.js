// The page of an invited friend: the talk, who is here, and the call. It has nothing that a guest may not do.

import { announcement } from './announcements.js';
import * as api from './api.js';
import { panelOf } from './back.js';
import { serverNow } from './clock.js';
import { compose } from './compose.js';
import { connectionSign } from './connection.js';
import { confirmed } from './dialogs.js';
import { byId, el, name, say } from './dom.js';
import { keepFocus } from './keep-focus.js';
import { notices } from './notices.js';
import { outbox } from './outbox.js';
import { learnPictures, pictureOf } from './pictures.js';
import { titleOf } from './platforms.js';
import { presence } from './presence.js';
import { redraws } from './redraw.js';
import { removal } from './removal.js';
import { learnNames, nameOf, newRoom } from './state.js';
import { loadForAll } from './storage.js';
import { stories } from './story.js';
import { talk } from './talk.js';
import { LANGUAGE, LANGUAGES, speak, t } from './texts.js';
import { tonesOf } from './tones.js';
import { typing } from './typing.js';
import { unread } from './unread.js';
import { visit } from './visit.js';
import { voiceRoom } from './voice-room.js';
import { welcomeGuest } from './welcome.js';
import * as words from './words.js';
import { startWorker } from './worker.js';

const TICK_MS = 500;
const RETRY_MS = 3000;
const DEMO = { main: { provider: 'rehearsal' } };
// A room that is not processed sends no events, so its state is requested this often.
const KEPT_AWAY_MS = 30_000;
const ENDED = '/join?ended';
const LEFT = '/join?left';

api.enterAt(ENDED);

let rooms = []; // of this visit
let isDemo = false; // whether no AI is connected
let seesPictures = true; // whether companions get the pictures that people post
let current = null; // the visit to the room shown
let unsent = null; // its outbox

const notice = notices();
const showProblem = problem => notice.show(problem.message, 'problem');
const roomOf = id => rooms.find(room => room.id === id);
const me = () => roomOf(current?.room.id)?.name ?? '';
const change = redraws(draw);

// What the items of the conversation need to be drawn.
const view = {
  room: newRoom(''),
  loaded: false,
  search: null,
  found: null,
  epoch: '',
  showsDecisions: () => false,
  stories: stories(key => talkView.reveal(key)),
  me,
  me,
  mayChange: entry => entry.role === 'user' && entry.from === me(),
  tone: id => tone(id),
  act: {
    unfold: item => view.stories.unfold(item.key),
    reply: entry => composer.reply(entry, entry.role === 'companion' ? nameOf(view.room, entry.from) : entry.from),
    edit: entry => composer.edit(entry),
    remove: entry => composer.remove(entry),
    again: entry => unsent.retry(entry.id, me()),
    discard: entry => unsent.discard(entry.id),
    rewrite(entry) {
      unsent.discard(entry.id);
      composer.write(entry.text, entry.files);
    },
  },
};
let tone = tonesOf(view.room);

const steady = act => talkView.steady(act);
const aboutMe = () => api.loaded(import('./about-room.js')).then(({ showMe }) => showMe(current.room, me())).catch(showProblem);
// The name was chosen with the invitation.
const author = {
  me,
  takes: () => true,
  draw(isAloud) {
    byId('compose-as').replaceChildren(el('button', { type: 'button', id: 'about-me', title: t('guest.about_me'), onclick: aboutMe }, name(me())), ':');
    byId('compose-as').hidden = isAloud || !me();
  },
};
const typingSign = typing((room, isTyping) => api.tellTyping(room, roomOf(room)?.name ?? me(), isTyping).catch(() => {}));
const removals = removal({ notice, showProblem, changed: () => change(['talk']), place: 'removing.guest' });
const composer = compose({ author, remove: removals.message, room: () => current?.room ?? null, outbox: () => unsent, showProblem, announce: notice.announce, typed: text => typingSign.typed(current?.room.id, text), sent: () => (removals.finish(), talkView.end()), tone: id => tone(id), steady, aloud: { offered: () => voicePanel.offersAloud(), isOn: () => voicePanel.isAloud(), listens: () => voicePanel.listens(), set: on => voicePanel.setAloud(on), say: text => voicePanel.say(text) }, pictures: { seen: () => (isDemo ? null : seesPictures), unseen: () => notice.show(t('compose.unseen')) } });
const talkView = talk(byId('log'), byId('to-end'), { view, now: serverNow, older: () => current?.older(), empty: room => welcomeGuest(room, { isDemo, tone: id => tone(id), say: text => unsent.send(me(), text) }) });
const whoIsHere = presence({ me, tone: id => tone(id), isGuest: true, opens: one => api.loaded(import('./guest-profile.js')).then(({ guestProfile }) => guestProfile(one, tone(one.id), rooms.flatMap(room => room.companions ?? []).find(({ id }) => id === one.id)?.about)).catch(showProblem) });
const voicePanel = voiceRoom({ room: () => current?.room ?? null, me, mayWrite: () => true, tone: id => tone(id), notice, open, steady, aloudChanged: () => composer.draw(), giveBack: text => composer.giveBack(text), readiness: () => Promise.resolve({ models: isDemo ? DEMO : null }) });
const missed = unread({
  me,
  changed: showTitle,
  called(id, { role, from, seq }) {
    const who = role === 'companion' ? nameOf(view.room, from) : from;
    import('./mentioned.js').then(({ mentioned }) => mentioned({ who, id, title: titleOf(roomOf(id) ?? { id }), seq }, steady), () => {});
  },
});
const connection = connectionSign({ announce: text => notice.announce(text), reconnect: () => current?.reconnect(), live: () => unsent?.flush() });

function draw(parts) {
  const { room } = view;
  if (parts.has('loaded')) view.loaded = true;
  if (parts.has('companions')) {
    tone = tonesOf(room);
    // Items show names and colours, so they are redrawn when these change.
    const epoch = [me(), [...room.names], [...room.companions.keys()], [...room.names.keys()].map(pictureOf)].join();
    if (epoch !== view.epoch) {
      view.epoch = epoch;
      parts.add('talk');
    }
    voicePanel.draw();
    const why = room.unavailable ? 'guest.kept_away' : room.greeted && !room.companions.size ? 'rooms.nobody' : null;
    byId('quiet').hidden = !why;
    say(byId('quiet'), why ? t(why) : '');
  }
  whoIsHere.draw(room);
  if (parts.has('talk') || parts.has('loaded')) talkView.redraw();
}

function showTitle() {
  const room = roomOf(current?.room.id);
  byId('room-title').hidden = rooms.length > 1;
  byId('rooms').hidden = rooms.length < 2;
  byId('room-title').replaceChildren(name(room ? titleOf(room) : ''));
  byId('rooms').replaceChildren(...rooms.map(one => el('option', { value: one.id, dir: 'auto', selected: one === room }, titleOf(one))));
  say(byId('leave'), t(rooms.length > 1 ? 'guest.leave_all' : 'guest.leave'));
  byId('leave-about').textContent = [t('guest.leave_about'), room?.ends_at ? t('guest.ends', { at: words.minute(room.ends_at) }) : ''].filter(Boolean).join(' ');
  document.title = `${missed.mark()}${room ? `${titleOf(room)} · tertulia` : 'tertulia'}`;
}

// Reads the rooms of this visit. Who is in none of them any more is out.
async function readRooms() {
  ({ rooms, demo: isDemo = false, sees_pictures: seesPictures = true } = await api.visits());
  if (!rooms.length) return location.assign(ENDED);
  const companions = rooms.flatMap(room => room.companions ?? []);
  learnPictures(companions);
  if (current) learnNames(current.room, companions);
  if (!roomOf(current?.room.id)) open((roomOf(wantedRoom()) ?? rooms[0]).id);
  showTitle();
  change(['companions']);
  return undefined;
}
// Without an answer it is not known whether the visit has ended.
let lookAgain = null;
function look() {
  clearTimeout(lookAgain);
  readRooms().catch(problem => {
    if (problem.isTransient) lookAgain = setTimeout(look, RETRY_MS);
  });
}

const wantedRoom = () => {
  try {
    return decodeURIComponent(location.hash.slice(2).split('/')[0]);
  } catch {
    return null;
  }
};

function open(id) {
  if (current?.room.id === id) return;
  current?.close();
  typingSign.stop();
  talkView.reset();
  Object.assign(view, { loaded: false, epoch: '' });
  // The first callbacks may come before `visit` returns.
  let opened = null;
  const isShown = () => opened === null || opened === current;
  opened = visit(
    id,
    {
      change: parts => opened === current && change(parts),
      event(e, isNew) {
        if (opened !== current) return;
        if (isNew) notice.announce(announcement(opened.room, e, me()));
        // The event has neither name nor picture.
        if (isNew && e.event === 'joined') look();
        if (isNew && e.event === 'message' && e.modality === 'voice') voicePanel.posted(id, e);
        if (isNew && (e.event === 'voice_joined' || e.event === 'voice_left')) voicePanel.refresh();
        if (e.event !== 'message') return;
        unsent.saveIfChanged();
        if (isNew) missed.note(id, e);
      },
      connection: (state, at) => isShown() && connection.show(state, at),
      // The connection ends when the visit does.
      cut: () => {
        api.leaveStandby();
        if (opened === current) look();
      },
      problem: problem => opened === current && (problem.status === 404 || problem.status === 403 ? look() : showProblem(problem)),
    },
    { isGuest: true },
  );
  current = opened;
  view.room = opened.room;
  learnNames(opened.room, roomOf(id).companions ?? []);
  unsent = outbox(opened.room, () => opened === current && change(['talk']), warning => notice.show(warning, 'problem'));
  byId('message').disabled = false;
  history.replaceState(null, '', `#/${encodeURIComponent(id)}`);
  missed.look(id, new Date(serverNow()).toISOString());
  showTitle();
  notice.leaveRoom();
  composer.restore();
  voicePanel.shown();
  change(['talk', 'companions', 'people']);
}

byId('rooms').addEventListener('change', event => open(event.target.value));
addEventListener('hashchange', () => roomOf(wantedRoom()) && open(wantedRoom()));
byId('language').append(...Object.entries(LANGUAGES).map(([code, own]) => el('button', { class: 'quiet-button', lang: code, 'aria-pressed': String(code === LANGUAGE), onclick: () => speak(code) }, own)));
byId('skip').addEventListener('click', event => {
  event.preventDefault();
  composer.focus();
});
const closeMenu = panelOf(byId('more'), byId('guest-menu'), 'select');
byId('reminders').addEventListener('click', () => {
  closeMenu();
  api.loaded(import('./reminders.js')).then(({ showReminders }) => showReminders(current.room, me())).catch(showProblem);
});
byId('leave').addEventListener('click', async () => {
  closeMenu();
  const question = [t('guest.leave_question', { count: rooms.length }), voicePanel.isIn() ? t('guest.leave_call') : ''].filter(Boolean);
  if (!(await confirmed(t('guest.leave_title'), question, byId('leave').textContent, t('guest.stay')))) return;
  // The live connection ends, too.
  api.enterAt(LEFT);
  api.signOut().then(() => location.assign(LEFT), showProblem);
});
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
  if (closeMenu()) return void more.focus();
  if (!composer.cancel() && !notice.clear()) composer.focus();
});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden' || !current) return;
  missed.look(current.room.id, new Date(serverNow()).toISOString());
  look();
});

function tick() {
  talkView.tick(serverNow());
  connection.draw();
  setTimeout(tick, TICK_MS);
}

function begin() {
  readRooms().then(
    () => document.activeElement === document.body && composer.focus(),
    problem => {
      connection.show('lost', Date.now() + RETRY_MS);
      if (!problem.isTransient) showProblem(problem);
      setTimeout(begin, RETRY_MS);
    },
  );
}
setInterval(() => view.room.unavailable && current.renew(), KEPT_AWAY_MS);
composer.draw();
keepFocus();
// The first visit needs it least.
if (loadForAll('seen')) startWorker();
begin();
tick();
