// The voice room: the button Talk, who is in the call and who talks, captions, the companion that speaks, and the controls of one's own microphone.

import { ai } from './ai.js';
import * as api from './api.js';
import { byId, el, fill, name, plain, say } from './dom.js';
import { face, pictureOf } from './pictures.js';
import { nameOf } from './state.js';
import { loadForAll } from './storage.js';
import { inWords, listed, pieces, t } from './texts.js';
import { MOST_ECHOES, isQuiet, shownCaptions, shownTrouble } from './voice-call.js';
import { isDescription } from './voice-protocol.js';
import { agreement, hasVoices, obstacle, voice } from './voice.js';
import { sentence } from './words.js';

const TICK_MS = 1000;
const MOST_WORDS = 500; // that the server takes at once
// How long words said aloud may wait without a word about why.
const SAID_WAITS_MS = 3000;
// After this long nobody has reacted because nobody wanted to.
const SAID_COUNTS_MS = 30_000;
const QUIET_DB = -60; // the left end of the level meter

const isField = node => node instanceof HTMLElement && (node.matches('input:not([type="checkbox"]):not([type="range"]), textarea, select') || node.isContentEditable);
const isControl = node => node instanceof HTMLElement && node.matches('button, summary, a[href], input, select');

// What to do about what does not work in the call.
const advice = ({ why, fix }) => sentence(inWords(why, fix));

const button = (label, attributes) => el('button', { type: 'button', class: 'outlined', ...attributes }, label);

// `room()` is the room shown, `me()` the speaker, `mayWrite()` whether that person may write there, `tone(id)` the accent of a companion, `notice` shows and
// announces, `setUp` is the button that says what voice needs here, `open(id)` opens a room, and `steady(act)` keeps the conversation in its place while this changes its height. `aloudChanged()` is called when typed
// words can be said aloud, or no longer, and `giveBack(text)` when they were refused. `readiness()` says to which model words go, for those who may know it.
export function voiceRoom({ room, me, mayWrite, tone, notice, open, steady, aloudChanged, giveBack, setUp = null, settings = null, readiness = api.readiness }) {
  const root = byId('voice');
  let description = null; // of the room shown
  let described = ''; // its id
  let joined = null; // the description of the room of the call
  let missing = null; // why this browser cannot take part
  let drawn = '';
  let ticking = null;
  let aloud = false; // whether typed words are said aloud
  let offered = false; // whether that was possible, when this was last drawn
  let saidAt = null; // when words were said aloud that no companion has reacted to

  const mine = voice({ changed: message => changed(message), told: notice.announce, warn: text => notice.show(text, 'problem') });
  const { view } = mine;
  obstacle().then(found => {
    missing = found;
  });
  const companionName = id => nameOf(view.room ?? room(), id);

  const dialogs = show => api.loaded(import('./voice-dialogs.js')).then(show).catch(problem => notice.show(problem.message, 'problem'));

  // Before the call.
  const outWords = el('span', { class: 'muted voice-about' });
  const talkButton = el('button', { type: 'button', class: 'solid', onclick: () => begin(false) }, t('call.talk'));
  const listenButton = button(t('call.listen'), { onclick: () => begin(true) });
  const outNode = el('div', { class: 'voice-row' }, talkButton, listenButton, outWords);

  // Without recognition and voices, a call is for who looks for it.
  const works = () => Boolean(description?.recognises_words) && hasVoices(description);
  setUp?.addEventListener('click', () => dialogs(({ explainSetUp }) => explainSetUp({ recognises: description.recognises_words, join: begin, settings })));
  const isQuietly = () => !description?.recognises_words && !hasVoices(description) && !description?.people.length && !(view.phase === 'over' && view.room?.id === room()?.id);

  // In the call.
  const status = el('span', { class: 'voice-status' });
  const elsewhere = button(t('call.go_there'), { onclick: () => open(view.room.id) });
  const muteButton = button(t('call.mute'), { onclick: () => mine.mute(!view.muted), title: t('call.mute_about') });
  const holdButton = button(t('call.hold'), { class: 'outlined voice-hold', title: t('call.hold_about') });
  const meter = el('span', { class: 'voice-meter', role: 'img', 'aria-label': t('call.level') }, el('span'));
  const talkHere = button(t('call.mic_back'), { onclick: () => begin(false, view.room, view.from, joined) });
  const sound = button(t('call.devices'), { class: 'outlined voice-devices', onclick: () => dialogs(({ chooseSound }) => chooseSound({ voice: mine, companions: [...view.room.companions.values()], tone })) });
  const leaveButton = button(t('call.leave'), { class: 'outlined danger', onclick: mine.leave });
  const people = el('ul', { class: 'voice-people', 'aria-label': t('call.in_call') });
  const companionLine = el('p', { class: 'voice-companion', dir: 'auto' });
  const stopButton = button(t('base.stop'), { class: 'solid', onclick: () => stop(), title: t('call.stop_about') });
  const captions = el('ol', { class: 'voice-captions', 'aria-label': t('call.captions') });
  const notes = el('div', { class: 'voice-notes' });
  const ignoreBox = el('input', { type: 'checkbox', onchange: () => mine.ignore(ignoreBox.checked) });
  const more = el('details', { class: 'voice-more' }, el('summary', null, t('call.more')), el('label', { class: 'voice-check' }, ignoreBox, ` ${t('call.ignore')}`), el('p', { class: 'muted' }, t('call.keys')));
  const bottom = el('div', { class: 'voice-bottom' }, notes, more);
  const inNode = el(
    'div',
    { class: 'voice-in', tabindex: '-1' },
    el('div', { class: 'voice-row' }, status, elsewhere, people, el('div', { class: 'voice-row voice-controls' }, meter, muteButton, holdButton, talkHere, sound, leaveButton)),
    el('div', { class: 'voice-row voice-speaker' }, companionLine, stopButton),
    captions,
    bottom,
  );

  // Joins the call of a room in the click, as browsers require, unless there is something to say before.
  function begin(listening, target = room(), from = me(), about = description) {
    if (missing) return dialogs(({ explainObstacle }) => explainObstacle(missing));
    if (!target?.id || !about || !mayWrite()) return;
    const companions = [...target.companions.values()];
    const join = onlyListen => {
      joined = about;
      // Where speech is recognised, people talk, and typed words are written.
      if (!mine.isIn()) aloud = knowsNoWords();
      mine.join({ room: target, from, listening: onlyListen });
    };
    if (listening || loadForAll('voice-consent') === agreement(about)) return join(listening);
    const models = readiness().then(answer => answer.models, () => null);
    dialogs(async ({ askConsent }) => askConsent({ description: about, companions: companions.map(companion => companion.name), models: await models, join }));
  }

  function stop() {
    const companion = view.call.reply?.companion;
    if (!mine.stop()) return false;
    notice.announce(t('call.stops', { who: companionName(companion) }));
    return true;
  }

  const personState = person => (person.ignored ? 'ignored' : person.listening ? 'listens' : person.muted ? 'muted' : view.call.noisy.has(person.user) ? 'noise' : person.talking ? 'talks' : '');

  function personNode(person) {
    const isMe = person.user === view.call.you;
    // What is true of oneself stands before the list.
    const about = isMe ? 'you' : personState(person);
    return el('li', { class: about === 'talks' ? 'talks' : null }, el('span', { class: 'dot', 'aria-hidden': 'true' }), name(person.user), about ? el('span', { class: 'aside' }, ` ${t(`callers.${about}`)}`) : null);
  }

  function captionNode(line) {
    const who = line.isCompanion ? companionName(line.who) : line.who;
    const aside = line.cut ? t('call.cut') : line.isFinal && ['noise', 'echo'].includes(line.kind) ? t(`captions.${line.kind}`) : '';
    // Of sounds without words the server says only how long they were.
    const isWordless = line.kind === 'noise' && /^\(.*\)$/u.test(line.text);
    const text = line.cut ? (line.text ? `${line.text} —` : t('call.nothing_heard')) : isWordless ? '' : line.text;
    const classes = [line.isFinal ? '' : 'open', ['noise', 'echo'].includes(line.kind) ? 'greyed' : ''].join(' ').trim();
    return el('li', { class: classes || null, 'data-tone': line.isCompanion ? tone(line.who) : null }, name(who, { class: 'who' }), ' ', line.isCompanion ? [ai(), ' '] : null, el('span', { dir: 'auto' }, plain(text)), aside ? el('span', { class: 'aside' }, ` ${aside}`) : null);
  }

  function companionWords() {
    const { reply, thinking } = view.call;
    const who = id => el('span', { class: 'with-face', 'data-tone': tone(id) }, face(companionName(id), { path: pictureOf(id) }), ' ', name(companionName(id), { class: 'who' }), ' ', ai());
    if (reply?.isAudible) return pieces(reply.paused ? 'call.pauses' : isQuiet(reply, Date.now()) ? 'call.quieter' : 'call.speaks', { who: who(reply.companion) });
    const waiting = new Set(reply ? [...thinking, reply.companion] : thinking);
    return waiting.size ? pieces('call.thinking', { who: listed([...waiting].map(who)), count: waiting.size }) : [];
  }

  function statusWords() {
    const isHere = room()?.id === view.room.id;
    const values = { you: plain(view.call.you), room: view.room.id };
    switch (view.phase) {
      case 'opening':
        return t(view.listening ? 'call.opening' : 'call.mic_wait');
      case 'connecting':
        return t('call.connecting');
      case 'lost': {
        const left = Math.ceil((view.nextAttempt - Date.now()) / 1000);
        return [left > 0 ? t('call.lost_for', { secs: `${left} s` }) : t('call.lost'), view.reason].filter(Boolean).join(' · ');
      }
      default:
        if (view.listening) return t(isHere ? 'call.you_listen' : 'call.you_listen_there', values);
        if (mine.isMuted()) return t(isHere ? 'call.muted' : 'call.muted_in', values);
        return t(view.held ? 'call.you_hold' : isHere ? 'call.you_in' : 'call.you_in_there', values);
    }
  }

  const EXPLAINED = new Set(['refused', 'denied', 'ended']); // the server or the browser says why

  const overText = () => [t(`endings.${view.ending}`), EXPLAINED.has(view.ending) ? view.reason : ''].filter(Boolean).join(' ');

  function outText() {
    if (view.phase === 'over' && view.room?.id === room()?.id) return overText();
    const there = description?.people ?? [];
    return there.length ? pieces('call.in_call_who', { who: listed(there.map(person => name(person.user))) }) : t(description?.recognises_words ? 'call.invites' : 'call.invites_typed');
  }

  const saidWaits = () => saidAt !== null && Date.now() - saidAt > SAID_WAITS_MS && Date.now() - saidAt < SAID_COUNTS_MS && !view.listening && !mine.isMuted() && view.call.heardAt > saidAt;

  const knowsNoWords = () => joined && !joined.recognises_words;

  function noteNodes() {
    const { call } = view;
    const trouble = shownTrouble(call, Date.now());
    return [
      trouble ? el('p', { class: 'voice-trouble' }, `${t(`troubles.${trouble.code}`)} ${plain(advice(trouble))}`) : null,
      call.echoes >= MOST_ECHOES ? el('p', null, t('call.hears_companions')) : null,
      view.ignored ? el('p', null, t('call.ignored')) : knowsNoWords() && !view.listening ? el('p', null, `${t('call.no_words')} `, button(t('call.why'), { class: 'quiet-button', onclick: () => dialogs(({ explainRecognition }) => explainRecognition()) })) : null,
      saidWaits() ? el('p', null, t('call.hears_all')) : null,
      !view.listening && !view.hasMicrophone && view.phase === 'live' ? el('p', null, t('call.no_mic')) : null,
    ].filter(Boolean);
  }

  // What somebody says who is not listened to is dropped.
  const offersAloud = () => ['live', 'lost'].includes(view.phase) && !view.ignored && room()?.id === view.room.id;

  function draw() {
    steady(drawAll);
    const offers = offersAloud();
    if (offers === offered) return;
    offered = offers;
    aloudChanged();
  }

  function drawAll() {
    const shown = room();
    const isIn = mine.isIn();
    const isKnown = description && described === shown?.id && !shown.isDeleted;
    root.hidden = !isIn && (!isKnown || isQuietly());
    if (setUp) setUp.hidden = isIn || !isKnown || works();
    if (root.hidden) return;
    const mode = isIn ? 'in' : 'out';
    if (drawn !== mode) {
      const hadFocus = root.contains(document.activeElement);
      drawn = mode;
      root.replaceChildren(isIn ? inNode : outNode);
      // Not on Leave, because Space talks.
      if (isIn || hadFocus) (isIn ? inNode : talkButton).focus();
    }
    root.dataset.phase = view.phase;
    if (!isIn) {
      fill(outWords, [outText()].flat());
      talkButton.className = works() ? 'solid' : 'outlined';
      say(talkButton, t(description?.recognises_words ? 'call.talk' : 'call.join'));
      outWords.classList.toggle('voice-trouble', view.phase === 'over' && view.room?.id === shown?.id);
      outWords.classList.toggle('voice-invites', view.phase !== 'over' && !description?.people?.length);
      return;
    }
    const { call } = view;
    const isLive = view.phase === 'live';
    say(status, statusWords());
    elsewhere.hidden = shown?.id === view.room.id;
    muteButton.hidden = view.listening || !isLive;
    meter.hidden = muteButton.hidden || mine.isMuted();
    say(muteButton, t(view.muted ? 'call.unmute' : 'call.mute'));
    muteButton.classList.toggle('muted-now', view.muted);
    muteButton.disabled = !view.hasMicrophone;
    holdButton.hidden = !isLive || !view.muted || !view.hasMicrophone;
    holdButton.classList.toggle('held', view.held);
    talkHere.hidden = !view.listening || !isLive;
    sound.hidden = !isLive;
    fill(people, [...call.people.values()].map(personNode));
    people.hidden = !isLive;
    const speaker = companionWords();
    const speaking = call.reply ?? (call.thinking.size ? { companion: [...call.thinking][0] } : null);
    companionLine.parentElement.hidden = !isLive;
    companionLine.parentElement.dataset.state = !speaker.length ? 'silent' : !call.reply?.isAudible ? 'thinking' : call.reply.paused ? 'paused' : isQuiet(call.reply, Date.now()) ? 'ducked' : 'speaking';
    companionLine.dataset.tone = speaking ? tone(speaking.companion) : '';
    // The line stays, so that what is below it does not move when somebody stops.
    fill(companionLine, speaker.length ? speaker : [t('call.no_companion')]);
    stopButton.hidden = !call.reply;
    if (call.reply) stopButton.setAttribute('aria-label', t('base.stop_who', { who: companionName(call.reply.companion) }));
    const lines = shownCaptions(call, Date.now());
    captions.hidden = !lines.length;
    const atEnd = captions.scrollTop + captions.clientHeight >= captions.scrollHeight - 8;
    fill(captions, lines.map(captionNode));
    if (atEnd) captions.scrollTop = captions.scrollHeight;
    fill(notes, noteNodes());
    // It is about one's own voice.
    more.hidden = !isLive || (view.listening && !view.ignored);
    ignoreBox.checked = view.ignored;
  }

  // What a screen reader announces: the companions' voices and the conversation say the rest.
  function announce(message) {
    const { call } = view;
    if (message.type === 'joined' && message.user !== call.you) notice.announce(t('call.joined', { who: message.user }));
    else if (message.type === 'left') notice.announce(t('call.left', { who: message.user }));
    else if (message.type === 'cut') notice.announce(t('call.cut_said'));
    else if (message.type === 'error') notice.announce(`${t(`troubles.${message.code}`)} ${advice(message)}`);
  }

  let said = ''; // the last words that were said aloud
  let drawing = false;
  function changed(message) {
    if (message) announce(message);
    if (message?.type === 'caption' && message.is_final && message.user === view.call.you && message.text === said) saidAt = Date.now();
    if (message?.type === 'thinking' || message?.type === 'speaking' || !mine.isIn()) saidAt = null;
    // What was refused is there again to be changed.
    if (message?.code === 'say_refused' && room()?.id === view.room.id) giveBack(said);
    if (mine.isIn() && ticking === null) {
      ticking = setInterval(draw, TICK_MS);
      drawLevel();
    } else if (!mine.isIn() && ticking !== null) {
      clearInterval(ticking);
      ticking = null;
      if (view.phase === 'over') notice.announce(overText());
      refresh();
    }
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      draw();
    });
  }

  const bar = meter.firstChild;
  let level = 0;
  function drawLevel() {
    if (!mine.isIn()) return;
    const db = 20 * Math.log10(Math.max(view.level, 1e-6));
    const now = Math.max(0, Math.min(1, 1 - db / QUIET_DB));
    // It rises at once and falls slowly.
    level = Math.max(now, level * 0.9);
    bar.style.setProperty('transform', `scaleX(${level.toFixed(3)})`);
    requestAnimationFrame(drawLevel);
  }

  async function refresh() {
    const shown = room();
    if (!shown?.id || shown.platform) return;
    const answer = await api.voice(shown.id).catch(() => null);
    if (room()?.id !== shown.id) return;
    description = isDescription(answer) ? answer : null;
    described = shown.id;
    draw();
  }

  // Says typed words aloud. Returns whether they were sent.
  function sayAloud(text) {
    const count = text.split(/\s+/).length;
    if (count > MOST_WORDS) notice.show(t('call.too_long', { count, most: MOST_WORDS }), 'problem');
    else if (mine.say(text)) {
      view.call.trouble = null;
      said = text;
      return true;
    } else notice.show(t('call.not_connected'), 'problem');
    return false;
  }
  holdButton.addEventListener('pointerdown', event => {
    holdButton.setPointerCapture(event.pointerId);
    mine.hold(true);
  });
  for (const type of ['pointerup', 'pointercancel', 'lostpointercapture']) holdButton.addEventListener(type, () => mine.hold(false));
  holdButton.addEventListener('contextmenu', event => event.preventDefault());
  // After a click with a pointer, Space must talk instead of clicking again.
  root.addEventListener('click', event => event.detail > 0 && isControl(document.activeElement) && !isField(document.activeElement) && root.contains(document.activeElement) && document.activeElement.blur());

  // Before other keys of the page: who speaks is stopped first.
  document.addEventListener(
    'keydown',
    event => {
      if (!mine.isIn() || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      if (event.key === 'Escape' && stop()) {
        event.preventDefault();
        event.stopPropagation();
      } else if (isField(event.target)) return;
      else if (event.key.toLowerCase() === 'm' && !event.repeat) mine.mute(!view.muted);
      else if (event.key === ' ' && (!isControl(event.target) || event.target === holdButton || !event.target.matches(':focus-visible')) && view.muted) {
        event.preventDefault();
        if (!event.repeat) mine.hold(true);
      }
    },
    true,
  );
  document.addEventListener('keyup', event => event.key === ' ' && mine.hold(false));
  addEventListener('blur', () => mine.hold(false));

  return {
    // Another room is shown.
    shown() {
      description = null;
      draw();
      refresh();
    },
    refresh: () => !mine.isIn() && refresh(),
    // A message is in the conversation of a room.
    posted: (id, message) => mine.isIn() && view.room.id === id && mine.posted(message),
    draw,
    isIn: mine.isIn,
    offersAloud,
    isAloud: () => aloud,
    listens: () => view.listening,
    setAloud(on) {
      aloud = on;
    },
    say: sayAloud,
  };
}
