// The browser's Back closes what is open before it leaves the room. While anything is open, one entry of the history stands for it.

import { pressedBeside } from './dom.js';

const open = [];
let isLeaving = false; // whether this entry is being left because nothing is open any more

const isGuarded = () => history.state?.isOpen === true;
const guard = () => isGuarded() || history.pushState({ isOpen: true }, '');

function settle() {
  if (open.length || isLeaving || !isGuarded()) return;
  isLeaving = true;
  history.back();
}

// Call this when something opens that `close()` closes. Returns a function to call once it is closed.
export function opened(close) {
  open.push(close);
  if (!isLeaving) guard();
  return () => {
    const at = open.indexOf(close);
    if (at >= 0) open.splice(at, 1);
    // What is opened or shown instead may take its entry.
    setTimeout(settle);
  };
}

// Makes a button open and close a panel, and focus the element `first` in it. Returns a function that closes it: whether it was open.
export function panelOf(button, panel, first, draw = () => {}) {
  let closed = null;
  function close() {
    if (panel.hidden) return false;
    panel.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    closed();
    return true;
  }
  button.addEventListener('click', () => {
    if (close()) return;
    draw();
    panel.hidden = false;
    closed = opened(close);
    button.setAttribute('aria-expanded', 'true');
    panel.querySelector(first)?.focus();
  });
  pressedBeside([panel, button], close);
  return close;
}

// Goes to another place of this page.
export const goTo = address => history[isGuarded() ? 'replaceState' : 'pushState'](null, '', address);

addEventListener('popstate', () => {
  if (isLeaving) isLeaving = false;
  else if (!isGuarded()) open.at(-1)?.();
  if (open.length) guard();
});
