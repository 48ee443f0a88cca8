// Records a voice note while a button is held, as Ogg with Opus. Loaded when somebody records the first one.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, say } from './dom.js';
import { openMicrophone } from './microphone.js';
import { ogg } from './ogg.js';
import { contents } from './pictures.js';
import { loadForAll, storeForAll } from './storage.js';
import { pieces, t } from './texts.js';
import { obstacle } from './voice.js';
import { explainObstacle } from './voice-dialogs.js';
import { LIMITS } from './voice-protocol.js';
import * as words from './words.js';

const LONGEST_MS = 120_000;
// Shorter ones are taken for a click.
const FEWEST_PACKETS = 50; // a second
// A finger that is released so far beside the button is on it.
const BESIDE_PX = 16;

// Says who recognises the words, and what is kept. The next hold records.
function explain({ recognition: { host }, recognises_words: isReal }, agree) {
  const about = !isReal ? t('consent.unrecognised') : host ? pieces('consent.recognised_at', { host: el('strong', null, host) }) : t('consent.recognised_here');
  const box = dialog(t('recording.title'), el('p', null, about), el('p', null, t(isReal ? 'recording.kept' : 'recording.kept_alone')), el('p', null, t('recording.short')), el('p', { class: 'actions' }, el('button', { class: 'solid', type: 'button', onclick: () => (agree(), box.close()) }, t('recording.agree')), el('button', { class: 'outlined', type: 'button', onclick: () => box.close() }, t('base.cancel'))));
}

// Records while `button` is held; by keyboard one press begins, and the next one ends. Released beside the button, or with Esc, or when another room is shown, it is discarded. `takes()` says
// whether this person can write here, `room()` is the room shown, `note(file)` gets each recording, and `showProblem(problem)` shows what went wrong.
// `held` is the newest event of a finger or a mouse on the button while this was loaded: `pointerdown` or `pointerup`, or `click` by keyboard.
export function noter({ button, takes, room, note, showProblem, held }) {
  let open = null;
  let wanted = false;
  let released = Promise.resolve(); // when no finger and no mouse button is down any more
  let release = () => {};
  const seconds = el('span', { 'aria-hidden': 'true' });
  const how = el('span');
  const sign = el('p', { class: 'recording-sign', role: 'status' }, el('span', { 'aria-hidden': 'true' }, '● '), seconds, how);

  let unsay = () => {}; // takes away what was said of the last attempt
  const fail = problem => (unsay = showProblem(problem) ?? (() => {}));

  async function begin(key) {
    if (!takes() || open) return;
    unsay();
    wanted = true;
    const place = room().id;
    const isLeft = () => room()?.id !== place;
    const missing = await obstacle();
    // A dialog that opens below a finger would be closed by its release.
    if (isLeft()) return undefined;
    if (missing) return released.then(() => explainObstacle(missing));
    const description = await api.voice(place);
    if (isLeft()) return undefined;
    const agreed = JSON.stringify([description.recognition.host, description.recognises_words]);
    if (loadForAll('note-consent') !== agreed) return released.then(() => explain(description, () => storeForAll('note-consent', agreed)));
    const context = new AudioContext({ sampleRate: LIMITS.sample_rate });
    const mine = { context, packets: [], microphone: null, timer: null, ticking: null };
    try {
      const on = { onPacket: (_, packet) => mine.packets.push(packet), onLevel: level => button.style.setProperty('--level', level.toFixed(2)), onEnded: () => end(true) };
      mine.microphone = await openMicrophone(context, loadForAll('microphone'), 0, on).catch(() => openMicrophone(context, null, 0, on));
    } catch (problem) {
      context.close();
      throw problem;
    }
    open = mine;
    if (isLeft()) return end(false);
    mine.timer = setTimeout(() => end(true), LONGEST_MS);
    const began = Date.now();
    const tick = () => (seconds.textContent = `${words.number(Math.round((Date.now() - began) / 1000))} s · `);
    mine.ticking = setInterval(tick, 1000);
    tick();
    how.textContent = t(key);
    button.before(sign);
    button.classList.add('recording');
    button.setAttribute('aria-pressed', 'true');
    // It was released meanwhile, for example to allow the microphone.
    if (wanted) return undefined;
    await end(false);
    throw new Error(t('recording.short'));
  }

  // Ends the recording, and sends it.
  async function end(sends) {
    wanted = false;
    if (!open) return;
    const { context, packets, microphone, timer, ticking } = open;
    open = null;
    clearTimeout(timer);
    clearInterval(ticking);
    microphone.close();
    context.close();
    sign.remove();
    button.classList.remove('recording');
    button.setAttribute('aria-pressed', 'false');
    if (!sends) return;
    if (packets.length < FEWEST_PACKETS) return fail(new Error(t('recording.short')));
    const { base64 } = await contents(new Blob(ogg(packets), { type: 'audio/ogg' }));
    note({ name: 'voice-note.ogg', description: '', spoiler: false, base64, url: null });
  }

  let beginning = null;
  const begins = (key = 'recording.release') => (beginning ??= begin(key).catch(fail).finally(() => (beginning = null)));
  function pressed() {
    released = new Promise(done => (release = done));
    begins();
  }
  function isBeside({ clientX, clientY }) {
    const { left, right, top, bottom } = button.getBoundingClientRect();
    return clientX < left - BESIDE_PX || clientX > right + BESIDE_PX || clientY < top - BESIDE_PX || clientY > bottom + BESIDE_PX;
  }
  button.addEventListener('pointerdown', event => {
    if (event.button) return;
    // The keyboard began it, and a press ends it.
    if (open) return end(true).catch(fail);
    button.setPointerCapture(event.pointerId);
    pressed();
  });
  button.addEventListener('pointermove', event => open && say(how, t(isBeside(event) ? 'recording.away' : 'recording.release')));
  button.addEventListener('pointerup', event => {
    release();
    end(!isBeside(event)).catch(fail);
  });
  button.addEventListener('pointercancel', () => {
    release();
    end(false);
  });
  // A long press opens no menu.
  button.addEventListener('contextmenu', event => event.preventDefault());
  button.addEventListener('click', event => event.detail === 0 && (open ? end(true).catch(fail) : begins('recording.press')));
  addEventListener(
    'keydown',
    event => {
      if (event.key !== 'Escape' || !open) return;
      event.preventDefault();
      event.stopPropagation();
      end(false);
    },
    true,
  );
  if (held === 'click') begins('recording.press');
  else if (held) {
    pressed();
    if (held !== 'pointerdown') {
      release();
      wanted = false;
    }
  }
  return {
    // Another room is shown: what is being recorded for this one is discarded.
    leave() {
      if (open) showProblem(new Error(t('recording.left')));
      return end(false);
    },
  };
}
