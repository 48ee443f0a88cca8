// Discord: whether it is connected, and the dialog about it.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el } from './dom.js';
import { t } from './texts.js';
import * as words from './words.js';

export const partOf = ready => ready?.parts?.find(({ part }) => part === 'discord');

// What is missing of the server's connections to people, in a few words for the head of the page. Null: nothing.
export function missing(ready) {
  const part = partOf(ready);
  if (!part || part.ready) return null;
  return part.since ? t('on_discord.missing_since', { since: words.time(part.since) }) : t('on_discord.missing');
}

export const showDiscord = () =>
  api.loaded(import('./discord-dialog.js')).then(
    module => module.showDiscord(),
    problem => dialog('Discord', el('p', { class: 'form-problem', role: 'alert' }, problem.message)),
  );
