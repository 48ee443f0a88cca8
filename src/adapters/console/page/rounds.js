// Draws a round: the votes side by side until its statement is posted, then one quiet line that expands into the votes.

import { el, glyph, name, plain, say, svg } from './dom.js';
import { floorHolder } from './floor.js';
import { MOST_IMPORTANCE } from './round-state.js';
import { nameOf } from './state.js';
import { drawStory, expandable } from './story.js';
import { listed, pieces, t } from './texts.js';
import * as words from './words.js';

// How long a round without a speaker is shown before it becomes one line.
export const LINGER_MS = 6000;

const QUOTED_CHARS = 40;

// A line never begins with the dot.
const DOT = '\u00a0· ';
const STAR = '★';

// Whether the round is still shown with its votes side by side. The server does not record every end, so what the companions do decides, too.
export function isLive(room, round, now) {
  const does = (id, doing) => room.companions.get(id)?.doing === doing;
  if (round.phase === 'open') return true;
  if (round.phase === 'held') return [...round.held].some(id => does(id, 'wants_to_speak'));
  if (round.phase === 'waiting') return does(round.speaker, 'waiting_its_turn');
  if (round.phase === 'speaking') return does(round.speaker, 'speaking');
  return round.outcome === null && !round.declined && now - Date.parse(round.closedAt) < LINGER_MS;
}

// The first words of a message, at most as many as fit beside the votes.
function beginning(text) {
  const line = text.trim().split('\n', 1)[0];
  return line.length > QUOTED_CHARS ? `${line.slice(0, QUOTED_CHARS).replace(/\s+\S*$/u, '')}…` : line;
}

// Rounds have no names of their own: each is about one message, which is quoted.
export function label(room, round) {
  const message = room.seen.get(`m${round.message}`);
  if (room.deleted.has(round.message)) return t('rounds.on_deleted');
  if (!message) return t(round.message === null ? 'rounds.round' : 'rounds.on_earlier');
  return t('rounds.on_message', { text: plain(beginning(message.text)), who: plain(message.role === 'companion' ? nameOf(room, message.from) : message.from) });
}
const who = (view, id) => name(nameOf(view.room, id), { class: 'who', 'data-tone': view.tone(id) });

// Companions that were asked come first. Each group is in the order of ids, so that rows never move.
const order = round => [...round.ballots.keys()].sort((one, other) => round.ballots.get(other).asked - round.ballots.get(one).asked || (one < other ? -1 : 1));

// Why the speaker was chosen. Who was asked alone was not chosen among others.
const chosenBecause = round => words.selection(round.reason === 'only' && [...round.ballots.values()].filter(ballot => ballot.asked).length < 2 ? 'only_asked' : round.reason);

const isSpeaker = (round, id) => round.phase !== 'open' && (round.speaker ?? round.selected) === id;

const hasEnded = ({ state }) => state?.closing === 'terminal';

const isQuote = ({ entry, state }) => Boolean(entry?.why) && entry.reason !== 'unreadable' && !hasEnded({ state });

// Whether a companion was writing when a round opened, so that it was not asked.
const wasWriting = (room, round, id) => room.replies.some(reply => reply.companion === id && reply.began <= round.at && (!reply.ended || reply.ended > round.at));

function wordsOf(room, round, id) {
  const ballot = round.ballots.get(id);
  const { entry, state } = ballot;
  const isOver = round.phase === 'over';
  if (ballot.isMissing) return t('rounds.no_vote', { why: words.error(entry?.error ?? 'timeout') });
  if (ballot.isAwaited) return null;
  if (!ballot.asked) return t(hasEnded(ballot) ? 'votes.ended' : wasWriting(room, round, id) ? 'votes.was_writing' : 'votes.asked_not');
  if (hasEnded(ballot)) return t('votes.ends');
  if (isQuote(ballot)) return entry.why;
  if (entry && !entry.yes) return words.reason(entry.reason);
  return t(state?.speaks ? (isOver ? 'votes.wanted' : 'votes.wants') : isOver ? 'votes.listened' : 'votes.listens');
}

// What a screen reader announces for one vote.
function screenReaderText(ballot) {
  if (ballot.isMissing || ballot.isAwaited || !ballot.asked || hasEnded(ballot)) return '';
  return ballot.wants ? ` ${t('rounds.says_wants', { value: words.importance(ballot.state.importance) })} ` : ` ${t('rounds.says_listens')} `;
}

const kindOf = ballot => (ballot.isMissing ? 'missing' : ballot.isAwaited ? 'awaited' : !ballot.asked ? 'not-asked' : ballot.wants ? 'speaks' : 'listens');

// One vote: a bar that grows when the vote arrives. `extra` is drawn below it.
function vote(view, round, id, extra) {
  const star = el('span', { class: 'star', 'aria-hidden': 'true' });
  const fill = el('span', { class: 'vote-fill' });
  const bar = el('span', { class: 'vote-bar', 'aria-hidden': 'true' }, fill, el('span', { class: 'pulse' }));
  const value = el('span', { class: 'vote-value', 'aria-hidden': 'true' });
  const hidden = el('span', { class: 'visually-hidden' });
  const reason = el('span', { class: 'vote-words', dir: 'auto' });
  const elapsed = el('span', { class: 'elapsed', 'data-since': round.at, 'aria-hidden': 'true' }, words.running(0));
  const node = el('li', { class: 'vote', 'data-tone': view.tone(id) }, star, name(nameOf(view.room, id), { class: 'who' }), bar, value, el('span', { class: 'vote-reason' }, hidden, reason), extra);
  let kind = null;
  return {
    node,
    refresh() {
      const ballot = round.ballots.get(id);
      if (!ballot) return node.remove();
      const now = kindOf(ballot);
      if (kind !== now) node.dataset.kind = kind = now;
      node.classList.toggle('winner', isSpeaker(round, id));
      say(star, isSpeaker(round, id) ? STAR : '');
      fill.style.setProperty('--vote', String(ballot.wants ? Math.max(0.02, ballot.state.importance / MOST_IMPORTANCE) : 0));
      say(value, now === 'speaks' ? words.importance(ballot.state.importance) : now === 'missing' ? '✕' : now === 'awaited' ? '' : '–');
      say(hidden, screenReaderText(ballot));
      const text = wordsOf(view.room, round, id);
      if (text === null) {
        if (!elapsed.isConnected) reason.replaceChildren(t('rounds.considering'), DOT, elapsed);
      } else say(reason, text);
      reason.title = text ?? '';
      reason.classList.toggle('quote', text !== null && !ballot.isMissing && isQuote(ballot));
    },
  };
}

function countdown(round) {
  const ring = svg('svg', { class: 'countdown', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('circle', { cx: 8, cy: 8, r: 6, class: 'ring-track' }), svg('circle', { cx: 8, cy: 8, r: 6, class: 'countdown-left', pathLength: 1 }));
  return el('span', { class: 'turn-delay', 'data-from': round.closedAt, 'data-until': round.speakAt }, ring, ' ', el('span', { class: 'turn-words', 'aria-hidden': 'true' }));
}

// What companions with held votes wait for.
function untilFree(room, round, named) {
  const holder = floorHolder(room);
  return pieces(holder ? 'rounds.until' : 'rounds.free', { who: listed([...round.held].map(named)), count: round.held.size, speaker: holder && named(holder) });
}

// The outcome of the round in one sentence.
function outcome(view, round) {
  const waiting = [...round.ballots].filter(([, ballot]) => ballot.isAwaited).map(([id]) => id);
  const speaker = [el('span', { class: 'star', 'data-tone': view.tone(round.speaker), 'aria-hidden': 'true' }, STAR), ' ', who(view, round.speaker)];
  const tookOver = round.speaker !== round.selected;
  const reason = tookOver ? null : [DOT, el('strong', null, chosenBecause(round))];
  const says = key => pieces(key, { who: speaker });
  if (round.phase === 'open') return waiting.length ? pieces('rounds.awaits', { who: listed(waiting.map(id => who(view, id))) }) : t('rounds.all_in');
  if (round.phase === 'held') return untilFree(view.room, round, id => who(view, id));
  if (round.instead) return pieces('rounds.instead', { who: who(view, round.instead) });
  if (!round.selected) return round.outcome === 'dropped' ? t('rounds.cancelled') : [t('rounds.nobody'), round.declined ? [DOT, words.reason(round.declined)] : null];
  if (round.phase === 'speaking' && round.isLate) return [says('rounds.writes_on'), DOT, t('rounds.others_may')];
  if (round.outcome === 'cancelled') return says('rounds.selected_cancelled');
  if (round.phase === 'waiting') return [says('rounds.next'), reason, round.speakAt ? [DOT, countdown(round)] : null];
  if (round.phase === 'speaking') return [says(tookOver ? 'rounds.speaks_instead' : 'rounds.speaks'), reason];
  if (tookOver && round.outcome !== 'posted') return says(round.outcome === 'failed' ? 'rounds.took_over_failed' : 'rounds.took_over_dropped');
  return [says({ posted: tookOver ? 'rounds.spoke_instead' : 'rounds.spoke', failed: 'rounds.selected_failed', dropped: 'rounds.selected_dropped' }[round.outcome] ?? 'rounds.next'), reason];
}

function live(view, item) {
  const round = item.entry;
  const votes = order(round).map(id => vote(view, round, id));
  const outcomeNode = el('p', { class: 'outcome' });
  const about = el('span');
  const node = el('section', { class: 'round live' }, el('p', { class: 'round-head' }, glyph('round'), about), el('ul', { class: 'votes' }, votes.map(({ node: row }) => row)), outcomeNode);
  let shown = '';
  // The node is updated in place, so that bars move and nothing flickers.
  node.refresh = () => {
    // Its message may be edited or deleted meanwhile.
    const title = label(view.room, round);
    const current = `${round.version} ${floorHolder(view.room)} ${title}`;
    if (shown === current) return;
    shown = current;
    node.setAttribute('aria-label', title);
    about.replaceChildren(name(title));
    for (const row of votes) row.refresh();
    node.dataset.phase = round.phase;
    outcomeNode.replaceChildren(...[outcome(view, round)].flat(Infinity).filter(Boolean));
  };
  node.refresh();
  return node;
}

function summary(view, round) {
  const ranked = round.candidates;
  const others = order(round).filter(id => !ranked.includes(id));
  const first = round.speaker && ranked.includes(round.speaker) ? [round.speaker, ...ranked.filter(id => id !== round.speaker)] : ranked;
  if (!ranked.length && !others.some(id => round.ballots.get(id).isMissing)) {
    const asked = [...round.ballots].filter(([, ballot]) => ballot.asked);
    // Where a single companion was asked, its answer says everything.
    const [id, only] = asked.length === 1 ? asked[0] : [];
    return [el('strong', null, t(round.outcome === 'dropped' ? 'rounds.is_cancelled' : 'rounds.nobody')), only && isQuote(only) ? [DOT, who(view, id), ': ', el('q', { dir: 'auto' }, only.entry.why)] : null];
  }
  const each = [...first, ...others].map(id => {
    const ballot = round.ballots.get(id);
    if (ballot.isMissing) return [who(view, id), ' ', el('span', { class: 'missing' }, t('rounds.no_vote', { why: words.error(ballot.entry?.error ?? 'timeout') }))];
    if (hasEnded(ballot)) return pieces(ballot.asked ? 'rounds.ends' : 'rounds.ended', { who: who(view, id) });
    if (!ballot.wants) return ballot.asked ? pieces('rounds.listens', { who: who(view, id) }) : wasWriting(view.room, round, id) ? pieces('rounds.was_writing', { who: who(view, id) }) : pieces('decisions.not_asked', { who: who(view, id), count: 1 });
    return [who(view, id), '\u00a0', el('strong', null, t('decisions.of_ten', { value: words.importance(ballot.state.importance) })), isSpeaker(round, id) ? ['\u00a0', el('span', { class: 'star', 'data-tone': view.tone(id), title: t('rounds.selected') }, STAR)] : null];
  });
  const ending = { cancelled: 'rounds.by_person', failed: 'rounds.reply_failed', dropped: 'rounds.did_not_speak' }[round.outcome] ?? (round.speaker !== round.selected ? 'rounds.took_over' : null);
  const nobody = () => [t('rounds.nobody'), round.declined ? [DOT, words.reason(round.declined)] : null];
  const end = round.instead ? pieces('rounds.instead', { who: who(view, round.instead) }) : !round.selected ? nobody() : ending ? t(ending) : [round.reason === 'only' ? null : [who(view, round.selected), ' '], chosenBecause(round)];
  return [...each.flatMap((one, i) => [i ? DOT : null, one]), DOT, end];
}

// One vote of an expanded round, with a button that shows its story.
function expandedVote(view, round, id) {
  const { entry } = round.ballots.get(id);
  const story = entry && view.stories.get(entry.key);
  const why = entry ? el('button', { class: 'tool shown vote-why', 'aria-expanded': story ? 'true' : 'false', 'data-focus': `why-${id}`, 'aria-label': `${t('base.why')} ${nameOf(view.room, id)}`, onclick: () => view.act.open(entry) }, t('base.why')) : null;
  const row = vote(view, round, id, [why, story ? el('div', { class: 'vote-story' }, drawStory(entry, story)) : null]);
  row.refresh();
  return row.node;
}

function summaryLine(view, item) {
  const round = item.entry;
  const story = view.stories.get(item.key);
  const sentence = [name(label(view.room, round)), ' ', summary(view, round)];
  const below = id =>
    el(
      'div',
      { id, class: 'round-story' },
      el('ul', { class: 'votes' }, order(round).map(one => expandedVote(view, round, one))),
      el('p', { class: 'outcome' }, outcome(view, round), DOT, round.selected ? t('rounds.chosen_at', { time: words.second(round.closedAt ?? round.at) }) : words.second(round.at)),
    );
  return expandable({ kind: 'round', symbol: 'round', sentence, story, body: `round-${round.seq}`, open: () => view.act.unfold(item) }, below);
}

export const drawRound = (view, item) => (item.isLive ? live(view, item) : summaryLine(view, item));

// The outcome of a round, as screen readers announce it and the timeline shows it.
export function outcomeSentence(room, round) {
  if (round.phase === 'held') return `${untilFree(room, round, id => nameOf(room, id)).flat().join('')}.`;
  if (round.instead) return `${t('rounds.instead', { who: nameOf(room, round.instead) })}.`;
  if (!round.selected) return `${t(round.outcome === 'dropped' ? 'rounds.cancelled' : 'rounds.nobody')}.`;
  const others = round.candidates.filter(id => id !== round.selected).map(id => nameOf(room, id));
  const also = others.length ? ` ${t('rounds.also_wanted', { who: listed(others).join(''), count: others.length })}` : '';
  return `${t('rounds.next', { who: nameOf(room, round.selected) })} (${chosenBecause(round)}).${also}`;
}

// Updates the countdowns of companions that are about to speak.
export function tickRounds(root, now) {
  for (const node of root.querySelectorAll('.turn-delay')) {
    const from = Date.parse(node.dataset.from);
    const until = Date.parse(node.dataset.until);
    if (!(until > from)) continue;
    node.style.setProperty('--left', Math.min(1, Math.max(0, (until - now) / (until - from))).toFixed(3));
    say(node.querySelector('.turn-words'), until > now ? t('rounds.in', { secs: words.running(until - now) }) : t('rounds.now'));
  }
}
