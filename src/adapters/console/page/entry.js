// Draws one item of the talk: a day, a message, a quiet line for what was decided, a draft.

import { el, glyph, name } from './dom.js';
import { saidAt } from './elsewhere.js';
import { drawRound, isLive } from './rounds.js';
import { nameOf } from './state.js';
import { tell, tellFates } from './story.js';
import { initial } from './tones.js';
import * as words from './words.js';

const FOLLOWS_WITHIN_MS = 5 * 60_000;

// Whether nothing was said or decided yet.
// What was settled without asking anybody is one line for all of whom it is true, and of what goes on settling only the first.
const ALIKE = new Set(['decision', 'stage', 'note']);
const GOES_ON = new Set(['closed', 'paused']);
const alike = entry => (entry.kind === 'note' ? (entry.companion && entry.what !== 'tempered' ? entry.what : null) : entry.kind === 'stage' ? `${entry.to}|${entry.cause}` : words.wasAsked(entry.record) ? null : `${entry.reason}|${words.occasion(entry.record)}`);

export const isEmpty = room => room.entries.every(entry => entry.kind === 'note') && !room.asked.size && !room.drafts.size && !room.pending.length;

// The items to show, in order: entries with the days between them, then what is under way, then what was not accepted yet.
export function itemsOf(room, now) {
  const items = [];
  let day = null;
  let previous = null;
  const settling = new Map();
  // Gives whether an entry was told by now.
  const isTold = entry => {
    if (entry.kind !== 'decision') return false;
    const before = settling.get(entry.companion);
    const again = GOES_ON.has(entry.reason) && before?.reason === entry.reason;
    entry.toldBy = again ? before : null;
    if (!again) settling.set(entry.companion, entry);
    return again;
  };
  const join = entry => {
    const sign = ALIKE.has(entry.kind) ? alike(entry) : null;
    const last = items.at(-1);
    if (sign === null || last?.sign !== sign || last.what !== entry.kind) return sign;
    const all = [...(last.all ?? [last.entry]), entry];
    const key = `g${all[0].key}`;
    for (const one of all) one.shownIn = key;
    items[items.length - 1] = { ...last, key, all, mark: `${all.length}` };
    return true;
  };
  const add = (entry, what = entry.kind) => {
    // What answered a round is shown with it.
    if (entry.round || isTold(entry)) return;
    // Kept with the entry: ten thousand of them are walked through for each change.
    entry.day ??= words.dayOf(entry.at);
    const ofDay = entry.day || day;
    if (ofDay !== day) {
      day = ofDay;
      previous = null;
      items.push({ key: `day${day}`, what: 'day', at: entry.at, entry: null, mark: words.day(entry.at, now) });
    }
    entry.time ??= Date.parse(entry.at);
    const sign = join(entry);
    if (sign === true) return;
    if (what === 'round') {
      const live = isLive(room, entry, now);
      if (!entry.item || entry.item.isLive !== live || entry.item.version !== entry.version) entry.item = { key: entry.key, what, entry, isLive: live, version: entry.version, mark: live ? 'live' : `${entry.version}` };
      items.push(entry.item);
      previous = null;
      return;
    }
    const follows = previous !== null && what === 'message' && previous.from === entry.from && previous.role === entry.role && !entry.replyTo && entry.time - previous.time < FOLLOWS_WITHIN_MS;
    // An item is made again only when it changed.
    if (!entry.item || entry.item.follows !== follows || entry.item.version !== entry.version) {
      // Told as a line of many, even when it is one.
      entry.shownIn = entry.reason === 'loop_guard' ? `g${entry.key}` : null;
      entry.item = { key: entry.shownIn ?? entry.key, what, entry, follows, sign, version: entry.version, mark: `${entry.version}${follows}` };
    }
    items.push(entry.item);
    previous = what === 'message' ? entry : null;
  };
  for (const entry of room.entries) add(entry);
  for (const [companion, question] of room.asked) {
    // Whom an open round asks is shown there.
    if (room.round?.phase === 'open' && room.round.ballots.get(companion)?.asked) continue;
    items.push({ key: `asked:${companion}`, what: 'asked', companion, entry: question, mark: question.trigger });
  }
  for (const [companion, draft] of room.drafts) {
    items.push({ key: `draft:${companion}`, what: 'draft', companion, entry: draft, mark: 'draft' });
  }
  for (const message of room.pending) {
    items.push({ key: `p${message.id}`, what: 'pending', entry: message, mark: `${message.state}${message.problem ?? ''}` });
  }
  return items;
}

// Found words are marked without ever reading the text as HTML.
function withMarks(text, wanted) {
  if (!wanted) return [text];
  const parts = [];
  const low = text.toLowerCase();
  let from = 0;
  // Lower-casing may change the length of a text; then no place in it is certain.
  if (low.length !== text.length) return [text];
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), el('mark', null, text.slice(at, at + wanted.length)));
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  return parts;
}

const clockTime = at => el('time', { datetime: at, title: words.moment(at) }, words.time(at));

function speech(view, { from, role, at, text, follows, tone, extra, className }) {
  const isOurs = role === 'companion';
  return el(
    'article',
    { class: `said ${role} ${className ?? ''} ${follows ? 'follows' : ''}`, 'data-tone': isOurs ? tone : null },
    el('span', { class: 'face', 'aria-hidden': 'true' }, follows ? null : initial(from)),
    follows ? el('span', { class: 'at-side' }, clockTime(at)) : el('header', null, name(from, { class: 'who' }), role === 'bot' ? el('span', { class: 'tag' }, 'bot') : null, isOurs ? el('span', { class: 'tag' }, 'companion') : null, clockTime(at)),
    el('p', { class: 'words', dir: 'auto' }, withMarks(text, view.wanted)),
    extra,
  );
}

function message(view, { entry, follows }) {
  const { room } = view;
  const isOurs = entry.role === 'companion';
  const answered = entry.replyTo && room.entries.find(other => other.key === `m${entry.replyTo}`);
  const story = view.stories.get(entry.key);
  const body = `story-${entry.seq}-message`;
  const node = speech(view, {
    ...entry,
    follows,
    from: isOurs ? nameOf(room, entry.from) : entry.from,
    tone: view.tone(entry.from),
    extra: [
      entry.edited ? el('span', { class: 'aside' }, 'edited') : null,
      entry.modality === 'voice' ? el('span', { class: 'aside' }, 'spoken') : null,
      el(
        'span',
        { class: 'tools' },
        el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'fates', title: 'What became of it', 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, onclick: () => view.act.open(entry) }, story ? 'close' : 'why?'),
        room.elsewhere ? null : el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'reply', title: 'Reply', onclick: () => view.act.reply(entry) }, 'reply'),
        entry.role === 'user' && !room.elsewhere ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'edit', title: 'Edit', onclick: () => view.act.edit(entry) }, 'edit') : null,
        entry.role === 'user' && !room.elsewhere ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'delete', title: 'Delete', onclick: event => view.act.remove(entry, event.currentTarget) }, 'delete') : null,
      ),
      story ? el('div', { id: body }, tellFates(story, view.tone)) : null,
    ],
  });
  if (entry.replyTo) {
    const quote = answered ? [name(answered.role === 'companion' ? nameOf(room, answered.from) : answered.from), `: ${answered.text.slice(0, 120)}`] : ['an earlier message'];
    node.querySelector('.words').before(el('p', { class: 'answers', dir: 'auto' }, '↪ ', quote));
  }
  return node;
}

// A quiet line that opens into its story.
function line(view, entry, sign, sentence) {
  const story = view.stories.get(entry.key);
  const body = `story-${entry.seq}-${entry.kind}-${entry.companion}`;
  return el(
    'div',
    { class: `line ${sign}`, 'data-tone': view.tone(entry.companion) },
    el(
      'button',
      { class: 'line-head', 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, 'data-focus': 'line', onclick: () => view.act.open(entry) },
      glyph(sign),
      el('span', { class: 'line-words' }, sentence),
      el('span', { class: 'line-why', 'aria-hidden': 'true' }, story ? 'close' : 'why?'),
    ),
    story ? el('div', { id: body }, tell(entry, story)) : null,
  );
}

const DOT = ' · ';

const list = nodes => nodes.flatMap((node, i) => [i ? (i === nodes.length - 1 ? ' and ' : ', ') : null, node]);
const once = all => all.filter((entry, i) => all.findIndex(other => other.companion === entry.companion) === i);
const names = (view, all) => list(once(all).map(entry => name(entry.name ?? nameOf(view.room, entry.companion), { class: 'who', 'data-tone': view.tone(entry.companion) })));

// Companions that have talked long enough wait for a person: that is said in plain words.
function guarded(view) {
  const { guard } = view.room;
  const times = Math.max(guard.streak, guard.mostInARow);
  return el('strong', null, `The companions have spoken ${words.times(times)} in a row; they wait for a person`);
}

// Several that were not asked, for the same reason.
function unasked(view, item) {
  const { entry, all = [entry] } = item;
  if (entry.reason !== 'loop_guard' && all.length === 1) return null;
  const story = view.stories.get(item.key);
  const body = `several-${entry.seq}`;
  const occasion = words.occasion(entry);
  const sentence = entry.reason === 'loop_guard' ? guarded(view) : [names(view, all), ' not asked: ', el('strong', null, 'no'), DOT, occasion ? [occasion, DOT] : null, words.reason(entry.reason)];
  return el(
    'div',
    { class: `line several ${entry.reason}` },
    el(
      'button',
      { class: 'line-head', 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, 'data-focus': 'line', onclick: () => view.act.unfold(item) },
      glyph(entry.reason === 'loop_guard' ? 'note' : 'no'),
      el('span', { class: 'line-words' }, sentence),
      el('span', { class: 'line-why', 'aria-hidden': 'true' }, story ? 'close' : 'why?'),
    ),
    story ? el('div', { id: body, class: 'each' }, all.map(one => decision(view, { entry: one }, true))) : null,
  );
}

function decision(view, item, isAlone = false) {
  const { entry } = item;
  const several = isAlone || words.wasAsked(entry) ? null : unasked(view, item);
  if (several) return several;
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  const occasion = words.occasion(entry);
  const quote = entry.why ? el('q', { dir: 'auto' }, entry.why) : null;
  const last = quote && entry.reason !== 'unreadable' ? quote : [words.reason(entry.reason), quote ? [': ', quote] : null];
  return line(view, entry, entry.yes ? 'yes' : 'no', [
    who,
    words.wasAsked(entry) ? ' considered: ' : ' not asked: ',
    el('strong', null, entry.yes ? 'yes' : 'no'),
    DOT,
    occasion ? [occasion, DOT] : null,
    // A vote that is shown without its round.
    Number.isFinite(entry.record?.vote?.importance) && entry.yes ? [words.importance(entry.record.vote.importance), ' of 10', { won: ' ★', lost: '' }[entry.record.floor] ?? '', DOT] : null,
    last,
  ]);
}

function failure(view, { entry }) {
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  const again = entry.retryAt ? `${DOT}asks again at ${words.moment(entry.retryAt).split(', ').at(-1)}` : '';
  return line(view, entry, 'error', [who, ' was asked: ', el('strong', null, 'no answer'), DOT, words.error(entry.error, view.room.minds.get(entry.companion)?.isExternal), again]);
}

function failedReply(view, { entry }) {
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  const shown = line(view, entry, 'error', [who, ' wanted to speak: ', el('strong', null, 'the reply failed'), DOT, words.failure(entry.error, entry.text, view.room.minds.get(entry.companion)?.isExternal)]);
  if (entry.text) shown.append(el('p', { class: 'unsaid', dir: 'auto' }, entry.text));
  return shown;
}

const aside = (...content) => el('p', { class: 'remark' }, glyph('note'), el('span', null, content));

const NOTES = {
  joined: 'joined',
  left: 'left',
  paused: 'was paused',
  unpaused: 'goes on',
  cleared: 'what was going on was dropped',
};

function note(view, { entry, all = [entry] }) {
  if (all.length > 1) return aside(names(view, all), ' ', (NOTES[entry.what] ?? '').replace(/^was\b/u, 'were').replace(/^goes\b/u, 'go'));
  const who = entry.companion ? name(entry.name ?? nameOf(view.room, entry.companion), { class: 'who' }) : entry.what === 'cleared' ? null : 'the room';
  const what = entry.what === 'tempered' ? (entry.interjection ? `is ${words.temper(entry.interjection)} now` : 'has its own temper again') : NOTES[entry.what];
  return el('p', { class: 'remark', 'data-tone': entry.companion ? view.tone(entry.companion) : null }, glyph('note'), el('span', null, who, who ? ' ' : '', what));
}

function stage(view, { entry, all = [entry] }) {
  const after = entry.to === 'terminal' ? ` · opens again when called, or after ${words.count(view.room.guard.reopenAfter, 'more message', 'more messages')}` : '';
  return aside(names(view, all), ' ', words.step(entry.to, entry.cause, all.length > 1), after);
}

function circles(view, { entry }) {
  return aside(el('strong', null, 'The last messages say much the same'), ` (${entry.score.toFixed(2)} of 1): ${entry.detections > 2 ? 'the companions are told to stop' : 'the companions are told to change the topic or to end'}`);
}

// What was read of a channel once it could be heard again, and what could not.
function caughtUp(view, { entry }) {
  const read = entry.read ? `${words.count(entry.read, 'message was', 'messages were')} read after a downtime` : 'After a downtime nothing could be read';
  if (!entry.missed) return aside(read);
  const from = saidAt(entry.missed.after, view.room.id);
  const to = saidAt(entry.missed.before, view.room.id);
  // A downtime may have been days ago.
  const moment = at => el('time', { datetime: at }, words.moment(at));
  const between = from && to ? [' between ', moment(from), ' and ', moment(to)] : null;
  return aside(read, '; ', el('strong', null, 'some are missing'), between, `: ${words.missing(entry.missed.why)}`);
}

function asked(view, { companion, entry }) {
  return el(
    'p',
    { class: 'line under-way', 'data-tone': view.tone(companion) },
    el('span', { class: 'pulse', 'aria-hidden': 'true' }),
    el('span', { class: 'line-words' }, name(nameOf(view.room, companion), { class: 'who' }), ' is considering', DOT, words.trigger(entry.trigger), DOT, el('span', { class: 'elapsed', 'data-since': entry.at })),
  );
}

function draft(view, { companion, entry }) {
  const node = speech(view, { from: nameOf(view.room, companion), role: 'companion', at: entry.at, text: entry.text, tone: view.tone(companion), className: 'draft' });
  node.querySelector('time').replaceWith(el('span', { class: 'tag not-said' }, 'writing, not yet said'));
  return node;
}

// A draft grows without being drawn anew, so that reading it is calm.
export function growDraft(node, entry) {
  const body = node.querySelector('.words');
  const shown = body.textContent;
  if (entry.text.startsWith(shown)) body.append(entry.text.slice(shown.length));
  else body.textContent = entry.text;
  body.normalize();
}

function pending(view, { entry }) {
  const tools = {
    sending: null,
    accepted: null,
    waiting: el('span', { class: 'aside' }, 'waits for the connection'),
    refused: el(
      'p',
      { class: 'refusal', role: 'alert' },
      el('span', { dir: 'auto' }, `Not sent: ${entry.problem ?? 'refused.'} `),
      el('button', { class: 'tool shown', 'data-focus': 'again', onclick: () => view.act.again(entry) }, 'send again'),
      el('button', { class: 'tool shown', 'data-focus': 'rewrite', onclick: () => view.act.rewrite(entry) }, 'rewrite'),
      el('button', { class: 'tool shown', 'data-focus': 'discard', onclick: () => view.act.discard(entry) }, 'discard'),
    ),
  }[entry.state];
  return speech(view, { ...entry, role: 'user', className: `pending ${entry.state}`, extra: tools });
}

function day(view, item) {
  return el('h3', { class: 'day' }, item.mark);
}

const DRAW = { day, message, decision, round: drawRound, stage, circles, caught_up: caughtUp, error: failure, failed: failedReply, note, asked, draft, pending };

export function draw(view, item) {
  const node = DRAW[item.what](view, item);
  node.dataset.key = item.key;
  // Arrow keys come here; the tab key passes by.
  if (!node.hasAttribute('tabindex') && item.what !== 'day') node.tabIndex = -1;
  return node;
}

// A first guess at the height of an item that was never shown, in px at the usual size of text.
export function guess(item) {
  if (item.what === 'message' || item.what === 'pending' || item.what === 'draft') {
    return (item.follows ? 30 : 62) + 24 * Math.floor((item.entry.text?.length ?? 0) / 70);
  }
  if (item.isLive) return 64 + 24 * item.entry.ballots.size;
  return item.what === 'day' ? 56 : 30;
}
