// The rooms: which there are, making one, and what can be done with the one that is open.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { byId, el, name } from './dom.js';
import { areMany, elsewhere, listed, titleParts } from './elsewhere.js';
import { guests } from './guests.js';
import * as words from './words.js';

const IDS = /^[\p{L}\p{N}][\p{L}\p{N}_.-]{0,63}$/u;

// A button that asks before it acts: the second press within some seconds means it.
export function twice(label, sure, act) {
  let timer = null;
  const button = el('button', { class: 'quiet-button', type: 'button' }, label);
  const calm = () => {
    clearTimeout(timer);
    timer = null;
    button.textContent = label;
    button.classList.remove('danger');
  };
  button.addEventListener('click', () => {
    if (timer) {
      calm();
      act();
      return;
    }
    button.textContent = sure;
    button.classList.add('danger');
    timer = setTimeout(calm, 5000);
  });
  button.addEventListener('blur', calm);
  return button;
}

// `open(id)` visits a room; `tell(problem)` shows a refusal; `changed()` is called when the list must be read again.
export function rooms({ open, tell, changed }) {
  const listNode = byId('rooms');
  const filter = byId('room-filter');
  const newNode = byId('new-room');
  const careNode = byId('room-care');
  let all = [];
  let current = null;

  function entry(room) {
    const { what, where } = titleParts(room);
    return el(
      'li',
      null,
      el(
        'button',
        { class: 'room', 'data-room': room.id, title: room.title ? `${room.title} (${room.id})` : null, 'aria-current': room.id === current ? 'true' : null, onclick: () => open(room.id) },
        name(what, { class: 'room-name' }),
        el('span', { class: 'room-about' }, room.paused ? 'paused' : room.last_at ? words.ago(room.last_at, serverNow()) : elsewhere(room.id) ? '' : 'empty'),
        where ? name(where, { class: 'room-where' }) : null,
      ),
    );
  }

  function drawList() {
    const focused = listNode.contains(document.activeElement) ? document.activeElement.dataset.room : null;
    filter.hidden = !areMany(all);
    if (filter.hidden) filter.value = '';
    const groups = listed(all, current, filter.value);
    listNode.replaceChildren(
      ...groups.flatMap(({ platform, rooms: shown, more }) => [
        platform ? el('h3', { class: 'room-platform' }, platform) : null,
        el('ul', { 'aria-label': platform ? `Channels of ${platform}` : 'Rooms of the console' }, shown.map(entry)),
        more ? el('p', { class: 'room-more' }, `and ${more.toLocaleString()} more: find them by name above`) : null,
      ].filter(Boolean)),
    );
    if (!groups.length) listNode.append(el('p', { class: 'room-more' }, 'No room is called so.'));
    if (focused !== null) [...listNode.querySelectorAll('.room')].find(button => button.dataset.room === focused)?.focus();
  }

  function newForm(companions) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const id = el('input', { id: 'new-room-id', required: true, maxlength: '64', autocomplete: 'off', spellcheck: 'false', placeholder: 'study' });
    // All of them, to begin with: most of what there is to see happens between several.
    const who = guests(companions, companions, 'Who is present');
    const form = el(
      'form',
      { class: 'small-form' },
      el('label', { for: 'new-room-id' }, 'Name of the room'),
      id,
      who.node,
      problem,
      el('div', { class: 'row' }, el('button', { class: 'solid' }, 'make it'), el('button', { type: 'button', class: 'quiet-button', onclick: drawNew }, 'leave it')),
    );
    form.addEventListener('submit', async event => {
      event.preventDefault();
      const wanted = id.value.trim().toLowerCase().replace(/\s+/gu, '-');
      if (!IDS.test(wanted)) {
        problem.textContent = 'A name has letters, digits, dots, dashes and underscores, up to 64, and begins with a letter or digit.';
        return;
      }
      try {
        // Guilds of other platforms have no rooms of the console.
        const guild = all.find(room => room.id === current && !elsewhere(room.id))?.guild ?? 'home';
        await api.putRoom(wanted, { guild, companions: who.chosen() });
        drawNew();
        await changed();
        open(wanted);
      } catch (refusal) {
        problem.textContent = refusal.message;
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
    const button = el('button', { class: 'quiet-button' }, '+ new room');
    button.addEventListener('click', async () => {
      try {
        newForm((await api.companions()).companions ?? []);
      } catch (problem) {
        tell(problem);
      }
    });
    newNode.replaceChildren(button);
  }

  function companionsForm(room) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const place = el('div');
    let who = null;
    const form = el('form', { class: 'small-form' }, place, problem, el('div', { class: 'row' }, el('button', { class: 'solid' }, 'so be it'), el('button', { type: 'button', class: 'quiet-button', onclick: drawCare }, 'leave it')));
    api
      .companions()
      .then(({ companions = [] }) => {
        who = guests(companions, room.companions ?? [], 'Who is present', !elsewhere(room.id));
        place.replaceChildren(who.node);
        who.focus();
      })
      .catch(refusal => {
        problem.textContent = refusal.message;
      });
    form.addEventListener('submit', async event => {
      event.preventDefault();
      if (!who) return;
      try {
        await api.putRoom(room.id, { guild: room.guild, companions: who.chosen() });
        drawCare();
        await changed();
        open(room.id, true);
      } catch (refusal) {
        problem.textContent = refusal.message;
      }
    });
    return form;
  }

  const attempt = act => async () => {
    try {
      await act();
      await changed();
    } catch (problem) {
      tell(problem);
    }
  };

  function drawCare() {
    const room = all.find(other => other.id === current);
    if (!room) return careNode.replaceChildren();
    const care = [
      el('h2', null, elsewhere(room.id) ? 'this channel' : 'this room'),
      room.lives_by ? el('p', { class: 'hush' }, 'Who is present, and how, it has from the channel that it is in, until it is changed here.') : null,
      el('button', { class: 'quiet-button', 'aria-pressed': String(Boolean(room.paused)), onclick: attempt(() => api.patchRoom(room.id, { paused: !room.paused })) }, room.paused ? 'let it go on' : 'pause everybody'),
      el('button', { class: 'quiet-button', onclick: () => careNode.replaceChildren(companionsForm(room)) }, 'choose companions'),
      el('button', { class: 'quiet-button', title: 'Drops what is being considered or said; the history stays', onclick: attempt(() => api.clearRoom(room.id)) }, 'drop what is going on'),
      twice(
        elsewhere(room.id) ? 'forget this channel' : 'delete the room',
        elsewhere(room.id) ? 'really? its history goes, and who is present' : 'really? its history goes too',
        attempt(async () => {
          await api.deleteRoom(room.id);
          current = null;
        }),
      ),
    ];
    careNode.replaceChildren(...care.filter(Boolean));
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
      // A form that somebody is filling in stays as it is.
      if (before !== JSON.stringify([all, current]) && !(careNode.querySelector('form') && all.some(room => room.id === id))) drawCare();
    },
    redraw: drawList,
    startNew: () => newNode.querySelector('button')?.click(),
  };
}
