// The list of rooms, the form for a new room, and the actions for the open room.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { companionPicker } from './companion-picker.js';
import { confirmed } from './dialogs.js';
import { byId, el, name } from './dom.js';
import { areMany, listed, platformName, titleOf, titleParts } from './platforms.js';
import { inFigures } from './unread.js';
import * as words from './words.js';

const MORE = 50;
const ROOM_NAME = /^[A-Za-z0-9_-]{1,64}$/u;

const sentence = text => `${text.charAt(0).toUpperCase()}${text.slice(1)} `;

export const deletionLabel = room => (platformName(room.id) ? 'Delete this channel’s history' : 'Delete this room');

// Deletes a room, if the person is sure. `leave(id)` is called before, and with null if it fails.
export async function deletesRoom(room, leave) {
  const question = platformName(room.id) ? `All messages of “${titleOf(room)}” are deleted here, and its companions are removed.` : `The room “${titleOf(room)}” and all its messages are deleted.`;
  if (!(await confirmed(deletionLabel(room), question, 'Delete'))) return false;
  leave(room.id);
  await api.deleteRoom(room.id).catch(problem => {
    leave(null);
    throw problem;
  });
  return true;
}

// `open(id)` opens a room; `unreadIn(id)` is the number of its messages that were not seen; `showProblem(problem)` shows a refusal; `changed()` loads the list again; `leave(id)` is called before a room is deleted, and with
// null if it was not.
export function rooms({ open, unreadIn, showProblem, changed, leave }) {
  const listNode = byId('rooms');
  const filter = byId('room-filter');
  const newNode = byId('new-room');
  const actionsNode = byId('room-actions');
  let all = [];
  let current = null;
  const extra = new Map(); // by platform: how many rooms are listed besides those with the newest messages

  function entry(room) {
    const { channel, location } = titleParts(room);
    const unseen = room.id === current ? 0 : unreadIn(room.id);
    return el(
      'li',
      null,
      el(
        'button',
        { class: 'room', 'data-room': room.id, 'data-platform': platformName(room.id), title: room.title ? `${room.title} (${room.id})` : null, 'aria-current': room.id === current ? 'true' : null, onclick: () => open(room.id) },
        name(channel, { class: 'room-name' }),
        unseen ? el('span', { class: 'room-unread' }, inFigures(unseen), el('span', { class: 'visually-hidden' }, ' unread')) : null,
        el('span', { class: 'room-about' }, room.paused ? 'paused' : room.last_at ? words.ago(room.last_at, serverNow()) : platformName(room.id) ? '' : 'empty'),
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
    listNode.replaceChildren(
      ...groups.flatMap(({ platform, rooms: shown, more }) => [
        platform ? el('h3', { class: 'room-platform' }, platform) : null,
        el('ul', { 'aria-label': platform ? `${platform} channels` : 'Console rooms' }, shown.map(entry)),
        more ? el('button', { class: 'quiet-button more-rooms', onclick: () => showMore(platform, shown) }, `Show ${Math.min(more, MORE).toLocaleString()} more of ${more.toLocaleString()}`) : null,
      ].filter(Boolean)),
    );
    if (!groups.length) listNode.append(el('p', { class: 'room-more' }, 'No matching room'));
    if (focused !== null) [...listNode.querySelectorAll('.room')].find(button => button.dataset.room === focused)?.focus();
  }

  function newForm(companions) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const id = el('input', { id: 'new-room-id', required: true, maxlength: '64', autocomplete: 'off', spellcheck: 'false', placeholder: 'study' });
    // All companions are chosen at first, because there is most to see when several are in a room.
    const picker = companionPicker(companions, companions, 'Companions in this room');
    const form = el(
      'form',
      { class: 'small-form' },
      el('label', { for: 'new-room-id' }, 'Room name'),
      id,
      picker.node,
      problem,
      el('div', { class: 'row' }, el('button', { class: 'solid' }, 'Create'), el('button', { type: 'button', class: 'quiet-button', onclick: drawNew }, 'Cancel')),
    );
    form.addEventListener('submit', async event => {
      event.preventDefault();
      const newId = id.value.trim().toLowerCase().replace(/\s+/gu, '-');
      if (!ROOM_NAME.test(newId)) {
        problem.textContent = 'A room name consists of up to 64 letters from a to z, digits, dashes and underscores.';
        return;
      }
      try {
        // The room goes to the guild of the open room, unless that guild belongs to another platform.
        const guild = all.find(room => room.id === current && !platformName(room.id))?.guild ?? 'home';
        await api.putRoom(newId, { guild, companions: picker.chosen(), new: true });
        drawNew();
        await changed();
        open(newId);
      } catch (refusal) {
        const exists = refusal.status === 409 && all.some(room => room.id === newId);
        problem.replaceChildren(sentence(refusal.message), exists ? el('button', { type: 'button', class: 'quiet-button', onclick: () => (drawNew(), open(newId)) }, `Open ${newId}`) : '');
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
    id.focus();
  }

  function drawNew() {
    const button = el('button', { class: 'quiet-button' }, '+ New room');
    button.addEventListener('click', async () => {
      try {
        newForm((await api.companions()).companions ?? []);
      } catch (problem) {
        showProblem(problem);
      }
    });
    newNode.replaceChildren(button);
  }

  function companionsForm(room) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const pickerNode = el('div');
    let picker = null;
    const form = el('form', { class: 'small-form' }, pickerNode, problem, el('div', { class: 'row' }, el('button', { class: 'solid' }, 'Save'), el('button', { type: 'button', class: 'quiet-button', onclick: drawActions }, 'Cancel')));
    api
      .companions()
      .then(({ companions = [] }) => {
        picker = companionPicker(companions, room.companions ?? [], 'Companions in this room', !platformName(room.id));
        pickerNode.replaceChildren(picker.node);
        picker.focus();
      })
      .catch(refusal => {
        problem.textContent = refusal.message;
      });
    form.addEventListener('submit', async event => {
      event.preventDefault();
      if (!picker) return;
      try {
        await api.putRoom(room.id, { guild: room.guild, companions: picker.chosen() });
        drawActions();
        await changed();
        open(room.id, true);
      } catch (refusal) {
        problem.textContent = refusal.message;
      }
    });
    return form;
  }

  function chooseCompanions() {
    const room = all.find(other => other.id === current);
    if (room) actionsNode.replaceChildren(companionsForm(room));
  }

  const attempt = act => async () => {
    try {
      await act();
      await changed();
    } catch (problem) {
      showProblem(problem);
    }
  };

  function drawActions() {
    const room = all.find(other => other.id === current);
    if (!room) return actionsNode.replaceChildren();
    const actions = [
      el('h2', null, platformName(room.id) ? 'This channel' : 'This room'),
      room.lives_by ? el('p', { class: 'muted' }, 'This thread uses the companions and settings of its parent channel until you change them here.') : null,
      el('button', { class: 'quiet-button', 'aria-pressed': String(Boolean(room.paused)), onclick: attempt(() => api.patchRoom(room.id, { paused: !room.paused })) }, room.paused ? 'Resume all companions' : 'Pause all companions'),
      el('button', { class: 'quiet-button', onclick: chooseCompanions }, 'Choose companions'),
      el('button', { class: 'quiet-button', title: 'Cancel decisions and replies in progress; the history stays', onclick: attempt(() => api.clearRoom(room.id)) }, 'Cancel replies'),
      el(
        'button',
        {
          class: 'quiet-button deletes',
          onclick: attempt(async () => {
            if (await deletesRoom(room, leave)) current = null;
          }),
        },
        deletionLabel(room),
      ),
    ];
    actionsNode.replaceChildren(...actions.filter(Boolean));
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
      const before = JSON.stringify([all, current]);
      all = list;
      current = id;
      drawList();
      // A form that is being filled in is not redrawn.
      if (before !== JSON.stringify([all, current]) && !(actionsNode.querySelector('form') && all.some(room => room.id === id))) drawActions();
    },
    redraw: drawList,
    chooseCompanions,
    startNew: () => newNode.querySelector('button')?.click(),
  };
}
