// What companions did with what was said last, in one sentence for people: who answered, who stayed out, and why. The rest is behind “Details”.

import { el, name } from './dom.js';
import { nameOf } from './state.js';
import { has, listed, pieces } from './texts.js';
import * as words from './words.js';

// Whether a message is by this companion.
const isBy = (message, id) => message.role === 'companion' && message.from === id;

function isNamed(room, message, id) {
  const called = nameOf(room, id).replace(/[.*+?^${}()|[\]\\]/gu, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}])${called}(?![\\p{L}\\p{N}])`, 'iu').test(message.text);
}

// The companions to whom a message speaks: those that it names, and the one that it replies to.
function spokenTo(room, message) {
  const original = message.replyTo && room.seen.get(`m${message.replyTo}`);
  return [...room.companions.keys()].filter(id => !isBy(message, id) && (isNamed(room, message, id) || (original && isBy(original, id))));
}

// The message that a decision was about and that `fits`. Null: the page does not know it. `said` are the messages before, also deleted ones.
function aboutOf(room, said, entry, fits) {
  const texts = entry.record?.messages ?? [];
  const { round } = entry;
  const isOf = texts.length || round ? message => texts.includes(message.text) || message.seq === round?.message : message => message === said.at(-1);
  const found = said.findLast(message => message.kind === 'message' && message.seq < entry.seq && isOf(message) && fits(message));
  if (found) return { message: found, isDeleted: room.deleted.has(found.seq) };
  return !texts.length && room.deleted.has(round?.message) ? { message: null, isDeleted: true } : null;
}

// Who answered because somebody spoke to it: to whom that was said, as far as it is known.
function answerTo(room, said, entry) {
  const about = aboutOf(room, said, entry, message => spokenTo(room, message).includes(entry.companion));
  if (about?.isDeleted) return { key: 'answered.deleted' };
  return about ? { key: 'answered.direct_address', message: about.message } : { key: 'answered.spoken_to' };
}

// Who stayed out because somebody else was meant.
function meantForOthers(room, said, entry) {
  const about = aboutOf(room, said, entry, message => spokenTo(room, message).some(id => id !== entry.companion) && !spokenTo(room, message).includes(entry.companion));
  return about && !about.isDeleted ? { key: 'stayed_out.other', message: about.message } : { key: 'stayed_out.other_addressed' };
}

// The sentences by what they say, each with its companions, in the order in which they were decided. `all` are the decisions and rounds behind one line,
// `said` are the messages before them, and `next` what follows them. Who wanted to answer and did not is not said to have answered.
export function happened(room, all, said, next = null) {
  const last = new Map();
  const found = new Map();
  const add = (companion, { key, error = null, message = null }) => {
    const one = `${key} ${error} ${message?.seq}`;
    found.set(one, { key, error, message, companions: [...(found.get(one)?.companions ?? []), companion] });
  };
  const heard = said.length && !room.deleted.has(said.at(-1).seq) ? said.at(-1) : null;
  const speaker = next?.kind === 'message' && next.role === 'companion' ? next.from : null;
  const spoke = new Set([speaker]);
  const begun = new Set(); // who begins again with what was said
  for (const entry of all) {
    if (entry.kind === 'decision') last.set(entry.companion, entry);
    else if (entry.kind === 'error') last.set(entry.companion, entry);
    else if (entry.kind === 'replan' && entry.hasBegun && entry.messages.length) begun.add(entry.companion);
    else if (entry.kind === 'round') {
      for (const [companion, ballot] of entry.ballots) if (ballot.entry) last.set(companion, ballot.entry);
      if (entry.speaker && (entry.outcome === 'posted' || entry.phase === 'speaking')) spoke.add(entry.speaker);
    }
  }
  for (const companion of begun) add(companion, { key: 'answered.replan' });
  // It had decided before this message.
  if (speaker && heard?.role === 'user' && !last.has(speaker) && !begun.has(speaker)) add(speaker, { key: 'answered.already' });
  for (const [companion, entry] of last) {
    if (entry.kind === 'error') add(companion, { key: 'stayed_out.error', error: entry.error });
    else if (!entry.yes) {
      if (entry.reason === 'loop_guard') add(companion, { key: 'meters.reached' });
      else if (entry.reason === 'other_addressed') add(companion, meantForOthers(room, said, entry));
      else if (has(`stayed_out.${entry.reason}`)) add(companion, { key: `stayed_out.${entry.reason}` });
    } else if (spoke.has(companion)) {
      const trigger = entry.record?.trigger;
      add(companion, trigger === 'direct_address' ? answerTo(room, said, entry) : { key: has(`answered.${trigger}`) ? `answered.${trigger}` : 'answered.turn' });
    }
  }
  // Of some messages in a row it is said below the last one.
  const isOnlyPaused = [...found.values()].every(({ key }) => key === 'stayed_out.paused');
  if (isOnlyPaused && heard?.whilePaused && !next?.whilePaused) {
    found.clear();
    found.set('', { key: 'stayed_out.room_paused', error: null, message: null, companions: [] });
  }
  return [...found.values()].sort((one, other) => other.key.startsWith('answered.') - one.key.startsWith('answered.'));
}

function sentence(view, { key, error, message, companions }) {
  const { room } = view;
  const who = ids => listed(ids.map(id => name(nameOf(room, id), { class: 'who', 'data-tone': view.tone(id) })));
  const isMine = message?.role === 'user' && message.from === view.me();
  const values = {
    count: key === 'meters.reached' ? room.guard.maxStreak : companions.length,
    who: who(companions),
    whom: message ? who(key.startsWith('answered.') ? companions : spokenTo(room, message)) : '',
    author: message ? name(message.role === 'companion' ? nameOf(room, message.from) : message.from) : '',
    error: words.error(error),
  };
  return [pieces(isMine ? `${key}_you` : key, values), ' '];
}

export const drawHappened = (view, { sentences }) => el('p', { class: 'happened' }, sentences.map(one => sentence(view, one)));
