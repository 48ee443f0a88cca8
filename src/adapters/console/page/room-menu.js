// The menu “More” of the room: rename, export, usage, tokens of programs, cancel replies, delete. On phones it also has the buttons for which the header has no room.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { showDiscord } from './discord.js';
import { byId, el, name } from './dom.js';
import { platformName, titleOf } from './platforms.js';
import { deletesRoom, deletionLabel } from './rooms.js';
import { LOCALE, t } from './texts.js';
import * as words from './words.js';

const LONGEST_TITLE = 64;

const whole = value => (Number.isFinite(value) ? words.number(value) : '0');

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

// What the guild of a room used today and this month, in this browser's time zone.
async function showUsage(room) {
  const body = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  dialog(t('usage.title'), body);
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

function showExport(room) {
  const forms = [
    ['html', 'html', 'export.html', 'export.html_about'],
    ['markdown', 'md', 'export.markdown', 'export.markdown_about'],
    ['json', 'ndjson', 'export.json', 'export.json_about'],
  ];
  const link = ([form, extension, label, about]) =>
    el('a', { class: 'menu-item', href: api.exportUrl(room.id, form), download: `${room.id.replaceAll(':', '-')}.${extension}`, onclick: () => box.close() }, t(label), el('span', { class: 'muted' }, t(about)));
  const box = dialog(t('export.title', { room: titleOf(room) }), forms.map(link));
}

// `room()` is the room shown as the server lists it; `changed()` loads the list again; `leave(id)` is called before a room is deleted, and with null if it
// was not, `deleted(room, deletion)` afterwards; `find()` opens the search, `create()` the form that makes a companion.
export function roomMenu({ room, changed, leave, deleted, find, create, showProblem }) {
  const button = byId('more');
  const panel = byId('room-menu');
  const actions = byId('room-menu-actions');
  const moved = byId('top-buttons');
  const pencil = byId('rename');

  function rename() {
    const shown = room();
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

  const item = (label, act, about, attributes = {}) => el('button', { type: 'button', class: 'menu-item', onclick: act, ...attributes }, label, about ? el('span', { class: 'muted' }, about) : null);
  // The focus does not stay in a menu that is hidden.
  const closing = act => () => {
    if (close()) button.focus();
    act();
  };

  const deletion = shown => item(deletionLabel(shown), closing(() => deletesRoom(shown, leave, deleted).then(isDeleted => isDeleted && changed()).catch(showProblem)), null, { class: 'menu-item danger' });

  let drawnFor;
  function draw() {
    const shown = room();
    drawnFor = shown?.id;
    pencil.hidden = !shown || Boolean(platformName(shown.id));
    const wanted = shown
      ? [
          item(t('rooms.find'), closing(find), t('rooms.find_about')),
          pencil.hidden ? null : item(t('rooms.rename'), closing(rename), t('rooms.rename_about')),
          item(t('rooms.export'), closing(() => showExport(shown)), t('rooms.export_about')),
          item(t('rooms.usage'), closing(() => showUsage(shown)), t('rooms.usage_about')),
          item(t('maker.new'), closing(create)),
          item('Discord', closing(showDiscord), t('on_discord.about')),
          item(t('tokens.button'), closing(() => api.loaded(import('./tokens.js')).then(({ showTokens }) => showTokens()).catch(showProblem)), t('tokens.about')),
          item(t('rooms.cancel_replies'), closing(() => api.clearRoom(shown.id).catch(showProblem)), t('rooms.cancel_replies_about')),
          deletion(shown),
        ]
      : [];
    actions.replaceChildren(...wanted.filter(Boolean));
  }

  function close() {
    if (panel.hidden) return false;
    panel.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    return true;
  }

  button.addEventListener('click', () => {
    if (close()) return;
    draw();
    panel.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    panel.querySelector('button, a')?.focus();
  });
  pencil.addEventListener('click', () => room() && rename());
  byId('find-open').addEventListener('click', find);
  document.addEventListener('click', event => !panel.contains(event.target) && !button.contains(event.target) && close());
  moved.addEventListener('click', event => event.target.closest('#model, #help, #invite') && close());

  // Where the header is narrow, these buttons are in the menu.
  const narrow = matchMedia('(max-width: 48em)');
  const place = () => (narrow.matches ? panel.prepend(moved) : byId('connection').after(moved));
  narrow.addEventListener('change', place);
  place();
  draw();

  return {
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
