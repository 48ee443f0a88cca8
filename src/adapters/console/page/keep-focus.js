// Keeps the keyboard's focus near when what has it goes away: a list that is drawn again, a form that is closed, a notice that is dismissed. The browser would begin at
// the top of the page.

import { byId } from './dom.js';

const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex]';

const isShown = node => node.isConnected && node.checkVisibility({ visibilityProperty: true });
// Counts and times in it change.
const labelOf = node => node.id || (node.getAttribute('aria-label') ?? node.textContent).replace(/\d+/gu, '');

function ancestorsOf(node) {
  const found = [];
  for (let at = node; at; at = at.parentElement) found.push(at);
  return found;
}

// The element that takes the place of the one that had the focus: what an undo offers, then one with the same words, then the next one.
function successor({ ancestors, label, known, box }) {
  const focusableIn = at => [...at.querySelectorAll(FOCUSABLE)].filter(node => node.tabIndex >= 0 && !node.disabled && isShown(node));
  let level = ancestors.findIndex(isShown);
  let near = focusableIn(ancestors[level]);
  // Behind a dialog nothing can have the focus.
  while (!near.length && ancestors[level] !== box && box?.contains(ancestors[level])) near = focusableIn(ancestors[(level += 1)]);
  const undo = [...byId('notices').querySelectorAll('button.solid')].find(button => !known.has(button));
  const same = undo ?? near.find(node => labelOf(node) === label);
  if (same || ancestors[level] === document.body) return same;
  const gone = ancestors[level - 1];
  return (gone.isConnected && near.find(node => gone.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING)) || near[0];
}

export function keepFocus() {
  let last = null; // what had the focus last; `outer` had it before a dialog was opened
  let isLooking = false;

  function look() {
    isLooking = false;
    const { activeElement, body } = document;
    if (!last || (activeElement !== body && activeElement !== last.node)) return;
    // A button that is disabled for a moment gets the focus again.
    const { disabled } = last.node;
    const isBack = last.wasDisabled && !disabled;
    last.wasDisabled = disabled;
    if (isShown(last.node)) return isBack && last.node.focus();
    for (let from = last; from; from = from.outer) {
      const next = isShown(from.node) ? from.node : successor(from);
      if (next) return next.focus();
    }
    byId('log').focus();
  }

  document.addEventListener('focusin', ({ target }) => {
    const ancestors = ancestorsOf(target);
    const box = target.closest('dialog');
    // An undo that was offered before belongs to something else.
    const known = new Set(byId('notices').querySelectorAll('button.solid'));
    last = { node: target, ancestors, label: labelOf(target), known, box, outer: box && (last?.box === box ? last.outer : last) };
  });
  // A click elsewhere moves the focus on purpose.
  document.addEventListener('pointerdown', () => (last = last?.box ? last : null), true);
  new MutationObserver(() => {
    if (!isLooking) requestAnimationFrame(look);
    isLooking = true;
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['hidden', 'disabled'] });
}
