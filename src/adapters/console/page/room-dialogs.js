// The dialogs of the menu of a room: its name, its companions, its usage and its export. They are loaded on use.

import * as api from './api.js';
import { companionPicker } from './companion-picker.js';
import { dialog } from './dialogs.js';
import { el } from './dom.js';
import { platformName, titleOf } from './platforms.js';
import { receptions } from './receptions.js';
import { LOCALE, t } from './texts.js';
import * as words from './words.js';

const LONGEST_TITLE = 64;

const whole = value => (Number.isFinite(value) ? words.number(value) : '0');

// The share of the tokens read that came from the server's cache.
const cachedShare = ({ cache_read_tokens: cached, input_tokens: read }) => new Intl.NumberFormat(LOCALE, { style: 'percent' }).format(read > 0 ? (cached ?? 0) / read : 0);

function money(part, currency) {
  if (!Number.isFinite(part?.cost)) return part?.unpriced_calls ? t('usage.unknown', { calls: part.unpriced_calls, all: part.calls }) : t('usage.no_price');
  const style = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 4 });
  const cost = `${style.format(part.cost)} ${currency}`;
  if (!part.unpriced_calls) return cost;
  return t(!part.cost && part.unpriced_calls === part.calls ? 'usage.unknown' : 'usage.unpriced', { cost, calls: part.unpriced_calls, all: part.calls });
}

// The totals without those of demo mode, in which no AI was asked.
function ofModels({ total = {}, guilds }) {
  const demo = (guilds?.[0]?.by ?? []).filter(({ provider }) => provider === 'rehearsal');
  const without = key => (total[key] ?? 0) - demo.reduce((sum, one) => sum + one[key], 0);
  return { ...total, ...Object.fromEntries(['calls', 'failed_calls', 'input_tokens', 'output_tokens', 'unpriced_calls'].map(key => [key, without(key)])) };
}

// What the guild of a room used today and this month, in this browser's time zone, and how people received the answers.
export async function showUsage(room) {
  const body = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  dialog(t('usage.title'), body, receptions(room));
  const now = new Date();
  const since = from => api.usage(room.guild, from.toISOString());
  try {
    const [today, month] = await Promise.all([since(new Date(now.getFullYear(), now.getMonth(), now.getDate())), since(new Date(now.getFullYear(), now.getMonth()))]);
    // In demo mode no model was asked, and nothing has a price.
    const { by = [] } = month.guilds?.[0] ?? {};
    if (by.length && by.every(({ provider }) => provider === 'rehearsal') && !month.total?.speech?.cost) return body.replaceChildren(el('p', null, t('usage.demo')));
    const rows = [
      [t('usage.answers'), one => whole(one.statements)],
      [t('usage.calls'), one => whole(one.calls)],
      [t('usage.calls_failed'), one => whole(one.failed_calls)],
      [t('usage.tokens_read'), one => whole(one.input_tokens)],
      // Many servers do not tell it.
      ...(Number.isFinite(month.total?.cache_read_tokens) ? [[t('usage.tokens_cached'), cachedShare]] : []),
      [t('usage.tokens_written'), one => whole(one.output_tokens)],
      [t('usage.cost'), (one, { currency }) => money(one, currency)],
    ];
    if (month.total?.speech?.characters || month.total?.speech?.recognised_secs) rows.push([t('usage.cost_speech'), (one, { currency }) => money(one.speech, currency)]);
    body.replaceChildren(
      el('p', { class: 'muted' }, t('usage.about')),
      el(
        'table',
        { class: 'usage' },
        el('thead', null, el('tr', null, el('td', null), el('th', { scope: 'col' }, t('usage.today')), el('th', { scope: 'col' }, t('usage.month')))),
        el('tbody', null, rows.map(([label, value]) => el('tr', null, el('th', { scope: 'row' }, label), [today, month].map(usage => el('td', null, value(ofModels(usage), usage)))))),
      ),
    );
  } catch (problem) {
    body.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: problem.message })));
  }
}

export function showExport(room) {
  const forms = [
    ['html', 'html', 'export.html', 'export.html_about'],
    ['markdown', 'md', 'export.markdown', 'export.markdown_about'],
    ['json', 'ndjson', 'export.json', 'export.json_about'],
  ];
  const link = ([form, extension, label, about]) =>
    el('a', { class: 'menu-item', href: api.exportUrl(room.id, form), download: `${room.id.replaceAll(':', '-')}.${extension}`, onclick: () => box.close() }, t(label), el('span', { class: 'muted' }, t(about)));
  const box = dialog(t('export.title', { room: titleOf(room) }), el('div', { class: 'export' }, forms.map(link)), el('p', { class: 'muted' }, t('export.without')));
}

// `changed()` loads the list of rooms again.
export function rename(shown, { changed }) {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const field = el('input', { id: 'room-new-title', value: titleOf(shown), maxlength: LONGEST_TITLE, autocomplete: 'off', dir: 'auto' });
  const form = el('form', { class: 'small-form' }, el('label', { for: 'room-new-title' }, t('rename.label')), field, problem, el('div', { class: 'row' }, el('button', { class: 'solid' }, t('base.save')), el('button', { type: 'button', class: 'quiet-button', onclick: () => box.close() }, t('base.cancel'))));
  form.addEventListener('submit', async event => {
    event.preventDefault();
    const title = field.value.trim();
    try {
      await api.patchRoom(shown.id, { title: title === '' || title === shown.id ? null : title });
      await changed();
      box.close();
    } catch (refusal) {
      problem.textContent = refusal.message;
    }
  });
  const box = dialog(t('rename.title'), form);
  field.focus();
  field.select();
}

// `open(id)` shows the room anew, and `desk` makes companions.
export async function chooseCompanions(shown, { changed, open, desk }) {
  const isOfOtherPlatform = Boolean(platformName(shown.id));
  const { companions = [] } = await api.companions();
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  // A companion of another server's own cannot join.
  const usable = companions.filter(one => !one.guild || one.guild === shown.guild);
  const picker = companionPicker(usable, shown.companions ?? [], { allowsExternal: !isOfOtherPlatform, desk });
  const form = el('form', { class: 'small-form' }, shown.lives_by ? el('p', { class: 'muted' }, t('rooms.thread')) : null, picker.node, problem, el('div', { class: 'row' }, el('button', { class: 'solid' }, t('base.save')), el('button', { type: 'button', class: 'quiet-button', onclick: () => box.close() }, t('base.cancel'))));
  form.addEventListener('submit', async event => {
    event.preventDefault();
    try {
      await api.putRoom(shown.id, { guild: shown.guild, companions: picker.chosen() });
      box.close();
      await changed();
      open(shown.id);
    } catch (refusal) {
      problem.textContent = refusal.message;
    }
  });
  const box = dialog(t('rooms.choose'), form);
  picker.focus();
}
