// One card for each companion present: what it is doing, how near it is to speaking, what it decided last, and its controls.

import { el, glyph, name, say, svg } from './dom.js';
import { isClosed, STAGES } from './mind.js';
import { lastDecisions } from './state.js';
import { sentences } from './story.js';
import * as words from './words.js';

const SLOW_MS = 6000;
const STORY_AGAIN_MS = 700;
const RING = 2 * Math.PI * 20;
const MOST_SEGMENTS = 24;
const LARGE = 1000;

// The ring: one segment for each message, while they are few enough to be told apart.
function dashes(filled, of) {
  if (of <= 0 || filled <= 0) return `0 ${RING}`;
  if (of > MOST_SEGMENTS) return `${(RING * Math.min(filled, of)) / of} ${RING}`;
  const gap = Math.min(3, RING / of / 3);
  const segment = RING / of - gap;
  const shown = Math.min(filled, of);
  return `${`${segment} ${gap} `.repeat(shown)}0 ${RING}`;
}

function ring() {
  const track = svg('circle', { cx: 24, cy: 24, r: 20, class: 'ring-track' });
  const fill = svg('circle', { cx: 24, cy: 24, r: 20, class: 'ring-fill' });
  const count = svg('text', { x: 24, y: 24, class: 'ring-count' });
  const node = svg('svg', { class: 'ring', viewBox: '0 0 48 48', 'aria-hidden': 'true' }, track, fill, count);
  return {
    node,
    set(filled, of) {
      track.setAttribute('stroke-dasharray', of ? dashes(of, of) : `${RING} 0`);
      fill.setAttribute('stroke-dasharray', dashes(filled, of ?? 0));
      // Larger numbers have no place in the ring: then it says what is missing.
      say(count, of >= LARGE ? `${Math.max(0, of - filled)} more` : of ? `${filled}/${of}` : String(filled));
      count.classList.toggle('long', count.textContent.length > 4);
    },
  };
}

// How far it is on its way out: one dot for each stage.
function stageMark() {
  const dots = STAGES.slice(1).map((_, i) => svg('circle', { cx: 4 + i * 8, cy: 4, r: 2.6 }));
  const said = el('span', null);
  const node = el('span', { class: 'stage', hidden: true }, svg('svg', { viewBox: '0 0 24 8', 'aria-hidden': 'true' }, dots), said);
  return {
    node,
    set(stage) {
      const at = STAGES.indexOf(stage);
      node.hidden = at <= 0;
      dots.forEach((dot, i) => dot.classList.toggle('reached', i < at));
      say(said, words.stage(stage));
    },
  };
}

function card(id, act) {
  const circle = ring();
  const title = name('', { class: 'who' });
  const head = el('button', { class: 'mind-head', 'aria-expanded': 'false', onclick: () => node.toggleAttribute('data-open', head.getAttribute('aria-expanded') === 'false') || head.setAttribute('aria-expanded', String(node.hasAttribute('data-open'))) }, circle.node, title);
  const outside = el('span', { class: 'outside', hidden: true, title: 'A program outside plays it' }, 'external');
  const doing = el('span', { class: 'doing' });
  const stage = stageMark();
  const bar = el('span', { class: 'lull-bar', 'aria-hidden': 'true' }, el('span', { class: 'lull-left' }));
  const left = el('span', { class: 'lull-words' });
  const until = el('p', { class: 'until' });
  const last = el('ul', { class: 'last' });
  const story = el('div', { class: 'not-yet', hidden: true });
  const temper = el(
    'select',
    { onchange: event => act.temper(id, event.target.value) },
    words.TEMPERS.map(code => el('option', { value: code }, words.temper(code))),
  );
  const pause = el('button', { class: 'quiet-button', onclick: () => act.pause(id, pause.getAttribute('aria-pressed') !== 'true') });
  const call = el('button', { class: 'quiet-button call', hidden: true, onclick: () => act.call(id) }, 'call it by name');
  const notYet = el('button', { class: 'quiet-button', 'aria-expanded': 'false' }, 'why not yet?');
  async function tellNotYet() {
    const told = await act.why(id).catch(problem => ({ problem: problem.message }));
    const waits = told.waiting_for;
    story.replaceChildren(
      ...[
        told.problem ? el('p', { class: 'hush', dir: 'auto' }, `The story could not be read: ${told.problem}`) : null,
        waits ? el('p', { dir: 'auto' }, waits.retry_at ? `It waits to be asked again at ${words.second(waits.retry_at)}, as ${outside.hidden ? 'the model gave no answer' : 'the program that plays it did not vote in time'}.` : `It waits for ${waits.text}.`) : null,
        told.story?.length ? el('h4', null, told.decision ? 'what it decided last' : 'what was tried') : null,
        sentences(told.story),
        told.problem || waits || told.story?.length ? null : el('p', { class: 'hush' }, 'Nothing to tell yet.'),
      ].filter(Boolean),
    );
  }
  notYet.addEventListener('click', () => {
    const open = story.hidden;
    story.hidden = !open;
    notYet.setAttribute('aria-expanded', String(open));
    if (open) {
      story.replaceChildren(el('p', { class: 'hush' }, 'reading the record …'));
      tellNotYet();
    }
  });
  // An open story is told again when what it tells of has changed, but not ten times a second.
  let telling = null;
  let told = '';
  const mayBeStale = now => {
    if (now === told) return;
    told = now;
    if (!story.hidden) telling ??= setTimeout(() => ((telling = null), tellNotYet()), STORY_AGAIN_MS);
  };
  const node = el(
    'article',
    { class: 'mind' },
    head,
    el('div', { class: 'mind-now' }, el('div', { class: 'doings' }, doing, stage.node, outside), el('div', { class: 'lull' }, bar, left)),
    el('div', { class: 'mind-more' }, until, last, el('div', { class: 'controls' }, el('label', null, el('span', { class: 'unseen' }, 'Temper'), temper), call, pause, notYet), story),
  );
  return { node, head, circle, title, doing, bar, left, until, last, temper, pause, stage, call, outside, mayBeStale, shown: '' };
}

const more = n => `${n} more ${n === 1 ? 'message' : 'messages'}`;

// What it waits for, in words: the same that the ring and the bar show.
function untilWords(mind, lullLeft, isVoting) {
  if (mind.paused) return 'Lets everything pass until it goes on.';
  if (isClosed(mind) && mind.doing === 'listening') return mind.opensIn ? `Opens again after ${more(mind.opensIn)}, or when called by name.` : 'Opens again when called by name.';
  if (mind.doing === 'back_off') return 'Nothing is lost: what was heard stays to be answered.';
  if (mind.doing === 'waiting_its_turn') return 'Was chosen, and speaks in a moment.';
  if (mind.doing === 'wants_to_speak') return isVoting ? 'Waits for what the others say.' : 'Asked again when somebody has spoken.';
  if (mind.doing !== 'listening') return mind.trigger ? `Because ${mind.trigger === 'direct_address' ? 'it ' : ''}${words.trigger(mind.trigger)}.` : '';
  const missing = mind.threshold === null ? null : mind.threshold - mind.messageCount;
  const parts = [];
  if (missing !== null && missing > 0 && mind.messageCount > 0) parts.push(more(missing));
  if (lullLeft !== null && lullLeft > 0) parts.push(`${Math.ceil(lullLeft / 1000)} s of quiet`);
  if (!parts.length) return 'Waits for somebody to talk.';
  return `Considers after ${parts.join(', or ')}.`;
}

function doingWords(mind, now) {
  const since = Date.parse(mind.since);
  const elapsed = Number.isFinite(since) ? now - since : null;
  const slow = mind.isExternal ? 'its program is slow' : 'the model is slow';
  switch (mind.doing) {
    case 'asked':
      return elapsed === null ? 'considering' : `considering · ${words.seconds(elapsed)}${elapsed > SLOW_MS ? ` · ${slow}` : ''}`;
    case 'speaking':
      return elapsed === null ? 'speaking' : `speaking · ${words.seconds(elapsed)}${elapsed > 3 * SLOW_MS ? ` · ${slow}` : ''}`;
    case 'back_off': {
      const left = Date.parse(mind.retryAt) - now;
      return left > 0 ? `no answer · asks again in ${words.seconds(left)}` : 'no answer · asks again';
    }
    case 'waiting_its_turn': {
      const left = Date.parse(mind.speakAt) - now;
      return left > 0 ? `waiting its turn · ${words.seconds(left)}` : 'waiting its turn';
    }
    case 'listening':
      return isClosed(mind) ? '' : 'listening';
    default:
      return words.temper(mind.doing);
  }
}

// `act` has temper, pause, why and open.
export function minds(root, { tone, act }) {
  const cards = new Map();

  function decisions(parts, room, mind, now) {
    const found = lastDecisions(room, mind.id, 3);
    const key = found.map(entry => entry.key).join();
    if (parts.shown !== key) {
      parts.shown = key;
      parts.last.replaceChildren(
        ...found.map(entry => {
          const isDecision = entry.kind === 'decision';
          const kind = !isDecision ? 'error' : entry.yes ? 'yes' : 'no';
          const answer = { error: 'no answer', failed: 'the reply failed' }[entry.kind] ?? kind;
          const quote = entry.why || (isDecision ? words.reason(entry.reason) : words.failure(entry.error, entry.text, mind.isExternal));
          return el(
            'li',
            null,
            el('button', { class: `last-one ${kind}`, title: quote, onclick: () => act.open(entry) }, glyph(kind), el('span', { class: 'last-words' }, el('strong', null, answer), ` · ${isDecision ? (words.wasAsked(entry) ? words.occasion(entry) : words.reason(entry.reason)) : words.trigger(entry.trigger)}`), el('time', { class: 'ago', 'data-at': entry.at })),
          );
        }),
      );
    }
    for (const node of parts.last.querySelectorAll('.ago')) say(node, words.ago(node.dataset.at, now));
  }

  function tickOne(mind, parts, now, isVoting) {
    say(parts.doing, doingWords(mind, now));
    const end = Date.parse(mind.lullAt);
    const lullLeft = Number.isFinite(end) && mind.doing === 'listening' && !isClosed(mind) ? Math.max(0, end - now) : null;
    const begun = Date.parse(mind.lullFrom);
    const whole = Number.isFinite(begun) && end > begun ? end - begun : (mind.lullSecs ?? 10) * 1000;
    const fraction = lullLeft === null ? 0 : Math.min(1, lullLeft / whole);
    parts.bar.style.setProperty('--left', fraction.toFixed(4));
    // A timer that ran out while something else went on is told of no more.
    say(parts.left, lullLeft ? words.seconds(lullLeft) : '');
    say(parts.until, untilWords(mind, lullLeft, isVoting));
    return lullLeft > 0 || mind.doing === 'asked' || mind.doing === 'speaking' || mind.doing === 'waiting_its_turn' || mind.doing === 'back_off';
  }

  return {
    draw(room, now) {
      for (const [id, parts] of cards) {
        if (!room.minds.has(id)) {
          parts.node.remove();
          cards.delete(id);
        }
      }
      root.toggleAttribute('data-many', room.minds.size > 2);
      for (const mind of room.minds.values()) {
        if (!cards.has(mind.id)) {
          const made = card(mind.id, act);
          cards.set(mind.id, made);
          root.append(made.node);
        }
        const parts = cards.get(mind.id);
        parts.node.dataset.tone = tone(mind.id);
        parts.node.dataset.doing = mind.doing;
        parts.node.dataset.closing = mind.closing;
        parts.stage.set(mind.closing);
        parts.call.hidden = !isClosed(mind) || Boolean(room.elsewhere);
        parts.outside.hidden = !mind.isExternal;
        say(parts.title, mind.name);
        parts.circle.set(mind.messageCount, mind.threshold);
        parts.head.setAttribute('aria-label', `${mind.name}: ${mind.messageCount} of ${mind.threshold ?? 'some'} messages, ${[isClosed(mind) ? '' : words.temper(mind.doing), words.stage(mind.closing), mind.isExternal ? 'played by a program outside' : ''].filter(Boolean).join(', ')}`);
        parts.temper.setAttribute('aria-label', `Temper of ${mind.name}`);
        if (document.activeElement !== parts.temper) parts.temper.value = mind.interjection;
        parts.pause.setAttribute('aria-pressed', String(mind.paused));
        say(parts.pause, mind.paused ? 'let it go on' : 'pause');
        parts.mayBeStale(`${mind.doing} ${mind.messageCount} ${mind.threshold} ${mind.lullAt} ${mind.closing}`);
        decisions(parts, room, mind, now);
        tickOne(mind, parts, now, room.round?.phase === 'open');
      }
    },
    // Gives whether anything is running that must be seen running.
    tick(room, now) {
      let running = false;
      for (const mind of room.minds.values()) {
        const parts = cards.get(mind.id);
        if (!parts) continue;
        running = tickOne(mind, parts, now, room.round?.phase === 'open') || running;
        for (const node of parts.last.querySelectorAll('.ago')) say(node, words.ago(node.dataset.at, now));
      }
      return running;
    },
    shut() {
      let any = false;
      for (const parts of cards.values()) {
        any = parts.node.hasAttribute('data-open') || any;
        parts.node.removeAttribute('data-open');
        parts.head.setAttribute('aria-expanded', 'false');
      }
      return any;
    },
  };
}
