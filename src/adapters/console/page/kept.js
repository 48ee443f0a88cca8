// Why nothing goes on in the room that is looked at, with the way out: its guild is kept away, it is left alone, or its record cannot be followed.

import * as api from './api.js';
import { byId, el, plain, say } from './dom.js';
import * as words from './words.js';

const sentence = text => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/u.test(text) ? '' : '.'}`;

// `room()` is the one that is looked at; `released()` is called once it was tried; `tell(problem)` shows a refusal.
export function kept({ room, released, tell, announce }) {
  const root = byId('kept-away');
  const detail = el('p', { class: 'detail', dir: 'auto' });
  const when = el('span');
  const release = el('button', { class: 'solid', title: 'Try again now', onclick: letGo }, 'release');
  root.replaceChildren(el('p', null, el('strong', null, 'Nobody answers here for now.'), ' What is said is kept, and handled once it goes on.'), detail, el('p', { class: 'ways' }, when, release));
  let shown = '';

  async function letGo() {
    const { id } = room().keptAway ?? {};
    if (!id) return;
    release.disabled = true;
    try {
      await api.release(id);
    } catch (problem) {
      // Somebody else was faster.
      if (problem.status !== 404) tell(problem);
    }
    release.disabled = false;
    released();
  }

  return {
    draw(now) {
      const { id, keptAway } = room();
      root.hidden = !keptAway;
      const key = keptAway ? `${id} ${keptAway.id} ${keptAway.detail}` : '';
      if (key && key !== shown) announce(`Nobody answers in this room for now: ${keptAway.detail}.`);
      shown = key;
      if (!keptAway) return;
      say(detail, plain(sentence(keptAway.detail)));
      say(when, keptAway.until ? `It is tried again ${words.until(keptAway.until, now)}, at ${words.time(keptAway.until)}.` : '');
      release.hidden = !keptAway.id;
    },
  };
}
