// Records a voice note while a button is held, as Ogg with Opus. Loaded when somebody records the first one.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el } from './dom.js';
import { openMicrophone } from './microphone.js';
import { ogg } from './ogg.js';
import { contents } from './pictures.js';
import { loadForAll, storeForAll } from './storage.js';
import { pieces, t } from './texts.js';
import { obstacle } from './voice.js';
import { explainObstacle } from './voice-dialogs.js';
import { LIMITS } from './voice-protocol.js';

const LONGEST_MS = 120_000;
// Shorter ones are taken for a click.
const FEWEST_PACKETS = 15;

// Says who recognises the words, and what is kept. The next hold records.
function explain({ recognition: { host }, recognises_words: isReal }, agree) {
  const about = !isReal ? t('consent.unrecognised') : host ? pieces('consent.recognised_at', { host: el('strong', null, host) }) : t('consent.recognised_here');
  const box = dialog(t('compose.record'), el('p', null, about), el('p', null, t('compose.note_kept')), el('p', { class: 'actions' }, el('button', { class: 'solid', type: 'button', autofocus: true, onclick: () => (agree(), box.close()) }, t('compose.note_agree')), el('button', { class: 'outlined', type: 'button', onclick: () => box.close() }, t('base.cancel'))));
}

// Records while `button` is held; by keyboard one press begins, and the next one ends. `takes()` says whether this person can write here, `room()` is the
// room shown, `note(file)` gets each recording, and `showProblem(problem)` shows what went wrong.
export function noter({ button, takes, room, note, showProblem }) {
  let open = null;
  let wanted = false;

  async function begin() {
    if (!takes()) return;
    wanted = true;
    const missing = await obstacle();
    if (missing) return explainObstacle(missing);
    const description = await api.voice(room().id);
    const agreed = JSON.stringify([description.recognition.host, description.recognises_words]);
    if (loadForAll('note-consent') !== agreed) return explain(description, () => storeForAll('note-consent', agreed));
    const context = new AudioContext({ sampleRate: LIMITS.sample_rate });
    const mine = { context, packets: [], microphone: null, timer: null };
    try {
      await Promise.all([context.audioWorklet.addModule('/page/microphone-worklet.js'), context.resume()]);
      const on = { onPacket: (_, packet) => mine.packets.push(packet), onLevel: level => button.style.setProperty('--level', level.toFixed(2)), onEnded: () => end(true) };
      mine.microphone = await openMicrophone(context, loadForAll('microphone'), 0, on).catch(() => openMicrophone(context, null, 0, on));
    } catch (problem) {
      context.close();
      throw problem;
    }
    open = mine;
    mine.timer = setTimeout(() => end(true), LONGEST_MS);
    button.classList.add('recording');
    button.setAttribute('aria-pressed', 'true');
    // It was let go meanwhile.
    if (!wanted) await end(false);
  }

  // Ends the recording, and sends it.
  async function end(sends) {
    wanted = false;
    if (!open) return;
    const { context, packets, microphone, timer } = open;
    open = null;
    clearTimeout(timer);
    microphone.close();
    context.close();
    button.classList.remove('recording');
    button.setAttribute('aria-pressed', 'false');
    if (!sends) return;
    if (packets.length < FEWEST_PACKETS) return showProblem(new Error(t('compose.note_short')));
    const { base64 } = await contents(new Blob(ogg(packets), { type: 'audio/ogg' }));
    note({ name: 'voice-note.ogg', description: '', spoiler: false, base64, url: null });
  }

  const begins = () => begin().catch(showProblem);
  button.addEventListener('pointerdown', event => {
    button.setPointerCapture(event.pointerId);
    begins();
  });
  button.addEventListener('pointerup', () => end(true).catch(showProblem));
  button.addEventListener('pointercancel', () => end(false));
  button.addEventListener('click', event => event.detail === 0 && (open ? end(true).catch(showProblem) : begins()));
  // A touch that loaded this is held already.
  if (button.matches(':active')) begins();
}
