// How people received the answers in the guild of a room: the last seven days beside the seven before, and each day. It is loaded when it is opened.

import * as api from './api.js';
import { el, plain } from './dom.js';
import { LOCALE, t } from './texts.js';
import * as words from './words.js';

const DAYS = 14;
const DAY = 86_400_000;
// Good signs first.
const GOOD = ['replied', 'answered', 'reacted'];
const BAD = ['talked_past', 'stopped', 'deleted', 'paused'];
const KINDS = [...GOOD, ...BAD, 'nothing_seen'];
// By what the answers are chosen.
const CHOICES = ['companion', 'trigger', 'model'];

// The days of the answer in UTC, oldest first.
const daysOf = from => Array.from({ length: DAYS }, (_, i) => new Date(Date.parse(from) + i * DAY).toISOString().slice(0, 10));

const count = (rows, kinds) => rows.reduce((sum, { received }) => sum + kinds.reduce((all, kind) => all + (received[kind] ?? 0), 0), 0);

// The share of all answers with the count; nothing where there is none.
function share(rows, kinds) {
  const [part, all] = [count(rows, kinds), count(rows, KINDS)];
  return part ? `${(part / all).toLocaleString(LOCALE, { style: 'percent' })} (${words.number(part)})` : '–';
}

function table(head, rows) {
  const cells = ([label, ...values]) => el('tr', null, el('th', { scope: 'row' }, label), values.map(value => el('td', null, value)));
  return el('table', { class: 'usage' }, el('thead', null, el('tr', null, el('td', null), head.map(label => el('th', { scope: 'col' }, label)))), el('tbody', null, rows.map(cells)));
}

// The two tables of these rows.
function tables(from, rows) {
  const days = daysOf(from);
  const of = some => rows.filter(({ day }) => some.includes(day));
  const weeks = [of(days.slice(0, DAYS / 2)), of(days.slice(DAYS / 2))];
  const shown = day => new Date(day).toLocaleDateString(LOCALE, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  const byDay = days.map(day => [day, of([day])]).filter(([, found]) => found.length);
  return [
    table(
      [t('received.before'), t('received.last')],
      [[t('received.all_answers'), ...weeks.map(week => words.number(count(week, KINDS)))], ...KINDS.map(kind => [t(`receptions.${kind}`), ...weeks.map(week => share(week, [kind]))])],
    ),
    table(
      [t('received.good'), t('received.bad'), t('receptions.nothing_seen')],
      byDay.map(([day, found]) => [shown(day), share(found, GOOD), share(found, BAD), share(found, ['nothing_seen'])]),
    ),
  ];
}

async function load(room, body) {
  const [{ from, guilds }, { companions = [] }] = await Promise.all([api.receptions(room.guild, DAYS), api.companions()]);
  const { by: rows = [], incomplete } = guilds[0] ?? {};
  if (!rows.length) return body.replaceChildren(el('p', null, t('received.nothing')));
  const names = new Map(companions.map(({ id, name }) => [id, name]));
  const label = { companion: id => plain(names.get(id) ?? id), trigger: words.trigger, model: id => plain(id ?? t('received.no_model')) };
  const chosen = {};
  const shown = el('div', { role: 'region', 'aria-live': 'polite', 'aria-label': t('received.title') });
  const show = () => shown.replaceChildren(...tables(from, rows.filter(row => CHOICES.every(by => !chosen[by] || chosen[by] === String(row[by])))));
  const choice = by => {
    const values = [...new Set(rows.map(row => row[by]))];
    const options = values.map(value => el('option', { value: String(value) }, label[by](value)));
    const onchange = ({ target }) => ((chosen[by] = target.value), show());
    return el('label', null, t(`received.${by}`), el('select', { onchange }, el('option', { value: '' }, t('received.all')), options));
  };
  show();
  body.replaceChildren(el('div', { class: 'received-choices' }, CHOICES.map(choice)), shown, incomplete ? el('p', { class: 'danger' }, t('received.incomplete')) : '');
}

// The part of the dialog about usage that shows it.
export function receptions(room) {
  const body = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  const failed = problem => body.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: problem.message })));
  const open = ({ target }) => target.open && load(room, body).catch(failed);
  return el('details', { class: 'received', ontoggle: open }, el('summary', null, t('received.title')), el('p', { class: 'muted' }, t('received.about')), body);
}
