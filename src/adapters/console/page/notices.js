// What a person should know now: shown above the field, and said politely to screen readers.

import { byId, el } from './dom.js';

const LONGEST_MS = 12_000;
const MOST = 3;
const SAID_EVERY_MS = 1500;

export function notices() {
  const root = byId('notices');
  const spoken = byId('announcements');
  let waiting = [];
  let timer = null;

  // Several at once are said together; of a flood only the newest.
  function flush() {
    timer = null;
    if (!waiting.length) return;
    spoken.replaceChildren(...waiting.slice(-3).map(text => el('p', null, text)));
    waiting = [];
    timer = setTimeout(flush, SAID_EVERY_MS);
  }

  return {
    show(text, kind = 'plain') {
      const known = [...root.children].find(other => other.dataset.text === text);
      known?.remove();
      const node = el('p', { class: `notice ${kind}`, dir: 'auto', 'data-text': text }, el('span', null, text), el('button', { class: 'quiet-button', 'aria-label': 'Dismiss', onclick: () => node.remove() }, '✕'));
      root.append(node);
      while (root.children.length > MOST) root.firstChild.remove();
      setTimeout(() => node.remove(), LONGEST_MS);
    },
    announce(text) {
      if (!text) return;
      waiting.push(text);
      timer ??= setTimeout(flush, 50);
    },
    shut() {
      const any = root.children.length > 0;
      root.replaceChildren();
      return any;
    },
  };
}
