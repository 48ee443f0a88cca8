// What a screen reader announces: messages and decisions, not every number.

import { outcomeSentence } from './rounds.js';
import { nameOf } from './state.js';
import * as words from './words.js';

// The sentence for an event that was just folded into the room, or nothing. Messages that were sent from this window are not announced.
export function announcement(room, e, me) {
  const who = () => nameOf(room, e.companion);
  switch (e.event) {
    case 'message':
      return e.role === 'user' && !e.kind && e.from === me ? '' : `${e.role === 'companion' ? nameOf(room, e.from) : e.from}: ${e.text}`;
    case 'decision':
      // Decisions of a round are announced when the round ends.
      if (e.decision !== 'NO' || room.round?.ballots.get(e.companion)?.entry?.seq === e.seq) return '';
      if (e.reason === 'loop_guard') return 'Loop guard: companion streak limit reached. The companions are waiting for a person.';
      return words.wasAsked(e) || room.companions.size < 2 ? `${who()} stays silent: ${e.why || words.reason(e.reason)}` : '';
    case 'round':
      return room.round ? outcomeSentence(room, room.round) : '';
    case 'closing':
      return `${who()} ${words.step(e.to, e.cause)}.`;
    case 'error':
      return `${who()}: ${words.error(e.error, room.companions.get(e.companion)?.isExternal)}`;
    case 'failed':
      return `${who()}’s reply failed.`;
    default:
      return '';
  }
}
