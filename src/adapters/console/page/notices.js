// Notices: shown above the message field, and announced politely by screen readers.

import { byId, el, say } from './dom.js';
import { t } from './texts.js';

const SHOWN_MS = 12_000;
const MOST = 3;
const ANNOUNCE_EVERY_MS = 1500;
const ANNOUNCED_MS = 10_000;

const isField = node => node?.matches?.('input, textarea, select') && node.value !== '';

export function notices() {
  const root = byId('notices');
  const announcements = byId('announcements');
  let waiting = [];
  let timer = null;

  // Several at once are announced together; of a flood, the newest and how many more there are.
  function flush() {
    timer = null;
    if (!waiting.length) return;
    const left = Math.max(0, waiting.length - MOST);
    for (const text of [left ? t('messages.more', { count: left }) : [], ...waiting.slice(left)].flat()) {
      const node = el('p', null, text);
      announcements.append(node);
      // A screen reader may come to it late.
      setTimeout(() => node.remove(), ANNOUNCED_MS);
    }
    waiting = [];
    timer = setTimeout(flush, ANNOUNCE_EVERY_MS);
  }

  function dismiss(node) {
    node.remove();
    node.dismissed?.();
  }

  // Undoes the last deletion, unless the keys are meant for typed text.
  document.addEventListener('keydown', event => {
    if (event.key.toLowerCase() !== 'z' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || isField(event.target) || document.querySelector('dialog[open]')) return;
    const undo = [...root.querySelectorAll('.notice > button.solid')].at(-1);
    if (!undo) return;
    event.preventDefault();
    undo.click();
  });

  return {
    // `action` is a button in the notice: its `label`, `act` when it is pressed, for how long it is offered (`ms`), and `dismissed` when the notice is closed.
    show(text, kind = 'plain', action = null) {
      const duplicate = [...root.children].find(other => other.dataset.text === text);
      duplicate?.remove();
      const left = () => Math.max(0, Math.ceil((ends - Date.now()) / 1000));
      const ends = Date.now() + (action?.ms ?? SHOWN_MS);
      // A screen reader does not read every second.
      const seconds = action && el('span', { 'aria-hidden': 'true' }, ` (${left()})`);
      const act = action && el('button', { class: 'solid', onclick: () => (node.remove(), action.act()) }, action.label, seconds);
      const node = el('p', { class: `notice ${kind}`, dir: 'auto', 'data-text': text }, el('span', null, text), action?.dismissed ? el('span', { class: 'visually-hidden' }, ` ${t('rooms.undo_key')}`) : null, act, el('button', { class: 'quiet-button', 'aria-label': t(action?.dismissed ? 'base.delete_now' : 'base.dismiss'), onclick: () => dismiss(node) }, action?.dismissed ? t('base.delete_now') : '✕'));
      node.dismissed = action?.dismissed;
      root.append(node);
      while (root.children.length > MOST) root.firstChild.remove();
      setTimeout(() => node.remove(), ends - Date.now());
      const count = act && setInterval(() => (act.isConnected ? say(seconds, ` (${left()})`) : clearInterval(count)), 1000);
      return () => node.remove();
    },
    announce(text) {
      // Several companions may do the same at once.
      if (!text || waiting.includes(text)) return;
      waiting.push(text);
      timer ??= setTimeout(flush, 50);
    },
    // Another room is shown: what was refused in this one is told no longer.
    leaveRoom: () => root.querySelectorAll('.problem').forEach(node => node.remove()),
    clear() {
      const any = root.children.length > 0;
      [...root.children].forEach(dismiss);
      return any;
    },
  };
}
