// The menu of the room: what is rarely used. It has what is done with the room, who writes, the server, and the page.

import * as api from './api.js';
import { panelOf } from './back.js';
import { showDiscord } from './discord.js';
import { byId, el } from './dom.js';
import { platformName } from './platforms.js';
import { deletesRoom, deletionLabel } from './rooms.js';
import { t } from './texts.js';
import { notifies } from './worker.js';

// `room()` is the room shown as the server lists it, `me()` the name under which one writes; `changed()` loads the list again, and `open(id)` the room; `leave(id)` is called before a room is deleted,
// and with null if it was not, `deleted(room, deletion)` afterwards; `find()` opens the search, `settings()` the settings, `desk` makes companions, and `tell(text)` shows a notice.
export function roomMenu({ room, me, changed, open, leave, deleted, find, desk, settings, showProblem, tell }) {
  const button = byId('more');
  const panel = byId('room-menu');

  // A dialog about the room shown, loaded on use.
  const about = name => () => room() && api.loaded(import('./room-dialogs.js')).then(dialogs => dialogs[name](room(), { changed, open, desk })).catch(showProblem);
  const chooseCompanions = about('chooseCompanions');
  const ofOwn = name => () => api.loaded(import('./about-room.js')).then(own => own[name](room(), { me: me(), changed })).catch(showProblem);

  // The focus does not stay in a menu that is hidden.
  const closing = act => () => {
    if (close()) button.focus();
    act();
  };
  const item = (label, act, about = null, attributes = {}) => el('button', { type: 'button', class: 'menu-item', title: about, onclick: closing(act), ...attributes }, label);
  // A finger sees no title, so what was turned on is told.
  const toggle = (label, isOn, { id }, change, about) => item(label, () => api.patchRoom(id, change).then(changed).then(() => about && !isOn && tell(`${about}.`)).catch(showProblem), about, { 'aria-pressed': String(isOn) });

  const line = () => el('hr', { class: 'menu-line' });

  const ofRoom = shown => [
    item(t('rooms.find'), find, t('rooms.find_about')),
    platformName(shown.id) ? null : item(t('rooms.rename'), about('rename'), t('rooms.rename_about')),
    item(t('rooms.choose'), chooseCompanions),
    line(),
    toggle(t(shown.paused ? 'rooms.resume_all' : 'rooms.pause_all'), Boolean(shown.paused), shown, { paused: !shown.paused }),
    toggle(t('rooms.spoken_to'), shown.quiet_hours === 'always', shown, { quiet_hours: shown.quiet_hours === 'always' ? null : 'always' }, t('rooms.spoken_to_about')),
    toggle(t('rooms.minors'), Boolean(shown.minors), shown, { minors: !shown.minors }, t('rooms.minors_about')),
    line(),
    item(t('rooms.about'), ofOwn('showAbout'), t('rooms.about_about')),
    item(t('rooms.everybody'), () => api.speakNext(shown.id, { everybody: true, by: me() || undefined }).catch(showProblem), t('rooms.everybody_about')),
    item(t('rooms.cancel_replies'), () => api.clearRoom(shown.id).catch(showProblem), t('rooms.cancel_replies_about')),
    item(t('rooms.anew'), ofOwn('beginAnew')),
    line(),
    item(t('rooms.export'), about('showExport'), t('rooms.export_about')),
    item(t('rooms.lore'), () => api.loaded(import('./lore.js')).then(({ showLore }) => showLore(shown)).catch(showProblem), t('rooms.lore_about')),
    item(t('remembered.button'), () => api.loaded(import('./memory.js')).then(({ showMemory }) => showMemory(shown, me())).catch(showProblem)),
    item(t('rooms.reminders'), () => api.loaded(import('./reminders.js')).then(({ showReminders }) => showReminders(shown, me())).catch(showProblem)),
  ];
  const ofServer = shown => [
    shown ? item(t('rooms.usage'), about('showUsage'), t('rooms.usage_about')) : null,
    item(t('top.settings'), settings),
    item(t('maker.new'), () => desk.create()),
    item('Discord', showDiscord, t('on_discord.about')),
    item(t('top.tools'), () => api.loaded(import('./tools.js')).then(({ showTools }) => showTools()).catch(showProblem), t('top.tools_about')),
    item(t('top.tokens'), () => api.loaded(import('./tokens.js')).then(({ showTokens }) => showTokens()).catch(showProblem), t('top.tokens_about')),
    item(t('mentioned.switch'), () => api.loaded(import('./mentioned.js')).then(({ notify }) => notify(!notifies(), tell)).catch(showProblem), null, { 'aria-pressed': String(notifies()) }),
  ];
  const deletion = shown => item(deletionLabel(shown), () => deletesRoom(shown, leave, deleted).then(isDeleted => isDeleted && changed()).catch(showProblem), null, { class: 'menu-item danger' });

  let drawnFor;
  function draw() {
    const shown = room();
    drawnFor = shown?.id;
    byId('room-menu-actions').replaceChildren(...(shown ? ofRoom(shown).filter(Boolean) : []));
    byId('server-menu-actions').replaceChildren(...ofServer(shown).filter(Boolean));
    byId('room-menu-end').replaceChildren(...(shown ? [deletion(shown)] : []));
  }

  const close = panelOf(button, panel, 'button, a', draw);
  // These open something else.
  panel.addEventListener('click', event => event.target.closest('#model, #voice-set-up, #help, #decisions, .deletes') && closing(() => {})(), true);
  draw();

  return {
    chooseCompanions,
    // What is in the menu is about one room.
    draw() {
      if (drawnFor !== room()?.id) close();
      if (panel.hidden) draw();
    },
    // Closes the menu. Returns whether it was open.
    close() {
      const wasOpen = close();
      if (wasOpen) button.focus();
      return wasOpen;
    },
  };
}
