// What a screen reader announces: messages and decisions, not every number.

import { isStopped, stopReason } from './floor.js';
import { outcomeSentence } from './rounds.js';
import { nameOf } from './state.js';
import { t } from './texts.js';
import * as words from './words.js';

// What companions decide, and how.
const OF_DECISIONS = new Set(['decision', 'round', 'held_selected', 'replanned', 'extended', 'closing', 'error']);

const outcomeOf = (room, round) => (round ? outcomeSentence(room, round) : '');

// The sentence for an event that was just folded into the room, or nothing. Messages that were sent from this window are not announced, and decisions
// only if `tellsDecisions`.
export function announcement(room, e, me, tellsDecisions = true) {
  if (!tellsDecisions && OF_DECISIONS.has(e.event)) return '';
  const who = () => nameOf(room, e.companion);
  switch (e.event) {
    case 'message':
      return e.role === 'user' && !e.kind && e.from === me ? '' : `${e.role === 'companion' ? nameOf(room, e.from) : e.from}: ${e.text}`;
    case 'decision':
      // Decisions of a round are announced when the round ends, and stopped replies by themselves.
      if (e.decision !== 'NO' || e.reason === 'cancelled' || e.reason === 'backchannel' || room.rounds.some(round => round.ballots.get(e.companion)?.entry?.seq === e.seq)) return '';
      if (e.reason === 'loop_guard') return t('meters.reached', { count: Math.max(room.guard.streak, room.guard.maxStreak) });
      return words.wasAsked(e) || room.companions.size < 2 ? t('decisions.silent', { who: who(), why: e.why || words.reason(e.reason) }) : '';
    case 'round':
      return outcomeOf(room, room.rounds.findLast(round => round.message === e.message_id));
    case 'held_selected':
      return outcomeOf(room, room.rounds.findLast(round => round.selected === e.selected));
    case 'replanned':
    case 'extended':
      return t('remarks.again', { who: who() });
    case 'floor_expired':
      return t('remarks.floor_expired', { who: who() });
    case 'closing':
      return t(words.step(e.to, e.cause), { who: who(), count: 1 }) + words.cause(e.cause);
    case 'error':
      return `${who()}: ${words.error(e.error)}`;
    case 'failed':
      return isStopped(e) ? t('decisions.stopped_who', { who: who(), why: stopReason(room, e.message) }) : t('decisions.reply_failed_said', { who: who() });
    default:
      return '';
  }
}
