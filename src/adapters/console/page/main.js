// Puts the page together: which room is shown, what a change redraws, and the keys that work everywhere.

import * as api from './api.js';
import { care } from './care.js';
import { serverNow } from './clock.js';
import { compose } from './compose.js';
import { legend, modelIndicator, showKeys } from './dialogs.js';
import { byId, name, say } from './dom.js';
import { elsewhere, titleOf } from './elsewhere.js';
import { find } from './find.js';
import { first, noRoom } from './first.js';
import { keepAll, recallAll } from './keep.js';
import { kept } from './kept.js';
import { meters } from './meters.js';
import { minds } from './minds.js';
import { notices } from './notices.js';
import { outbox } from './outbox.js';
import { people } from './people.js';
import { rooms } from './rooms.js';
import { LINGER_MS, tickRounds } from './rounds.js';
import { nameOf, newRoom } from './state.js';
import { stories } from './story.js';
import { talk } from './talk.js';
import { timeline } from './timeline.js';
import { tonesOf } from './tones.js';
import { visit } from './visit.js';
import { sentence } from './voice.js';
import * as words from './words.js';

const TICK_MS = 100;
const CALM_TICK_MS = 1000;
const ROOMS_AGAIN_MS = 20_000;

let here = null; // the visit
let mail = null; // its outbox
let known = []; // the rooms
let nextAttempt = null;
let connection = 'connecting';

const notice = notices();
const tell = problem => notice.show(problem.message, 'problem');

const dirty = new Set();
let drawing = false;
function change(parts) {
  for (const part of parts) dirty.add(part);
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

// Where an entry is shown: with its round, with others like it, or alone.
const homeOf = entry => entry?.round?.key ?? entry?.shownIn ?? entry?.key;
const story = stories(key => said.reveal(homeOf(view.room.seen.get(key)) ?? key));

// What the items of the talk are drawn with.
const view = {
  room: newRoom(''),
  loaded: false,
  wanted: null,
  found: null,
  epoch: '',
  stories: story,
  tone: id => tone(id),
  act: {
    open: entry => story.toggle(here.room, entry),
    unfold: item => story.unfold(item.key),
    reply: entry => writing.reply(entry, entry.role === 'companion' ? nameOf(view.room, entry.from) : entry.from),
    edit: entry => writing.edit(entry),
    remove(entry, button) {
      if (button.dataset.sure) return writing.remove(entry);
      button.dataset.sure = 'yes';
      button.textContent = 'really?';
      setTimeout(() => {
        delete button.dataset.sure;
        button.textContent = 'delete';
      }, 4000);
    },
    again: entry => mail.again(entry.id),
    discard: entry => mail.discard(entry.id),
    rewrite(entry) {
      mail.discard(entry.id);
      writing.write(entry.text);
    },
  },
};
let tone = tonesOf(view.room);

const speaker = people(() => writing.draw());
const writing = compose({ me: speaker.me, room: () => here?.room ?? null, outbox: () => mail, tell, sent: () => said.end(), tone: id => tone(id) });
const said = talk(byId('log'), byId('to-end'), {
  view,
  now: serverNow,
  older: () => here?.older(),
  empty: room => {
    const ours = mail;
    if (!room.id) return noRoom();
    return first(room, { tone: id => tone(id), me: speaker.me, say: (from, text) => ours.say(from, text) });
  },
});

function goTo(entry) {
  byId('minds').querySelector('[data-open]') && thoughts.shut();
  const told = entry.toldBy ?? entry;
  const home = homeOf(told);
  if (home !== told.key && !story.has(home)) story.unfold(home, false);
  story.show(here.room, told);
  requestAnimationFrame(() => said.go(home));
}
const thoughts = minds(byId('minds'), {
  tone: id => tone(id),
  act: {
    temper: (id, interjection) => api.patchRoom(here.room.id, { companions: { [id]: { interjection } } }).then(() => here.refresh()).catch(tell),
    pause: (id, paused) => api.patchRoom(here.room.id, { companions: { [id]: { paused } } }).then(() => here.refresh()).catch(tell),
    why: id => api.why(here.room.id, id),
    open: goTo,
    call: id => writing.address(nameOf(view.room, id)),
  },
});
const drawMeters = meters(byId('meters'));
const line = timeline(byId('timeline'), { tone: id => tone(id), go: key => said.go(homeOf(view.room.seen.get(key)) ?? key) });
const search = find({
  room: () => view.room,
  older: () => here.older(),
  show(wanted, key) {
    view.wanted = wanted;
    view.found = key;
    said.redraw();
    if (key) said.go(key, false);
  },
  close: () => writing.focus(),
});
const list = rooms({ open: (id, anew) => open(id, anew), tell, changed: readRooms });
const models = modelIndicator();
const announce = text => notice.announce(text);
// Nothing is told in a room in which nothing goes on: whether that is so still is asked for.
const askAgain = () => here?.refresh().catch(() => {});
const cares = care({ tell, announce, looked: isChanged => (isChanged || view.room.keptAway) && askAgain() });
const away = kept({ room: () => view.room, released: () => cares.look(), tell, announce });

function draw() {
  const parts = new Set(dirty);
  dirty.clear();
  if (parts.has('loaded')) view.loaded = true;
  if (parts.has('minds')) {
    tone = tonesOf(view.room);
    // Names and colours belong to what is drawn: when they change, the talk is drawn anew.
    const epoch = [...view.room.minds.values()].map(mind => `${mind.id}=${mind.name}`).join();
    if (epoch !== view.epoch) {
      view.epoch = epoch;
      parts.add('talk');
    }
    thoughts.draw(view.room, serverNow());
    drawMeters(view.room);
    away.draw(serverNow());
  }
  if (parts.has('talk') || parts.has('loaded')) said.redraw();
  line.draw(view.room, serverNow());
}

function showConnection(state, at) {
  const before = connection;
  connection = state;
  nextAttempt = at;
  byId('connection').dataset.state = state;
  document.body.classList.toggle('out-of-touch', state === 'lost');
  sayConnection();
  if (state === 'lost' && before === 'live') notice.announce('The connection is lost. What you type is kept.');
  if (state === 'live' && before === 'lost') notice.announce('Connected again.');
  if (state === 'live' && before !== 'live') {
    mail?.flush();
    models.look();
    cares.look();
  }
}

function sayConnection() {
  if (connection !== 'lost') return say(byId('connection-words'), connection);
  const left = Math.ceil((nextAttempt - Date.now()) / 1000);
  say(byId('connection-words'), left > 0 ? `connection lost · again in ${left} s` : 'connection lost · trying');
}
byId('connection').addEventListener('click', () => here?.again());

function showWhere() {
  const room = known.find(other => other.id === here?.room.id);
  // A title names the guild already.
  const about = room?.title ? room.id : room?.guild;
  byId('where').replaceChildren(name(room ? titleOf(room) : (here?.room.id ?? 'rooms'), { class: 'where-room' }), about ? name(` · ${about}`, { class: 'where-guild' }) : '');
  document.title = room ? `${titleOf(room)} · tertulia` : 'tertulia';
}

// In a channel of another platform nobody writes from here.
function showElsewhere(platform) {
  byId('compose').hidden = Boolean(platform);
  byId('people-section').hidden = Boolean(platform);
  byId('said-elsewhere').hidden = !platform;
  say(byId('said-elsewhere'), platform ? `This channel is talked in on ${platform}: write there, and see here what becomes of it.` : '');
}

function open(id, anew = false) {
  if (!id || (here?.room.id === id && !anew)) return;
  here?.close();
  story.clear();
  search.shut();
  said.forget();
  Object.assign(view, { loaded: false, wanted: null, found: null, epoch: '' });
  // What it says at once, it says before it has a name here.
  let mine = null;
  mine = visit(id, {
    change: parts => mine === here && change(parts),
    event(e, isNew) {
      if (mine !== here) return;
      // Fewer events than are known here: the room was deleted and made anew.
      if (e.event === 'hello' && e.last < mine.room.last) return open(id, true);
      if (e.event === 'notice' && typeof e.text === 'string') notice.show(e.text);
      if (isNew) notice.announce(sentence(mine.room, e, speaker.me()));
      if (isNew && e.event === 'round' && !e.selected) setTimeout(() => mine === here && change(['talk']), LINGER_MS);
      if (isNew && e.event === 'paused') readRooms().catch(() => {});
      // Who is present, paused or tempered is more than the event tells.
      if (isNew && ['joined', 'paused', 'tempered'].includes(e.event)) mine.refresh().catch(() => {});
      if (e.event === 'message') {
        mail.settle();
        const room = known.find(other => other.id === id);
        if (isNew && room) {
          room.last_at = e.at;
          list.redraw();
        }
      }
    },
    connection: (state, at) => (mine === null || mine === here) && showConnection(state, at),
    problem(problem) {
      if (mine !== here) return;
      if (problem.status !== 404) return tell(problem);
      readRooms().catch(() => {});
    },
  });
  here = mine;
  view.room = mine.room;
  mail = outbox(mine.room, () => mine === here && change(['talk']));
  byId('message').disabled = false;
  keepAll('room', id);
  if (location.hash !== `#/${encodeURIComponent(id)}`) history.replaceState(null, '', `#/${encodeURIComponent(id)}`);
  list.set(known, id);
  showWhere();
  showElsewhere(mine.room.elsewhere);
  writing.restore();
  showSide(false);
  change(['talk', 'minds']);
}

const wantedRoom = () => {
  try {
    return location.hash.startsWith('#/') ? decodeURIComponent(location.hash.slice(2)) : null;
  } catch {
    return null;
  }
};

async function readRooms() {
  const answer = await api.listRooms();
  known = answer.rooms ?? [];
  const now = here?.room.id;
  const exists = id => known.some(room => room.id === id);
  if (!exists(now)) {
    if (here) notice.show(`The room ${now} is gone.`);
    const next = [wantedRoom(), recallAll('room'), known.find(room => !elsewhere(room.id))?.id, known[0]?.id].find(id => id && exists(id));
    if (next) open(next);
    else {
      here?.close();
      here = null;
      said.forget();
      mail = null;
      Object.assign(view, { room: { ...newRoom(''), greeted: true }, loaded: true });
      byId('message').disabled = true;
      change(['talk', 'minds']);
      showConnection('no room', null);
      list.set(known, null);
      showWhere();
      showElsewhere('');
      showSide(true);
      list.startNew();
      return;
    }
  }
  const ours = known.find(room => room.id === here?.room.id);
  if (ours && here) here.room.paused = Boolean(ours.paused);
  list.set(known, here?.room.id ?? null);
  showWhere();
}

function showSide(shown) {
  document.body.classList.toggle('side-open', shown);
  byId('where').setAttribute('aria-expanded', String(shown));
}
byId('where').addEventListener('click', () => showSide(!document.body.classList.contains('side-open')));
const wide = matchMedia('(min-width: 72.01em)');
const sideMatters = () => {
  byId('where').disabled = wide.matches;
};
wide.addEventListener('change', sideMatters);
sideMatters();
byId('help').addEventListener('click', showKeys);
byId('skip').addEventListener('click', event => {
  event.preventDefault();
  writing.focus();
});
byId('legend').append(...legend());
addEventListener('hashchange', async () => {
  const id = wantedRoom();
  const exists = () => known.some(room => room.id === id);
  // Another window may have made it.
  if (id && !exists()) await readRooms().catch(() => {});
  if (id && exists()) open(id);
  else if (id) notice.show(`There is no room ${id}.`);
});

const isField = node => node instanceof HTMLElement && (node.matches('input, textarea, select') || node.isContentEditable);

document.addEventListener('keydown', event => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape') {
    if (document.body.classList.contains('side-open')) {
      showSide(false);
      byId('where').focus();
    } else if (!search.shut() && !writing.leave() && !thoughts.shut()) {
      const shut = story.shutLast();
      if (!shut && !notice.shut()) writing.focus();
    }
    return;
  }
  const empty = event.target === byId('message') && !byId('message').value;
  if (isField(event.target) && !empty) return;
  if (event.key === '/') {
    event.preventDefault();
    search.open();
  } else if (event.key === '?') {
    event.preventDefault();
    showKeys();
  }
});

// Numbers run while something is running, and slowly for people who want no motion.
const calm = matchMedia('(prefers-reduced-motion: reduce)');
let lastLine = 0;
function tick() {
  const now = serverNow();
  const running = thoughts.tick(view.room, now);
  said.tick(now, words.seconds);
  tickRounds(byId('log'), now);
  sayConnection();
  away.draw(now);
  if (document.visibilityState === 'visible' && now - lastLine > 1000) {
    lastLine = now;
    line.draw(view.room, now);
  }
  setTimeout(tick, calm.matches || !running ? CALM_TICK_MS / (calm.matches ? 1 : 2) : TICK_MS);
}

async function begin() {
  try {
    await readRooms();
  } catch (problem) {
    showConnection('lost', Date.now() + 3000);
    if (!problem.passing) tell(problem);
    setTimeout(begin, 3000);
    return;
  }
  setInterval(() => readRooms().catch(() => {}), ROOMS_AGAIN_MS);
  writing.focus();
}
writing.draw();
begin();
tick();
