// What a screen reader announces: messages with their addressees, answers that fail, and a pause of the room. The reasons for silence are on the page.

import { calls } from './calling.js';
import { isStopped, stopReason } from './floor.js';
import { nameOf } from './state.js';
import { t } from './texts.js';

const authorOf = (room, { role, from }) => (role === 'companion' ? nameOf(room, from) : from);

// The addressee of a message: the person at this window, the one it names, or the author of the message that it answers.
function addressee(room, e, me) {
  const original = e.reply_to && room.seen.get(`m${e.reply_to}`);
  if (calls(e.text, me) || (original?.role === 'user' && original.from === me)) return t('mentioned.you');
  return original ? authorOf(room, original) : null;
}

// The sentence for an event that was just folded into the room, or nothing. Messages that were sent from this window are not announced.
export function announcement(room, e, me) {
  if (e.event === 'failed') {
    const who = nameOf(room, e.companion);
    return isStopped(e) ? t('decisions.stopped_who', { who, why: stopReason(room, e.message) }) : t('decisions.reply_failed_said', { who });
  }
  if (e.event === 'paused' && !e.companion) return t(e.paused ? 'remarks.room_paused' : 'remarks.room_unpaused');
  if (e.event !== 'message' || (e.role === 'user' && !e.kind && e.from === me)) return '';
  // Its companion speaks to the person.
  if (e.kind === 'reminder') return e.text;
  const [who, whom] = [authorOf(room, e), addressee(room, e, me)];
  return whom ? t('mentioned.said_to', { who, whom, text: e.text }) : `${who}: ${e.text}`;
}
