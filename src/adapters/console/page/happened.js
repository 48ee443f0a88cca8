// What companions did with what was said last, in one sentence for people: who answered, who stayed out, and why. The rest is behind “Details”.

import { el, name } from './dom.js';
import { messageOf } from './floor.js';
import { nameOf } from './state.js';
import { has, listed, pieces } from './texts.js';
import * as words from './words.js';

// The sentences by what they say, each with its companions, in the order in which they were decided. `all` are the decisions and rounds behind one line,
// `heard` is the message before them, and `next` what follows them. Who wanted to answer and did not is not said to have answered.
export function happened(all, heard, next = null) {
  const last = new Map();
  const found = new Map();
  const add = (companion, key, error = null) => found.set(key + error, { key, error, companions: [...(found.get(key + error)?.companions ?? []), companion] });
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
  for (const companion of begun) add(companion, 'answered.replan');
  // It had decided before this message.
  if (speaker && heard?.role === 'user' && !last.has(speaker) && !begun.has(speaker)) add(speaker, 'answered.already');
  for (const [companion, entry] of last) {
    if (entry.kind === 'error') add(companion, 'stayed_out.error', entry.error);
    else if (!entry.yes) {
      if (entry.reason === 'loop_guard') add(companion, 'meters.reached');
      else if (has(`stayed_out.${entry.reason}`)) add(companion, `stayed_out.${entry.reason}`);
    } else if (spoke.has(companion)) add(companion, has(`answered.${entry.record?.trigger}`) ? `answered.${entry.record.trigger}` : 'answered.turn');
  }
  return [...found.values()].sort((one, other) => other.key.startsWith('answered.') - one.key.startsWith('answered.'));
}

// The companions that were spoken to in `message`, by what they decided.
export function addressed(room, all, heard) {
  const decided = all.flatMap(entry => (entry.kind === 'round' ? [...entry.ballots.values()].map(ballot => ballot.entry) : [entry]));
  const companions = decided.filter(entry => entry?.record?.trigger === 'direct_address').map(({ companion }) => companion);
  const round = all.find(({ kind }) => kind === 'round');
  return { companions: [...new Set(companions)], message: round ? messageOf(room, round.message) : heard };
}

const isNamed = (room, message, id) => message.text.toLowerCase().includes(nameOf(room, id).toLowerCase());

// The message that spoke to these companions: the one before the decision or, if that was to somebody else, the newest one that names or answers them.
function spokenIn(room, message, companions, seq) {
  const speaksTo = said => companions.every(id => said.from !== id && (isNamed(room, said, id) || (said.replyTo && room.seen.get(`m${said.replyTo}`)?.from === id)));
  return message && speaksTo(message) ? message : (room.entries.findLast(entry => entry.kind === 'message' && entry.seq < seq && speaksTo(entry)) ?? null);
}

// Which text says it best: with who spoke to whom, as far as that is known.
function textOf(key, message, spokenTo, me) {
  const you = message?.role === 'user' && message.from === me ? '_you' : '';
  if (key === 'answered.direct_address') return message ? `${key}${you}` : 'answered.spoken_to';
  return key === 'stayed_out.other_addressed' && message && spokenTo.length ? `stayed_out.other${you}` : key;
}

// `heard` is the message before, and `before` who was spoken to before it.
export function drawHappened(view, { entry, all, next, heard, before }) {
  const { room } = view;
  const who = ids => listed(ids.map(id => name(nameOf(room, id), { class: 'who', 'data-tone': view.tone(id) })));
  const now = addressed(room, all, heard);
  // Others stay out also when who was spoken to has answered, unless the answer is for somebody else.
  const isForOthers = [...room.companions.keys()].some(id => id !== heard?.from && heard && isNamed(room, heard, id));
  const isAnswer = !now.companions.length && heard?.role === 'companion' && before?.companions.includes(heard.from) && !isForOthers;
  const about = isAnswer ? before : now;
  const sentences = happened(all, heard, next).map(sentence => {
    const { companions, error } = sentence;
    const message = sentence.key === 'answered.direct_address' ? spokenIn(room, about.message, companions, entry.seq) : about.message;
    const count = sentence.key === 'meters.reached' ? room.guard.maxStreak : companions.length;
    const values = { count, who: who(companions), whom: who(sentence.key.startsWith('answered.') ? companions : about.companions), author: message ? name(message.role === 'companion' ? nameOf(room, message.from) : message.from) : '', error: words.error(error) };
    return [pieces(textOf(sentence.key, message, about.companions, view.me()), values), ' '];
  });
  return el('p', { class: 'happened' }, sentences);
}
