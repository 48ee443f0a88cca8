// The message field: Enter sends, Shift-Enter starts a new line, as Enter does on a phone; ↑ edits your last message, Esc cancels an edit or a reply. Typed text is
// stored, and outlives its window.
// In a voice call the same field says it aloud.

import * as api from './api.js';
import { opened } from './back.js';
import { byId, el, name, onPhone, say } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { mention } from './mention.js';
import { takesFiles } from './pictures.js';
import { nameOf } from './state.js';
import { pieces, t } from './texts.js';
import { beginning } from './words.js';

// On a phone a longer text has a row of its own.
const LONG = 40;

// `author` is who writes: `me()` is the name, `takes()` whether that person can write here, and `draw(isGiven)` draws the name, or leaves it out where it cannot be another. `tone(id)` is the accent of a companion. `room()` and `outbox()` belong to the room shown. `remove(room, seq)` deletes a message. `showProblem(problem)` shows a
// refusal, `announce(text)` tells screen readers, `typed(text)` is called when a new message is typed or sent, and `sent()` after one was sent. `steady(act)` keeps the conversation in its place while the field changes its height. `aloud` says
// words in the voice call of this room: whether that is possible (`offered()`) and chosen (`isOn()`, `set(on)`), and `say(text)`, which returns whether they were sent. `pictures`: what companions get of them, as in `attach.js`.
export function compose({ author, remove, room, outbox, showProblem, announce, typed, sent, tone, steady, aloud, pictures }) {
  const { me } = author;
  const form = byId('compose');
  const field = byId('message');
  const about = byId('compose-about');
  const how = byId('compose-how');
  const way = (label, on) => el('button', { type: 'button', onclick: () => choose(on) }, label);
  const sayWay = way(t('call.aloud'), true);
  const writeWay = way(t('call.text'), false);
  how.replaceChildren(el('span', { class: 'muted' }, `${t('call.send_as')} `), sayWay, writeWay);
  if (onPhone()) field.enterKeyHint = 'enter';
  byId('send-sign').textContent = onPhone() ? '➤' : '⏎';
  let editing = null;
  let replying = null;
  let closed = null; // after an edit or a reply has begun
  // The files for the message, once somebody attached one.
  let files = null;

  async function attach(chosen) {
    if (editing || !author.takes()) return;
    if (!files) {
      const { tray } = await api.loaded(import('./attach.js'));
      files ??= tray(byId('files'), pictures, room, () => steady(size));
    }
    await files.add(chosen);
  }
  const record = byId('record');
  let recorder = null; // will be the recorder of voice notes
  // A voice note is sent as a message of its own.
  function note(file) {
    const replyTo = replying?.entry.seq ?? null;
    replying = null;
    draw();
    sent();
    return outbox().send(me(), '', replyTo, [file]);
  }

  const key = () => `text.${room()?.id ?? ''}`;
  // While a message is edited, the text typed before stays stored.
  const save = () => editing === null && storeForAll(key(), field.value);

  function size() {
    steady(() => {
      form.classList.toggle('long', field.value.length > LONG);
      field.style.height = 'auto';
      field.style.height = `${Math.min(field.scrollHeight + 2, Math.round(innerHeight * 0.4))}px`;
    });
  }

  function set(text) {
    field.value = text;
    size();
  }

  const editedWords = () => (editing.role === 'user' && editing.from === me() ? [t('compose.editing_own')] : pieces('compose.editing', { who: name(editing.role === 'companion' ? nameOf(room(), editing.from) : editing.from) }));

  // What the message is about, or why there can be none.
  function context() {
    if (room()?.isDeleted) return `${t('compose.gone', { room: room().id })}${field.value ? ` ${t('compose.gone_typed')}` : ''}`;
    if (editing) return editedWords();
    return replying ? pieces('compose.replying', { who: name(replying.name), text: el('span', { class: 'reply-words', dir: 'auto' }, beginning(replying.entry).slice(0, 80)) }) : null;
  }

  // An edit or a reply is always written.
  const offersAloud = () => !editing && !replying && aloud.offered();
  const isAloud = () => offersAloud() && aloud.isOn();
  function choose(on) {
    aloud.set(on);
    draw();
    field.focus();
  }

  function drawHow() {
    const isOn = isAloud();
    const isOffered = offersAloud();
    if (how.hidden === isOffered) steady(() => (how.hidden = !isOffered));
    sayWay.setAttribute('aria-pressed', String(isOn));
    writeWay.setAttribute('aria-pressed', String(!isOn));
    form.classList.toggle('aloud', isOn);
    say(byId('send-words'), t(isOn && !aloud.listens() ? 'call.say' : editing ? 'base.save' : 'compose.send'));
    field.placeholder = t(isOn ? 'call.say_placeholder' : innerWidth < 480 ? 'compose.message' : 'compose.placeholder');
    return isOn;
  }

  function draw() {
    const isOpen = Boolean(editing || replying);
    if (isOpen && !closed) closed = opened(cancel);
    else if (!isOpen && closed) closed = closed();
    const isSaid = drawHow();
    author.draw(isSaid || Boolean(editing));
    const isDeleted = Boolean(room()?.isDeleted);
    field.readOnly = isDeleted;
    byId('send').disabled = isDeleted;
    const shown = context();
    for (const button of [byId('attach'), record]) button.hidden = isDeleted || Boolean(editing);
    about.hidden = !shown;
    about.replaceChildren(...(shown ? [el('span', { id: 'compose-what' }, shown), editing ? el('button', { type: 'button', class: 'quiet-button', onclick: () => takeBack(editing) }, t('base.delete')) : '', isDeleted ? '' : el('button', { type: 'button', class: 'quiet-button', onclick: cancel }, t(onPhone() ? 'base.cancel' : 'base.cancel_esc'))] : []));
    form.hidden = Boolean(room()?.platform) && !editing;
    form.classList.toggle('editing', Boolean(editing));
  }

  function cancel() {
    if (!editing && !replying) return false;
    const wasEditing = Boolean(editing);
    editing = null;
    replying = null;
    if (wasEditing) set(loadForAll(key(), ''));
    draw();
    field.focus();
    return true;
  }

  function takeBack(entry) {
    if (entry.seq === editing?.seq || entry.seq === replying?.entry.seq) cancel();
    remove(room(), entry.seq);
  }

  function edit(entry) {
    save();
    editing = entry;
    replying = null;
    set(entry.text);
    draw();
    // With the focus the field says so itself.
    if (document.activeElement === field) announce(editedWords().map(part => part.textContent ?? part).join(''));
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  async function send() {
    const text = field.value.trim();
    if (!room() || room().isDeleted) return;
    if (editing) {
      const entry = editing;
      if (!text && entry.text) return showProblem(new Error(t('compose.empty')));
      cancel();
      if (text === entry.text) return;
      const { id } = room();
      await api.editMessage(id, entry.seq, text).then(() => announce(t('compose.saved')), problem => {
        if (room()?.id !== id) return;
        showProblem(problem);
        if (problem.status !== 404) edit({ ...entry, text });
        // It was deleted meanwhile. Its text stays as a new one.
        else if (!field.value) set(text);
      });
      return;
    }
    if (!text && (files?.isEmpty() ?? true)) return;
    if (isAloud() && (files?.isEmpty() ?? true)) {
      if (!aloud.say(text)) return;
      set('');
      typed('');
      storeForAll(key(), null);
      return;
    }
    if (!author.takes()) return;
    const replyTo = replying?.entry.seq ?? null;
    set('');
    typed('');
    replying = null;
    storeForAll(key(), null);
    draw();
    sent();
    await outbox().send(me(), text, replyTo, files?.take(room().id) ?? []);
  }

  form.addEventListener('submit', event => {
    event.preventDefault();
    send();
    field.focus();
  });
  field.addEventListener('input', () => {
    size();
    save();
    if (!editing) typed(field.value);
  });
  field.addEventListener('keydown', event => {
    // While an input method is active, Enter confirms a word.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey && !onPhone()) {
      event.preventDefault();
      send();
    } else if (event.key === 'ArrowUp' && !event.altKey && !field.value && !editing) {
      const last = room()?.entries.findLast(entry => entry.kind === 'message' && entry.role === 'user' && entry.from === me() && !room().hidden.has(entry.seq));
      if (last) {
        event.preventDefault();
        edit(last);
      }
    }
  });
  addEventListener('resize', size);
  takesFiles(form, chosen => attach(chosen).catch(showProblem));
  byId('attach').onclick = () => attach().catch(showProblem);
  let held = null;
  record.onpointerdown = record.onpointerup = ({ type }) => (held = type);
  record.onclick = ({ type, detail }) => detail === 0 && (held = type);
  for (const come of ['pointerenter', 'focus']) {
    record.addEventListener(come, () => (recorder ??= api.loaded(import('./voice-note.js')).then(({ noter }) => noter({ button: record, takes: author.takes, room, note, showProblem, held })).catch(showProblem)));
  }
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
    cancel,
    remove: takeBack,
    reply(entry, author) {
      if (editing) cancel();
      replying = { entry, name: author };
      draw();
      field.focus();
    },
    // Restores the text that was typed in this room and window.
    restore() {
      editing = null;
      replying = null;
      files?.draw();
      recorder?.then(recording => recording?.leave());
      set(loadForAll(key(), ''));
      draw();
    },
    // Puts a companion's name before the typed text.
    address(companion) {
      if (editing) cancel();
      const text = field.value.startsWith(`${companion}, `) ? field.value : `${companion}, ${field.value}`;
      set(text);
      save();
      field.focus();
      field.setSelectionRange(text.length, text.length);
    },
    // Writes a text below what was typed, so that the browser can undo it. While a message is edited, it waits in the stored text. If there was other
    // text, returns the key of the sentence that says what became of it, and perhaps `undo()`, which restores what was typed.
    write(text, withFiles = []) {
      if (withFiles.length) files?.put(withFiles);
      field.focus();
      if (editing) {
        storeForAll(key(), [loadForAll(key(), ''), text].filter(Boolean).join('\n\n'));
        return { said: 'compose.draft_later' };
      }
      const before = field.value;
      const typed = before.trimEnd();
      field.setSelectionRange(typed.length, before.length);
      if (!document.execCommand('insertText', false, typed ? `\n\n${text}` : text)) set(typed ? `${typed}\n\n${text}` : text);
      save();
      return typed ? { said: 'compose.draft_added', undo: () => (set(before), save(), field.focus()) } : {};
    },
    // Gives back a text that could not be sent, unless something else has been typed.
    giveBack(text) {
      if (field.value || editing) return;
      set(text);
      save();
    },
    focus: () => field.focus(),
  };
}
