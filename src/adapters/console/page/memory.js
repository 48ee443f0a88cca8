// “What companions remember”: the notes of a room, to be corrected and erased, and the switches. Loaded on use.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { t } from './texts.js';
import * as words from './words.js';

const LONGEST = 240;

// `me` is the name under which one writes.
export function showMemory(room, me) {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const state = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  const list = el('ul', { class: 'entries' });
  const refused = refusal => (problem.textContent = plain(words.sentence(refusal.message)));
  const doing = act => async () => {
    problem.textContent = '';
    await act().then(refresh, refused);
  };
  const button = (label, act, attributes = {}) => el('button', { type: 'button', class: 'quiet-button', onclick: doing(act), ...attributes }, label);

  const origin = note => {
    const at = words.minute(note.at);
    if (note.asked) return t('remembered.asked', { who: note.said_by, at });
    const isOfAnother = note.about_id && note.about_id !== note.said_by_id;
    return isOfAnother ? t('remembered.of_another', { who: note.said_by, whom: note.about, at }) : `${note.said_by}, ${at}`;
  };
  // Links to the message that a note was made from.
  const source = note => el('a', { class: 'permalink', href: `#/${encodeURIComponent(note.room)}/${note.sources[0]}`, onclick: () => box.close() }, plain(origin(note)));

  function correction(note, entry) {
    const field = el('input', { value: note.text, maxlength: LONGEST, required: true, autocomplete: 'off', dir: 'auto', 'aria-label': t('remembered.corrected'), 'aria-describedby': 'correct-about' });
    const form = el('form', { class: 'small-form' }, field, el('p', { class: 'hint', id: 'correct-about' }, t('remembered.correct_about')), el('div', { class: 'row' }, el('button', { class: 'solid' }, t('base.save')), button(t('base.cancel'), async () => {})));
    form.addEventListener('submit', event => {
      event.preventDefault();
      doing(() => api.correctNote(note.room, note.seq, field.value.trim()))();
    });
    entry.replaceChildren(form);
    field.focus();
  }

  function entryOf(note) {
    const about = el('p', { class: 'muted' }, source(note), note.replaced_by ? ` · ${t('remembered.replaced')}` : null);
    const entry = el('li', null, el('p', { dir: 'auto' }, plain(note.text)), about);
    const correct = el('button', { type: 'button', class: 'quiet-button', onclick: () => correction(note, entry) }, t('remembered.correct'));
    entry.append(el('p', { class: 'actions' }, correct, button(t('remembered.erase'), () => erase(note), { class: 'quiet-button danger' })));
    return entry;
  }

  async function erase(note) {
    const question = [plain(note.text), t('remembered.erase_question')];
    if (await confirmed(t('remembered.erase'), question, t('remembered.erase'))) await api.eraseNote(note.room, note.seq);
  }

  async function withoutMe() {
    if (await confirmed(t('remembered.mine'), t('remembered.mine_question'), t('remembered.mine'))) await api.switchNotes(room.guild, false, me);
  }

  async function refresh() {
    try {
      const [{ on, across_rooms: isAcross, allowed, notes, taken, guild }, mine] = await Promise.all([api.notes(room.id), me ? api.notesAbout(room.guild, me) : null]);
      const last = taken.filter(one => one.messages > 0).at(-1);
      const dropped = Object.entries(last?.dropped ?? {}).map(([why, count]) => t(`remembered.dropped.${why}`, { count }));
      const key = allowed ? (on === undefined ? 'unset' : on ? 'on' : 'off') : 'forbidden';
      const turn = on ? button(t('remembered.turn_off'), () => api.switchNotes(guild, false)) : button(t('remembered.turn_on'), () => api.switchNotes(guild, true), { class: 'solid' });
      const own = mine?.on ? button(t('remembered.mine'), withoutMe) : button(t('remembered.mine_again'), () => api.switchNotes(room.guild, true, me));
      const across = button(t(isAcross ? 'remembered.across_off' : 'remembered.across_on'), () => api.useNotesAcrossRooms(guild, !isAcross));
      const parts = [
        el('p', null, t(`remembered.${key}`), ' ', on && allowed ? t(isAcross ? 'remembered.across' : 'remembered.here') : null),
        el('p', { class: 'actions' }, allowed ? turn : null, allowed && on ? across : null, allowed && on && mine ? own : null),
        last ? el('p', { class: 'muted' }, t('remembered.taken', { at: words.minute(last.at), made: last.made, messages: last.messages }), dropped.length ? ` ${t('remembered.dropped.heading')} ${dropped.join(', ')}.` : null) : null,
      ];
      state.replaceChildren(...parts.filter(Boolean));
      list.replaceChildren(...(notes.length ? notes.toReversed().map(entryOf) : [el('li', { class: 'muted' }, t('remembered.none'))]));
    } catch (refusal) {
      refused(refusal);
    }
  }

  const box = dialog(t('remembered.button'), state, problem, list);
  refresh();
}
