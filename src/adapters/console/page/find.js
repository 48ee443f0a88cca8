// Searches the messages; `/` opens it. Older pages are loaded as needed.

import { byId, say } from './dom.js';
import { t } from './texts.js';

// `room()` is the room shown; `older()` loads a page; `show(search, key)` marks the words and goes to an entry.
export function find({ room, older, show, onClose }) {
  const form = byId('find');
  const input = byId('find-words');
  const count = byId('find-count');
  let at = null;
  let searches = 0;

  const matches = () => {
    const search = input.value.trim().toLowerCase();
    if (!search) return [];
    return room().entries.filter(entry => entry.kind === 'message' && (entry.text.toLowerCase().includes(search) || entry.from.toLowerCase().includes(search)));
  };

  function showMatch(found, i) {
    say(count, input.value.trim() ? (found.length ? t(room().complete ? 'find.of' : 'find.of_more', { at: found.length - i, count: found.length }) : t('find.none')) : '');
    show(input.value.trim().toLowerCase() || null, found[i]?.key ?? null);
  }

  // Matches are visited newest first. Older pages are loaded when there is no further match.
  async function move(step) {
    searches += 1;
    const current = searches;
    let found = matches();
    let i = found.findIndex(entry => entry.key === at);
    i = i < 0 ? found.length - 1 : i + step;
    while (i < 0 && input.value.trim() && !room().complete) {
      say(count, t('find.searching'));
      const before = found.length;
      if (!(await older()) || current !== searches || form.hidden) break;
      found = matches();
      i += found.length - before;
    }
    if (current !== searches) return;
    i = Math.max(0, Math.min(i, found.length - 1));
    at = found[i]?.key ?? null;
    showMatch(found, i);
  }

  input.addEventListener('input', () => {
    at = null;
    searches += 1;
    const found = matches();
    at = found.at(-1)?.key ?? null;
    showMatch(found, found.length - 1);
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
  byId('find-close').addEventListener('click', () => close());

  function close() {
    if (form.hidden) return false;
    form.hidden = true;
    searches += 1;
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
    close,
  };
}
