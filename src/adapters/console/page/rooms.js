// The list of rooms, the form for a new room, and the question before one is deleted.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { companionPicker } from './companion-picker.js';
import { confirmed, once } from './dialogs.js';
import { byId, el, fill, name } from './dom.js';
import { areMany, listed, platformName, titleOf, titleParts } from './platforms.js';
import { t } from './texts.js';
import { unreadMark } from './unread.js';
import * as words from './words.js';

const MORE = 50;

const folded = title => title.normalize('NFKC').toLowerCase().trim();

export const deletionLabel = room => t(platformName(room.id) ? 'rooms.delete_history' : 'rooms.delete');

// Deletes a room, if the person is sure. `leave(id)` is called before, and with null if it fails; `deleted(room, deletion)` is called afterwards.
export async function deletesRoom(room, leave, deleted) {
  const isSure = await once(async () => {
    const { messages: count } = await api.deletion(room.id);
    const question = t(platformName(room.id) ? 'rooms.delete_history_question' : 'rooms.delete_question', { room: titleOf(room), count });
    return confirmed(deletionLabel(room), question, t('base.delete'));
  });
  if (!isSure) return false;
  leave(room.id);
  const deletion = await api.deleteRoom(room.id).catch(problem => {
    leave(null);
    throw problem;
  });
  deleted(room, deletion);
  return true;
}

// `open(id)` opens a room; `unreadIn(id)` is the number of its messages that were not seen; `showProblem(problem)` shows a refusal; `changed()` loads the list
// again; `desk` makes companions.
export function rooms({ open, unreadIn, showProblem, changed, desk }) {
  const listNode = byId('rooms');
  const filter = byId('room-filter');
  const newNode = byId('new-room');
  let all = [];
  let current = null;
  const extra = new Map(); // by platform: how many rooms are listed besides those with the newest messages

  function entry(room) {
    const { channel, location } = titleParts(room);
    const unseen = room.id === current ? {} : unreadIn(room.id);
    return el(
      'li',
      null,
      el(
        'button',
        { class: 'room', 'data-room': room.id, 'data-platform': platformName(room.id), title: room.title ? `${room.title} (${room.id})` : null, 'aria-current': room.id === current ? 'true' : null, onclick: () => open(room.id) },
        name(channel, { class: 'room-name' }),
        unreadMark(unseen.count),
        unseen.calls ? el('span', { class: 'room-needs' }, t('rooms.needs_you')) : null,
        el('span', { class: 'room-about' }, room.paused ? t('rooms.paused') : room.last_at ? words.ago(room.last_at, serverNow()) : platformName(room.id) ? '' : t('rooms.empty')),
        location ? name(location, { class: 'room-where' }) : null,
      ),
    );
  }

  function showMore(platform, shown) {
    extra.set(platform, (extra.get(platform) ?? 0) + MORE);
    drawList();
    // To the first room that was not listed before.
    const known = new Set(shown.map(room => room.id));
    [...listNode.querySelectorAll('.room')].find(node => node.dataset.platform === platform && !known.has(node.dataset.room))?.focus();
  }

  function drawList() {
    const focused = listNode.contains(document.activeElement) ? document.activeElement.dataset.room : null;
    filter.hidden = !areMany(all);
    if (filter.hidden) filter.value = '';
    const groups = listed(all, current, filter.value, extra);
    fill(listNode, [
      groups.map(({ platform, rooms: shown, more }) => [
        platform ? el('h3', { class: 'room-platform' }, platform) : null,
        el('ul', { 'aria-label': platform ? t('rooms.channels', { platform }) : t('rooms.list') }, shown.map(entry)),
        more ? el('button', { class: 'quiet-button more-rooms', onclick: () => showMore(platform, shown) }, t('rooms.more', { shown: Math.min(more, MORE), count: more })) : null,
      ]),
      groups.length ? null : el('p', { class: 'room-more' }, t(all.length ? 'rooms.no_match' : 'rooms.none')),
    ]);
    if (focused !== null) [...listNode.querySelectorAll('.room')].find(button => button.dataset.room === focused)?.focus();
  }

  function newForm(companions) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const title = el('input', { id: 'new-room-title', required: true, maxlength: '64', autocomplete: 'off', dir: 'auto', placeholder: t('rooms.name_example') });
    // All companions are chosen at first, because there is most to see when several are in a room.
    const picker = companionPicker(companions, companions, { desk });
    const form = el(
      'form',
      { class: 'small-form' },
      el('label', { for: 'new-room-title' }, t('rooms.name')),
      title,
      picker.node,
      problem,
      el('div', { class: 'row' }, el('button', { class: 'solid' }, t('rooms.create')), el('button', { type: 'button', class: 'quiet-button', onclick: drawNew }, t('base.cancel'))),
    );
    form.addEventListener('submit', async event => {
      event.preventDefault();
      try {
        // The room goes to the guild of the open room, unless that guild belongs to another platform.
        const guild = all.find(room => room.id === current && !platformName(room.id))?.guild ?? 'home';
        const { id } = await api.createRoom({ title: title.value, guild, companions: picker.chosen() });
        drawNew();
        await changed();
        open(id);
        byId('message').focus();
      } catch (refusal) {
        const same = refusal.status === 409 && all.find(room => folded(titleOf(room)) === folded(title.value));
        problem.replaceChildren(`${words.upper(refusal.message)} `, same ? el('button', { type: 'button', class: 'quiet-button', onclick: () => (drawNew(), open(same.id)) }, t('rooms.open', { room: titleOf(same) })) : '');
      }
    });
    form.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        drawNew();
        newNode.querySelector('button')?.focus();
      }
    });
    newNode.replaceChildren(form);
    title.focus();
  }

  function drawNew() {
    const button = el('button', { class: 'quiet-button' }, t('rooms.new'));
    button.addEventListener('click', async () => {
      try {
        newForm((await api.companions()).companions ?? []);
      } catch (problem) {
        showProblem(problem);
      }
    });
    newNode.replaceChildren(button);
  }

  filter.addEventListener('input', drawList);
  filter.addEventListener('keydown', event => {
    if (event.key === 'Escape' && filter.value) {
      event.stopPropagation();
      filter.value = '';
      drawList();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      listNode.querySelector('.room')?.click();
    }
  });
  drawNew();
  return {
    set(list, id) {
      all = list;
      current = id;
      drawList();
    },
    redraw: drawList,
    startNew: () => newNode.querySelector('button')?.click(),
  };
}
