// Discord: whether it is connected, in which servers the companions are, and how to bring them there.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { partOf } from './discord.js';
import { el, name, plain } from './dom.js';
import { allInWords, loadLater, pieces, t } from './texts.js';
import * as words from './words.js';

const PORTAL = 'https://discord.com/developers/applications';

function state(part) {
  if (!part) {
    const portal = el('a', { href: PORTAL, target: '_blank', rel: 'noopener noreferrer' }, t('on_discord.portal'));
    return [el('p', null, t('on_discord.none')), el('ol', null, el('li', null, pieces('on_discord.make', { portal })), el('li', null, t('on_discord.set')), el('li', null, t('on_discord.invite_later')))];
  }
  const { ready, since, detail, why, servers = [], invitation } = part;
  return [
    el('p', { class: ready ? null : 'danger' }, ready ? t('on_discord.connected') : since ? t('on_discord.lost_since', { since: words.moment(since) }) : t('on_discord.lost')),
    ready ? null : el('p', { class: 'muted', dir: 'auto' }, plain(words.sentence(allInWords(why, detail)))),
    el('h3', null, t('on_discord.servers')),
    servers.length ? el('ul', null, servers.map(server => el('li', null, name(server)))) : el('p', null, t('on_discord.no_servers')),
    invitation ? el('p', null, el('a', { href: invitation, target: '_blank', rel: 'noopener noreferrer' }, t('on_discord.invite'))) : null,
    el('p', { class: 'muted' }, pieces('on_discord.join', { command: el('code', null, '/tertulia join') })),
  ];
}

export async function showDiscord() {
  const body = el('div', { class: 'discord' }, el('p', { class: 'muted' }, t('base.loading')));
  dialog('Discord', body);
  const ready = await api.readiness().catch(problem => problem.message);
  if (partOf(ready)?.why) await loadLater();
  body.replaceChildren(...[typeof ready === 'string' ? el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: ready })) : state(partOf(ready))].flat().filter(Boolean));
}
