// The profile of a companion, as guests see it.

import { ai } from './ai.js';
import { dialog } from './dialogs.js';
import { el, name } from './dom.js';
import { face, pictureOf } from './pictures.js';
import { pieces } from './texts.js';

export function guestProfile({ id, name: who, isExternal }, tone) {
  dialog(who, el('div', { class: 'profile-head', 'data-tone': tone }, face(who, { path: pictureOf(id), size: 80 }), el('p', null, ai(), ' ', pieces(isExternal ? 'guest.profile_external' : 'guest.profile', { who: name(who) }))));
}
