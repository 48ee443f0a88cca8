// “Details”: with it the page shows what each companion decides and waits for. Without it: the talk, a sentence about who answered and who stayed out,
// and who is typing, thinking or paused.

import { byId, el, name } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { pieces, t } from './texts.js';

const TYPING = new Set(['speaking']);
const THINKING = new Set(['asked', 'wants_to_speak']);

const doingOf = ({ doing, paused }) => (paused ? 'paused' : TYPING.has(doing) ? 'typing' : doing === 'waiting_its_turn' ? 'next' : THINKING.has(doing) ? 'thinking' : null);

// `changed()` is called when details are shown or hidden; `tone(id)` is the accent of a companion.
export function presence({ changed, tone }) {
  const button = byId('decisions');
  const strip = byId('presence');
  let shows = loadForAll('decisions') === 'shown';

  function apply() {
    document.body.classList.toggle('chat-only', !shows);
    button.textContent = t('presence.details');
    button.setAttribute('aria-pressed', String(shows));
    button.title = t(shows ? 'presence.hide' : 'presence.show');
  }
  button.addEventListener('click', () => {
    shows = !shows;
    storeForAll('decisions', shows ? 'shown' : 'hidden');
    apply();
    changed();
  });
  apply();

  return {
    shows: () => shows,
    draw(room) {
      const all = [...room.companions.values()].map(companion => ({ companion, doing: doingOf(companion) })).filter(({ doing }) => doing);
      const key = all.map(({ companion, doing }) => `${companion.id} ${companion.name} ${doing}`).join();
      if (strip.dataset.key === key) return;
      strip.dataset.key = key;
      strip.replaceChildren(...all.map(({ companion, doing }) => el('span', { 'data-doing': doing }, pieces(`presence.${doing}`, { who: name(companion.name, { class: 'who', 'data-tone': tone(companion.id) }) }))));
    },
  };
}
