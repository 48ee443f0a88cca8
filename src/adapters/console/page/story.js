// The story of a decision, opened from its line: what was heard, what was asked, what came back, and what it cost.

import * as api from './api.js';
import { el, name } from './dom.js';
import * as words from './words.js';

// The number of the decision that an entry belongs to: a reply that failed, to the yes before it; a question without an answer, to what
// was decided when it was asked again.
function decisionOf(room, entry) {
  if (entry.kind !== 'failed') return entry.seq;
  const yes = room.entries.findLast(other => other.kind === 'decision' && other.yes && other.companion === entry.companion && other.seq < entry.seq);
  return yes?.seq ?? entry.seq;
}

// What the server tells of an entry.
function read(room, entry) {
  return entry.kind === 'message' ? api.fates(room.id, entry.seq) : api.why(room.id, entry.companion, decisionOf(room, entry));
}

// Stories that are open, by the key of their line: { state: 'loading' | 'told' | 'untold', told }. `change(key)` draws one anew.
export function stories(change) {
  const open = new Map();
  return {
    get: key => open.get(key),
    has: key => open.has(key),
    mark: key => {
      const story = open.get(key);
      return story ? story.state : 'shut';
    },
    async toggle(room, entry) {
      if (open.delete(entry.key)) return change(entry.key);
      const story = { state: 'loading', told: null, isExternal: room.minds.get(entry.companion)?.isExternal };
      open.set(entry.key, story);
      change(entry.key);
      try {
        story.told = await read(room, entry);
        story.state = 'told';
      } catch (problem) {
        story.state = 'untold';
        story.problem = problem.message;
      }
      change(entry.key);
    },
    // What holds other stories opens without being told of.
    unfold(key, change_it = true) {
      if (!open.delete(key)) open.set(key, { state: 'told', told: null });
      if (change_it) change(key);
    },
    show(room, entry) {
      return open.has(entry.key) ? undefined : this.toggle(room, entry);
    },
    shutLast() {
      const last = [...open.keys()].at(-1);
      if (!last) return null;
      open.delete(last);
      change(last);
      return last;
    },
    clear: () => open.clear(),
  };
}

const fact = (term, value) => (value === null || value === undefined || value === false || value === '' ? null : [el('dt', null, term), el('dd', { dir: 'auto' }, String(value))]);

const ms = value => (Number.isFinite(value) ? (value < 1000 ? `${Math.round(value)} ms` : words.seconds(value)) : null);

function heard(texts) {
  if (!Array.isArray(texts) || !texts.length) return null;
  return el(
    'section',
    null,
    el('h4', null, 'what was heard'),
    el('ul', { class: 'heard' }, texts.map(text => el('li', { dir: 'auto' }, text))),
  );
}

// The parts of the prompt by size; each opens into its words.
function promptParts(parts) {
  if (!Array.isArray(parts) || !parts.length) return null;
  const given = parts.filter(part => part.tokens > 0);
  const most = Math.max(1, ...given.map(part => part.tokens));
  const total = given.reduce((sum, part) => sum + part.tokens, 0);
  const rows = given.map(part => {
    const bar = el('span', { class: 'part-bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--part', String(part.tokens / most));
    const row = [el('span', { class: 'part-name' }, words.temper(part.part)), bar, el('span', { class: 'part-size' }, part.tokens.toLocaleString())];
    return el('li', null, part.text ? el('details', null, el('summary', null, row), el('p', { class: 'part-words', dir: 'auto' }, part.text)) : el('div', { class: 'part' }, row));
  });
  return el('section', null, el('h4', null, `what was asked: about ${words.count(total, 'token')}`), el('ul', { class: 'parts' }, rows));
}

export function sentences(story) {
  if (!Array.isArray(story) || !story.length) return null;
  return el('ol', { class: 'sentences' }, story.map(line => el('li', { class: line.event }, el('time', { datetime: line.at, title: words.moment(line.at) }, words.second(line.at)), el('span', { dir: 'auto' }, line.text))));
}

export function tell(entry, story) {
  const told = story.told ?? {};
  const isError = entry.kind === 'error';
  const d = (isError ? null : told.decision) ?? entry.record ?? {};
  const facts = [
    fact(words.wasAsked(d) ? 'why it was asked' : 'why it was its turn', d.trigger && words.occasion(d)),
    fact('what went wrong', entry.error && words.failure(entry.error, entry.text, story.isExternal)),
    fact('asked again', isError && entry.retryAt && words.second(entry.retryAt)),
    fact('reason on record', d.reason && words.reason(d.reason)),
    fact('messages counted', Number.isFinite(d.message_count) ? (Number.isFinite(d.threshold) ? `${d.message_count} of ${d.threshold}` : d.message_count) : null),
    fact('earlier noes', d.check_count || null),
    fact('the answer as it came', d.answer),
    fact('model', d.model && (d.provider && d.provider !== d.model ? `${d.model} · ${d.provider}` : d.model)),
    fact('waited for its turn', d.wait_ms ? ms(d.wait_ms) : null),
    fact('the model took', ms(d.model_ms)),
    fact('tokens', Number.isFinite(d.input_tokens) ? `${d.input_tokens.toLocaleString()} in, ${(d.output_tokens ?? 0).toLocaleString()} out` : null),
    fact('when', d.at && words.moment(d.at)),
    fact('trace', d.trace),
  ].filter(Boolean);
  return el(
    'div',
    { class: 'story' },
    story.state === 'loading' ? el('p', { class: 'hush' }, 'reading the record …') : null,
    story.state === 'untold' ? el('p', { class: 'hush' }, `The story could not be read: ${story.problem}`) : null,
    sentences(told.story),
    // The story quotes what was heard, unless it could not be read.
    Array.isArray(told.story) && told.story.some(line => line.event === 'message') ? null : heard(d.messages),
    isError ? null : promptParts(told.prompt),
    facts.length ? el('dl', { class: 'facts' }, facts) : null,
  );
}

// What became of a message, for everybody who was there.
export function tellFates(story, tone) {
  const told = story.told ?? {};
  const fates = Array.isArray(told.companions) ? told.companions : [];
  // The message itself stands above.
  const around = (told.story ?? []).filter(line => line.event === 'changed' || line.event === 'set_aside');
  return el(
    'div',
    { class: 'story' },
    story.state === 'loading' ? el('p', { class: 'hush' }, 'reading the record …') : null,
    story.state === 'untold' ? el('p', { class: 'hush' }, `The story could not be read: ${story.problem}`) : null,
    around.length ? sentences(around) : null,
    fates.length
      ? el(
          'ul',
          { class: 'fates' },
          fates.map(fate => el('li', null, el('p', null, name(fate.name, { class: 'who', 'data-tone': tone(fate.companion) }), ` ${words.outcome(fate.outcome)}`, fate.at ? [' · ', el('time', { datetime: fate.at, title: words.moment(fate.at) }, words.second(fate.at))] : null), el('p', { class: 'hush', dir: 'auto' }, fate.text))),
        )
      : story.state === 'told'
        ? el('p', { class: 'hush' }, 'Nobody was there to hear it.')
        : null,
  );
}
