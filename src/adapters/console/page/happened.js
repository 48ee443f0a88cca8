// What companions did with a message, for people: who answered, how many others listened, and who could not answer. It is one short line below the message,
// and nothing where the talk itself says it. The line opens into one sentence for each companion. The rest is behind “Details”.

import { el, name } from './dom.js';
import { isStopped } from './floor.js';
import { nameOf } from './state.js';
import { has, listed, pieces, t } from './texts.js';
import * as words from './words.js';

// Reasons for which a companion was not able to answer. Guests see only that.
const UNABLE = new Set(['budget', 'unpostable', 'unreadable', 'unavailable']);
// With these it did not listen.
const AWAY = new Set(['paused', 'closed']);
const BUSY = new Set(['asked', 'wants_to_speak', 'waiting_its_turn', 'speaking']);
// So many names stand in a line; more companions are a number.
const MOST_NAMES = 2;

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

// Notes in each loaded message what each companion decided about it last (`did`), which one of a person comes before it (`after`), which message
// comes next (`following`), and the decision that it comes of (`wish`); and in each decision for a statement the answer that came of it, or the decision that took its place (`next`).
export function gather(room) {
  const withText = new Map();
  const wishes = new Map(); // by companion: the wish of which nothing came yet
  const failing = new Map(); // by companion: the message about which it could not be asked
  const begun = new Map(); // by companion: the statement that it began again
  let heard = null; // the newest message, or the place of a deleted one
  let person = null;
  let before = null;
  const note = (about, entry) => {
    entry.about = about ?? null;
    room.seen.get(`m${about}`)?.did?.set(entry.companion, entry);
  };
  const aboutOf = ({ round, record }) => {
    const last = record?.messages?.at(-1);
    if (round) return round.message;
    return withText.get(last) ?? (last === undefined || heard?.edited ? heard?.seq : null);
  };
  for (const entry of room.entries) {
    const { kind, companion } = entry;
    if (kind === 'tombstone') heard = entry;
    else if (kind === 'message') {
      const wish = wishes.get(entry.from) ?? null;
      Object.assign(entry, { did: new Map(), following: null, after: person, wish: entry.role === 'companion' ? wish : null });
      if (before) before.following = entry;
      before = heard = entry;
      withText.set(entry.text, entry.seq);
      if (entry.role !== 'companion') person = entry.seq;
      else {
        for (const one of [wish, begun.get(entry.from)]) if (one) one.answer = entry;
        wishes.delete(entry.from);
        begun.delete(entry.from);
      }
    } else if (kind === 'decision') {
      Object.assign(entry, { answer: null, next: null, about: null });
      // A question that failed was asked again.
      const failed = room.seen.get(`m${failing.get(companion)}`);
      if (failed?.did?.get(companion)?.kind === 'error') failed.did.delete(companion);
      failing.delete(companion);
      if (wishes.has(companion)) wishes.get(companion).next = entry;
      wishes.delete(companion);
      if (entry.yes) wishes.set(companion, entry);
      // After a long silence a companion answers nobody.
      if (entry.trigger !== 'silence') note(aboutOf(entry), entry);
    } else if (kind === 'error') {
      note(entry.round?.message ?? failing.get(companion) ?? heard?.seq, entry);
      failing.set(companion, entry.about);
    } else if (kind === 'failed') {
      const { about } = wishes.get(companion) ?? {};
      wishes.delete(companion);
      if (!isStopped(entry) && entry.error !== 'interrupted') note(about, entry);
      else room.seen.get(`m${about}`)?.did?.delete(companion);
    } else if (kind === 'replan' && entry.hasBegun && entry.messages.length) {
      begun.set(companion, Object.assign(entry, { answer: null }));
      note(entry.messages.at(-1), entry);
    }
  }
}

// What came of a wish to speak: the answer, or null. It may have been renewed before it was its turn.
export function answerOf(entry) {
  let last = entry;
  while (last?.next && !last.answer) last = last.next;
  return last?.answer ?? null;
}

// What one companion did with a message: `is` is `answered`, `listened`, `unable`, `away` or `waits`, and `key` is its sentence. Null while it is not known.
function outcome(room, message, entry) {
  const { kind, companion, record } = entry;
  if (kind === 'error' || kind === 'failed') return { is: 'unable', key: 'stayed_out.error', error: words.failure(entry.error, entry.text) };
  if (!entry.yes && kind === 'decision') {
    if (UNABLE.has(entry.reason)) return { is: 'unable', key: 'stayed_out.error', error: words.reason(entry.reason) };
    if (entry.reason === 'loop_guard') return { is: 'waits', key: 'stayed_out.loop_guard' };
    const others = entry.reason === 'other_addressed' ? spokenTo(room, message) : [];
    const key = others.length && !others.includes(companion) ? 'stayed_out.meant' : `stayed_out.${entry.reason}`;
    return { is: AWAY.has(entry.reason) ? 'away' : 'listened', key: has(key) ? key : 'stayed_out.other_addressed', whom: others };
  }
  const answer = answerOf(entry);
  if (!answer) return BUSY.has(room.companions.get(companion)?.doing) ? null : { is: 'listened', key: 'stayed_out.wanted' };
  if (kind === 'replan') return { is: 'answered', key: 'answered.replan', answer };
  if (record.trigger === 'direct_address') return spokenTo(room, message).includes(companion) ? { is: 'answered', key: 'answered.direct_address', answer, whom: [companion] } : { is: 'answered', key: 'answered.spoken_to', answer };
  return { is: 'answered', key: has(`answered.${record.trigger}`) ? `answered.${record.trigger}` : 'answered.turn', answer };
}

// What each companion did with a message, those that answered first.
export function outcomes(room, message) {
  const all = [...(message.did?.values() ?? [])].map(entry => ({ entry, companion: entry.companion, ...outcome(room, message, entry) })).filter(({ is }) => is);
  return all.sort((one, other) => (other.is === 'answered') - (one.is === 'answered'));
}

// The line below a message, or null. Below what a companion said stands only who could not answer, and that they wait.
export function happened(room, message) {
  const { following: next } = message;
  const rows = outcomes(room, message);
  const those = kind => rows.filter(({ is }) => is === kind);
  const unable = those('unable');
  const waits = next ? [] : those('waits');
  const isPaused = rows.length ? rows.length > 1 && rows.every(({ entry }) => entry.reason === 'paused') : message.whilePaused && !next?.whilePaused;
  if (isPaused) return { rows, isPaused };
  if (message.role === 'companion') return unable.length || waits.length ? { rows, unable, waits } : null;
  if (!rows.length || (!next && [...room.companions.values()].some(({ doing }) => BUSY.has(doing)))) return null;
  const answered = those('answered');
  const listened = those('listened').length;
  // Where one companion is alone, its sentence says everything.
  if (room.companions.size < 2 && rows.length === 1) return answered.length && answered[0].answer.after === message.seq ? null : { rows, alone: rows[0] };
  // An answer that follows at once is seen.
  const unseen = answered.filter(({ answer }) => answer.after !== message.seq);
  if (!unseen.length && !listened && !unable.length && answered.length) return null;
  return { rows, unable, waits, answered: unseen, others: answered.length ? listened : 0, isNobody: !answered.length && !unable.length };
}

const authorOf = (view, message) => name(message.role === 'companion' ? nameOf(view.room, message.from) : message.from);
const isMine = (view, message) => message.role === 'user' && message.from === view.me();

function named(view, ids) {
  return listed(ids.map(id => name(nameOf(view.room, id), { class: 'who', 'data-tone': view.tone(id) })));
}

// The sentence about one companion.
export function sentence(view, message, { companion, key, error, whom = [] }) {
  // Guests are told neither errors nor limits.
  if (error && !view.act.open) return pieces('happened.unable', { who: named(view, [companion]), count: 1 });
  return pieces(isMine(view, message) && has(`${key}_you`) ? `${key}_you` : key, { who: named(view, [companion]), whom: named(view, whom), author: authorOf(view, message), error });
}

function unableWords(view, rows) {
  const errors = new Set(rows.map(({ error }) => error));
  const values = { who: named(view, rows.map(({ companion }) => companion)), count: rows.length, why: [...errors][0] };
  return pieces(errors.size === 1 && view.act.open ? 'happened.unable_why' : 'happened.unable', values);
}

// The words of the line, part by part.
function parts(view, message, { rows, answered = [], others = 0, unable = [], waits = [], isNobody, isPaused, alone }) {
  if (isPaused) return [t('happened.paused')];
  if (alone) return [sentence(view, message, alone)];
  const ids = answered.map(({ companion }) => companion);
  return [
    ids.length && pieces(isMine(view, message) ? 'happened.answered_you' : 'happened.answered', { who: ids.length > MOST_NAMES ? ids.length : named(view, ids), author: authorOf(view, message), count: ids.length }),
    unable.length && unableWords(view, unable),
    waits.length && t('happened.waits', { count: waits.length }),
    others && t('happened.others', { count: others }),
    isNobody && !waits.length && t('happened.nobody', { count: rows.length }),
  ].filter(Boolean);
}

export function drawHappened(view, { key, entry: message, line, drawWhy }) {
  const isOpen = view.stories.has(key);
  const shown = parts(view, message, line).map((part, i) => [i ? ' · ' : null, part]);
  if (!line.rows.length) return el('p', { class: 'happened' }, shown);
  const body = `did-${message.seq}`;
  const button = el('button', { class: 'happened-head', 'aria-expanded': String(isOpen), 'aria-controls': isOpen ? body : null, 'data-focus': 'line', onclick: () => view.act.unfold({ key }) }, shown, el('span', { class: 'happened-more', 'aria-hidden': 'true' }, '▸'));
  return el('div', { class: 'happened' }, button, isOpen ? el('ul', { id: body }, line.rows.map(row => el('li', { 'data-tone': view.tone(row.companion) }, sentence(view, message, row), drawWhy(view, row.entry)))) : null);
}
