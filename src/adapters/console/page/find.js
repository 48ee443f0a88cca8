// Searches the room; `/` opens it. The server finds the words in all messages; older pages are loaded to show a match.

import { searchRoom } from './api.js';
import { opened } from './back.js';
import { byId, say } from './dom.js';
import { t } from './texts.js';

// The server is asked when nobody has typed for this long.
const TYPED_MS = 200;

// `room()` is the room shown; `older()` loads a page; `show(search, key)` marks the words and goes to an entry.
export function find({ room, older, show, onClose }) {
  const form = byId('find');
  const input = byId('find-words');
  const count = byId('find-count');
  // What the server found for these words: numbers of messages, oldest first, and how many there are.
  let found = { words: null, seqs: [], count: 0 };
  let at = null;
  let searches = 0;
  let timer = null;
  let closed = null;

  const words = () => input.value.trim();
  const entryOf = seq => room().seen.get(`m${seq}`);

  function showMatch() {
    const i = found.seqs.indexOf(at);
    const more = found.count > found.seqs.length ? 'find.of_more' : 'find.of';
    say(count, words() ? (i < 0 ? t('find.none') : t(more, { at: found.seqs.length - i, count: found.seqs.length })) : '');
    show(words().toLowerCase() || null, at === null ? null : (entryOf(at)?.key ?? null));
  }

  // Whether the server was asked, and nobody has typed meanwhile.
  async function ask() {
    const current = ++searches;
    const wanted = words();
    if (!wanted || found.words === wanted) return Boolean(wanted);
    try {
      const answer = await searchRoom(room().id, wanted);
      if (current !== searches || form.hidden) return false;
      const seqs = answer.messages.map(message => message.seq).sort((a, b) => a - b);
      found = { words: wanted, seqs, count: answer.count };
      at = null;
      return true;
    } catch (problem) {
      if (current === searches) say(count, problem.message);
      return false;
    }
  }

  // Matches are visited newest first. Older pages are loaded until a match is there.
  async function move(step) {
    clearTimeout(timer);
    if (!(await ask())) return;
    const current = ++searches;
    const { seqs } = found;
    const i = seqs.indexOf(at);
    at = seqs.length ? seqs[Math.max(0, Math.min(i < 0 ? seqs.length - 1 : i + step, seqs.length - 1))] : null;
    while (at !== null && !entryOf(at) && !room().complete) {
      say(count, t('find.searching'));
      if (!(await older()) || current !== searches || form.hidden) break;
    }
    if (current === searches) showMatch();
  }

  input.addEventListener('input', () => {
    clearTimeout(timer);
    searches += 1;
    if (!words()) {
      found = { words: null, seqs: [], count: 0 };
      at = null;
      showMatch();
      return;
    }
    timer = setTimeout(() => move(0), TYPED_MS);
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
    closed();
    clearTimeout(timer);
    searches += 1;
    show(null, null);
    onClose();
    return true;
  }

  return {
    open() {
      if (form.hidden) closed = opened(close);
      form.hidden = false;
      // What was said since is found, too.
      found = { words: null, seqs: [], count: 0 };
      input.select();
      input.focus();
    },
    close,
  };
}
