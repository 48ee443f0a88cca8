// The story of a decision, opened from its line: what was heard, what was asked, what came back, and what it cost.

import * as api from './api.js';
import { el } from './dom.js';
import * as words from './words.js';

// Stories that are open, by the key of their line: { state: 'loading' | 'told' | 'untold', told }. `change(key)` draws one anew.
export function stories(change) {
  const open = new Map();
  return {
    get: key => open.get(key),
    mark: key => {
      const story = open.get(key);
      return story ? story.state : 'shut';
    },
    async toggle(room, entry) {
      if (open.delete(entry.key)) return change(entry.key);
      const story = { state: 'loading', told: null };
      open.set(entry.key, story);
      change(entry.key);
      try {
        story.told = await api.why(room.id, entry.companion, entry.seq);
        story.state = 'told';
      } catch (problem) {
        story.state = 'untold';
        story.problem = problem.message;
      }
      change(entry.key);
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

const fact = (term, value) => (value === null || value === undefined || value === '' ? null : [el('dt', null, term), el('dd', { dir: 'auto' }, String(value))]);

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

function promptParts(parts) {
  if (!Array.isArray(parts) || !parts.length) return null;
  const most = Math.max(1, ...parts.map(part => part.tokens || 0));
  const total = parts.reduce((sum, part) => sum + (part.tokens || 0), 0);
  const rows = parts.filter(part => part.tokens > 0).map(part => {
    const bar = el('span', { class: 'part-bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--part', String(part.tokens / most));
    return el('li', null, el('span', { class: 'part-name' }, words.temper(part.part)), bar, el('span', { class: 'part-size' }, part.tokens.toLocaleString()));
  });
  return el('section', null, el('h4', null, `the prompt, ${words.count(total, 'token')}`), el('ul', { class: 'parts' }, rows));
}

export function sentences(story) {
  return Array.isArray(story) && story.length ? el('ol', { class: 'sentences' }, story.map(line => el('li', { dir: 'auto', title: words.moment(line.at) }, line.text))) : null;
}

export function tell(entry, story) {
  const told = story.told ?? {};
  const d = told.decision ?? entry.record ?? {};
  const facts = [
    fact('why it was asked', d.trigger && words.trigger(d.trigger)),
    fact('reason on record', d.reason && words.reason(d.reason)),
    fact('messages counted', Number.isFinite(d.message_count) ? (Number.isFinite(d.threshold) ? `${d.message_count} of ${d.threshold}` : d.message_count) : null),
    fact('earlier noes', d.check_count || null),
    fact('model', d.model && (d.provider && d.provider !== d.model ? `${d.model} · ${d.provider}` : d.model)),
    fact('waited for a worker', ms(d.wait_ms)),
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
    heard(d.messages),
    promptParts(told.prompt),
    facts.length ? el('dl', { class: 'facts' }, facts) : null,
  );
}
