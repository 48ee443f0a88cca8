// What companions did with what was said last, in one sentence for people: who answered, who stayed out, and why. The rest is behind “Details”.

import { el, name } from './dom.js';
import { messageOf } from './floor.js';
import { nameOf } from './state.js';
import { has, listed, pieces } from './texts.js';
import * as words from './words.js';

// The sentences by what they say, each with its companions, in the order in which they were decided. `all` are the decisions and rounds behind one line,
// `next` what follows them. Who wanted to answer and did not is not said to have answered.
export function happened(all, next = null) {
  const last = new Map();
  const spoke = new Set(next?.kind === 'message' && next.role === 'companion' ? [next.from] : []);
  for (const entry of all) {
    if (entry.kind === 'decision') last.set(entry.companion, entry);
    else if (entry.kind === 'error') last.set(entry.companion, entry);
    else if (entry.kind === 'round') {
      for (const [companion, ballot] of entry.ballots) if (ballot.entry) last.set(companion, ballot.entry);
      if (entry.speaker && (entry.outcome === 'posted' || entry.phase === 'speaking')) spoke.add(entry.speaker);
    }
  }
  const found = new Map();
  const add = (companion, key, error = null) => found.set(key + error, { key, error, companions: [...(found.get(key + error)?.companions ?? []), companion] });
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

// Which text says it best: with who spoke to whom, as far as that is known.
function textOf({ key, companions }, room, { companions: spokenTo, message }, me) {
  const isMe = message?.role === 'user' && message.from === me;
  const you = isMe ? '_you' : '';
  if (key === 'answered.direct_address' && message) {
    // What was said before may have been to somebody else: another message may be the cause.
    const answered = message.replyTo && room.seen.get(`m${message.replyTo}`);
    return companions.every(id => answered?.from === id || isNamed(room, message, id)) ? `answered.direct_address${you}` : 'answered.spoken_to';
  }
  if (key === 'stayed_out.other_addressed' && message && spokenTo.length) return `stayed_out.other${you}`;
  return key === 'answered.direct_address' ? 'answered.spoken_to' : key;
}

// `heard` is the message before, and `before` who was spoken to before it.
export function drawHappened(view, { all, next, heard, before }) {
  const { room } = view;
  const who = ids => listed(ids.map(id => name(nameOf(room, id), { class: 'who', 'data-tone': view.tone(id) })));
  const now = addressed(room, all, heard);
  // Others stay out also when who was spoken to has answered, unless the answer is for somebody else.
  const isForOthers = [...room.companions.keys()].some(id => id !== heard?.from && heard && isNamed(room, heard, id));
  const isAnswer = !now.companions.length && heard?.role === 'companion' && before?.companions.includes(heard.from) && !isForOthers;
  const about = isAnswer ? before : now;
  const { message } = about;
  const sentences = happened(all, next).map(sentence => {
    const { companions, error } = sentence;
    const count = sentence.key === 'meters.reached' ? room.guard.maxStreak : companions.length;
    const values = { count, who: who(companions), whom: who(sentence.key.startsWith('answered.') ? companions : about.companions), author: message ? name(message.role === 'companion' ? nameOf(room, message.from) : message.from) : '', error: words.error(error) };
    return [pieces(textOf(sentence, room, about, view.me()), values), ' '];
  });
  return el('p', { class: 'happened' }, sentences);
}
