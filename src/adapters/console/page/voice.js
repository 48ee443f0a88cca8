// What a screen reader is told: what is said and what was decided, not each number.

import { spoken } from './rounds.js';
import { nameOf } from './state.js';
import * as words from './words.js';

// The sentence for an event that was just folded into the room, or nothing. What a person said in this window it need not hear.
export function sentence(room, e, me) {
  const who = () => nameOf(room, e.companion);
  switch (e.event) {
    case 'message':
      return e.role === 'user' && e.from === me ? '' : `${e.role === 'companion' ? nameOf(room, e.from) : e.from}: ${e.text}`;
    case 'decision':
      // A round is told when it ends.
      if (e.decision !== 'NO' || room.round?.ballots.get(e.companion)?.entry?.seq === e.seq) return '';
      if (e.reason === 'loop_guard') return 'The companions have talked long enough; they wait for a person.';
      return words.wasAsked(e) || room.minds.size < 2 ? `${who()} stays silent: ${e.why || words.reason(e.reason)}` : '';
    case 'round':
      return room.round ? spoken(room, room.round) : '';
    case 'closing':
      return `${who()} ${words.step(e.to, e.cause)}.`;
    case 'error':
      return `${who()}: ${words.error(e.error, room.minds.get(e.companion)?.isExternal)}`;
    case 'failed':
      return `The reply of ${who()} failed.`;
    default:
      return '';
  }
}
