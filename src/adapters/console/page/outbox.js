// Messages on their way: grey until accepted, kept across reloads, sent again with the same id so that none is said twice.

import * as api from './api.js';
import { keep, recall } from './keep.js';

const AGAIN_MS = 4000;

const key = room => `outbox.${room.id}`;

// `change()` is called when a pending message changed.
export function outbox(room, change) {
  room.pending = recall(key(room), []).map(message => ({ ...message, state: message.state === 'sending' ? 'waiting' : message.state }));

  let kept = room.pending.length;

  function save() {
    kept = room.pending.length;
    keep(key(room), room.pending.filter(message => !message.seq));
  }

  function changed() {
    save();
    change();
  }

  let timer = null;

  async function send(message) {
    Object.assign(message, { state: 'sending', problem: null });
    changed();
    const body = { from: message.from, text: message.text, id: message.id };
    if (message.replyTo) body.reply_to = message.replyTo;
    try {
      const { seq } = await api.postMessage(room.id, body);
      // Its event may have come first, and removed it.
      Object.assign(message, { state: 'accepted', seq });
      if (room.seen.has(`m${seq}`)) room.pending = room.pending.filter(other => other !== message);
    } catch (problem) {
      Object.assign(message, { state: problem.status === 0 ? 'waiting' : 'refused', problem: problem.message });
      // The live connection may stand while one request was lost.
      if (message.state === 'waiting') timer ??= setTimeout(flush, AGAIN_MS);
    }
    changed();
  }

  // What waits for the connection goes out in the order in which it was written.
  async function flush() {
    clearTimeout(timer);
    timer = null;
    for (const message of room.pending.filter(other => other.state === 'waiting')) {
      await send(message);
      if (message.state === 'waiting') return;
    }
  }

  return {
    say(from, text, replyTo = null) {
      const message = { id: api.newId(), from, text, replyTo, at: new Date().toISOString(), state: 'sending', problem: null, seq: null };
      room.pending.push(message);
      return send(message);
    },
    again: id => {
      const message = room.pending.find(other => other.id === id);
      return message && send(message);
    },
    discard(id) {
      room.pending = room.pending.filter(other => other.id !== id);
      changed();
    },
    flush,
    // After events: what was accepted need not be kept any longer.
    settle: () => room.pending.length !== kept && save(),
  };
}
