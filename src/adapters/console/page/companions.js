// One card for each companion in the room: what it is doing, how near it is to speaking, its last decisions, and its controls.

import { ai } from './ai.js';
import { isClosed, STAGES } from './companion.js';
import { el, glyph, name, plain, say, svg } from './dom.js';
import { floorHolder, isHeld, isStopped, lostTo, stopReason } from './floor.js';
import { face, pictureOf } from './pictures.js';
import { lastDecisions, nameOf } from './state.js';
import { sentences } from './story.js';
import { t } from './texts.js';
import * as words from './words.js';

const SLOW_MS = 6000;
const RELOAD_AFTER_MS = 700;
const RING = 2 * Math.PI * 20;
const MOST_SEGMENTS = 24;

const narrow = matchMedia('(max-width: 48em)');

// The dashes of the ring: one segment for each message, unless they would be too many to tell apart.
function dashes(filled, total) {
  if (total <= 0 || filled <= 0) return `0 ${RING}`;
  if (total > MOST_SEGMENTS) return `${(RING * Math.min(filled, total)) / total} ${RING}`;
  const gap = Math.min(3, RING / total / 3);
  const segment = RING / total - gap;
  const shown = Math.min(filled, total);
  return `${`${segment} ${gap} `.repeat(shown)}0 ${RING}`;
}

function ring() {
  const track = svg('circle', { cx: 24, cy: 24, r: 20, class: 'ring-track' });
  const fill = svg('circle', { cx: 24, cy: 24, r: 20, class: 'ring-fill' });
  const count = svg('text', { x: 24, y: 24, class: 'ring-count' });
  const node = svg('svg', { class: 'ring', viewBox: '0 0 48 48', 'aria-hidden': 'true' }, track, fill, count);
  return {
    node,
    set(filled, total) {
      track.setAttribute('stroke-dasharray', total ? dashes(total, total) : `${RING} 0`);
      fill.setAttribute('stroke-dasharray', dashes(filled, total ?? 0));
      say(count, total ? String(Math.max(0, total - filled)) : '');
      count.classList.toggle('long', count.textContent.length > 4);
    },
  };
}

// The closing stage: one dot for each stage, and the stage in words.
function stageMark() {
  const dots = STAGES.slice(1).map((_, i) => svg('circle', { cx: 4 + i * 8, cy: 4, r: 2.6 }));
  const label = el('span', null);
  const node = el('span', { class: 'stage', hidden: true }, svg('svg', { viewBox: '0 0 24 8', 'aria-hidden': 'true' }, dots), label);
  return {
    node,
    set(stage) {
      const reached = STAGES.indexOf(stage);
      node.hidden = reached <= 0;
      dots.forEach((dot, i) => dot.classList.toggle('reached', i < reached));
      say(label, words.stage(stage));
    },
  };
}

function card(id, act) {
  const circle = ring();
  const title = name('', { class: 'who' });
  const about = el('span', { class: 'visually-hidden' });
  const whoNode = el('span', { class: 'card-who' }, title, ' ', ai());
  const head = el('button', { class: 'card-head', 'aria-expanded': 'false', onclick: toggle }, circle.node, whoNode, about);
  // On phones the whole card is needed for a finger.
  function toggle(event) {
    if (!narrow.matches && profile.isConnected && !profile.hidden && event.target.closest('.card-who > *')) return act.profile(id);
    const open = head.getAttribute('aria-expanded') === 'false';
    node.toggleAttribute('data-open', open);
    head.setAttribute('aria-expanded', String(open));
    // On a phone the cards scroll in a small part of the screen.
    if (open) node.scrollIntoView({ block: narrow.matches ? 'start' : 'nearest' });
    return undefined;
  }
  const external = el('span', { class: 'external', hidden: true, title: t('cards.external_about') }, t('cards.external'));
  const doing = el('span');
  // A screen reader does not follow every second.
  const clock = el('span', { 'aria-hidden': 'true' });
  const stage = stageMark();
  const bar = el('span', { class: 'lull-bar', 'aria-hidden': 'true' }, el('span', { class: 'lull-left' }));
  const left = el('span', { class: 'lull-words', 'aria-hidden': 'true' });
  const next = el('p', { class: 'next' });
  const settings = el('p', { class: 'muted', hidden: true });
  const decisions = el('ul', { class: 'last-decisions' });
  const explanation = el('div', { class: 'explanation', hidden: true });
  const steps = el('details', { class: 'steps-more' });
  const level = el(
    'select',
    { onchange: event => act.setLevel(id, event.target.value) },
    words.INTERJECTION_LEVELS.map(code => el('option', { value: code }, words.interjectionLevel(code))),
  );
  const pause = el('button', { class: 'quiet-button', onclick: () => act.pause(id, pause.getAttribute('aria-pressed') !== 'true') });
  const speak = el('button', { class: 'quiet-button', onclick: () => act.next(id) }, t('cards.next'));
  const draft = el('button', { class: 'quiet-button', title: t('cards.draft_about'), onclick: () => act.draft(id, draft) }, t('cards.draft'));
  const withRoom = el('span', { class: 'muted', hidden: true }, t('cards.paused_with_room'));
  const address = el('button', { class: 'quiet-button call', hidden: true, onclick: () => act.address(id) }, t('cards.address'));
  const profile = el('button', { class: 'quiet-button', onclick: () => act.profile(id) }, t('profile.open'));
  const why = el('button', { class: 'quiet-button', 'aria-expanded': 'false' }, t('cards.why_silent'));
  async function loadExplanation() {
    const answer = await act.why(id).catch(problem => ({ problem: problem.message }));
    const { waiting_for: waiting, story = [] } = answer;
    const decided = story.findLast(({ event }) => event === 'decision') ?? story.at(-1);
    steps.replaceChildren(el('summary', null, t('cards.steps')), sentences(story) ?? '');
    explanation.replaceChildren(
      ...[
        answer.problem ? el('p', { class: 'muted', dir: 'auto' }, t('base.not_loaded', { problem: answer.problem })) : null,
        decided ? el('p', { class: 'decided', dir: 'auto' }, decided.text) : null,
        waiting ? el('p', { class: 'muted', dir: 'auto' }, waiting.text) : null,
        story.length > 1 ? steps : null,
        answer.problem || waiting || decided ? null : el('p', { class: 'muted' }, t('cards.nothing_yet')),
      ].filter(Boolean),
    );
  }
  why.addEventListener('click', () => {
    const opens = explanation.hidden;
    explanation.hidden = !opens;
    why.setAttribute('aria-expanded', String(opens));
    if (opens) {
      explanation.replaceChildren(el('p', { class: 'muted' }, t('base.loading')));
      loadExplanation().then(() => explanation.scrollIntoView({ block: 'nearest' }));
    }
  });
  // An open explanation is loaded again when the companion's state changed, but not ten times a second.
  let reload = null;
  let explained = '';
  const stateChanged = key => {
    if (key === explained) return;
    explained = key;
    if (!explanation.hidden) reload ??= setTimeout(() => ((reload = null), loadExplanation()), RELOAD_AFTER_MS);
  };
  const node = el(
    'article',
    { class: 'card' },
    head,
    el('div', { class: 'card-now' }, el('div', { class: 'doings' }, el('span', { class: 'doing' }, doing, clock), stage.node, external), el('div', { class: 'lull' }, bar, left)),
    el('div', { class: 'card-more' }, next, settings, decisions, el('div', { class: 'controls' }, el('label', null, el('span', null, `${t('cards.speaks')} `), level), address, speak, draft, pause, withRoom, why, profile), explanation),
  );
  return { node, head, whoNode, profile, circle, title, about, doing, clock, bar, left, next, settings, decisions, level, pause, withRoom, stage, address, external, stateChanged, shown: '' };
}

// What the companion waits for, in words: the same that the ring and the bar show.
function nextWords(room, companion, lullLeft) {
  const draft = room.drafts.get(companion.id);
  if (companion.paused) return t('cards.paused');
  if (isClosed(companion) && companion.doing === 'listening') return words.rejoins(companion.opensIn);
  if (companion.doing === 'back_off') return t('cards.asked_again');
  if (companion.doing === 'waiting_its_turn') return t('cards.selected');
  if (companion.doing === 'wants_to_speak') {
    const holder = floorHolder(room);
    return !isHeld(room, companion.id) ? t('cards.waits_votes') : holder ? t('cards.waits_for', { who: nameOf(room, holder) }) : t('cards.waits_free');
  }
  if (companion.doing === 'speaking' && draft?.isStopped) return t('cards.begins_again');
  if (companion.doing === 'speaking' && draft?.isLate) return t('cards.writes_on');
  if (companion.doing !== 'listening') return companion.trigger ? t('cards.because', { why: words.trigger(companion.trigger) }) : '';
  if (companion.quietHours === 'always') return t('cards.waits_spoken_to');
  const missing = companion.threshold === null ? null : companion.threshold - companion.messageCount;
  const counts = missing !== null && missing > 0;
  const isQuiet = lullLeft !== null && lullLeft > 0;
  const speaker = lostTo(room, companion.id);
  if (speaker) return t('cards.asked_again_after', { who: nameOf(room, speaker) });
  if (!counts && !isQuiet) return t('cards.waits');
  return t(counts && isQuiet ? 'cards.thinks_after_both' : counts ? 'cards.thinks_after_messages' : 'cards.thinks_after_silence', { count: missing, secs: `${Math.max(1, Math.round(lullLeft / 1000))} s` });
}

function doingWords(companion, now) {
  if (companion.doing === 'listening' && isClosed(companion)) return '';
  const patience = { asked: SLOW_MS, speaking: 3 * SLOW_MS }[companion.doing];
  const slow = now - Date.parse(companion.since) > patience ? t(companion.isExternal ? 'cards.slow_external' : 'cards.slow') : '';
  return [words.doing(companion.doing), slow].filter(Boolean).join(' · ');
}

// For how long it has been doing that, or will.
function clockWords({ doing, since, retryAt, speakAt }, now) {
  const elapsed = now - Date.parse(since);
  const left = Date.parse(doing === 'back_off' ? retryAt : speakAt) - now;
  if ((doing === 'asked' || doing === 'speaking') && Number.isFinite(elapsed)) return ` · ${words.running(elapsed)}`;
  if (doing === 'back_off') return ` · ${left > 0 ? t('cards.retry_in', { secs: words.running(left) }) : t('cards.retrying')}`;
  return doing === 'waiting_its_turn' && left > 0 ? ` · ${words.running(left)}` : '';
}

// `act` has `setLevel`, `pause`, `next`, `draft`, `why`, `open`, `profile` and `address`.
export function companionCards(root, { tone, act }) {
  const cards = new Map();

  function drawFace(parts, { id, name: who }) {
    const path = pictureOf(id);
    const key = `${who} ${path}`;
    if (parts.face === key) return;
    parts.face = key;
    parts.whoNode.querySelector('.face')?.remove();
    parts.whoNode.prepend(face(who, { path }));
    parts.node.toggleAttribute('data-picture', Boolean(path));
    parts.node.setAttribute('aria-label', who);
  }

  function drawDecisions(parts, room, companion, now) {
    const found = lastDecisions(room, companion.id, 3);
    const key = found.map(entry => entry.key).join();
    if (parts.shown !== key) {
      parts.shown = key;
      parts.decisions.replaceChildren(
        ...found.map(entry => {
          const isDecision = entry.kind === 'decision';
          const kind = !isDecision ? 'error' : entry.yes ? 'yes' : 'no';
          const wasStopped = isStopped(entry);
          const answer = t(wasStopped ? 'decisions.stopped' : ({ error: 'decisions.no_answer', failed: 'decisions.reply_failed' }[entry.kind] ?? (entry.yes ? 'votes.wanted' : 'votes.listened')));
          const quote = wasStopped ? stopReason(room, entry.stopMessage) : entry.why || (isDecision ? words.reason(entry.reason) : words.failure(entry.error, entry.text));
          return el(
            'li',
            null,
            el('button', { class: `last-decision ${kind}`, title: quote, onclick: () => act.open(entry) }, glyph(wasStopped ? 'no' : kind), el('span', { class: 'last-decision-words' }, el('strong', null, answer), ' · ', isDecision && entry.why && words.wasAsked(entry) ? el('q', { dir: 'auto' }, plain(entry.why)) : isDecision ? (words.wasAsked(entry) ? words.occasion(entry) : words.reason(entry.reason)) : words.trigger(entry.trigger)), el('time', { class: 'ago', 'data-at': entry.at })),
          );
        }),
      );
    }
    for (const node of parts.decisions.querySelectorAll('.ago')) say(node, words.ago(node.dataset.at, now));
  }

  function tickOne(room, companion, parts, now) {
    say(parts.doing, doingWords(companion, now));
    say(parts.clock, clockWords(companion, now));
    const end = Date.parse(companion.lullAt);
    const lullLeft = Number.isFinite(end) && companion.doing === 'listening' && !isClosed(companion) ? Math.max(0, end - now) : null;
    const start = Date.parse(companion.lullFrom);
    const whole = Number.isFinite(start) && end > start ? end - start : (companion.lullSecs ?? 10) * 1000;
    const fraction = lullLeft === null ? 0 : Math.min(1, lullLeft / whole);
    parts.bar.style.setProperty('--left', fraction.toFixed(4));
    // A timer that has run out while something else happens shows nothing.
    say(parts.left, lullLeft ? words.running(lullLeft) : '');
    say(parts.next, nextWords(room, companion, lullLeft));
    return lullLeft > 0 || companion.doing === 'asked' || companion.doing === 'speaking' || companion.doing === 'waiting_its_turn' || companion.doing === 'back_off';
  }

  return {
    draw(room, now) {
      for (const [id, parts] of cards) {
        if (!room.companions.has(id)) {
          parts.node.remove();
          cards.delete(id);
        }
      }
      root.toggleAttribute('data-many', room.companions.size > 2);
      for (const companion of room.companions.values()) {
        if (!cards.has(companion.id)) {
          const added = card(companion.id, act);
          cards.set(companion.id, added);
          root.append(added.node);
        }
        const parts = cards.get(companion.id);
        parts.node.dataset.tone = tone(companion.id);
        parts.node.dataset.doing = companion.doing;
        parts.node.dataset.closing = companion.closing;
        parts.stage.set(companion.closing);
        parts.address.hidden = !isClosed(companion) || Boolean(room.platform);
        parts.external.hidden = !companion.isExternal;
        parts.profile.hidden = companion.isExternal;
        drawFace(parts, companion);
        const ownSettings = words.ownSettings(companion);
        parts.settings.hidden = !ownSettings;
        say(parts.settings, ownSettings);
        say(parts.title, companion.name);
        parts.circle.set(companion.messageCount, companion.threshold);
        say(parts.about, `${companion.threshold === null ? t('cards.heard', { count: companion.messageCount }) : t('cards.heard_of', { heard: companion.messageCount, count: companion.threshold })}, ${[isClosed(companion) ? '' : words.doing(companion.doing), words.stage(companion.closing), companion.isExternal ? t('cards.external_about') : ''].filter(Boolean).join(', ')}`);
        parts.level.setAttribute('aria-label', t('cards.speaks_how_often', { who: companion.name }));
        if (document.activeElement !== parts.level) parts.level.value = words.levelOf(companion.interjection, companion.quietHours);
        parts.pause.setAttribute('aria-pressed', String(companion.paused));
        say(parts.pause, t(companion.paused ? 'cards.resume' : 'cards.pause'));
        // The pause of the whole room does not end here.
        parts.pause.hidden = room.paused && companion.paused;
        parts.withRoom.hidden = !parts.pause.hidden;
        parts.stateChanged(`${companion.doing} ${companion.messageCount} ${companion.threshold} ${companion.lullAt} ${companion.closing}`);
        drawDecisions(parts, room, companion, now);
        tickOne(room, companion, parts, now);
      }
    },
    // Updates the times. Returns whether anything is running, so that the next tick must come soon.
    tick(room, now) {
      let running = false;
      for (const companion of room.companions.values()) {
        const parts = cards.get(companion.id);
        if (!parts) continue;
        running = tickOne(room, companion, parts, now) || running;
        for (const node of parts.decisions.querySelectorAll('.ago')) say(node, words.ago(node.dataset.at, now));
      }
      return running;
    },
    // Closes the cards that are open in the narrow layout. Returns whether any was.
    close() {
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
