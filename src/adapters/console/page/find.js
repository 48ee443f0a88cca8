// Finds words in what was said; `/` opens it. Older pages are loaded as far as needed.

import { byId, say } from './dom.js';

// `room()` is the room shown; `older()` loads a page; `show(wanted, key)` marks the words and goes to an entry.
export function find({ room, older, show, close: onClose }) {
  const form = byId('find');
  const input = byId('find-words');
  const count = byId('find-count');
  let at = null;
  let asked = 0;

  const matches = () => {
    const wanted = input.value.trim().toLowerCase();
    if (!wanted) return [];
    return room().entries.filter(entry => entry.kind === 'message' && (entry.text.toLowerCase().includes(wanted) || entry.from.toLowerCase().includes(wanted)));
  };

  function tell(found, i) {
    say(count, input.value.trim() ? (found.length ? `${found.length - i} of ${found.length}${room().complete ? '' : '+'}` : 'nothing found') : '');
    show(input.value.trim().toLowerCase() || null, found[i]?.key ?? null);
  }

  // Newest first, as in any talk; loads older pages when there is nothing more to be found.
  async function move(step) {
    asked += 1;
    const mine = asked;
    let found = matches();
    let i = found.findIndex(entry => entry.key === at);
    i = i < 0 ? found.length - 1 : i + step;
    while (i < 0 && input.value.trim() && !room().complete) {
      say(count, 'looking further back …');
      const known = found.length;
      if (!(await older()) || mine !== asked || form.hidden) break;
      found = matches();
      i += found.length - known;
    }
    if (mine !== asked) return;
    i = Math.max(0, Math.min(i, found.length - 1));
    at = found[i]?.key ?? null;
    tell(found, i);
  }

  input.addEventListener('input', () => {
    at = null;
    asked += 1;
    const found = matches();
    at = found.at(-1)?.key ?? null;
    tell(found, found.length - 1);
  });
  form.addEventListener('submit', event => {
    event.preventDefault();
    move(-1);
  });
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter' && event.shiftKey) {
      event.preventDefault();
      move(1);
    }
  });
  byId('find-older').addEventListener('click', () => move(-1));
  byId('find-newer').addEventListener('click', () => move(1));
  byId('find-close').addEventListener('click', () => shut());

  function shut() {
    if (form.hidden) return false;
    form.hidden = true;
    asked += 1;
    show(null, null);
    onClose();
    return true;
  }

  return {
    open() {
      form.hidden = false;
      input.select();
      input.focus();
    },
    shut,
  };
}
