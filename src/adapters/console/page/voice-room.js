// The voice room: the button Talk, who is in the call and who talks, captions, the companion that speaks, and the controls of one's own microphone.

import * as api from './api.js';
import { byId, el, name, plain, say } from './dom.js';
import { nameOf } from './state.js';
import { MOST_ECHOES, isQuiet, shownCaptions, shownTrouble } from './voice-call.js';
import { askConsent, chooseSound, explainObstacle, explainRecognition, hasConsent } from './voice-dialogs.js';
import { isDescription } from './voice-protocol.js';
import { obstacle, voice } from './voice.js';

const TICK_MS = 1000;
const MOST_WORDS = 500; // that the server takes at once
// How long words said aloud may wait without a word about why.
const SAID_WAITS_MS = 3000;
// After this long nobody has reacted because nobody wanted to.
const SAID_COUNTS_MS = 30_000;
const QUIET_DB = -60; // the left end of the level meter

const isField = node => node instanceof HTMLElement && (node.matches('input:not([type="checkbox"]):not([type="range"]), textarea, select') || node.isContentEditable);
const isControl = node => node instanceof HTMLElement && node.matches('button, summary, a[href], input, select');

const button = (label, attributes) => el('button', { type: 'button', class: 'outlined', ...attributes }, label);

// `room()` is the room shown, `me()` the speaker, `mayWrite()` whether that person may write there, `tone(id)` the accent of a companion, `notice` shows and
// announces, `open(id)` opens a room, and `steady(act)` keeps the conversation in its place while this changes its height. `aloudChanged()` is called when typed
// words can be said aloud, or no longer, and `giveBack(text)` when they were refused.
export function voiceRoom({ room, me, mayWrite, tone, notice, open, steady, aloudChanged, giveBack }) {
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

  // Before the call.
  const outWords = el('span', { class: 'muted voice-about' });
  const talkButton = el('button', { type: 'button', class: 'solid', onclick: () => begin(false) }, 'Talk');
  const listenButton = button('Only listen', { onclick: () => begin(true) });
  const outNode = el('div', { class: 'voice-row' }, talkButton, listenButton, outWords);

  // In the call.
  const status = el('span', { class: 'voice-status' });
  const elsewhere = button('Go there', { onclick: () => open(view.room.id) });
  const muteButton = button('Mute', { onclick: () => mine.mute(!view.muted), title: 'Mute or unmute (M)' });
  const holdButton = button('Hold to talk', { title: 'The microphone is on while you hold this (or Space)' });
  const meter = el('span', { class: 'voice-meter', role: 'img', 'aria-label': 'Level of your microphone' }, el('span'));
  const talkHere = button('Use the microphone', { onclick: () => begin(false, view.room, view.from, joined) });
  const sound = button('Devices and volume', { onclick: () => chooseSound({ voice: mine, companions: [...view.room.companions.values()], tone }) });
  const leaveButton = button('Leave', { class: 'outlined danger', onclick: mine.leave });
  const people = el('ul', { class: 'voice-people', 'aria-label': 'In the voice call' });
  const companionLine = el('p', { class: 'voice-companion', dir: 'auto' });
  const stopButton = button('Stop', { class: 'solid', onclick: () => stop(), title: 'Stop the companion that speaks (Esc)' });
  const captions = el('ol', { class: 'voice-captions', 'aria-label': 'Captions' });
  const notes = el('div', { class: 'voice-notes' });
  const ignoreBox = el('input', { type: 'checkbox', onchange: () => mine.ignore(ignoreBox.checked) });
  const more = el('details', { class: 'voice-more' }, el('summary', null, 'More'), el('label', { class: 'voice-check' }, ignoreBox, ' Do not listen to me. What I say is dropped at once.'), el('p', { class: 'muted' }, 'M mutes. Hold Space to talk while muted. Esc stops the companion that speaks.'));
  const bottom = el('div', { class: 'voice-bottom' }, notes, more);
  const inNode = el(
    'div',
    { class: 'voice-in' },
    el('div', { class: 'voice-row' }, status, elsewhere, people, el('div', { class: 'voice-row voice-controls' }, meter, muteButton, holdButton, talkHere, sound, leaveButton)),
    el('div', { class: 'voice-row voice-speaker' }, companionLine, stopButton),
    captions,
    bottom,
  );

  // Joins the call of a room in the click, as browsers require, unless there is something to say before.
  function begin(listening, target = room(), from = me(), about = description) {
    if (missing) return explainObstacle(missing);
    if (!target?.id || !about || !mayWrite()) return;
    const companions = [...target.companions.values()];
    const join = onlyListen => {
      joined = about;
      // Where speech is recognised, people talk, and typed words are written.
      if (!mine.isIn()) aloud = knowsNoWords();
      mine.join({ room: target, from, listening: onlyListen });
    };
    if (listening || hasConsent(about)) return join(listening);
    const ask = models => askConsent({ description: about, companions: companions.map(companion => companion.name), models, join });
    api.readiness().then(({ models }) => ask(models), () => ask(null));
  }

  function stop() {
    const companion = view.call.reply?.companion;
    if (!mine.stop()) return false;
    notice.announce(`${companionName(companion)} stops.`);
    return true;
  }

  const personState = person => (person.ignored ? 'not listened to' : person.listening ? 'listens' : person.muted ? 'muted' : view.call.noisy.has(person.user) ? 'noise' : person.talking ? 'talks' : '');

  function personNode(person) {
    const about = personState(person);
    return el('li', { class: about === 'talks' ? 'talks' : null }, el('span', { class: 'dot', 'aria-hidden': 'true' }), name(person.user), about ? el('span', { class: 'aside' }, ` ${about}`) : null);
  }

  const KINDS = { noise: 'not taken as words', echo: 'echo of a companion', backchannel: '' };

  function captionNode(line) {
    const who = line.isCompanion ? companionName(line.who) : line.who;
    const aside = line.cut ? 'cut off' : line.isFinal ? KINDS[line.kind] : '';
    const text = line.cut ? (line.text ? `${line.text} —` : 'Nothing was heard.') : line.text;
    const classes = [line.isFinal ? '' : 'open', ['noise', 'echo'].includes(line.kind) ? 'greyed' : ''].join(' ').trim();
    return el('li', { class: classes || null, 'data-tone': line.isCompanion ? tone(line.who) : null }, name(who, { class: 'who' }), ' ', el('span', { dir: 'auto' }, plain(text)), aside ? el('span', { class: 'aside' }, ` ${aside}`) : null);
  }

  function companionWords() {
    const { reply, thinking } = view.call;
    const who = id => name(companionName(id), { class: 'who' });
    if (reply?.isAudible) return [who(reply.companion), reply.paused ? ' pauses and listens' : isQuiet(reply, Date.now()) ? ' speaks more quietly, because somebody talks' : ' speaks'];
    const waiting = new Set(reply ? [...thinking, reply.companion] : thinking);
    return waiting.size ? [...[...waiting].flatMap((id, at) => [at ? ', ' : null, who(id)]), waiting.size > 1 ? ' are thinking …' : ' is thinking …'] : [];
  }

  function statusWords() {
    const where = room()?.id === view.room.id ? '' : ` in ${view.room.id}`;
    switch (view.phase) {
      case 'opening':
        return view.listening ? 'Opening the loudspeaker …' : 'Waiting for the microphone … Allow it if the browser asks.';
      case 'connecting':
        return 'Connecting …';
      case 'lost': {
        const left = Math.ceil((view.nextAttempt - Date.now()) / 1000);
        const reason = view.reason ? `: ${view.reason}` : '';
        return `Connection lost${reason} · ${left > 0 ? `retrying in ${left} s` : 'retrying'}`;
      }
      default:
        return view.listening ? `You listen${where} as ${plain(view.call.you)}` : mine.isMuted() ? `Muted${where}` : view.held ? `You talk${where} as long as you hold it` : `You are in the call${where} as ${plain(view.call.you)}`;
    }
  }

  const ENDINGS = { moved: 'You talk in another window now.', ended: 'The voice call has ended.', refused: 'The server ended the call.', version: 'This page is older than the server. Load it again.', denied: 'You are not in the call.' };

  const EXPLAINED = new Set(['refused', 'denied', 'ended']); // the server or the browser says why

  function outText() {
    if (view.phase === 'over' && view.room?.id === room()?.id) return [ENDINGS[view.ending], EXPLAINED.has(view.ending) ? view.reason : ''].filter(Boolean).join(' ');
    const there = description?.people ?? [];
    return there.length ? ['In the voice call: ', ...there.flatMap((person, at) => [at ? ', ' : null, name(person.user)])] : 'The companions of this room hear you, and answer aloud.';
  }

  const saidWaits = () => saidAt !== null && Date.now() - saidAt > SAID_WAITS_MS && Date.now() - saidAt < SAID_COUNTS_MS && !view.listening && !mine.isMuted() && view.call.heardAt > saidAt;

  const knowsNoWords = () => joined && !joined.recognises_words;

  function noteNodes() {
    const { call } = view;
    const trouble = shownTrouble(call, Date.now());
    return [
      trouble ? el('p', { class: 'voice-trouble' }, `${TROUBLES[trouble.code]} ${plain(trouble.fix)}`) : null,
      call.echoes >= MOST_ECHOES ? el('p', null, 'Your microphone hears the companions. Use headphones, so that they are not interrupted by themselves.') : null,
      view.ignored ? el('p', null, 'You are not listened to, and what you say is dropped. Change it under More.') : knowsNoWords() ? el('p', null, 'Your voice is not turned into words here. Type below what you say. ', button('Why', { class: 'quiet-button', onclick: explainRecognition })) : null,
      saidWaits() ? el('p', null, 'Your microphone hears something all the time, so the companions wait for you to finish. Mute it, and they answer what you said aloud.') : null,
      !view.listening && !view.hasMicrophone && view.phase === 'live' ? el('p', null, 'You have no microphone now. Choose one under “Devices and volume”.') : null,
    ].filter(Boolean);
  }
  const TROUBLES = { recognition_failed: 'Speech recognition does not answer.', recognition_full: 'Too many people talk at once, so your words wait.', recognition_used_up: 'This server has used up its speech recognition for today.', synthesis_failed: 'No voice can be made.', synthesis_used_up: 'This server has used up its voices for today.', say_refused: 'Not said.', call_too_long: 'The voice call has ended.' };

  // Replaces the content of a node if it would look different.
  function fill(node, nodes) {
    const after = [...el('div', null, nodes).childNodes];
    const before = [...node.childNodes];
    if (before.length === after.length && before.every((child, at) => child.isEqualNode(after[at]))) return;
    node.replaceChildren(...after);
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
    root.hidden = !isIn && (!description || described !== shown?.id || shown.isDeleted);
    if (root.hidden) return;
    const mode = isIn ? 'in' : 'out';
    if (drawn !== mode) {
      const hadFocus = root.contains(document.activeElement);
      drawn = mode;
      root.replaceChildren(isIn ? inNode : outNode);
      if (hadFocus) (isIn ? leaveButton : talkButton).focus();
    }
    root.dataset.phase = view.phase;
    if (!isIn) {
      fill(outWords, [outText()].flat());
      outWords.classList.toggle('voice-trouble', view.phase === 'over' && view.room?.id === shown?.id);
      return;
    }
    const { call } = view;
    const isLive = view.phase === 'live';
    say(status, statusWords());
    elsewhere.hidden = shown?.id === view.room.id;
    muteButton.hidden = view.listening || !isLive;
    meter.hidden = muteButton.hidden || mine.isMuted();
    say(muteButton, view.muted ? 'Unmute' : 'Mute');
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
    fill(companionLine, speaker.length ? speaker : ['No companion speaks.']);
    stopButton.hidden = !call.reply;
    if (call.reply) stopButton.setAttribute('aria-label', `Stop ${companionName(call.reply.companion)}`);
    const lines = shownCaptions(call, Date.now());
    captions.hidden = !lines.length;
    const atEnd = captions.scrollTop + captions.clientHeight >= captions.scrollHeight - 8;
    fill(captions, lines.map(captionNode));
    if (atEnd) captions.scrollTop = captions.scrollHeight;
    fill(notes, noteNodes());
    more.hidden = !isLive;
    ignoreBox.checked = view.ignored;
  }

  // What a screen reader announces: the companions' voices and the conversation say the rest.
  function announce(message) {
    const { call } = view;
    if (message.type === 'audible') notice.announce(`${companionName(call.reply?.companion)} speaks.`);
    else if (message.type === 'thinking' && message.on) notice.announce(`${companionName(message.companion)} is thinking.`);
    else if (message.type === 'joined' && message.user !== call.you) notice.announce(`${message.user} is in the voice call.`);
    else if (message.type === 'left') notice.announce(`${message.user} left the voice call.`);
    else if (message.type === 'cut') notice.announce('Cut off.');
    else if (message.type === 'error') notice.announce(`${TROUBLES[message.code]} ${message.fix}`);
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
    if (count > MOST_WORDS) notice.show(`That is ${count} words; at most ${MOST_WORDS} can be said at once. Say it in parts.`, 'problem');
    else if (mine.say(text)) {
      view.call.trouble = null;
      said = text;
      return true;
    } else notice.show('Not said, because the voice call is not connected now. Say it again in a moment.', 'problem');
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
      else if (event.key === ' ' && (!isControl(event.target) || event.target === holdButton) && view.muted) {
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
    offersAloud,
    isAloud: () => aloud,
    setAloud(on) {
      aloud = on;
    },
    say: sayAloud,
  };
}
