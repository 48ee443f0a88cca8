// The story of a decision, shown below its line: the messages, the prompt, the answer, and what it cost.

import * as api from './api.js';
import { opened } from './back.js';
import { el, glyph, name } from './dom.js';
import { listed, t } from './texts.js';
import * as words from './words.js';

// A quiet line with a button that shows what is below it. `below(id)` draws that.
export function expandable({ kind, tone = null, symbol, sentence, story, body, open }, below) {
  return el(
    'div',
    { class: `line ${kind}`, 'data-tone': tone },
    el(
      'button',
      { class: 'line-head', 'aria-expanded': story ? 'true' : 'false', 'aria-controls': story ? body : null, 'data-focus': 'line', onclick: open },
      glyph(symbol),
      el('span', { class: 'line-words' }, sentence),
      el('span', { class: 'line-why', 'aria-hidden': 'true' }, t('base.why')),
    ),
    story ? below(body) : null,
  );
}

// The seq of the decision that an entry belongs to. A failed reply belongs to the yes before it, a question without an answer to the decision
// of its retry.
function decisionOf(room, entry) {
  if (entry.kind !== 'failed') return entry.seq;
  const yes = room.entries.findLast(other => other.kind === 'decision' && other.yes && other.companion === entry.companion && other.seq < entry.seq);
  return yes?.seq ?? entry.seq;
}

// Loads the story of an entry from the server; of an answer also that of the decision that led to it.
async function load(room, entry) {
  if (entry.kind !== 'message') return api.why(room.id, entry.companion, decisionOf(room, entry));
  const [outcomes, decided] = await Promise.all([api.messageOutcomes(room.id, entry.seq), entry.wish && api.why(room.id, entry.from, entry.wish.seq)]);
  return { ...outcomes, decided };
}

// The open stories by the key of their line: { state: 'loading' | 'loaded' | 'failed', answer }. `change(key)` redraws one.
export function stories(change) {
  const open = new Map();
  // The browser's Back closes the last one.
  const backs = new Map();
  function put(key, story) {
    open.set(key, story);
    backs.set(key, opened(() => (drop(key), change(key))));
  }
  function drop(key) {
    backs.get(key)?.();
    backs.delete(key);
    return open.delete(key);
  }
  return {
    get: key => open.get(key),
    has: key => open.has(key),
    mark: key => {
      const story = open.get(key);
      return story ? story.state : 'closed';
    },
    async toggle(room, entry) {
      if (drop(entry.key)) return change(entry.key);
      const story = { state: 'loading', answer: null };
      put(entry.key, story);
      change(entry.key);
      try {
        story.answer = await load(room, entry);
        story.state = 'loaded';
      } catch (problem) {
        story.state = 'failed';
        story.problem = problem.message;
      }
      change(entry.key);
    },
    // A line that groups other lines expands without a request to the server.
    unfold(key, redraws = true) {
      if (!drop(key)) put(key, { state: 'loaded', answer: null });
      if (redraws) change(key);
    },
    show(room, entry) {
      return open.has(entry.key) ? undefined : this.toggle(room, entry);
    },
    closeLast() {
      const last = [...open.keys()].at(-1);
      if (!last) return null;
      drop(last);
      change(last);
      return last;
    },
    clear: () => [...open.keys()].forEach(drop),
  };
}

const fact = (term, value) => (value === null || value === undefined || value === false || value === '' ? null : [el('dt', null, term), el('dd', { dir: 'auto' }, String(value))]);

const ms = value => (Number.isFinite(value) ? (value < 1000 ? `${Math.round(value)} ms` : words.seconds(value)) : null);

function inputs(texts) {
  if (!Array.isArray(texts) || !texts.length) return null;
  return el(
    'section',
    null,
    el('h3', null, t('facts.messages')),
    el('ul', { class: 'inputs' }, texts.map(text => el('li', { dir: 'auto' }, text))),
  );
}

// The parts of the prompt with their sizes. Each expands into its text.
function promptParts(parts) {
  if (!Array.isArray(parts) || !parts.length) return null;
  const present = parts.filter(part => part.tokens > 0);
  const most = Math.max(1, ...present.map(part => part.tokens));
  const total = present.reduce((sum, part) => sum + part.tokens, 0);
  const rows = present.map(part => {
    const bar = el('span', { class: 'part-bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--part', String(part.tokens / most));
    const row = [el('span', { class: 'part-name' }, words.part(part.part)), bar, el('span', { class: 'part-size' }, words.number(part.tokens))];
    return el('li', null, part.text ? el('details', null, el('summary', null, row), el('p', { class: 'part-words', dir: 'auto' }, part.text)) : el('div', { class: 'part' }, row));
  });
  return el('section', null, el('h3', null, t('facts.prompt', { count: total })), el('ul', { class: 'parts' }, rows));
}

// A link to a message of the room shown.
const messageLink = seq => el('a', { href: `${location.hash.split('/').slice(0, 2).join('/')}/${seq}` }, t('facts.go_to_message'));

export function sentences(story) {
  if (!Array.isArray(story) || !story.length) return null;
  return el('ol', { class: 'sentences' }, story.map(line => el('li', { class: line.event }, el('time', { datetime: line.at, title: words.moment(line.at) }, words.second(line.at)), el('span', { dir: 'auto' }, line.text, line.event === 'recalled' && line.seq ? [' ', messageLink(line.seq)] : null))));
}

export function drawStory(entry, story) {
  const answer = story.answer ?? {};
  const isError = entry.kind === 'error';
  const d = (isError ? null : answer.decision) ?? entry.record ?? {};
  const facts = [
    fact(t('facts.counted'), Number.isFinite(d.message_count) ? (Number.isFinite(d.threshold) ? t('facts.counted_of', { counted: d.message_count, threshold: d.threshold }) : d.message_count) : null),
    fact(t('facts.checks'), d.check_count || null),
    fact(t('facts.model'), d.model && (d.provider && d.provider !== d.model ? `${words.model(d.model)} · ${words.model(d.provider)}` : words.model(d.model))),
    fact(t('facts.queue'), d.wait_ms ? ms(d.wait_ms) : null),
    fact(t('facts.model_time'), ms(d.model_ms)),
    fact(t('facts.asked_together'), d.asked_together),
    fact(t('facts.tokens'), Number.isFinite(d.input_tokens) && !d.asked_together ? t('facts.tokens_both', { read: d.input_tokens, written: d.output_tokens ?? 0 }) : null),
    fact(t('facts.time'), d.at && words.moment(d.at)),
  ].filter(Boolean);
  const forDevelopers = [fact(t('facts.answer'), d.answer), fact(t('facts.trace'), d.trace)].filter(Boolean);
  return el(
    'div',
    { class: 'story' },
    story.state === 'loading' ? el('p', { class: 'muted' }, t('base.loading')) : null,
    story.state === 'failed' ? el('p', { class: 'muted' }, t('base.not_loaded', { problem: story.problem })) : null,
    sentences(answer.story),
    // The story quotes the messages, unless it could not be loaded.
    Array.isArray(answer.story) && answer.story.some(line => line.event === 'message') ? null : inputs(d.messages),
    isError ? null : promptParts(answer.prompt),
    facts.length ? el('dl', { class: 'facts' }, facts) : null,
    forDevelopers.length ? el('details', null, el('summary', null, t('maker.developers')), el('dl', { class: 'facts for-developers' }, forDevelopers)) : null,
  );
}

// How a message came about, if a companion wrote it, and what became of it for each companion in the room. `beforehand` is what companions did with the message
// that it answers.
export function drawOutcomes(entry, story, tone, beforehand) {
  const answer = story.answer ?? {};
  const isAnswer = entry.role === 'companion';
  // The message itself is shown above.
  const outcomes = (Array.isArray(answer.companions) ? answer.companions : []).filter(one => one.outcome !== 'own');
  const events = (answer.story ?? []).filter(line => ['changed', 'dead_letter', 'recalled', 'lore'].includes(line.event));
  // Several companions may have the same sentence, which names all of them.
  const one = ({ at, text }) => el('li', null, el('p', null, listed(outcomes.filter(other => other.text === text).map(other => name(other.name, { class: 'who', 'data-tone': tone(other.companion) }))), at ? [' · ', el('time', { datetime: at, title: words.moment(at) }, words.second(at))] : null), el('p', { dir: 'auto' }, text));
  const different = outcomes.filter(({ text }, i) => outcomes.findIndex(other => other.text === text) === i);
  return el(
    'div',
    { class: 'story' },
    story.state === 'loading' ? el('p', { class: 'muted' }, t('base.loading')) : null,
    story.state === 'failed' ? el('p', { class: 'muted' }, t('base.not_loaded', { problem: story.problem })) : null,
    beforehand.length ? el('ul', { class: 'beforehand' }, beforehand.map(line => el('li', null, line))) : null,
    events.length ? sentences(events) : null,
    isAnswer ? el('button', { type: 'button', class: 'quiet-button', onclick: () => import('./about-room.js').then(({ showPrompt }) => showPrompt(entry.seq), () => {}) }, t('outcomes.prompt')) : null,
    answer.decided ? el('details', null, el('summary', null, t('cards.steps')), drawStory(entry.wish, { state: 'loaded', answer: answer.decided })) : null,
    outcomes.length ? [isAnswer ? el('h3', null, t('outcomes.afterwards')) : null, el('ul', { class: 'outcomes' }, different.map(one))] : story.state === 'loaded' && !isAnswer ? el('p', { class: 'muted' }, t('outcomes.nobody')) : null,
  );
}
