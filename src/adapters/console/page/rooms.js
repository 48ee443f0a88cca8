// The rooms: which there are, making one, and what can be done with the one that is open.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { byId, el, name } from './dom.js';
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
  const newNode = byId('new-room');
  const careNode = byId('room-care');
  let all = [];
  let current = null;

  function drawList() {
    const focused = listNode.contains(document.activeElement) ? document.activeElement.dataset.room : null;
    listNode.replaceChildren(
      ...all.map(room =>
        el(
          'li',
          null,
          el(
            'button',
            { class: 'room', 'data-room': room.id, 'aria-current': room.id === current ? 'true' : null, onclick: () => open(room.id) },
            name(room.id, { class: 'room-name' }),
            el('span', { class: 'room-about' }, room.paused ? 'paused' : room.last_at ? words.ago(room.last_at, serverNow()) : 'empty'),
          ),
        ),
      ),
    );
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
        const guild = all.find(room => room.id === current)?.guild ?? 'home';
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
        who = guests(companions, room.companions ?? [], 'Who is present');
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
    careNode.replaceChildren(
      el('h2', null, 'this room'),
      el('button', { class: 'quiet-button', 'aria-pressed': String(Boolean(room.paused)), onclick: attempt(() => api.patchRoom(room.id, { paused: !room.paused })) }, room.paused ? 'let it go on' : 'pause everybody'),
      el('button', { class: 'quiet-button', onclick: () => careNode.replaceChildren(companionsForm(room)) }, 'choose companions'),
      el('button', { class: 'quiet-button', title: 'Drops what is being considered or said; the history stays', onclick: attempt(() => api.clearRoom(room.id)) }, 'drop what is going on'),
      twice(
        'delete the room',
        'really? its history goes too',
        attempt(async () => {
          await api.deleteRoom(room.id);
          current = null;
        }),
      ),
    );
  }

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
