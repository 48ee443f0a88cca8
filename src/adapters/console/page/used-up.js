// Limits that are used up: what is said in the head of the page, and how much of each is used.

import * as api from './api.js';
import { byId, el, plain } from './dom.js';
import { pieces, t } from './texts.js';
import * as words from './words.js';

let timer = null;

// Says in the head of the page which limit is used up and until when. `change()` opens the settings.
export async function sayUsedUp({ budget, free_at: freeAt }, change) {
  const node = byId('used-up') ?? el('button', { class: 'quiet-button loud', id: 'used-up', type: 'button', onclick: () => change() });
  byId('attention').before(node);
  const limit = t(`server_settings.budgets.${budget}`);
  node.textContent = freeAt ? t('server_settings.used_up_until', { limit, time: moment(freeAt) }) : t('server_settings.used_up', { limit });
  node.hidden = false;
  clearTimeout(timer);
  if (freeAt) timer = setTimeout(() => (node.hidden = true), Math.max(0, Date.parse(freeAt) - Date.now()));
}

// After a change nothing is known of it any more.
export const forgetUsedUp = () => byId('used-up')?.remove();

// With the day, if it is another one.
const moment = at => (words.dayOf(at) === words.dayOf(new Date()) ? words.time(at) : words.minute(at));

const money = (value, currency) => `${words.number(value, 4)} ${currency}`;

// How much of the limits of a day is used, by server, what companions cost, and what guests used.
export function usageOfLimits() {
  const body = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  const cap = ({ used, limit, free_at: freeAt }) => `${words.number(used)}${Number.isFinite(limit) ? ` / ${words.number(limit)}` : ''}${freeAt ? ` · ${t('server_settings.free_at', { time: moment(freeAt) })}` : ''}`;
  Promise.all([api.usage(), api.companions()]).then(
    ([{ guilds, currency }, { companions = [] }]) => {
      const names = new Map(companions.map(({ id, name }) => [id, name]));
      const rows = guilds.flatMap(({ guild, caps, by, tools_by: toolsBy = [], guests = [] }) => {
        const costs = new Map();
        for (const { companion, cost, unpriced_calls: unpriced, provider } of [...by, ...toolsBy]) {
          const sum = costs.get(companion) ?? { cost: 0, unknown: false };
          costs.set(companion, { cost: sum.cost + (cost ?? 0), unknown: sum.unknown || (unpriced > 0 && provider !== 'rehearsal') });
        }
        const caps_ = [['guild_tokens', caps.tokens], ['guild_statements', caps.statements], ...(caps.tool_calls ? [['guild_tool_calls', caps.tool_calls]] : [])];
        return [
          el('tr', null, el('th', { scope: 'rowgroup', colspan: 2 }, plain(guild))),
          ...caps_.map(([name, one]) => el('tr', null, el('th', { scope: 'row' }, t(`server_settings.budgets.${name}`)), el('td', null, cap(one)))),
          ...[...costs].map(([companion, { cost, unknown }]) => el('tr', null, el('th', { scope: 'row' }, plain(companion ? (names.get(companion) ?? companion) : t('server_settings.rooms'))), el('td', null, unknown && !cost ? t('ai.no_price') : money(cost, currency)))),
          ...guests.map(({ name, messages, tokens }) => el('tr', null, el('th', { scope: 'row' }, pieces('server_settings.guest', { name: el('bdi', null, plain(name)) })), el('td', null, t('server_settings.guest_used', { count: messages, tokens })))),
        ];
      });
      body.replaceChildren(rows.length ? el('table', { class: 'usage' }, el('caption', null, t('server_settings.last_day')), el('tbody', null, rows)) : el('p', { class: 'muted' }, t('server_settings.nothing_used')));
    },
    problem => body.replaceChildren(el('p', { class: 'form-problem' }, problem.message)),
  );
  return body;
}
