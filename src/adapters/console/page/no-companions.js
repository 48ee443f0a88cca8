// Says why nobody answers in a room that has no companions, and offers to choose some.

import { byId, el } from './dom.js';
import { t } from './texts.js';

// `room()` is the room shown; `choose()` opens the form that chooses companions, `create()` the one that makes one.
export function noCompanions({ room, choose, create, announce }) {
  const root = byId('no-companions');
  root.replaceChildren(el('span', null, t('rooms.nobody')), ' ', el('button', { class: 'solid', type: 'button', onclick: choose }, t('rooms.choose')), ' ', el('button', { class: 'quiet-button', type: 'button', onclick: create }, t('maker.new')));
  return {
    draw() {
      const { id, greeted, companions, isDeleted } = room();
      const isShown = Boolean(id) && greeted && !companions.size && !isDeleted;
      if (isShown && root.hidden) announce(t('rooms.nobody'));
      root.hidden = !isShown;
    },
  };
}
