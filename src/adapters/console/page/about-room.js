// “About this room”: what its companions are told, scenes and first words, what one says of oneself, and chats of other programs. Also the prompt of an answer.
// Loaded on use, as are its texts.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { platformName, titleOf } from './platforms.js';
import { pieces, t } from './texts.js';
import { asksBeforeLoss } from './unsaved.js';
import * as words from './words.js';

const LONGEST = { instructions: 4000, note: 1000, me: 1000 };
const USUAL_DEPTH = 4;
const MOST_DEPTH = 100;
const SHOWN_CHARS = 120;

const short = text => (text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
const button = (label, onclick, attributes = {}) => el('button', { type: 'button', class: 'quiet-button', onclick, ...attributes }, label);

// A part of the dialog, with a place for what went well or wrong. `act(event)` resolves to what is said then, and saves what was typed.
function part(title, about, content, label, act) {
  const state = el('p', { role: 'status' });
  const typed = () => [...form.querySelectorAll('textarea, select, input:not([type=file])')].map(({ value }) => value).join('\0');
  const doing = run => async event => {
    event?.preventDefault();
    try {
      state.className = 'muted';
      state.textContent = (await run(event)) ?? '';
    } catch (refusal) {
      state.className = 'form-problem';
      state.textContent = plain(words.sentence(refusal.message));
    }
  };
  const saves = doing(async event => {
    const said = await act(event);
    first = typed();
    return said;
  });
  const form = el('form', { class: 'small-form own-words', onsubmit: saves }, el('h3', null, title), about && el('p', { class: 'muted' }, about), content, state, label && el('div', { class: 'row' }, el('button', { class: 'solid' }, label)));
  let first = typed();
  return { form, doing, isChanged: () => typed() !== first, loaded: () => (first = typed()) };
}

const area = (id, label, rows, attributes) => [el('label', { for: id }, label), el('textarea', { id, rows, dir: 'auto', ...attributes })];
const valueOf = ([, field]) => field.value.trim();

function companionsPart(room, changed) {
  const now = room.words ?? {};
  const instructions = area('room-instructions', t('room_words.instructions'), 5, { maxlength: LONGEST.instructions, value: now.instructions ?? '' });
  const style = el('select', { id: 'room-style' }, ['chat', 'role-play'].map(code => el('option', { value: code, selected: code === now.style }, t(`room_styles.${code}`))));
  const note = area('room-note', t('room_words.note'), 2, { maxlength: LONGEST.note, value: now.note ?? '' });
  const depth = el('input', { id: 'room-note-depth', type: 'number', min: 0, max: MOST_DEPTH, value: now.note_depth ?? USUAL_DEPTH });
  const fields = [instructions, el('label', { for: style.id }, t('room_words.style')), style, note, el('label', { for: depth.id }, t('room_words.depth')), depth];
  return part(t('room_words.companions'), t('room_words.companions_about'), fields, t('base.save'), async () => {
    await api.patchRoom(room.id, { words: { instructions: valueOf(instructions), style: style.value, note: valueOf(note), note_depth: Number(depth.value) } });
    await changed();
    return t('room_words.saved');
  });
}

// What a companion's card says of the place where it begins.
async function scenarioOf({ id, name }, me) {
  const file = await api.cardFile(id, 'json').catch(() => null);
  const { data } = file ? JSON.parse(await file.text()) : {};
  const text = typeof data?.scenario === 'string' ? data.scenario : '';
  return text.replaceAll(/\{\{char\}\}/giu, name).replaceAll(/\{\{user\}\}/giu, me).trim();
}

function scenePart(room, me) {
  const scene = area('room-scene', t('room_words.scene'), 3, { required: true });
  const offered = el('div', { class: 'actions' });
  const scenes = part(t('room_words.begin'), t('room_words.begin_about'), [scene, offered], t('room_words.write_scene'), async () => {
    await api.call('POST', api.roomPath(room.id, '/scenes'), { from: me, text: valueOf(scene) });
    scene[1].value = '';
    return t('room_words.scene_written');
  });
  for (const companion of (room.companions ?? []).filter(one => !one.external)) {
    scenarioOf(companion, me).then(text => text && offered.append(button(t('room_words.scenario_of', { who: companion.name }), () => (scene[1].value = text))));
    const greet = text => scenes.doing(() => api.call('POST', api.roomPath(room.id, '/greeting'), { companion: companion.id, text, anyway: true }).then(() => t('room_words.said')));
    api.companion(companion.id).then(
      answer => offered.append(...(answer.companion.greetings ?? []).map(text => button(pieces('profile.begin', { who: companion.name, text: short(text) }), greet(text)))),
      () => {},
    );
  }
  return scenes;
}

// A person's description of themselves in a room.
function mePart(room, me) {
  const text = area('room-me', t('room_words.me', { who: me }), 3, { maxlength: LONGEST.me });
  const path = api.roomPath(room.id, '/me');
  const about = part(t('room_words.about_me'), t('room_words.about_me_about'), text, t('base.save'), async () => {
    await api.call('PUT', path, { from: me, text: valueOf(text) || null });
    return t('room_words.saved');
  });
  // Nobody types before it is there, because it would replace what was typed.
  text[1].disabled = true;
  about.doing(async () => {
    text[1].value = (await api.call('GET', `${path}?${new URLSearchParams({ from: me })}`)).text ?? '';
    text[1].disabled = false;
    about.loaded();
  })();
  return about;
}

function importPart(room, me) {
  const file = el('input', { type: 'file', id: 'room-chat', accept: '.jsonl,application/jsonl,application/json', required: true });
  return part(t('room_words.import'), t('room_words.import_about'), [el('label', { for: file.id }, t('room_words.file')), file], t('room_words.import_it'), async () => {
    const done = await api.call('POST', api.roomPath(room.id, `/import?${new URLSearchParams({ from: me })}`), file.files[0]);
    return [t('room_words.imported', { count: done.messages }), done.left_out ? t('room_words.left_out', { count: done.left_out }) : '', done.unreadable ? t('room_words.unreadable', { count: done.unreadable }) : '', done.undated ? t('room_words.undated', { count: done.undated }) : '', done.note ? t('room_words.note_left', { field: t('room_words.note'), note: done.note }) : ''].filter(Boolean).join(' ');
  });
}

function show(title, ...parts) {
  asksBeforeLoss(dialog(title, parts.map(({ form }) => form)), () => parts.some(one => one.isChanged()));
}

// `me` is the name under which one writes; `changed()` loads the list of rooms again.
export async function showAbout(room, { me, changed }) {
  const isHere = !platformName(room.id);
  show(t('room_words.title', { room: titleOf(room) }), companionsPart(room, changed), ...(isHere && me ? [scenePart(room, me), mePart(room, me), importPart(room, me)] : []));
}

// What a guest says of themselves.
export async function showMe(room, me) {
  show(t('room_words.about_me'), mePart(room, me));
}

export async function beginAnew(room) {
  if (await confirmed(t('room_words.anew'), t('room_words.anew_question'), t('room_words.anew'), t('base.cancel'))) await api.call('POST', api.roomPath(room.id, '/conversations'), {});
}

// The prompt with which an answer of the room shown was made, as it was sent.
export async function showPrompt(seq) {
  const body = el('div', { class: 'whole-prompt' }, el('p', { class: 'muted' }, t('base.loading')));
  dialog(t('outcomes.prompt'), body);
  const room = decodeURIComponent(location.hash.split('/')[1] ?? '');
  try {
    const { model, at, messages } = await api.call('GET', api.roomPath(room, `/messages/${seq}/prompt`));
    const one = ({ role, text }) => el('details', { open: role !== 'system' }, el('summary', null, t(`prompt_roles.${role}`)), el('p', { class: 'part-words', dir: 'auto' }, text));
    body.replaceChildren(el('p', { class: 'muted' }, t('room_words.prompt_about', { model, at: words.minute(at) })), ...messages.map(one));
  } catch (refusal) {
    body.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, plain(words.sentence(refusal.message))));
  }
}
