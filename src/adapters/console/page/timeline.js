// The last minutes as ticks (messages), dots (decisions) and bars (rounds across all companions, replies in a companion's row).
// Hovering or the arrow keys show a description; a click or Enter goes to the entry.

import { el, say, svg } from './dom.js';
import { isStopped, stopReason } from './floor.js';
import { label, outcomeSentence } from './rounds.js';
import { nameOf } from './state.js';
import { t } from './texts.js';
import * as words from './words.js';

const SPANS = [
  [2, '2 min'],
  [10, '10 min'],
  [60, '1 h'],
];
const LABEL = t('timeline.label');
const ROW = 18;
const SHOWN = new Set(['message', 'round', 'decision', 'error', 'failed']);
const MOST_MARKS = 400;

export function timeline(root, { tone, go }) {
  let minutes = 2;
  let marks = [];
  let selected = null;
  const zooms = SPANS.map(([span, label]) =>
    el(
      'button',
      {
        class: 'quiet-button',
        'aria-pressed': String(span === minutes),
        onclick: () => {
          minutes = span;
          zooms.forEach((zoom, i) => zoom.setAttribute('aria-pressed', String(SPANS[i][0] === minutes)));
          last && draw(...last);
        },
      },
      label,
    ),
  );
  const picture = svg('svg', { class: 'line-picture', 'aria-hidden': 'true' });
  const caption = el('p', { class: 'caption', dir: 'auto' });
  const field = el('div', { class: 'field', tabindex: '0', role: 'group', 'aria-label': LABEL }, picture);
  root.replaceChildren(el('header', null, el('h2', null, t('timeline.title')), el('span', { class: 'zoom', role: 'group', 'aria-label': t('timeline.span') }, zooms)), field, caption);
  let last = null;

  function select(mark) {
    selected = mark?.key ?? null;
    for (const other of picture.querySelectorAll('.chosen')) other.classList.remove('chosen');
    if (mark) mark.node.classList.add('chosen');
    say(caption, mark ? mark.words : '');
    field.setAttribute('aria-label', mark ? mark.words : LABEL);
  }

  const short = text => (text.length > 90 ? `${text.slice(0, 89)}…` : text);

  function describe(room, entry) {
    const at = words.time(entry.at);
    if (entry.kind === 'message') return `${at} ${entry.role === 'companion' ? nameOf(room, entry.from) : entry.from}: ${short(entry.text)}`;
    const who = nameOf(room, entry.companion);
    if (entry.kind === 'round') return `${at} ${label(room, entry)}: ${entry.phase === 'open' ? t('rounds.considering') : outcomeSentence(room, entry)}`;
    if (entry.kind === 'decision') return `${at} ${who}: ${[t(entry.yes ? 'base.yes' : 'base.no'), words.occasion(entry)].filter(Boolean).join(', ')}. ${short(entry.why || words.reason(entry.reason))}`;
    if (isStopped(entry)) return `${at} ${t('decisions.stopped_who', { who, why: stopReason(room, entry.stopMessage) })}`;
    return `${at} ${who}: ${t(entry.kind === 'failed' ? 'decisions.reply_failed' : 'decisions.no_answer')}, ${words.failure(entry.error, entry.text)}`;
  }

  function shape(entry, x, y) {
    if (entry.kind === 'message') return svg('path', { d: `M${x} ${y - 5}V${y + 5}`, class: `tick ${entry.role}` });
    if (entry.kind !== 'decision' && !isStopped(entry)) return svg('path', { d: `M${x - 3} ${y - 3}l6 6M${x + 3} ${y - 3}l-6 6`, class: 'cross' });
    return svg('circle', { cx: x, cy: y, r: entry.yes ? 4 : 3.4, class: entry.yes ? 'dot-yes' : 'dot-no' });
  }

  function draw(room, now) {
    last = [room, now];
    const width = Math.max(120, field.clientWidth);
    const companions = [...room.companions.keys()];
    const height = ROW * (companions.length + 1) + 4;
    const span = minutes * 60_000;
    const x = at => width - ((now - Date.parse(at)) / span) * (width - 6) - 4;
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    picture.setAttribute('height', height);
    const row = id => ROW * (companions.indexOf(id) + 1) + ROW / 2 + 2;
    const shapes = [];
    for (let i = 0; i <= companions.length; i += 1) {
      const y = ROW * i + ROW / 2 + 2;
      shapes.push(svg('path', { d: `M0 ${y}H${width}`, class: 'rail' }));
    }
    for (const reply of room.replies) {
      const end = x(reply.ended ?? new Date(now).toISOString());
      if (end < 0 || !companions.includes(reply.companion)) continue;
      const begin = Math.max(0, x(reply.began));
      shapes.push(svg('rect', { x: begin, y: row(reply.companion) - 2, width: Math.max(2, end - begin), height: 4, rx: 2, class: `bar ${reply.failed ? 'failed' : ''}`, 'data-tone': tone(reply.companion) }));
    }
    marks = [];
    for (let i = room.entries.length - 1; i >= 0 && marks.length < MOST_MARKS; i -= 1) {
      const entry = room.entries[i];
      if (!SHOWN.has(entry.kind)) continue;
      const left = x(entry.at);
      if (left < 0) break;
      if (!(left <= width + 4)) continue;
      if (entry.kind === 'round') {
        // From the opening of the round to its end, across the rows of all companions.
        const end = Math.min(width, x(entry.closedAt ?? new Date(now).toISOString()));
        const y = ROW + 1;
        const node = svg('rect', { x: left, y, width: Math.max(3, end - left), height: height - y, rx: 2, class: 'band', 'data-tone': entry.speaker ? tone(entry.speaker) : null });
        if (entry.key === selected) node.classList.add('chosen');
        marks.unshift({ key: entry.key, x: (left + Math.max(left + 3, end)) / 2, y, node, words: describe(room, entry) });
        continue;
      }
      const companion = entry.kind === 'message' ? null : entry.companion;
      if (companion && !companions.includes(companion)) continue;
      const node = shape(entry, left, companion ? row(companion) : ROW / 2 + 2);
      const accent = entry.kind === 'message' && entry.role === 'companion' ? entry.from : companion;
      if (accent) node.dataset.tone = tone(accent);
      if (entry.key === selected) node.classList.add('chosen');
      marks.unshift({ key: entry.key, x: left, y: companion ? row(companion) : ROW / 2 + 2, node, words: describe(room, entry) });
    }
    picture.replaceChildren(...shapes, ...marks.filter(mark => mark.node.matches('.band')).map(mark => mark.node), ...marks.filter(mark => !mark.node.matches('.band')).map(mark => mark.node));
    if (selected && !marks.some(mark => mark.key === selected)) select(null);
  }

  const near = event => {
    const box = picture.getBoundingClientRect();
    const at = { x: event.clientX - box.left, y: event.clientY - box.top };
    let best = null;
    for (const mark of marks) {
      const distance = Math.hypot(mark.x - at.x, mark.y - at.y);
      if (distance < 14 && (!best || distance < best.distance)) best = { mark, distance };
    }
    return best?.mark ?? null;
  };
  field.addEventListener('pointermove', event => select(near(event)));
  field.addEventListener('pointerleave', () => select(null));
  field.addEventListener('click', event => {
    const mark = near(event);
    if (mark) go(mark.key);
  });
  field.addEventListener('keydown', event => {
    const i = marks.findIndex(mark => mark.key === selected);
    const to = { ArrowLeft: i < 0 ? marks.length - 1 : i - 1, ArrowRight: i < 0 ? 0 : i + 1, Home: 0, End: marks.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      if (marks.length) select(marks[Math.max(0, Math.min(marks.length - 1, to))]);
    } else if (event.key === 'Enter' && selected) {
      event.preventDefault();
      go(selected);
    }
  });

  new ResizeObserver(() => last && draw(...last)).observe(field);

  return { draw };
}
