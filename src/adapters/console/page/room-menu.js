// The menu of the room: what is rarely used. It has what is done with the room, who writes, the server, and the page.

import * as api from './api.js';
import { opened } from './back.js';
import { companionPicker } from './companion-picker.js';
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
  const box = dialog(t('export.title', { room: titleOf(room) }), el('div', { class: 'export' }, forms.map(link)));
}

// `room()` is the room shown as the server lists it; `changed()` loads the list again, and `open(id)` the room; `leave(id)` is called before a room is deleted,
// and with null if it was not, `deleted(room, deletion)` afterwards; `find()` opens the search, and `desk` makes companions.
export function roomMenu({ room, changed, open, leave, deleted, find, desk, showProblem }) {
  const button = byId('more');
  const panel = byId('room-menu');

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

  async function chooseCompanions() {
    const shown = room();
    if (!shown) return;
    const isOfOtherPlatform = Boolean(platformName(shown.id));
    try {
      const { companions = [] } = await api.companions();
      const problem = el('p', { class: 'form-problem', role: 'alert' });
      const picker = companionPicker(companions, shown.companions ?? [], { allowsExternal: !isOfOtherPlatform, desk });
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
    } catch (problem) {
      showProblem(problem);
    }
  }

  // The focus does not stay in a menu that is hidden.
  const closing = act => () => {
    if (close()) button.focus();
    act();
  };
  const item = (label, act, about = null, attributes = {}) => el('button', { type: 'button', class: 'menu-item', title: about, onclick: closing(act), ...attributes }, label);
  const patch = (shown, change) => api.patchRoom(shown.id, change).then(changed).catch(showProblem);
  const toggle = (label, isOn, act, about) => item(label, act, about, { 'aria-pressed': String(isOn) });

  const ofRoom = shown => [
    item(t('rooms.find'), find, t('rooms.find_about')),
    platformName(shown.id) ? null : item(t('rooms.rename'), rename, t('rooms.rename_about')),
    item(t('rooms.choose'), chooseCompanions),
    toggle(t(shown.paused ? 'rooms.resume_all' : 'rooms.pause_all'), Boolean(shown.paused), () => patch(shown, { paused: !shown.paused })),
    toggle(t('rooms.spoken_to'), shown.quiet_hours === 'always', () => patch(shown, { quiet_hours: shown.quiet_hours === 'always' ? null : 'always' }), t('rooms.spoken_to_about')),
    item(t('rooms.cancel_replies'), () => api.clearRoom(shown.id).catch(showProblem), t('rooms.cancel_replies_about')),
    item(t('rooms.export'), () => showExport(shown), t('rooms.export_about')),
  ];
  const ofServer = shown => [
    shown ? item(t('rooms.usage'), () => showUsage(shown), t('rooms.usage_about')) : null,
    item(t('maker.new'), () => desk.create()),
    item('Discord', showDiscord, t('on_discord.about')),
    item(t('tokens.button'), () => api.loaded(import('./tokens.js')).then(({ showTokens }) => showTokens()).catch(showProblem), t('tokens.about')),
  ];
  const deletion = shown => item(deletionLabel(shown), () => deletesRoom(shown, leave, deleted).then(isDeleted => isDeleted && changed()).catch(showProblem), null, { class: 'menu-item danger' });

  let closed = null;
  let drawnFor;
  function draw() {
    const shown = room();
    drawnFor = shown?.id;
    byId('room-menu-actions').replaceChildren(...(shown ? ofRoom(shown).filter(Boolean) : []));
    byId('server-menu-actions').replaceChildren(...ofServer(shown).filter(Boolean));
    byId('room-menu-end').replaceChildren(...(shown ? [deletion(shown)] : []));
  }

  function close() {
    if (panel.hidden) return false;
    panel.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    closed();
    return true;
  }

  button.addEventListener('click', () => {
    if (close()) return;
    draw();
    panel.hidden = false;
    closed = opened(close);
    button.setAttribute('aria-expanded', 'true');
    panel.querySelector('button, a')?.focus();
  });
  document.addEventListener('click', event => !panel.contains(event.target) && !button.contains(event.target) && close());
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
