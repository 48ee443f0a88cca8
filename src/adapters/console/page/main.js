// Connects the parts of the page: which room is shown, what a change redraws, and the keys that work everywhere.

import { announcement } from './announcements.js';
import * as api from './api.js';
import { attention } from './attention.js';
import { goTo as goToPlace, opened as openedHere } from './back.js';
import { serverNow } from './clock.js';
import { companionDesk } from './companion-desk.js';
import { companionCards } from './companions.js';
import { compose } from './compose.js';
import { connectionSign } from './connection.js';
import { details } from './details.js';
import { legend } from './dialogs.js';
import { missing } from './discord.js';
import { byId, el, name, pressedBeside, say } from './dom.js';
import { find } from './find.js';
import { keepFocus } from './keep-focus.js';
import { meters } from './meters.js';
import { models as modelsInForce } from './models.js';
import { noCompanions } from './no-companions.js';
import { notHere } from './not-here.js';
import { notices } from './notices.js';
import { outbox } from './outbox.js';
import { nameProblem, people } from './people.js';
import { learnPictures, pictureOf } from './pictures.js';
import { platformName, titleOf } from './platforms.js';
import { presence } from './presence.js';
import { redraws } from './redraw.js';
import { removal } from './removal.js';
import { roomMenu } from './room-menu.js';
import { rooms } from './rooms.js';
import { LINGER_MS, tickRounds } from './rounds.js';
import { learnNames, nameOf, newRoom, oldestMessage, rename } from './state.js';
import { loadForAll, storeForAll } from './storage.js';
import { stories } from './story.js';
import { talk } from './talk.js';
import { LANGUAGE, LANGUAGES, has, speak, t } from './texts.js';
import { timeline } from './timeline.js';
import { tonesOf } from './tones.js';
import { typing } from './typing.js';
import { unavailable } from './unavailable.js';
import { unread, unreadMark } from './unread.js';
import { PAGE, visit } from './visit.js';
import { voiceRoom } from './voice-room.js';
import { noRoom, welcome } from './welcome.js';
import * as words from './words.js';
import { startWorker } from './worker.js';
import { yourName } from './your-name.js';

const TICK_MS = 100;
const CALM_TICK_MS = 1000;
const ROOMS_POLL_MS = 20_000;
const LOOKS_FOR_UNDO = 14;
const LOOKS_EVERY_MS = 5000;
const PROPOSED_MS = 60_000;
const SHOWN_MS = 12_000;

let current = null; // the visit to the room shown
let unsent = null; // its outbox
let allRooms = [];
let companionsRead = Promise.resolve(); // when the companions of the server are known
const configured = new Map(); // the companions of the server by id, with their names
let wanted = null; // the message that the address names, until the room is loaded
let lacking = null; // what is missing although this page is live

const notice = notices();
const showProblem = problem => notice.show(problem.message, 'problem');

const change = redraws(draw);

// The reason why a request to remember something was refused.
const refusedNote = why => t(has(`remembered.refused.${why}`) ? `remembered.refused.${why}` : 'remembered.refused.unknown');

// The key of the item that shows an entry: its round, the line below its message, its group, or its own.
const itemKeyOf = entry => (decisions.shows() ? entry?.round?.key : entry?.line) ?? entry?.shownIn ?? entry?.key;
const story = stories(key => talkView.reveal(itemKeyOf(view.room.seen.get(key)) ?? key));

// Disables a button of an answer, which has the focus instead.
function rest(button) {
  button.closest('[data-key]').focus({ preventScroll: true });
  button.disabled = true;
}

// A disabled button can be pressed again once its request has failed.
const pressed = (button, request, failed = showProblem) =>
  request.catch(problem => {
    button.disabled = false;
    failed(problem);
  });

// What the items of the conversation need to be drawn.
const view = {
  room: newRoom(''),
  loaded: false,
  search: null,
  found: null,
  epoch: '',
  showsDecisions: () => decisions.shows(),
  stories: story,
  me: () => speaker.me(),
  seenAt: null,
  isMine: entry => missed.isMine(entry),
  // What people wrote on another platform is changed there.
  mayChange: entry => entry.role === 'companion' || (entry.role === 'user' && !view.room.platform),
  link: entry => `#/${encodeURIComponent(view.room.id)}/${entry.seq}`,
  tone: id => tone(id),
  act: {
    open: entry => story.toggle(current.room, entry),
    profile: id => desk.open(id),
    unfold: item => story.unfold(item.key),
    reply: entry => composer.reply(entry, entry.role === 'companion' ? nameOf(view.room, entry.from) : entry.from),
    edit: entry => composer.edit(entry),
    remove: entry => composer.remove(entry),
    replace(entry, button) {
      rest(button);
      const failed = problem => notice.show(t('messages.not_tried', { problem: (problem.about ?? problem.message).replace(/[.]$/u, '') }), 'problem');
      pressed(button, api.answerAgain(current.room.id, entry.seq), failed);
    },
    extend(entry, button) {
      rest(button);
      pressed(button, api.extend(current.room.id, entry.seq));
    },
    stand: (entry, version, said) => api.stand(current.room.id, entry.seq, version).then(() => announce(said)).catch(showProblem),
    stop(companion, button) {
      button.disabled = true;
      // 409: it has just ended by itself.
      const stopped = api.stopReply(current.room.id, companion).catch(problem => problem.status === 409 || Promise.reject(problem));
      pressed(button, stopped);
    },
    again: entry => unsent.retry(entry.id, speaker.me()),
    discard: entry => unsent.discard(entry.id),
    rewrite(entry) {
      unsent.discard(entry.id);
      composer.write(entry.text, entry.files);
    },
  },
};
let tone = tonesOf(view.room);

const decisions = details({ changed: () => change(['talk', 'companions']) });
const next = companion => api.speakNext(current.room.id, { companion, by: speaker.me() || undefined });
// A draft for who writes here, if the room is still shown.
async function draft(id) {
  const { room } = current;
  const { text } = await api.draft(room.id, id, speaker.me());
  if (current.room !== room) return;
  const { said, undo } = composer.write(text);
  if (said) notice.show(t(said), 'plain', undo ? { label: t('rooms.undo'), act: undo, ms: SHOWN_MS } : null);
}
const desk = companionDesk({
  next,
  draft,
  room: () => allRooms.find(room => room.id === current?.room.id) ?? null,
  rooms: () => allRooms,
  usualLevel: id => configured.get(id)?.interjection,
  nameOf: id => nameOf(view.room, id),
  tone: id => tone(id),
  changed: () => Promise.all([readRooms(), readCompanions()]).catch(showProblem),
  tell: (text, kind) => notice.show(text, kind),
  remove: profile => removals.companion(profile),
  keep: profile => removals.keep(profile),
});
// The names of the guests who are here.
const guests = () => view.room.people.filter(person => person.isGuest).map(person => person.name);
const speaker = people({ changed: isOther => (composer.draw(), isOther && current?.renew(), change(['companions', 'people'])), problemWith: person => nameProblem(person, allRooms, current?.room.id, guests()), showProblem, guests, guild: () => allRooms.find(room => room.id === current?.room.id)?.guild, forgotten: count => notice.show(t('people.forgotten', { count })) });
const steady = act => talkView.steady(act);
const whoIsHere = presence({ me: speaker.me, tone: id => tone(id), opens: ({ id }) => desk.open(id) });
const typingSign = typing((room, isTyping) => api.tellTyping(room, speaker.me(), isTyping).catch(() => {}));
const author = yourName({ me: speaker.me, isNew: speaker.isNew, speakAs: speaker.speakAs, mayWrite: speaker.mayWrite, steady, draw: () => composer.draw(), focus: () => composer.focus() });
const removals = removal({ notice, showProblem, changed: () => change(['talk']), deleted: () => Promise.all([readRooms(), readCompanions()]).catch(showProblem) });
const composer = compose({ author, remove: removals.message, room: () => current?.room ?? null, outbox: () => unsent, showProblem, announce: notice.announce, typed: text => typingSign.typed(current?.room.id, text), sent: () => (removals.finish(), talkView.end()), tone: id => tone(id), steady, aloud: { offered: () => voicePanel.offersAloud(), isOn: () => voicePanel.isAloud(), listens: () => voicePanel.listens(), set: on => voicePanel.setAloud(on), say: text => voicePanel.say(text) }, pictures: { seen: () => models.seesPictures(), unseen: () => notice.show(t('compose.unseen'), 'plain', { label: t('ai.change'), act: models.open, ms: PROPOSED_MS }) } });
const talkView = talk(byId('log'), byId('to-end'), {
  view,
  now: serverNow,
  older: () => current?.older(),
  empty: room => {
    const roomOutbox = unsent;
    if (!room.id) return noRoom();
    return welcome(room, {
      tone: id => tone(id),
      me: speaker.me,
      send: (from, text) => speaker.mayWrite() && roomOutbox.send(from, text),
      greetings: id => companionsRead.then(() => (configured.get(id)?.greets ? api.companion(id).then(({ companion }) => companion.greetings ?? []) : [])),
      greet(id, text, button) {
        button.disabled = true;
        pressed(button, api.greet(room.id, id, text));
      },
      create: () => desk.create(),
    });
  },
});

function goTo(entry) {
  byId('companions').querySelector('[data-open]') && cards.close();
  const shown = entry.shownAs ?? entry;
  const itemKey = itemKeyOf(shown);
  if (itemKey !== shown.key && !story.has(itemKey)) story.unfold(itemKey, false);
  story.show(current.room, shown);
  requestAnimationFrame(() => talkView.go(itemKey));
}
const cards = companionCards(byId('companions'), {
  tone: id => tone(id),
  act: {
    setLevel: (id, level) => api.patchRoom(current.room.id, { companions: { [id]: level === 'spoken_to' ? { quiet_hours: 'always' } : { interjection: level, ...(view.room.companions.get(id)?.quietHours === 'always' ? { quiet_hours: 'never' } : {}) } } }).then(() => current.refresh()).catch(showProblem),
    pause: (id, paused) => api.patchRoom(current.room.id, { companions: { [id]: { paused } } }).then(() => current.refresh()).catch(showProblem),
    next: id => next(id).catch(showProblem),
    draft(id, button) {
      button.disabled = true;
      draft(id)
        .catch(showProblem)
        .finally(() => (button.disabled = false));
    },
    why: id => api.why(current.room.id, id),
    open: goTo,
    profile: id => desk.open(id),
    address: id => composer.address(nameOf(view.room, id)),
  },
});
const drawMeters = meters(byId('meters'));
const timelineView = timeline(byId('timeline'), { tone: id => tone(id), go: key => talkView.go(itemKeyOf(view.room.seen.get(key)) ?? key) });
const search = find({
  room: () => view.room,
  older: () => current?.older() ?? false,
  show(text, key) {
    view.search = text;
    view.found = key;
    talkView.redraw();
    if (key) talkView.go(key, false);
  },
  onClose: () => composer.focus(),
});
const missed = unread({
  me: speaker.me,
  decides: true,
  changed() {
    list.redraw();
    showTitle();
  },
  called(id, { role, from, seq }) {
    const who = role === 'companion' ? (configured.get(from)?.name ?? from) : from;
    import('./mentioned.js').then(({ mentioned }) => mentioned({ who, id, title: titleOf(allRooms.find(room => room.id === id) ?? { id }), seq }, steady, text => notice.show(text)), () => {});
  },
  // Nobody writes from this page in the others.
  isMarked: id => id === current?.room.id || !platformName(id),
});
let leaving = null; // the room that is deleted in this window
function offerUndo(room, deletion) {
  const act = () =>
    api
      .undeleteRoom(room.id)
      .then(readRooms)
      .then(() => open(room.id))
      .catch(showProblem);
  notice.show(t('rooms.deleted', { room: titleOf(room) }), 'plain', { label: t('rooms.undo'), act, ms: Math.max(0, Date.parse(deletion.deleted_at) - serverNow()) });
}
const list = rooms({ open: id => (open(id), showSide(false)), unreadIn: id => missed.of(id), showProblem, changed: readRooms, desk });
const menu = roomMenu({ me: speaker.me, room: () => allRooms.find(room => room.id === current?.room.id), changed: readRooms, open: id => open(id, true), leave: id => (leaving = id), deleted: offerUndo, find: () => search.open(), desk, settings: () => openSettings(), showProblem, tell: text => notice.show(text) });
const announce = text => notice.announce(text);
const models = modelsInForce({ nameOf: id => nameOf(view.room, id), announce, tell: text => notice.show(text), showProblem, checked: ready => ((lacking = missing(ready)), connection.draw()) });
const openSettings = section => api.loaded(import('./settings.js')).then(({ showSettings }) => showSettings({ models: models.current, openModels: models.open, section })).catch(showProblem);
// A room that is not processed sends no events, so its state is requested.
const refreshState = () => current?.refresh().catch(() => {});
const attentionView = attention({ showProblem, announce, polled: isChanged => (isChanged || view.room.unavailable) && refreshState() });
const unavailableNotice = unavailable({ room: () => view.room, released: () => attentionView.poll(), showProblem, announce });
const noCompanionsNotice = noCompanions({
  room: () => view.room,
  announce,
  choose: () => menu.chooseCompanions(),
  create: () => desk.create(),
});
const notHereNotice = notHere({
  field: byId('message'),
  room: () => allRooms.find(room => room.id === current?.room.id),
  configured: () => configured.values(),
  join: (target, id) => desk.join(target, id),
  showProblem,
});
const voicePanel = voiceRoom({ room: () => current?.room ?? null, me: speaker.me, mayWrite: speaker.mayWrite, tone: id => tone(id), notice, open: id => open(id), steady, aloudChanged: () => composer.draw(), giveBack: text => composer.giveBack(text), setUp: byId('voice-set-up'), settings: () => openSettings('voice') });

const connection = connectionSign({
  announce,
  reconnect: () => current?.reconnect(),
  lacking: () => lacking,
  live(wasLost) {
    unsent?.flush();
    // What was loaded with the page is new enough for the first connection.
    if (!wasLost) return;
    models.poll();
    attentionView.poll();
  },
});

let inviting = null;
byId('invite').addEventListener('click', () => api.loaded(import('./invitations.js')).then(({ invitations }) => (inviting ??= invitations({ room: () => allRooms.find(room => room.id === current?.room.id), showProblem })).show()).catch(showProblem));

function draw(parts) {
  if (parts.has('loaded')) view.loaded = true;
  if (parts.has('companions')) {
    tone = tonesOf(view.room);
    // Items show names and colours, so they are redrawn when these change.
    const epoch = [speaker.me(), [...view.room.names], [...view.room.companions.keys()], [...view.room.names.keys()].map(pictureOf)].join();
    if (epoch !== view.epoch) {
      view.epoch = epoch;
      parts.add('talk');
    }
    cards.draw(view.room, serverNow());
    drawMeters(view.room);
    unavailableNotice.draw(serverNow());
    noCompanionsNotice.draw();
    voicePanel.draw();
  }
  if (parts.has('companions') || parts.has('people')) whoIsHere.draw(view.room);
  if (parts.has('people')) speaker.drawOthers();
  if (parts.has('talk') || parts.has('loaded')) talkView.redraw();
  timelineView.draw(view.room, serverNow());
  if (parts.has('loaded') && wanted !== null) {
    const seq = wanted;
    wanted = null;
    goToMessage(seq);
  }
}

byId('language').append(...Object.entries(LANGUAGES).map(([code, own]) => el('button', { class: 'quiet-button', lang: code, 'aria-pressed': String(code === LANGUAGE), onclick: () => speak(code) }, own)));

function showTitle() {
  const room = allRooms.find(other => other.id === current?.room.id);
  // On other platforms, a title contains the name of the server already.
  const about = room && !room.title && platformName(room.id) ? room.guild : null;
  byId('room-title').title = room?.title ? room.id : '';
  menu.draw();
  byId('room-title').replaceChildren(name(room ? titleOf(room) : (current?.room.id ?? t('rooms.title')), { class: 'room-title-name' }), about ? name(` · ${about}`, { class: 'room-title-guild' }) : '', unreadMark(missed.all().count));
  document.title = `${missed.mark()}${room ? `${titleOf(room)} · tertulia` : 'tertulia'}`;
}

// Proposes notes once per browser and guild, if the guild has no setting yet. Older stores have none.
async function proposeNotes({ id }) {
  const guild = allRooms.find(room => room.id === id)?.guild;
  const key = `notes_proposed.${guild}`;
  if (!guild || platformName(id) || loadForAll(key)) return;
  const { on, allowed } = await api.notes(id);
  if (!allowed || on !== undefined || current?.room.id !== id) return;
  const act = () => api.switchNotes(guild, true).catch(showProblem);
  notice.show(t('remembered.unset'), 'plain', { label: t('remembered.turn_on'), act, ms: PROPOSED_MS });
  storeForAll(key, true);
}

// Channels of other platforms can only be read here, apart from editing what companions said.
function showPlatform(platform) {
  byId('people-section').hidden = Boolean(platform);
  byId('invite').hidden = Boolean(platform);
  byId('other-platform').hidden = !platform;
  say(byId('other-platform'), platform ? t('rooms.platform', { platform }) : '');
}

// The server knows more names of guests than those who are here.
function nameRefused(problem) {
  notice.show(words.upper(problem.message), 'problem');
  author.ask();
}

function open(id, reload = false) {
  if (!id || (current?.room.id === id && !reload && !current.room.isDeleted)) return;
  const isFirst = !current;
  current?.close();
  removals.finish();
  typingSign.stop();
  // What came with the first page was seen, too.
  if (current) missed.look(current.room.id, current.room.entries.findLast(entry => entry.kind === 'message')?.at);
  story.clear();
  models.entered();
  search.close();
  talkView.reset();
  Object.assign(view, { loaded: false, search: null, found: null, epoch: '', seenAt: missed.seenAt(id) });
  // The first callbacks may come before `visit` returns.
  let opened = null;
  opened = visit(id, {
    change: parts => opened === current && change(parts),
    event(e, isNew) {
      if (opened !== current) return;
      // The server has fewer events than this page: the room was deleted and created again.
      if (e.event === 'hello' && e.last < opened.room.last) return open(id, true);
      if (e.event === 'notice' && typeof e.text === 'string') notice.show(e.text);
      if (isNew && e.event === 'noted' && e.asked) notice.show(t('remembered.noted', { text: e.text }));
      if (isNew && e.event === 'notes_taken' && !e.messages) notice.show(refusedNote(Object.keys(e.dropped)[0]));
      if (isNew) notice.announce(announcement(opened.room, e, speaker.me()));
      if (isNew) models.note(e);
      const used = isNew && e.budget ? e : e.state?.used_up;
      if (used) import('./used-up.js').then(({ sayUsedUp }) => sayUsedUp(used, () => openSettings('limits')), () => {});
      if (e.event === 'people') inviting?.refresh();
      if (isNew && e.event === 'round' && !e.selected) setTimeout(() => opened === current && change(['talk']), LINGER_MS);
      if (isNew && e.event === 'paused') readRooms().catch(() => {});
      // These events do not contain the whole new state of the companions.
      if (isNew && ['joined', 'paused', 'tempered'].includes(e.event)) opened.refresh().catch(() => {});
      if (isNew && e.event === 'message' && e.modality === 'voice') voicePanel.posted(id, e);
      if (isNew && (e.event === 'voice_joined' || e.event === 'voice_left')) voicePanel.refresh();
      if (e.event === 'message') {
        unsent.saveIfChanged();
        const room = allRooms.find(other => other.id === id);
        if (isNew && room) {
          room.last_at = e.said_at ?? e.at;
          list.redraw();
        }
        if (isNew) missed.note(id, e);
      }
    },
    connection: (state, at) => (opened === null || opened === current) && connection.show(state, at),
    // Without a session, the API call goes to the sign-in page. A deleted room is noticed.
    cut: wasOpen => wasOpen || api.roomState(id).catch(problem => (problem.status === 503 ? api.leaveStandby() : problem.status === 404 && opened === current && readRooms().catch(() => {}))),
    problem(problem) {
      if (opened !== current) return;
      if (problem.status !== 404) return showProblem(problem);
      readRooms().catch(() => {});
    },
  }, { as: () => (speaker.isNew() ? null : speaker.me()) });
  current = opened;
  view.room = opened.room;
  learnNames(opened.room, configured.values());
  proposeNotes(opened.room).catch(() => {});
  unsent = outbox(opened.room, () => opened === current && change(['talk']), warning => notice.show(warning, 'problem'), nameRefused);
  byId('message').disabled = false;
  storeForAll('room', id);
  wanted = wantedRoom() === id && !reload ? wantedMessage() : null;
  // A room is a place of the history.
  if (wantedRoom() !== id) (isFirst ? address => history.replaceState(null, '', address) : goToPlace)(`#/${encodeURIComponent(id)}`);
  missed.look(id, allRooms.find(room => room.id === id)?.last_at);
  list.set(allRooms, id);
  showTitle();
  showPlatform(opened.room.platform);
  notice.leaveRoom();
  composer.restore();
  notHereNotice.hide();
  showSide(false);
  voicePanel.shown();
  change(['talk', 'companions', 'people']);
}

// The address names a room, and with a permalink also a message: #/lobby/12. Where it stood in a text, a sign behind it may have become a part of it.
const wantedRoom = () => {
  if (!location.hash.startsWith('#/')) return null;
  try {
    const id = decodeURIComponent(location.hash.slice(2).split('/')[0]);
    return [id, id.replace(/[\p{P}\p{S}]+$/u, '')].find(one => allRooms.some(room => room.id === one)) ?? id;
  } catch {
    return null;
  }
};
const wantedMessage = () => {
  const seq = location.hash.split('/')[2]?.match(/^\d{1,15}(?!\d)/u);
  return seq ? Number(seq[0]) : null;
};

// Goes to a message. Earlier pages are loaded as needed.
async function goToMessage(seq) {
  const visited = current;
  const { room } = visited;
  const isLoaded = () => room.seen.has(`m${seq}`) || room.deleted.has(seq);
  const isEarlier = () => !isLoaded() && oldestMessage(room) > seq;
  while (visited === current && isEarlier() && (await visited.older()));
  // If earlier messages could not be loaded, that is shown.
  if (visited !== current || (isEarlier() && !room.complete)) return;
  talkView.redraw();
  const entry = room.deleted.has(seq) ? room.seen.get(`x${seq}`) : room.seen.get(`m${seq}`);
  if (!entry || !talkView.go(itemKeyOf(entry))) notice.show(t('rooms.no_message', { number: String(seq) }));
}

async function readRooms() {
  const answer = await api.listRooms();
  const now = current?.room.id;
  const shown = allRooms.find(room => room.id === now);
  allRooms = answer.rooms ?? [];
  const exists = id => allRooms.some(room => room.id === id);
  // What is typed for a room must not end up in another one.
  if (current && !exists(now) && leaving !== now) return showDeleted(shown);
  if (current?.room.isDeleted) return open(now, true);
  if (!exists(now)) {
    leaving = null;
    const next = [wantedRoom(), loadForAll('room'), allRooms.find(room => !platformName(room.id))?.id, allRooms[0]?.id].find(id => id && exists(id));
    if (!current && wantedRoom() && !exists(wantedRoom())) notice.show(t('rooms.unknown', { room: wantedRoom() }));
    if (next) open(next);
    else {
      current?.close();
      current = null;
      talkView.reset();
      unsent = null;
      Object.assign(view, { room: { ...newRoom(''), greeted: true }, loaded: true });
      byId('message').disabled = true;
      change(['talk', 'companions']);
      connection.show('no_room', null);
      list.set(allRooms, null);
      showTitle();
      showPlatform('');
      showSide(true);
      list.startNew();
      return;
    }
  }
  const currentRoom = allRooms.find(room => room.id === current?.room.id);
  if (currentRoom && current) current.room.paused = Boolean(currentRoom.paused);
  // Companions may have got other names.
  for (const { companions = [] } of allRooms) for (const companion of companions) if (!companion.external) configured.set(companion.id, { ...companion, ...configured.get(companion.id), name: companion.name });
  const isPictured = learnPictures(allRooms.flatMap(room => room.companions ?? []));
  if (current && (rename(current.room, [...configured.values(), ...(currentRoom?.companions ?? [])]) || isPictured)) change(['companions']);
  list.set(allRooms, current?.room.id ?? null);
  showTitle();
  missed.read(allRooms, current?.room.id);
}

// The room shown was deleted elsewhere. It stays on the screen, with what was typed for it, until another one is opened.
function showDeleted(shown) {
  const { room } = current;
  list.set(allRooms, null);
  if (room.isDeleted) return;
  current.close();
  room.isDeleted = true;
  connection.show('room_deleted', null);
  showTitle();
  composer.draw();
  notice.show(t('rooms.deleted', { room: shown ? titleOf(shown) : room.id }), 'problem');
  // What was deleted is not shown any more. While somebody may bring it back, that is looked for.
  room.entries = [];
  room.drafts.clear();
  for (let looks = 1; looks <= LOOKS_FOR_UNDO; looks += 1) setTimeout(() => room.isDeleted && readRooms().catch(() => {}), looks * LOOKS_EVERY_MS);
  change(['talk', 'companions']);
}

let sideClosed = null;
function showSide(shown) {
  if (shown === document.body.classList.contains('side-open')) return false;
  if (shown) sideClosed = openedHere(() => showSide(false));
  else sideClosed();
  document.body.classList.toggle('side-open', shown);
  byId('room-title').setAttribute('aria-expanded', String(shown));
  return true;
}
byId('room-title').addEventListener('click', () => showSide(!document.body.classList.contains('side-open')));
pressedBeside([byId('side'), byId('room-title')], () => showSide(false));
const wide = matchMedia('(min-width: 72.01em)');
const updateToggle = () => {
  byId('room-title').disabled = wide.matches;
};
wide.addEventListener('change', updateToggle);
updateToggle();
const showHelp = () => api.loaded(import('./shortcuts.js')).then(({ showKeys }) => showKeys(view.room.guard.reopenAfter)).catch(showProblem);
byId('help').addEventListener('click', showHelp);
byId('skip').addEventListener('click', event => {
  event.preventDefault();
  composer.focus();
});
byId('legend').append(...legend());
addEventListener('hashchange', async () => {
  const id = wantedRoom();
  const exists = () => allRooms.some(room => room.id === id);
  // Another window may have created the room.
  if (id && !exists()) await readRooms().catch(() => {});
  if (id && exists() && id === current?.room.id && !current.room.isDeleted) {
    if (wantedMessage() !== null && view.loaded) goToMessage(wantedMessage());
  } else if (id && exists()) open(id);
  else if (id) notice.show(t('rooms.unknown', { room: id }));
});

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden' || !current) return;
  missed.look(current.room.id, allRooms.find(room => room.id === current.room.id)?.last_at);
  readRooms().catch(() => {});
});

const isField = node => node instanceof HTMLElement && (node.matches('input, textarea, select') || node.isContentEditable);

document.addEventListener('keydown', event => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape') {
    if (menu.close()) return;
    if (document.body.classList.contains('side-open')) {
      showSide(false);
      byId('room-title').focus();
    } else if (!search.close() && !composer.cancel() && !cards.close()) {
      const closed = story.closeLast();
      if (!closed && !notice.clear()) composer.focus();
    }
    return;
  }
  // In a field they are typed.
  if (isField(event.target)) return;
  if (event.key === '/') {
    event.preventDefault();
    search.open();
  } else if (event.key === '?') {
    event.preventDefault();
    showHelp();
  }
});

// Numbers are updated often while something is running, and once a second for people who prefer reduced motion.
const calm = matchMedia('(prefers-reduced-motion: reduce)');
let lastTimelineDraw = 0;
function tick() {
  const now = serverNow();
  const running = cards.tick(view.room, now);
  talkView.tick(now);
  tickRounds(byId('log'), now);
  connection.draw();
  unavailableNotice.draw(now);
  if (document.visibilityState === 'visible' && now - lastTimelineDraw > 1000) {
    lastTimelineDraw = now;
    timelineView.draw(view.room, now);
  }
  setTimeout(tick, calm.matches || !running ? CALM_TICK_MS / (calm.matches ? 1 : 2) : TICK_MS);
}

async function begin() {
  try {
    await readRooms();
  } catch (problem) {
    connection.show('lost', Date.now() + 3000);
    if (!problem.isTransient) showProblem(problem);
    setTimeout(begin, 3000);
    return;
  }
  setInterval(() => {
    readRooms().catch(() => {});
    voicePanel.refresh();
  }, ROOMS_POLL_MS);
  // Somebody may have been quicker.
  if (document.activeElement === document.body) composer.focus();
}
composer.draw();
const probable = wantedRoom() ?? loadForAll('room');
if (probable) api.expect(probable, PAGE);
keepFocus();
// The first visit needs it least.
if (loadForAll('seen')) startWorker();
begin();
// They may have left the rooms in which they spoke.
async function readCompanions() {
  const { companions = [] } = await api.companions();
  configured.clear();
  for (const companion of companions) configured.set(companion.id, companion);
  learnNames(view.room, companions);
  learnPictures(companions);
  change(['companions']);
}
companionsRead = readCompanions().catch(() => {});
byId('companions').after(el('p', { class: 'make' }, el('button', { class: 'quiet-button', onclick: () => desk.create() }, t('maker.new')), ' ', desk.importButton('quiet-button')));
tick();
