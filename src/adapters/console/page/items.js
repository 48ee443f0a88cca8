// Draws the items of the conversation: days, messages, quiet lines for decisions, drafts. `view.act` has what the person of this window may do.

import { ai, notice } from './ai.js';
import { el, glyph, name } from './dom.js';
import { isStopped, messageOf, stopReason } from './floor.js';
import { answerOf, drawHappened, gather, happened, outcomes, sentence } from './happened.js';
import { draw as drawMarkdown } from './markdown.js';
import { face, pictureOf } from './pictures.js';
import { postedAt } from './platforms.js';
import { drawRound, isLive } from './rounds.js';
import { nameOf } from './state.js';
import { drawOutcomes, drawStory, expandable } from './story.js';
import { listed, pieces, t } from './texts.js';
import * as words from './words.js';

const FOLLOWS_WITHIN_MS = 5 * 60_000;
const QUOTED_CHARS = 90;

// Consecutive entries of these kinds that say the same of several companions become one line.
const GROUPED = new Set(['decision', 'stage', 'note', 'tombstone']);
// Notes of one companion.
const UNGROUPED = new Set(['tempered', 'extended', 'stalled']);
// Interruptions after which a companion spoke on.
const SPOKE_ON = new Set(['backchannel', 'few_words', 'noise', 'nothing_said', 'played_out', 'unducked']);
// While one of these reasons lasts, only a companion's first decision with it is shown.
const LASTING = new Set(['closed', 'paused']);
const groupOf = (room, entry) => (entry.kind === 'tombstone' ? `${entry.companion ?? ''}|${room.continued.has(entry.seq)}` : entry.kind === 'note' ? (entry.companion && !UNGROUPED.has(entry.what) ? `${entry.what}${entry.what === 'interrupted' ? entry.companion : ''}` : null) : entry.kind === 'stage' ? `${entry.to}|${entry.cause}` : words.wasAsked(entry.record) ? null : entry.reason === 'loop_guard' ? entry.reason : `${entry.reason}|${words.occasion(entry.record)}`);

// Whether the room has no messages and no decisions yet.
export const isEmpty = room => room.entries.every(entry => entry.kind === 'note') && !room.asked.size && !room.drafts.size && !room.pending.length;

// What is shown with “Details” only. Without it, a line below the message stands for all decisions about it.
const OF_DECISIONS = new Set(['decision', 'round', 'error', 'stage', 'repetition', 'replan']);
const isOfDecisions = (entry, hasTalk) => OF_DECISIONS.has(entry.kind) || (entry.kind === 'failed' && !isStopped(entry)) || (entry.kind === 'note' && (entry.what === 'extended' || SPOKE_ON.has(entry.verdict) || (entry.what === 'joined' && !hasTalk)));

// The line below a message, or null. It is cached in the message. Versions only grow.
function lineOf(room, message) {
  const { did, following: next } = message;
  if (!did.size && !message.whilePaused) return null;
  const decided = [...did.values()];
  const doing = next ? '' : [...room.companions.values()].map(companion => companion.doing).join();
  // A wish to speak may be renewed after other messages, and answered then.
  const cameOf = one => answerOf(one)?.seq ?? (one.yes ? room.companions.get(one.companion)?.doing : '');
  const mark = `${decided.map(one => `${one.key}${one.version}${cameOf(one)}`)} ${next?.seq} ${next?.whilePaused} ${room.companions.size} ${doing} ${message.version}`;
  if (message.ownLine?.mark !== mark) {
    const key = `h${message.key}`;
    const line = happened(room, message);
    for (const one of line ? decided : []) one.line = key;
    message.ownLine = { mark, item: line && { key, what: 'happened', entry: message, line, mark, drawWhy } };
  }
  return message.ownLine.item;
}

// Whether another statement may take the place of a message: it is the newest, by a companion of this server.
const isReplaceable = (room, entry, newest) => entry === newest && entry.isReply && !room.platform && room.companions.get(entry.from)?.isExternal === false;

// The items to show, in order: entries with the days between them, then questions and replies in flight, then messages that are not accepted yet.
// `seenAt` is the time up to which the room was seen before it was opened, and `isMine` tells one's own messages: before the first later one of others stands that new ones begin.
export function itemsOf(room, now, showsDecisions = true, { seenAt = null, isMine = () => false } = {}) {
  const items = [];
  let day = null;
  const days = new Set();
  let previous = null;
  const newest = room.entries.findLast(entry => entry.kind === 'message');
  const lastDecision = new Map();
  let hasTalk = false;
  let isNew = false; // whether new messages have begun
  gather(room);
  // Whether an entry only repeats the companion's decision before it.
  const isRepeated = entry => {
    if (entry.kind !== 'decision') return false;
    const before = lastDecision.get(entry.companion);
    const repeats = LASTING.has(entry.reason) && before?.reason === entry.reason;
    entry.shownAs = repeats ? before : null;
    if (!repeats) lastDecision.set(entry.companion, entry);
    return repeats;
  };
  const join = entry => {
    const group = GROUPED.has(entry.kind) ? groupOf(room, entry) : null;
    const last = items.at(-1);
    if (group === null || last?.group !== group || last.what !== entry.kind) return group;
    const all = [...(last.all ?? [last.entry]), entry];
    const key = `g${all[0].key}`;
    for (const one of all) one.shownIn = key;
    items[items.length - 1] = { ...last, key, all, mark: `${all.length}` };
    return true;
  };
  const add = (entry, what = entry.kind) => {
    // Answers in a round are shown with the round.
    if (entry.round || isRepeated(entry) || (entry.kind === 'message' && room.transcribed.has(entry.seq))) return;
    if (!showsDecisions && isOfDecisions(entry, hasTalk)) return;
    // Cached in the entry, because ten thousand entries may be visited for each change.
    entry.day ??= words.dayOf(entry.at);
    const entryDay = entry.day || day;
    if (entryDay !== day) {
      day = entryDay;
      previous = null;
      items.push({ key: `day${day}${days.has(day) ? entry.key : ''}`, what: 'day', at: entry.at, entry: null, mark: words.day(entry.at, now) });
      days.add(day);
    }
    if (seenAt && !isNew && what === 'message' && entry.at > seenAt && !isMine(entry)) {
      isNew = true;
      previous = null;
      items.push({ key: 'new', what: 'day', at: entry.at, entry: null, mark: t('messages.new_here') });
    }
    entry.time ??= Date.parse(entry.at);
    const group = join(entry);
    if (group === true) return;
    if (what === 'round') {
      const live = isLive(room, entry, now);
      if (!entry.item || entry.item.isLive !== live || entry.item.version !== entry.version) entry.item = { key: entry.key, what, entry, isLive: live, version: entry.version, mark: live ? 'live' : `${entry.version}` };
      items.push(entry.item);
      previous = null;
      return;
    }
    const follows = previous !== null && what === 'message' && previous.from === entry.from && previous.role === entry.role && previous.modality === entry.modality && entry.role !== 'event' && !entry.replyTo && !entry.quoted && entry.time - previous.time < FOLLOWS_WITHIN_MS;
    const canBeReplaced = what === 'message' && isReplaceable(room, entry, newest);
    // A new item is created only when the entry changed.
    if (!entry.item || entry.item.follows !== follows || entry.item.canBeReplaced !== canBeReplaced || entry.item.version !== entry.version) {
      // A loop guard decision is drawn as a group, even if it is the only one.
      entry.shownIn = entry.reason === 'loop_guard' ? `g${entry.key}` : null;
      entry.item = { key: entry.shownIn ?? entry.key, what, entry, follows, canBeReplaced, group, version: entry.version, mark: `${entry.version}${follows}${canBeReplaced}` };
    }
    items.push(entry.item);
    previous = what === 'message' ? entry : null;
    if (what !== 'message') return;
    hasTalk = true;
    const line = showsDecisions ? null : lineOf(room, entry);
    if (!line) return;
    items.push(line);
    previous = null;
  };
  const addPending = message => {
    items.push({ key: `p${message.id}`, what: 'pending', entry: message, mark: `${message.state}${message.problem ?? ''}` });
    previous = null;
  };
  const refused = room.pending.filter(message => message.state === 'refused').sort((one, other) => one.after - other.after);
  for (const entry of room.entries) {
    while (refused[0]?.after < entry.seq) addPending(refused.shift());
    if (entry.kind !== 'message' || !room.hidden.has(entry.seq)) add(entry);
  }
  refused.forEach(addPending);
  for (const [companion, question] of showsDecisions ? room.asked : []) {
    // Companions that an open round asks are shown with the round.
    if (room.rounds.some(round => round.phase === 'open' && round.ballots.get(companion)?.asked)) continue;
    items.push({ key: `asked:${companion}`, what: 'asked', companion, entry: question, mark: question.trigger });
  }
  for (const [companion, draft] of room.drafts) {
    items.push({ key: `draft:${companion}`, what: 'draft', companion, entry: draft, mark: `${draft.ticket}${draft.isLate}${draft.isStopped}${draft.isSpoken}` });
  }
  for (const message of room.pending) if (message.state !== 'refused') addPending(message);
  return items;
}

// Marks the search words, without ever reading the text as HTML.
function withMarks(text, search) {
  if (!search) return [text];
  const parts = [];
  const lower = text.toLowerCase();
  let from = 0;
  // Lower-casing may change the length of a text. Then positions do not match, and nothing is marked.
  if (lower.length !== text.length) return [text];
  for (let at = lower.indexOf(search); at >= 0; at = lower.indexOf(search, from)) {
    parts.push(text.slice(from, at), el('mark', null, text.slice(at, at + search.length)));
    from = at + search.length;
  }
  parts.push(text.slice(from));
  return parts;
}

// The time of a message is a link to it.
function clockTime(at, link) {
  const time = el('time', { datetime: at, title: words.moment(at) }, words.time(at));
  return link ? el('a', { class: 'permalink', href: link, tabindex: '-1', 'aria-label': t('messages.link', { time: words.time(at) }) }, time) : time;
}

function speech(view, { from, role, companion, eventKind, at, text, follows, tone, extra, className, link }) {
  const isCompanion = role === 'companion';
  // The name and the picture of a companion of this server open its profile.
  const open = view.act.profile && isCompanion && !view.room.companions.get(companion)?.isExternal ? () => view.act.profile(companion) : null;
  const who = open ? el('button', { class: 'who', tabindex: '-1', 'data-focus': 'profile', title: t('profile.open_who', { who: from }), onclick: open }, name(from)) : name(from, { class: 'who' });
  const marks = part => withMarks(part, view.search);
  return el(
    'article',
    { class: `chat-message ${role} ${className ?? ''} ${follows ? 'follows' : ''}`, 'data-tone': isCompanion ? tone : null, 'data-ai-generated': isCompanion && 'true', 'aria-label': `${from}, ${isCompanion ? `${t('notice.mark')}, ` : ''}${words.time(at)}` },
    follows ? null : face(from, { path: isCompanion ? pictureOf(companion) : null, onclick: open }),
    follows ? el('span', { class: 'at-side' }, clockTime(at, link)) : el('header', null, who, role === 'bot' ? el('span', { class: 'tag' }, t('messages.bot')) : null, eventKind ? el('span', { class: 'tag' }, eventKind === 'scene' ? t('messages.scene') : t('messages.event', { kind: words.spaced(eventKind) })) : null, isCompanion ? ai() : null, clockTime(at, link)),
    drawMarkdown(el('div', { class: 'words rich', dir: 'auto' }), text, marks),
    extra,
  );
}

function attached(room, entry) {
  const box = el('div', { class: 'attached' });
  import('./attach.js').then(({ drawFiles }) => (drawFiles(box, room, entry), box.dispatchEvent(new Event('drawn', { bubbles: true }))), () => {});
  return box;
}

function called(room, entry, me) {
  const box = el('div', { class: 'attached' });
  import('./calls.js').then(({ drawCalls }) => (drawCalls(box, room, entry, nameOf(room, entry.from), me), box.dispatchEvent(new Event('drawn', { bubbles: true }))), () => {});
  return box;
}

// A voice note: its recording, where this server keeps it, and whether its words are here.
function voiceNote(room, { voiceNote: { secs, state, note } }) {
  const about = { awaited: 'messages.note_awaited', missing: 'messages.note_missing' }[state];
  return [note && !room.platform ? attached(room, { seq: note, files: [{ id: 0, kind: 'voice' }] }) : null, el('span', { class: 'aside' }, t('messages.voice_note', { secs }), about ? DOT + t(about) : '')];
}

// Where somebody at risk finds help, for that person alone. The others are told that somebody was shown it, if the operator wants that.
function helpFor({ help }, me) {
  if (help.person !== me) return help.tell ? el('p', { class: 'aside of-server' }, t('risk.told')) : null;
  return el('div', { class: 'help', role: 'note' }, drawMarkdown(el('div', { class: 'words rich', dir: 'auto' }), help.text || t('risk.help'), part => [part]), el('p', { class: 'aside' }, t('risk.only')));
}

let drawsVersions = null; // once an answer has some

function message(view, { entry, follows, canBeReplaced }) {
  const { room } = view;
  // Its text says whose it is.
  if (entry.eventKind === 'reminder') return line(view, entry, 'note', withMarks(entry.text, view.search));
  const isCompanion = entry.role === 'companion';
  const original = entry.replyTo && room.entries.find(other => other.key === `m${entry.replyTo}`);
  const story = view.stories.get(entry.key);
  const body = `story-${entry.seq}-message`;
  const mayChange = view.mayChange(entry);
  const node = speech(view, {
    ...entry,
    follows,
    from: isCompanion ? nameOf(room, entry.from) : entry.from,
    companion: entry.from,
    tone: view.tone(entry.from),
    link: view.link?.(entry),
    extra: [
      entry.files.length ? attached(room, entry) : null,
      entry.calls.length ? called(room, entry, view.me()) : null,
      entry.edited ? el('span', { class: 'aside' }, t('messages.edited')) : null,
      entry.modality === 'voice' && !follows ? el('span', { class: 'aside' }, t('messages.spoken')) : null,
      entry.voiceNote ? voiceNote(room, entry) : null,
      entry.cut ? cutOff(entry) : null,
      entry.versions && view.act.stand ? el(canBeReplaced ? 'span' : 'div', { class: 'aside versions' }) : null,
      entry.truncated ? el('span', { class: 'aside' }, t('messages.truncated')) : null,
      entry.help ? helpFor(entry, view.me()) : null,
      entry.notice ? el('p', { class: 'aside of-server' }, notice(entry.notice)) : null,
      room.filtered.has(entry.seq) ? el('span', { class: 'aside', title: t('messages.filtered_about') }, t('messages.filtered')) : null,
      el(
        'span',
        { class: 'tools' },
        view.act.open && el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'outcomes', title: t('messages.why_about'), 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, onclick: () => view.act.open(entry) }, t('base.why')),
        room.platform ? null : el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'reply', onclick: () => view.act.reply(entry) }, t('messages.reply')),
        canBeReplaced && view.act.replace ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'replace', title: t('messages.try_again_about'), onclick: event => view.act.replace(entry, event.currentTarget) }, t('messages.answer_again')) : null,
        canBeReplaced && view.act.extend ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'extend', onclick: event => view.act.extend(entry, event.currentTarget) }, t('messages.continue')) : null,
        mayChange ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'edit', onclick: () => view.act.edit(entry) }, t('base.edit')) : null,
        mayChange ? el('button', { class: 'tool', tabindex: '-1', 'data-focus': 'delete', onclick: () => view.act.remove(entry) }, t('base.delete')) : null,
      ),
      story ? el('div', { id: body }, drawOutcomes(entry, story, view.tone, beforehand(view, entry))) : null,
    ],
  });
  const place = node.querySelector('.versions');
  if (place) {
    const fill = ({ versions }) => versions(place, node, entry, canBeReplaced && ((...version) => view.act.stand(entry, ...version)));
    // At once, where it is known, so that an arrow that has the focus gets it again.
    if (drawsVersions) fill(drawsVersions);
    else import('./versions.js').then(module => fill((drawsVersions = module)), () => {});
  }
  if (entry.replyTo || entry.quoted) {
    const beginning = (who, text) => [name(who), `: ${text.slice(0, 120)}`];
    const ofRoom = () => (original ? beginning(original.role === 'companion' ? nameOf(room, original.from) : original.from, words.beginning(original)) : [t(room.deleted.has(entry.replyTo) ? 'messages.quote_deleted' : 'messages.quote_earlier')]);
    const quote = entry.quoted ? beginning(entry.quoted.from, entry.quoted.text) : ofRoom();
    node.querySelector('.words').before(el('p', { class: 'answers', dir: 'auto' }, '↪ ', quote));
  }
  return node;
}

// What companions did with the message that an answer is about.
function beforehand(view, { wish }) {
  const heard = wish && messageOf(view.room, wish.about);
  return heard ? outcomes(view.room, heard).map(row => sentence(view, heard, row)) : [];
}

// A spoken statement of which the rest was not heard.
function cutOff({ cut, text }) {
  const unheard = cut.full.startsWith(text.trimEnd()) ? cut.full.slice(text.trimEnd().length).trim() : '';
  const by = cut.by ? pieces('messages.cut_by', { who: name(cut.by) }) : t('messages.cut');
  return el('span', { class: 'aside', dir: 'auto' }, by, unheard ? `. ${t('messages.unheard', { words: unheard })}` : null);
}

// A quiet line that expands into its story, for those who may read it.
function line(view, entry, symbol, sentence) {
  if (!view.act.open) return el('p', { class: 'remark', 'data-tone': view.tone(entry.companion) }, glyph(symbol), el('span', null, sentence));
  const story = view.stories.get(entry.key);
  const body = `story-${entry.seq}-${entry.kind}-${entry.companion}`;
  const below = id => el('div', { id }, entry.kind === 'message' ? drawOutcomes(entry, story, view.tone, []) : drawStory(entry, story));
  return expandable({ kind: symbol, tone: view.tone(entry.companion), symbol, sentence, story, body, open: () => view.act.open(entry) }, below);
}

// A line never begins with the dot.
const DOT = '\u00a0· ';

const unique = all => all.filter((entry, i) => all.findIndex(other => other.companion === entry.companion) === i);
const names = (view, all) => listed(unique(all).map(entry => name(nameOf(view.room, entry.companion), { class: 'who', 'data-tone': view.tone(entry.companion) })));
const yesOrNo = yes => el('strong', null, t(yes ? 'base.yes' : 'base.no'));

// The sentence for companions that have reached the streak limit.
function streakReached(view) {
  const { guard } = view.room;
  return [el('strong', null, t('meters.reached', { count: Math.max(guard.streak, guard.maxStreak) }))];
}

// A group of companions that were not asked, for the same reason.
function notAsked(view, item) {
  const { entry, all = [entry] } = item;
  if (entry.reason !== 'loop_guard' && all.length === 1) return null;
  const story = view.stories.get(item.key);
  const body = `several-${entry.seq}`;
  const occasion = words.occasion(entry);
  const sentence = entry.reason === 'loop_guard' ? streakReached(view) : [pieces('decisions.not_asked', { who: names(view, all), count: unique(all).length }), DOT, occasion ? [occasion, DOT] : null, words.reason(entry.reason)];
  const symbol = entry.reason === 'loop_guard' ? 'note' : 'no';
  const below = id => el('div', { id, class: 'each' }, all.map(one => decision(view, { entry: one }, true)));
  return expandable({ kind: `several ${entry.reason}`, symbol, sentence, story, body, open: () => view.act.unfold(item) }, below);
}

function decision(view, item, isInGroup = false) {
  const { entry } = item;
  const several = isInGroup || words.wasAsked(entry) ? null : notAsked(view, item);
  if (several) return several;
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  const occasion = words.occasion(entry);
  const quote = entry.why ? el('q', { dir: 'auto' }, entry.why) : null;
  const last = quote && entry.reason !== 'unreadable' ? quote : [words.reason(entry.reason), quote ? [': ', quote] : null];
  return line(view, entry, entry.yes ? 'yes' : 'no', [
    words.wasAsked(entry) ? pieces('decisions.considered', { who, answer: yesOrNo(entry.yes) }) : pieces('decisions.not_asked', { who, count: 1 }),
    DOT,
    occasion ? [occasion, DOT] : null,
    // The importance of a vote that is shown without its round.
    Number.isFinite(entry.record?.vote?.importance) && entry.yes ? [t('decisions.of_ten', { value: words.importance(entry.record.vote.importance) }), { won: ' ★', lost: '' }[entry.record.floor] ?? '', DOT] : null,
    last,
  ]);
}

function failure(view, { entry }) {
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  const again = entry.retryAt ? DOT + t('decisions.asks_again_at', { time: words.second(entry.retryAt) }) : '';
  return line(view, entry, 'error', [pieces('decisions.asked', { who, answer: el('strong', null, t('decisions.no_answer')) }), DOT, words.error(entry.error), again]);
}

function failedReply(view, { entry }) {
  const who = name(nameOf(view.room, entry.companion), { class: 'who' });
  if (isStopped(entry)) return line(view, entry, 'no', pieces('decisions.stopped_who', { who, why: name(stopReason(view.room, entry.stopMessage)) }));
  const shown = line(view, entry, 'error', [pieces('decisions.tried', { who, answer: el('strong', null, t('decisions.reply_failed')) }), DOT, words.failure(entry.error, entry.text)]);
  if (entry.text) shown.append(el('p', { class: 'unposted', dir: 'auto' }, entry.text));
  return shown;
}

// Its story, for those who may read it.
function drawWhy(view, entry) {
  if (!view.act.open) return null;
  const story = view.stories.get(entry.key);
  const body = `why-${entry.seq}-${entry.companion}`;
  const button = el('button', { class: 'tool shown', 'data-focus': `why-${entry.companion}`, 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, 'aria-label': `${t('base.why')} ${nameOf(view.room, entry.companion)}`, onclick: () => view.act.open(entry) }, t('base.why'));
  return [' ', button, story ? el('div', { id: body }, drawStory(entry, story)) : null];
}

const aside = (...content) => el('p', { class: 'remark' }, glyph('note'), el('span', null, content));

function note(view, { entry, all = [entry] }) {
  if (all.length > 1 && entry.what === 'interrupted') return interruptions(view, all);
  if (all.length > 1) return aside(pieces(`remarks.${entry.what}`, { who: names(view, all), count: unique(all).length }));
  const who = entry.companion ? name(nameOf(view.room, entry.companion), { class: 'who' }) : null;
  const key = entry.what === 'interrupted' ? words.verdict(entry.verdict) : entry.what === 'tempered' && !entry.interjection ? 'remarks.tempered_back' : `remarks.${who || entry.what === 'cleared' ? '' : 'room_'}${entry.what}`;
  const what = pieces(key, { who, count: 1, often: words.interjectionLevel(words.levelOf(entry.interjection, entry.quietHours)) });
  return el('p', { class: 'remark', 'data-tone': entry.companion ? view.tone(entry.companion) : null }, glyph('note'), el('span', null, what));
}

// How one companion was interrupted, again and again: the last time, and behind it how often each.
function interruptions(view, all) {
  const { companion, verdict } = all.at(-1);
  const counts = new Map();
  for (const one of all) counts.set(one.verdict, (counts.get(one.verdict) ?? 0) + 1);
  const sentence = of => pieces(words.verdict(of), { who: name(nameOf(view.room, companion), { class: 'who' }) });
  const each = [...counts].map(([of, count]) => el('li', null, count > 1 ? `${count} × ` : null, sentence(of)));
  const node = el('details', { class: 'line', 'data-tone': view.tone(companion), ontoggle: () => node.dispatchEvent(new Event('drawn', { bubbles: true })) }, el('summary', { class: 'line-head', 'data-focus': 'line' }, glyph('note'), el('span', { class: 'line-words' }, sentence(verdict)), el('span', { class: 'happened-more', 'aria-hidden': 'true' }, '▸')), el('ul', null, each));
  return node;
}

function stage(view, { entry, all = [entry] }) {
  const after = entry.to === 'terminal' ? DOT + words.rejoins(view.room.guard.reopenAfter) : '';
  return aside(pieces(words.step(entry.to, entry.cause), { who: names(view, all), count: unique(all).length }), words.cause(entry.cause), after);
}

function repetition(view, { entry }) {
  return aside(el('strong', null, t('remarks.repetition', { score: words.number(entry.score, 2) })), ' ', words.repetitionEffect(entry.detections));
}

function tombstone(view, { entry, all = [entry] }) {
  if (entry.companion) return aside(pieces(view.room.continued.has(entry.seq) ? 'messages.continued' : 'messages.replaced', { who: name(nameOf(view.room, entry.companion), { class: 'who' }), count: all.length }));
  return aside(t('messages.deleted', { count: all.length }));
}

// A statement that is begun again, because people said more or changed what it answers.
function replan(view, { entry }) {
  const { room } = view;
  const said = entry.messages.map(seq => messageOf(room, seq)).filter(Boolean);
  const authors = [...new Set(said.map(one => one.from))].map(from => name(from));
  const key = `remarks.${entry.hasBegun ? 'again' : 'stops'}${said.length ? '_said' : entry.messages.length ? '_changed' : ''}`;
  const values = { who: name(nameOf(room, entry.companion), { class: 'who' }), count: authors.length, authors: listed(authors), words: listed(said.map(one => el('q', { dir: 'auto' }, short(one.text)))) };
  return el('p', { class: 'remark', 'data-tone': view.tone(entry.companion) }, glyph('note'), el('span', null, pieces(key, values)));
}

const short = text => (text.length > QUOTED_CHARS ? `${text.slice(0, QUOTED_CHARS - 1)}…` : text);

// After a downtime: how many messages of the channel were read, and which are missing.
function caughtUp(view, { entry }) {
  const read = t('remarks.read', { count: entry.read });
  if (!entry.missed) return aside(read);
  const from = postedAt(entry.missed.after, view.room.id);
  const to = postedAt(entry.missed.before, view.room.id);
  // With the date, because the downtime may have been days ago.
  const moment = at => el('time', { datetime: at }, words.moment(at));
  const why = words.missing(entry.missed.why);
  // A gap is on record before what was read behind it.
  const [between, some] = entry.read ? ['remarks.missing_between', 'remarks.missing'] : ['remarks.gap_between', 'remarks.gap'];
  return aside(entry.read ? `${read}; ` : null, from && to ? pieces(between, { from: moment(from), to: moment(to), why }) : t(some, { why }));
}

function asked(view, { companion, entry }) {
  return el(
    'p',
    { class: 'line under-way', 'data-tone': view.tone(companion) },
    el('span', { class: 'pulse', 'aria-hidden': 'true' }),
    el('span', { class: 'line-words' }, pieces('decisions.considers', { who: name(nameOf(view.room, companion), { class: 'who' }) }), DOT, words.trigger(entry.trigger), DOT, el('span', { class: 'elapsed', 'data-since': entry.at, 'aria-hidden': 'true' })),
  );
}

function draft(view, { companion, entry }) {
  const node = speech(view, { from: nameOf(view.room, companion), role: 'companion', companion, at: entry.at, text: entry.text, tone: view.tone(companion), className: 'draft' });
  const state = t(`drafts.${entry.isStopped ? 'again' : entry.isLate ? 'late' : entry.isSpoken ? 'spoken' : 'new'}`);
  const stop = view.act.stop && el('button', { class: 'outlined stop-reply', 'data-focus': 'stop', 'aria-label': t('base.stop_who', { who: nameOf(view.room, companion) }), onclick: event => view.act.stop(companion, event.currentTarget) }, t('base.stop'));
  node.querySelector('time').replaceWith(el('span', { class: 'tag not-posted' }, state), entry.isStopped ? '' : (stop ?? ''));
  return node;
}

// A draft is updated in place, so that it can be read while it grows.
export const growDraft = (node, entry) => drawMarkdown(node.querySelector('.words'), entry.text, text => [text]);

function pending(view, { entry }) {
  const tools = {
    sending: null,
    accepted: null,
    waiting: el('span', { class: 'aside' }, t('messages.waiting')),
    refused: el(
      'p',
      { class: 'refusal', role: 'alert' },
      el('span', { dir: 'auto' }, `${t('messages.not_sent', { problem: entry.problem ?? t('problems.refused') })} `),
      el('button', { class: 'tool shown', 'data-focus': 'again', onclick: () => view.act.again(entry) }, t('messages.send_again')),
      el('button', { class: 'tool shown', 'data-focus': 'rewrite', onclick: () => view.act.rewrite(entry) }, t('base.edit')),
      el('button', { class: 'tool shown', 'data-focus': 'discard', onclick: () => view.act.discard(entry) }, t('messages.discard')),
    ),
  }[entry.state];
  return speech(view, { ...entry, role: 'user', className: `pending ${entry.state}`, extra: [entry.files?.length ? attached(view.room, entry) : null, tools] });
}

function day(view, item) {
  return el('h2', { class: 'day' }, item.mark);
}

const DRAW = { day, happened: drawHappened, message, decision, round: drawRound, stage, repetition, replan, caught_up: caughtUp, error: failure, failed: failedReply, note, tombstone, asked, draft, pending };

export function draw(view, item) {
  const node = DRAW[item.what](view, item);
  node.dataset.key = item.key;
  // A screen reader that comes here by an arrow key reads who says it, and the words.
  const said = node.matches('.chat-message') && node.querySelector('.words');
  if (said) {
    said.id = `words-${item.key}`;
    node.setAttribute('aria-describedby', said.id);
  }
  // Arrow keys reach the item; the tab key skips it.
  if (!node.hasAttribute('tabindex') && item.what !== 'day') node.tabIndex = -1;
  return node;
}

// The estimated height of an item that was never shown, in px at the default text size.
export function estimateHeight(item) {
  if (item.what === 'message' || item.what === 'pending' || item.what === 'draft') {
    return (item.follows ? 30 : 62) + (item.entry.files?.length ? 160 : 0) + 24 * Math.floor((item.entry.text?.length ?? 0) / 70);
  }
  if (item.isLive) return 64 + 24 * item.entry.ballots.size;
  return item.what === 'day' ? 56 : 30;
}
