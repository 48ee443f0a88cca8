// Messages that are not accepted yet. They are stored, outlive their window, and are sent again with the same id so that none is posted twice. After a day
// they wait for a click.

import * as api from './api.js';
import { load, loadForAll, store, storeForAll } from './storage.js';
import { inWords, loadLater, t } from './texts.js';
import { upper } from './words.js';

const AGAIN_MS = 4000;
const OLD_MS = 86_400_000;
// Nothing answers, or the server or a proxy says that it cannot store now.
const AWAY = [0, 502, 503, 504];

const key = room => `outbox.${room.id}`;
const stored = room => loadForAll(key(room), []);
const again = message => {
  if (message.state === 'refused') return message;
  if (message.hadFiles) return { ...message, state: 'refused', problem: t('messages.files_lost') };
  return Date.now() - Date.parse(message.at) > OLD_MS ? { ...message, state: 'refused', problem: t('messages.too_old') } : { ...message, state: 'waiting' };
};

// Each window has its messages, and holds a lock while it is open, so that others know which windows were closed. Only secure pages have locks; on others each
// window has its own messages alone.
// A reloaded window finds the id that it left. A duplicated tab finds none, because the one that it was copied from still uses it, and takes one of its own.
const ours = load('window') ?? api.newId();
const isGone = gone => store('window', gone ? ours : null);
isGone(false);
addEventListener('pagehide', () => isGone(true));
addEventListener('pageshow', () => isGone(false));
const lock = of => `outbox.${of}`;
navigator.locks?.request(lock(ours), () => new Promise(() => {}));
const withClosedWindows = adopt =>
  navigator.locks?.request('outbox', async () => {
    const { held } = await navigator.locks.query();
    adopt(message => !held.some(({ name }) => name === lock(message.window)));
  });

// `change()` is called when a pending message changed, `warn(text)` shows a warning of the server, and `nameRefused(problem)` is called when it takes nothing
// under this name.
export function outbox(room, change, warn, nameRefused = () => {}) {
  room.pending = stored(room).filter(({ window }) => window === ours).map(again);

  let savedCount = room.pending.length;

  function save() {
    savedCount = room.pending.length;
    const others = stored(room).filter(({ window, id }) => window !== ours && room.pending.every(message => message.id !== id));
    const own = room.pending.filter(message => !message.seq).map(({ files, ...message }) => ({ ...message, hadFiles: Boolean(files?.length), window: ours }));
    const all = [...others, ...own];
    storeForAll(key(room), all.length ? all : null);
  }

  function changed() {
    save();
    change();
  }

  let timer = null;

  async function post(message) {
    Object.assign(message, { state: 'sending', problem: null, after: null });
    changed();
    const body = { from: message.from, text: message.text, id: message.id };
    if (message.replyTo) body.reply_to = message.replyTo;
    if (message.files?.length) body.files = message.files.map(({ name, description, spoiler, base64 }) => ({ name, description, spoiler, data: base64 }));
    try {
      const { seq, warnings = [], warning_codes: codes = [] } = await api.postMessage(room.id, body);
      if (warnings.length) loadLater().then(() => warnings.forEach((text, i) => warn(upper(inWords(codes[i], text)))));
      // The live event may have arrived first.
      Object.assign(message, { state: 'accepted', seq });
      if (room.seen.has(`m${seq}`)) room.pending = room.pending.filter(other => other !== message);
    } catch (problem) {
      Object.assign(message, { state: AWAY.includes(problem.status) ? 'waiting' : 'refused', problem: problem.message });
      // The conversation goes on after a refused message.
      if (message.state === 'refused') message.after ??= room.last;
      message.nameRefused = problem.field === 'from';
      if (message.nameRefused) nameRefused(problem);
      // The live connection may be up although this request failed, so the message is sent again after a while.
      if (message.state === 'waiting') timer ??= setTimeout(flush, AGAIN_MS);
    }
    changed();
  }

  // Messages that wait for the connection are sent in the order in which they were written.
  async function flush() {
    clearTimeout(timer);
    timer = null;
    for (const message of room.pending.filter(other => other.state === 'waiting')) {
      await post(message);
      if (message.state === 'waiting') return;
    }
  }

  withClosedWindows(isLeft => {
    const left = stored(room).filter(message => message.window !== ours && isLeft(message));
    if (!left.length) return;
    room.pending.unshift(...left.map(again));
    changed();
    flush();
  });

  return {
    send(from, text, replyTo = null, files = []) {
      const message = { id: api.newId(), from, text, replyTo, files, at: new Date().toISOString(), state: 'sending', problem: null, seq: null, after: null };
      room.pending.push(message);
      return post(message);
    },
    // `me` is the speaker now.
    retry: (id, me) => {
      const message = room.pending.find(other => other.id === id);
      if (message?.nameRefused) message.from = me;
      return message && post(message);
    },
    discard(id) {
      room.pending = room.pending.filter(other => other.id !== id);
      changed();
    },
    flush,
    // Called after a message event, because accepted messages need not be stored any longer.
    saveIfChanged: () => room.pending.length !== savedCount && save(),
  };
}
