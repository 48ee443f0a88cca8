// Opens the profile of a companion, the editor and the preview of a card, and puts companions into rooms.

import * as api from './api.js';
import { CARDS, cardPreview } from './card-preview.js';
import { companionEditor } from './companion-editor.js';
import { membersOf } from './companion-picker.js';
import { once } from './dialogs.js';
import { fileButton } from './pictures.js';
import { titleOf } from './platforms.js';
import { profileDialog } from './profile.js';
import { t } from './texts.js';

// `room()` is the room shown as the server lists it, `rooms()` are all; `changed()` loads rooms and companions again; `tell(text, kind)` shows a notice.
export function companionDesk({ room, rooms, usualLevel, nameOf, tone, changed, tell }) {
  // Changes the members that a room has now, which somebody else may have changed.
  const change = async ({ id }, members) => {
    const target = await api.room(id);
    await api.putRoom(id, { guild: target.guild, companions: members(membersOf(target)) });
    await changed();
  };
  const edit = how => once(() => companionEditor(desk, how)).catch(problem => tell(problem.message, 'problem'));
  const desk = {
    room,
    tone,
    tell,
    usualLevel,
    titleOf: id => titleOf(rooms().find(one => one.id === id) ?? { id }),
    open: id => once(() => profileDialog(desk, id, nameOf(id))),
    // `picked(profile)` is called instead of adding it to the room shown.
    create: picked => edit({ picked }),
    edit: profile => edit({ profile }),
    copy: profile => edit({ profile, isCopy: true }),
    // `chosen()` is called when the card becomes a companion.
    importCard: (file, { chosen = () => {}, picked } = {}) => cardPreview(file, made => (chosen(), edit({ made, picked }))),
    importButton: (kind, picked) => fileButton(t('maker.import'), CARDS, file => desk.importCard(file, { picked }), kind),
    join: (target, id) => change(target, members => [...members.filter(one => one !== id), id]),
    part: (target, id) => change(target, members => members.filter(one => one !== id)),
    async saved({ id, companion }, isNew) {
      const text = t('maker.saved', { who: companion.name });
      await changed();
      if (isNew) tell(text);
      else profileDialog(desk, id, companion.name, text);
    },
    deleted(who, stays) {
      tell(t(stays ? 'profile.deleted_stored' : 'profile.deleted', { who }));
      changed();
    },
  };
  return desk;
}
