// The message field: Enter sends, Shift-Enter breaks the line, ↑ edits the last, Esc leaves an edit or a reply. What is typed is kept.

import * as api from './api.js';
import { byId, el, name } from './dom.js';
import { keep, recall } from './keep.js';
import { mention } from './mention.js';

// `me()` is who speaks; `tone(id)` the accent of a companion; `room()` and `outbox()` belong to the room shown; `tell(problem)` shows a refusal; `sent()` follows a message.
export function compose({ me, room, outbox, tell, sent, tone }) {
  const form = byId('compose');
  const field = byId('message');
  const about = byId('compose-about');
  const as = byId('compose-as');
  let editing = null;
  let replying = null;

  const key = () => `text.${room()?.id ?? ''}`;
  // While a message is edited, what was typed before stays kept.
  const save = () => editing === null && keep(key(), field.value);

  function size() {
    field.style.height = 'auto';
    field.style.height = `${Math.min(field.scrollHeight + 2, Math.round(innerHeight * 0.4))}px`;
  }

  function set(text) {
    field.value = text;
    size();
  }

  function draw() {
    const others = editing
      ? ['editing a message of ', name(editing.from), ' ', el('button', { type: 'button', class: 'quiet-button', onclick: () => remove(editing) }, 'delete it')]
      : replying
        ? ['replying to ', name(replying.who), ': ', el('span', { class: 'reply-words', dir: 'auto' }, replying.entry.text.slice(0, 80))]
        : null;
    about.hidden = !others;
    about.replaceChildren(...(others ? [el('span', null, others), el('button', { type: 'button', class: 'quiet-button', onclick: leave }, 'leave it (Esc)')] : []));
    as.replaceChildren(name(me()), ':');
    form.classList.toggle('editing', Boolean(editing));
  }

  function leave() {
    if (!editing && !replying) return false;
    const wasEditing = Boolean(editing);
    editing = null;
    replying = null;
    if (wasEditing) set(recall(key(), ''));
    draw();
    field.focus();
    return true;
  }

  async function remove(entry) {
    leave();
    await api.deleteMessage(room().id, entry.seq).catch(tell);
  }

  function edit(entry) {
    save();
    editing = entry;
    replying = null;
    set(entry.text);
    draw();
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  async function send() {
    const text = field.value.trim();
    if (!room()) return;
    if (editing) {
      const entry = editing;
      if (!text) return;
      leave();
      if (text === entry.text) return;
      await api.editMessage(room().id, entry.seq, text).catch(problem => {
        tell(problem);
        edit({ ...entry, text });
      });
      return;
    }
    if (!text) return;
    const replyTo = replying?.entry.seq ?? null;
    set('');
    replying = null;
    keep(key(), null);
    draw();
    sent();
    await outbox().say(me(), text, replyTo);
  }

  form.addEventListener('submit', event => {
    event.preventDefault();
    send();
    field.focus();
  });
  field.addEventListener('input', () => {
    size();
    save();
  });
  field.addEventListener('keydown', event => {
    // While an input method composes, Enter chooses a word.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === 'ArrowUp' && !field.value && !editing) {
      const mine = room()?.entries.findLast(entry => entry.kind === 'message' && entry.role === 'user' && entry.from === me());
      if (mine) {
        event.preventDefault();
        edit(mine);
      }
    }
  });
  addEventListener('resize', size);
  mention(field, {
    room,
    me,
    tone,
    changed() {
      size();
      save();
    },
  });

  return {
    draw,
    edit,
    leave,
    remove,
    reply(entry, who) {
      if (editing) leave();
      replying = { entry, who };
      draw();
      field.focus();
    },
    // What was typed in this room, in this window.
    restore() {
      editing = null;
      replying = null;
      set(recall(key(), ''));
      draw();
    },
    // Begins with a name, and keeps what was typed.
    address(who) {
      if (editing) leave();
      const begun = field.value.startsWith(`${who}, `) ? field.value : `${who}, ${field.value}`;
      set(begun);
      save();
      field.focus();
      field.setSelectionRange(begun.length, begun.length);
    },
    write(text) {
      set(text);
      save();
      field.focus();
    },
    focus: () => field.focus(),
  };
}
