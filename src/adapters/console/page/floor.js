// Who has the floor, what the other companions wait for, and who stopped a reply. Pure, like `state.js`.

import { setDoing } from './companion.js';
import { isUnderWay } from './round-state.js';
import { t } from './texts.js';

// Whether it voted to speak in a round that is still open.
export const isVotingIn = (room, companion) => room.rounds.some(round => round.phase === 'open' && round.ballots.get(companion)?.entry?.yes);

// The companion that has the floor or is about to get it, or null.
export function floorHolder(room) {
  for (const m of room.companions.values()) if (m.doing === 'waiting_its_turn' || (m.doing === 'speaking' && !room.drafts.get(m.id)?.isLate)) return m.id;
  return null;
}

// Whether a companion's vote is held until the floor is free.
export const isHeld = (room, companion) => !isVotingIn(room, companion) && room.rounds.some(round => round.held.has(companion));

// The companion that was selected instead of this one, and has not spoken yet; or null.
export function lostTo(room, companion) {
  const hasLost = round => round.candidates.includes(companion) && companion !== round.speaker;
  for (const round of room.rounds.filter(hasLost)) {
    const speaker = isUnderWay(round) ? round.speaker : round.instead;
    if (speaker && speaker === floorHolder(room)) return speaker;
  }
  return null;
}

// A companion lost a round, or its held vote.
export function stopWanting(room, companion) {
  const m = room.companions.get(companion);
  if (m?.doing === 'wants_to_speak') setDoing(m, 'listening');
}

// Whether a person asked a companion to stop before it spoke. `failed` is the event, or an entry.
export const isStopped = failed => failed.error === 'cancelled' && failed.kind !== 'error';

// A loaded message, unless it was deleted.
export const messageOf = (room, seq) => (room.deleted.has(seq) ? null : (room.seen.get(`m${seq}`) ?? null));

// The name of the person whose message stopped a reply.
const stoppedBy = (room, seq) => messageOf(room, seq)?.from ?? t('messages.somebody');

// Why a reply was stopped: by a message, or by the button.
export const stopReason = (room, seq) => (Number.isFinite(seq) ? t('stopped.by_person', { who: stoppedBy(room, seq) }) : t('stopped.by_button'));
