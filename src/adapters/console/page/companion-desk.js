// Opens the profile of a companion, the editor and the preview of a card, and puts companions into rooms.

import * as api from './api.js';
import { membersOf } from './companion-picker.js';
import { once } from './dialogs.js';
import { folded, namesOf } from './people.js';
import { CARDS, fileButton } from './pictures.js';
import { titleOf } from './platforms.js';
import { t } from './texts.js';

// `room()` is the room shown as the server lists it, `rooms()` are all; `changed()` loads rooms and companions again; `tell(text, kind)` shows a notice;
// `remove(profile)` deletes a companion, and `keep(profile)` does so at once, unless it is this one. `next(id)` lets one speak, and `draft(id)` write for the user.
export function companionDesk({ room, rooms, usualLevel, nameOf, tone, changed, tell, remove, keep, next, draft }) {
  // Changes the members that a room has now, which somebody else may have changed.
  const change = async ({ id }, members) => {
    const target = await api.room(id);
    await api.putRoom(id, { guild: target.guild, companions: members(membersOf(target)) });
    await changed();
  };
  const told = problem => tell(problem.message, 'problem');
  // The modules of the dialogs are loaded when one is opened.
  const edit = how => {
    // The name of another one may be wanted again.
    keep(how.profile);
    return once(async () => (await api.loaded(import('./companion-editor.js'))).companionEditor(desk, how)).catch(told);
  };
  const show = async (id, who, text) => (await api.loaded(import('./profile.js'))).profileDialog(desk, id, who, text);
  const preview = async (file, use) => (await api.loaded(import('./card-preview.js'))).cardPreview(file, use);
  const desk = {
    room,
    tone,
    tell,
    usualLevel,
    next,
    draft,
    titleOf: id => titleOf(rooms().find(one => one.id === id) ?? { id }),
    open: id => once(() => show(id, nameOf(id))).catch(told),
    // Returns the other owner of a name in the room shown, in this companion's rooms, or in other rooms of their servers.
    taken(name, of) {
      const isConcerned = one => one.id === room()?.id || one.companions?.some(({ id }) => id === of);
      const guilds = new Set(rooms().filter(isConcerned).map(({ guild }) => guild));
      const others = rooms().filter(({ guild }) => guilds.has(guild)).flatMap(one => one.companions ?? []);
      return others.find(other => other.id !== of && namesOf(other).includes(folded(name)));
    },
    // `picked(profile)` is called instead of adding it to the room shown.
    create: picked => edit({ picked }),
    edit: profile => edit({ profile }),
    copy: profile => edit({ profile, isCopy: true }),
    // `chosen()` is called when the card becomes a companion.
    importCard: (file, { chosen = () => {}, picked } = {}) => preview(file, made => (chosen(), edit({ made, picked }))).catch(told),
    importButton: (kind, picked) => fileButton(t('maker.import'), CARDS, file => desk.importCard(file, { picked }), kind),
    join: (target, id) => change(target, members => [...members.filter(one => one !== id), id]),
    part: (target, id) => change(target, members => members.filter(one => one !== id)),
    pause: ({ id: target }, id, paused) => api.patchRoom(target, { companions: { [id]: { paused } } }).then(changed),
    async saved({ id, companion }, isNew) {
      const text = t('maker.saved', { who: companion.name });
      await changed();
      if (isNew) tell(text);
      else show(id, companion.name, text);
    },
    remove,
  };
  return desk;
}
