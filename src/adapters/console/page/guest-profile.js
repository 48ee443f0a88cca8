// The profile of a companion, as guests see it.

import { ai } from './ai.js';
import { dialog } from './dialogs.js';
import { el, name, plain } from './dom.js';
import { face, pictureOf } from './pictures.js';
import { pieces } from './texts.js';

// `about` is the sentence about it, if it has one.
export function guestProfile({ id, name: who, isExternal }, tone, about) {
  dialog(who, el('div', { class: 'profile-head', 'data-tone': tone }, face(who, { path: pictureOf(id), size: 80 }), el('div', null, about ? el('p', { dir: 'auto' }, plain(about)) : null, el('p', null, ai(), ' ', pieces(isExternal ? 'guest.profile_external' : 'guest.profile', { who: name(who) })))));
}
