// The open reminders of a room, with a button to cancel each. Loaded on use.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { t } from './texts.js';
import * as words from './words.js';

// `me` is the name under which one writes. Guests get only their own.
export function showReminders(room, me) {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const told = el('p', { class: 'visually-hidden', role: 'status' });
  const zone = el('p', { class: 'muted' });
  const list = el('ul', { class: 'entries' });
  const refused = refusal => (problem.textContent = plain(words.upper(refusal.message)));
  const button = (label, act, attributes) => el('button', { type: 'button', class: 'quiet-button', onclick: () => act().then(refresh, refused), ...attributes }, label);

  const entryOf = one => {
    const about = el('p', { class: 'muted' }, plain(t('reminders.due_at', { who: one.from, time: words.minute(one.due) })));
    return el('li', null, el('p', { dir: 'auto' }, plain(one.text)), about, el('p', { class: 'actions' }, button(t('reminders.cancel'), () => api.cancelReminder(room.id, one.id).then(() => (told.textContent = plain(t('reminders.cancelled', { text: one.text })))), { 'aria-label': `${t('reminders.cancel')}: ${plain(one.text)}` })));
  };

  async function refresh() {
    problem.textContent = '';
    try {
      const [{ reminders }, own] = await Promise.all([api.reminders(room.id), me ? api.reminders(room.id, me) : null]);
      list.replaceChildren(...(reminders.length ? reminders.map(entryOf) : [el('li', { class: 'muted' }, t('reminders.none'))]));
      const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const use = own && here && own.zone !== here ? button(t('reminders.use_zone', { zone: here }), () => api.setTimeZone(room.id, me, here)) : null;
      zone.replaceChildren(...(own ? [t('reminders.zone', { zone: own.zone }), ' ', use] : []).filter(Boolean));
    } catch (refusal) {
      refused(refusal);
    }
  }

  dialog(t('rooms.reminders'), el('p', null, t('reminders.about'), ' ', t('reminders.ask')), problem, told, list, zone);
  refresh();
}
