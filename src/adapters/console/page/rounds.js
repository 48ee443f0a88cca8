// Draws a round: while it is open and until its statement is posted the wishes side by side, afterwards one quiet line that opens into them.

import { el, glyph, name, say, svg } from './dom.js';
import { candidates, isAwaited, isMissing, MOST_IMPORTANCE, wantsToSpeak } from './election.js';
import { nameOf } from './state.js';
import { tell } from './story.js';
import * as words from './words.js';

// So long everybody's silence is shown before it becomes one line.
export const LINGER_MS = 6000;

const DOT = ' · ';
const STAR = '★';

// Whether it is still shown as it happens.
export function isLive(room, round, now) {
  if (round !== room.round) return false;
  if (round.phase !== 'over') return true;
  return round.outcome === null && now - Date.parse(round.closedAt) < LINGER_MS;
}

const label = round => `round #${round.message ?? round.seq}`;
const who = (view, id) => name(nameOf(view.room, id), { class: 'who', 'data-tone': view.tone(id) });

// Those who were asked first, each group in the order of ids, which never changes.
const order = round => [...round.ballots.keys()].sort((one, other) => round.ballots.get(other).asked - round.ballots.get(one).asked || (one < other ? -1 : 1));

const isChosen = (round, id) => round.phase !== 'open' && (round.speaker ?? round.selected) === id;

const isQuote = ({ entry, state }) => Boolean(entry?.why) && entry.reason !== 'unreadable' && state?.closing !== 'terminal';

function wordsOf(ballot, isExternal) {
  const { entry, state } = ballot;
  if (isMissing(ballot)) return `no vote: ${words.error(entry?.error ?? 'timeout', isExternal)}`;
  if (isAwaited(ballot)) return null;
  if (!ballot.asked) return state?.closing === 'terminal' ? 'has closed, and listens' : 'listens, was not asked';
  if (state?.closing === 'terminal') return 'ends the talk for itself';
  if (isQuote(ballot)) return entry.why;
  if (entry && !entry.yes) return words.reason(entry.reason);
  return state?.speaks ? 'wants to speak' : 'rather listens';
}

// What a screen reader is told of one wish.
function unseenOf(ballot) {
  if (isMissing(ballot) || isAwaited(ballot) || !ballot.asked) return '';
  return wantsToSpeak(ballot) ? ` wants to speak, ${words.importance(ballot.state.importance)} of ${MOST_IMPORTANCE}: ` : ' rather listens: ';
}

const kindOf = ballot => (isMissing(ballot) ? 'missing' : isAwaited(ballot) ? 'awaited' : !ballot.asked ? 'thin' : wantsToSpeak(ballot) ? 'speaks' : 'listens');

// One wish: a bar that grows when the vote arrives. `extra` is drawn below it.
function wish(view, round, id, extra) {
  const star = el('span', { class: 'star', 'aria-hidden': 'true' });
  const fill = el('span', { class: 'wish-fill' });
  const bar = el('span', { class: 'wish-bar', 'aria-hidden': 'true' }, fill, el('span', { class: 'pulse' }));
  const value = el('span', { class: 'wish-value', 'aria-hidden': 'true' });
  const unseen = el('span', { class: 'unseen' });
  const said = el('span', { class: 'wish-words', dir: 'auto' });
  const elapsed = el('span', { class: 'elapsed', 'data-since': round.at }, words.seconds(0));
  const node = el('li', { class: 'wish', 'data-tone': view.tone(id) }, star, name(nameOf(view.room, id), { class: 'who' }), bar, value, el('span', { class: 'wish-said' }, unseen, said), extra);
  let kind = null;
  return {
    node,
    refresh() {
      const ballot = round.ballots.get(id);
      if (!ballot) return node.remove();
      const now = kindOf(ballot);
      if (kind !== now) node.dataset.kind = kind = now;
      node.classList.toggle('winner', isChosen(round, id));
      say(star, isChosen(round, id) ? STAR : '');
      fill.style.setProperty('--wish', String(wantsToSpeak(ballot) ? Math.max(0.02, ballot.state.importance / MOST_IMPORTANCE) : 0));
      say(value, now === 'speaks' ? words.importance(ballot.state.importance) : now === 'missing' ? '✕' : now === 'awaited' ? '' : '–');
      say(unseen, unseenOf(ballot));
      const text = wordsOf(ballot, view.room.minds.get(id)?.isExternal);
      if (text === null) {
        if (!elapsed.isConnected) said.replaceChildren('considering', DOT, elapsed);
      } else say(said, text);
      said.title = text ?? '';
      said.classList.toggle('quote', text !== null && !isMissing(ballot) && isQuote(ballot));
    },
  };
}

function countdown(round) {
  const ring = svg('svg', { class: 'countdown', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('circle', { cx: 8, cy: 8, r: 6, class: 'ring-track' }), svg('circle', { cx: 8, cy: 8, r: 6, class: 'countdown-left', pathLength: 1 }));
  return el('span', { class: 'turn-delay', 'data-from': round.closedAt, 'data-until': round.speakAt }, ring, ' ', el('span', { class: 'turn-words' }));
}

// What came of it, in one sentence.
function verdict(view, round) {
  const waiting = [...round.ballots].filter(([, ballot]) => isAwaited(ballot)).map(([id]) => id);
  const chosen = () => [el('span', { class: 'star', 'data-tone': view.tone(round.speaker), 'aria-hidden': 'true' }, STAR), ' ', who(view, round.speaker)];
  const tookOver = round.speaker !== round.selected ? ' instead, as the reply before it failed' : null;
  const reason = tookOver ? null : [': ', el('strong', null, words.selection(round.reason))];
  if (round.phase === 'open') return waiting.length ? ['waits for ', waiting.flatMap((id, i) => [i ? (i === waiting.length - 1 ? ' and ' : ', ') : null, who(view, id)])] : 'everybody has voted';
  if (!round.selected) return round.outcome === 'dropped' ? 'was dropped' : 'everybody listens';
  if (round.phase === 'waiting') return [chosen(), ' speaks next', reason, round.speakAt ? [DOT, countdown(round)] : null];
  if (round.phase === 'speaking') return [chosen(), ' speaks', tookOver, reason];
  return [chosen(), { said: ' spoke', failed: ' was to speak, and the reply failed', dropped: ' was to speak, and no longer does' }[round.outcome] ?? ' speaks next', tookOver, reason];
}

function live(view, item) {
  const round = item.entry;
  const wishes = order(round).map(id => wish(view, round, id));
  const outcome = el('p', { class: 'verdict' });
  const node = el('section', { class: 'round live', 'aria-label': label(round) }, el('p', { class: 'round-head' }, glyph('round'), el('span', null, label(round)), DOT, 'who speaks next?'), el('ul', { class: 'wishes' }, wishes.map(({ node: row }) => row)), outcome);
  let shown = -1;
  // It grows without being drawn anew, so that bars move and nothing flickers.
  node.refresh = () => {
    if (shown === round.version) return;
    shown = round.version;
    for (const row of wishes) row.refresh();
    node.dataset.phase = round.phase;
    outcome.replaceChildren(...[verdict(view, round)].flat(Infinity).filter(Boolean));
  };
  node.refresh();
  return node;
}

function summary(view, round) {
  const ranked = candidates(round).map(({ id }) => id);
  const others = order(round).filter(id => !ranked.includes(id));
  const first = round.speaker && ranked.includes(round.speaker) ? [round.speaker, ...ranked.filter(id => id !== round.speaker)] : ranked;
  if (!ranked.length && !others.some(id => isMissing(round.ballots.get(id)))) {
    const asked = [...round.ballots].filter(([, ballot]) => ballot.asked);
    // Where one alone was asked, what it said is the whole story.
    const [id, only] = asked.length === 1 ? asked[0] : [];
    return [el('strong', null, round.outcome === 'dropped' ? 'dropped' : 'everybody listens'), only && isQuote(only) ? [DOT, who(view, id), ': ', el('q', { dir: 'auto' }, only.entry.why)] : null];
  }
  const each = [...first, ...others].map(id => {
    const ballot = round.ballots.get(id);
    if (isMissing(ballot)) return [who(view, id), ' ', el('span', { class: 'lost' }, 'no vote')];
    if (!wantsToSpeak(ballot)) return [who(view, id), ' –', el('span', { class: 'unseen' }, ' listens')];
    return [who(view, id), ' ', el('strong', null, words.importance(ballot.state.importance)), isChosen(round, id) ? [' ', el('span', { class: 'star', 'data-tone': view.tone(id), title: 'was chosen' }, STAR)] : null];
  });
  const end = !round.selected ? 'everybody listens' : round.outcome === 'failed' ? 'the reply failed' : round.outcome === 'dropped' ? 'no longer' : round.speaker !== round.selected ? 'took over' : words.selection(round.reason);
  return [...each.flatMap((one, i) => [i ? DOT : null, one]), DOT, end];
}

// One wish in the story of a round: what it said opens into its own story.
function opened(view, round, id) {
  const { entry } = round.ballots.get(id);
  const story = entry && view.stories.get(entry.key);
  const why = entry ? el('button', { class: 'tool shown wish-why', 'aria-expanded': story ? 'true' : 'false', 'data-focus': `why-${id}`, 'aria-label': `${story ? 'close' : 'why?'} ${nameOf(view.room, id)}`, onclick: () => view.act.open(entry) }, story ? 'close' : 'why?') : null;
  const row = wish(view, round, id, [why, story ? el('div', { class: 'wish-story' }, tell(entry, story)) : null]);
  row.refresh();
  return row.node;
}

function over(view, item) {
  const round = item.entry;
  const story = view.stories.get(item.key);
  const body = `round-${round.seq}`;
  return el(
    'div',
    { class: 'line round' },
    el(
      'button',
      { class: 'line-head', 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, 'data-focus': 'line', onclick: () => view.act.unfold(item) },
      glyph('round'),
      el('span', { class: 'line-words' }, `${label(round)}: `, summary(view, round)),
      el('span', { class: 'line-why', 'aria-hidden': 'true' }, story ? 'close' : 'why?'),
    ),
    story
      ? el(
          'div',
          { id: body, class: 'round-story' },
          el('ul', { class: 'wishes' }, order(round).map(id => opened(view, round, id))),
          el('p', { class: 'verdict' }, verdict(view, round), DOT, words.second(round.at)),
        )
      : null,
  );
}

export const drawRound = (view, item) => (item.isLive ? live(view, item) : over(view, item));

// What a screen reader is told when a round ends.
export function spoken(room, round) {
  if (!round.selected) return round.outcome === 'dropped' ? 'It was dropped.' : 'Everybody listens.';
  const others = candidates(round).filter(({ id }) => id !== round.selected).map(({ id }) => nameOf(room, id));
  return `${nameOf(room, round.selected)} speaks next: ${words.selection(round.reason)}.${others.length ? ` ${others.join(' and ')} wanted to, too.` : ''}`;
}

// Runs down what waits for its turn.
export function tickRounds(root, now) {
  for (const node of root.querySelectorAll('.turn-delay')) {
    const from = Date.parse(node.dataset.from);
    const until = Date.parse(node.dataset.until);
    if (!(until > from)) continue;
    node.style.setProperty('--left', Math.min(1, Math.max(0, (until - now) / (until - from))).toFixed(3));
    say(node.querySelector('.turn-words'), until > now ? `in ${words.seconds(until - now)}` : 'now');
  }
}
