// The conversation as a windowed list: only the items near the visible part are in the document.

import { el, onPhone, say } from './dom.js';
import { draw, estimateHeight, growDraft, isEmpty, itemsOf } from './items.js';
import { t } from './texts.js';
import * as words from './words.js';

const AROUND_PX = 900;
const LOAD_BEFORE_PX = 1600;
const AT_END_PX = 40;

// Takes over what is new in `fresh` around the button that has the focus. With another button in its place a screen reader would go on in another mode. Returns
// whether the button is in both.
function renew(node, fresh, button) {
  const alike = within => [...within.querySelectorAll(`[data-focus="${button.dataset.focus}"]`)];
  const twin = alike(fresh)[alike(node).indexOf(button)];
  if (!twin) return false;
  if (!button.isEqualNode(twin)) button.replaceChildren(...twin.childNodes);
  for (let [old, now] = [button, twin]; ; [old, now] = [old.parentNode, now.parentNode]) {
    for (const attribute of old.getAttributeNames()) if (!now.hasAttribute(attribute)) old.removeAttribute(attribute);
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old === node) return true;
    const others = [...now.parentNode.childNodes];
    const at = others.indexOf(now);
    for (const other of [...old.parentNode.childNodes]) if (other !== old) other.remove();
    old.before(...others.slice(0, at));
    old.after(...others.slice(at + 1));
  }
}

// `view` has what items need to be drawn; `older()` loads the page before; `empty(room)` draws an empty room.
export function talk(log, toEnd, { view, now, older, empty }) {
  const above = el('div', { class: 'spacer', 'aria-hidden': 'true' });
  const below = el('div', { class: 'spacer', 'aria-hidden': 'true' });
  const heights = new Map();
  const nodes = new Map();
  let items = [];
  let indexes = new Map();
  let offsets = new Float64Array(1);
  let atEnd = true;
  let shownHeight = 0; // of the log, when it was last drawn
  let emptyNode = null;
  let emptyFor = null;
  let unread = 0;
  let scheduled = false;
  let moving = false;
  log.append(above, below);

  function layOut() {
    offsets = new Float64Array(items.length + 1);
    for (let i = 0; i < items.length; i += 1) offsets[i + 1] = offsets[i] + (heights.get(items[i].key) ?? estimateHeight(items[i]));
  }

  // The first item that ends below this height.
  function itemAt(y) {
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, items.length - 1));
  }

  // The position to return to after a redraw: the first visible item, and how far it is scrolled.
  function anchor() {
    if (atEnd || !items.length) return null;
    const i = itemAt(log.scrollTop - base());
    return { key: items[i].key, inside: log.scrollTop - base() - offsets[i] };
  }

  const base = () => above.offsetTop;

  function scrollTo(position) {
    const wanted = position && indexes.has(position.key) ? base() + offsets[indexes.get(position.key)] + position.inside : null;
    // An empty room is shown from its top.
    if (atEnd && items.length) log.scrollTop = log.scrollHeight;
    else if (wanted !== null && Math.abs(log.scrollTop - wanted) > 0.5) log.scrollTop = wanted;
  }

  // The open stories within an item.
  function innerStories(item) {
    const entries = item.line ? item.line.rows.map(row => row.entry) : item.what === 'round' ? [...item.entry.ballots.values()].map(ballot => ballot.entry) : (item.all ?? (item.group ? [item.entry] : []));
    return entries.map(entry => (entry ? view.stories.mark(entry.key) : '')).join();
  }

  // Changes whenever the item must be redrawn.
  function marksOf(item) {
    return `${item.mark}|${view.stories.mark(item.key)}|${view.stories.mark(item.key) === 'closed' ? '' : innerStories(item)}|${view.search ?? ''}|${view.found === item.key}|${view.epoch}`;
  }

  let lost = null; // the message that had the focus when it was removed, while nothing else has it

  function render(first, last) {
    const wanted = new Set();
    for (let i = first; i < last; i += 1) wanted.add(items[i].key);
    const focused = document.activeElement;
    if (focused !== log) lost = null;
    for (const [key, node] of nodes) {
      if (!wanted.has(key)) {
        const hadFocus = node.contains(focused);
        node.remove();
        nodes.delete(key);
        // When the focused item leaves the window, the focus stays in the conversation.
        if (hadFocus) {
          lost = indexes.has(key) ? null : key;
          log.focus({ preventScroll: true });
        }
      }
    }
    let next = above.nextSibling;
    for (let i = first; i < last; i += 1) {
      const item = items[i];
      let node = nodes.get(item.key);
      const marks = marksOf(item);
      if (!node || node.marks !== marks) {
        let fresh = draw(view, item);
        if (view.found === item.key) fresh.classList.add('found');
        if (node?.mark === item.mark && renew(node, fresh, focused)) fresh = node;
        else if (node) {
          const focus = node.contains(focused) ? focused.dataset.focus : null;
          const isFocused = node === focused;
          if (next === node) next = fresh;
          node.replaceWith(fresh);
          // The focused element may be gone after the redraw.
          if (isFocused) fresh.focus({ preventScroll: true });
          else if (focus) (fresh.querySelector(`[data-focus="${focus}"]:not(:disabled)`) ?? fresh.querySelector(`[data-focus^="${focus.split('-')[0]}"]:not(:disabled)`) ?? fresh.querySelector('[data-focus]') ?? fresh).focus({ preventScroll: true });
        }
        nodes.set(item.key, Object.assign(fresh, { marks, mark: item.mark }));
        node = fresh;
      }
      if (item.what === 'draft') growDraft(node, item.entry);
      node.refresh?.();
      if (node === next) next = node.nextSibling;
      else log.insertBefore(node, next);
    }
    // An answer that takes the place of the focused one is focused, also if it comes later than that one goes.
    const heir = lost && items.findLast(item => item.canBeReplaced && item.entry.versions);
    if (heir && heir.entry.seq > Number(lost.slice(1))) nodes.get(heir.key)?.focus({ preventScroll: true });
    above.style.height = `${offsets[first] ?? 0}px`;
    below.style.height = `${(offsets[items.length] ?? 0) - (offsets[last] ?? 0)}px`;
  }

  function measure() {
    let changed = false;
    for (const [key, node] of nodes) {
      const height = node.getBoundingClientRect().height;
      if (Math.abs((heights.get(key) ?? -1) - height) > 0.25) {
        heights.set(key, height);
        changed = true;
      }
    }
    return changed;
  }

  function show(position = anchor()) {
    moving = true;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const top = atEnd ? Math.max(0, offsets[items.length] - log.clientHeight) : log.scrollTop - base();
      const first = items.length ? itemAt(Math.max(0, top - AROUND_PX)) : 0;
      const last = items.length ? Math.min(items.length, itemAt(top + log.clientHeight + AROUND_PX) + 1) : 0;
      render(first, last);
      const changed = measure();
      if (changed) layOut();
      above.style.height = `${offsets[first] ?? 0}px`;
      below.style.height = `${(offsets[items.length] ?? 0) - (offsets[last] ?? 0)}px`;
      scrollTo(position);
      if (!changed) break;
    }
    shownHeight = log.clientHeight;
    moving = false;
  }

  function showEmpty() {
    // Drawn once the companions are known, and again when they change.
    const key = view.loaded && view.room.greeted && !items.length ? `${view.room.id} ${view.epoch}` : null;
    if (key === emptyFor) return;
    emptyFor = key;
    emptyNode?.remove();
    emptyNode = key === null ? null : empty(view.room);
    if (emptyNode) log.prepend(emptyNode);
  }

  function redraw() {
    const position = anchor();
    const before = indexes;
    // Before the first message or decision, the room counts as empty and shows the welcome text instead of who joined or left.
    items = isEmpty(view.room) ? [] : itemsOf(view.room, now(), view.showsDecisions(), view);
    indexes = new Map(items.map((item, i) => [item.key, i]));
    if (!atEnd && before.size) {
      const newest = items.findLast(item => item.what === 'message');
      for (let i = items.length - 1; newest && i >= 0 && !before.has(items[i].key); i -= 1) {
        if (items[i].what === 'message') unread += 1;
      }
    }
    showEmpty();
    layOut();
    show(position);
    showToEnd();
    wantOlder();
  }

  function showToEnd() {
    if (atEnd) unread = 0;
    toEnd.hidden = atEnd || !items.length;
    toEnd.textContent = unread ? t('messages.new', { count: unread }) : t('messages.newest');
  }

  function wantOlder() {
    if (view.loaded && log.scrollTop < LOAD_BEFORE_PX && log.clientHeight) older();
  }

  log.addEventListener(
    'scroll',
    () => {
      if (moving || scheduled) return;
      scheduled = true;
      requestAnimationFrame(() => {
        scheduled = false;
        // After a change of height the observer below moves the log first.
        if (log.clientHeight === shownHeight) atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PX;
        show();
        showToEnd();
        wantOlder();
      });
    },
    { passive: true },
  );

  // Arrow keys move the focus from item to item, and into the tools of an item.
  function moveFocus(step) {
    const key = document.activeElement?.closest?.('[data-key]')?.dataset.key;
    let i = indexes.get(key);
    if (i === undefined) {
      const top = log.scrollTop - base();
      i = step > 0 ? itemAt(top) - 1 : itemAt(top + log.clientHeight - 8) + 1;
    }
    do i += step;
    while (items[i]?.what === 'day');
    if (!items[i]) return;
    if (!nodes.has(items[i].key)) {
      atEnd = false;
      log.scrollTop = base() + offsets[i] - log.clientHeight / 2;
      show(null);
    }
    const node = nodes.get(items[i].key);
    (node?.querySelector('.line-head, .happened-head') ?? node)?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: 'nearest' });
  }

  function moveToTool(step) {
    const tools = [...(document.activeElement?.closest?.('[data-key]')?.querySelectorAll('button.who, .tool:not(:disabled)') ?? [])];
    const i = tools.indexOf(document.activeElement) + step;
    if (i < 0) document.activeElement.closest('[data-key]')?.focus({ preventScroll: true });
    else tools[i]?.focus({ preventScroll: true });
  }

  log.addEventListener('keydown', event => {
    const act = { ArrowUp: () => moveFocus(-1), ArrowDown: () => moveFocus(1), ArrowLeft: () => moveToTool(-1), ArrowRight: () => moveToTool(1) }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  // From anywhere else on the page, however many companions and rooms lie between.
  document.addEventListener('keydown', event => {
    if (event.key !== 'ArrowUp' || !event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented || log.contains(event.target) || document.querySelector('dialog[open]')) return;
    event.preventDefault();
    if (!log.checkVisibility()) return;
    end();
    log.focus({ preventScroll: true });
    moveFocus(-1);
  });

  // Files are drawn a moment later.
  log.addEventListener('drawn', () => show());
  // A finger shows the tools of the message below it.
  log.addEventListener('focusin', () => onPhone() && requestAnimationFrame(() => show()));

  let width = 0;
  new ResizeObserver(() => {
    const position = anchor();
    if (log.clientWidth !== width) {
      width = log.clientWidth;
      heights.clear();
      layOut();
    }
    show(position);
  }).observe(log);

  function end() {
    atEnd = true;
    show();
    showToEnd();
  }
  toEnd.addEventListener('click', () => {
    end();
    log.focus({ preventScroll: true });
  });

  // Does something that may change the height of the log for a moment. A log that is higher for a moment scrolls up, which would look as if the reader
  // had left the end.
  function steady(act) {
    const top = log.scrollTop;
    act();
    log.scrollTop = atEnd && items.length ? log.scrollHeight : top;
  }

  return {
    redraw,
    end,
    steady,
    // Redraws an item that was expanded. The item keeps its position, and as much of it as fits is scrolled into view.
    reveal(key) {
      atEnd = false;
      redraw();
      const node = nodes.get(key);
      if (node) {
        const frame = log.getBoundingClientRect();
        const box = node.getBoundingClientRect();
        const beyond = Math.min(box.bottom - frame.bottom + 12, box.top - frame.top - 12);
        if (beyond > 0) log.scrollTop += beyond;
      }
      atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PX;
      showToEnd();
    },
    // Scrolls an item into view, and focuses it.
    go(key, focus = true) {
      const i = indexes.get(key);
      if (i === undefined) return false;
      atEnd = false;
      const position = () => ({ key, inside: -log.clientHeight / 3 });
      log.scrollTop = base() + offsets[i] - log.clientHeight / 3;
      show(position());
      const node = nodes.get(key);
      node?.classList.remove('flash');
      requestAnimationFrame(() => node?.classList.add('flash'));
      if (focus) node?.querySelector('[data-focus]')?.focus({ preventScroll: true });
      atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PX;
      showToEnd();
      return true;
    },
    reset() {
      for (const node of nodes.values()) node.remove();
      nodes.clear();
      heights.clear();
      emptyNode?.remove();
      emptyNode = null;
      emptyFor = null;
      items = [];
      indexes = new Map();
      atEnd = true;
      unread = 0;
      layOut();
    },
    // Updates elapsed times without a redraw.
    tick(serverNow) {
      for (const node of log.querySelectorAll('.elapsed')) {
        const since = Date.parse(node.dataset.since);
        say(node, Number.isFinite(since) ? words.running(serverNow - since) : '');
      }
    },
  };
}
