// What needs an operator: quarantined guilds, suspended rooms, dead letters, lost companions and settings with errors. The header shows how many there are,
// and a dialog lists each with what can be done about it.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { confirmed, dialog } from './dialogs.js';
import { byId, el, name, plain, say } from './dom.js';
import { pieces, t } from './texts.js';
import * as words from './words.js';

const POLL_MS = 30_000;

const summary = ({ guilds, channels, messages, companions, reload }) =>
  [
    guilds.length ? t('attention.guilds', { count: guilds.length }) : '',
    channels.length ? t('attention.rooms', { count: channels.length }) : '',
    messages.length ? t('attention.messages', { count: messages.length }) : '',
    companions.length ? t('attention.companions', { count: companions.length }) : '',
    reload ? t('attention.settings') : '',
  ]
    .filter(Boolean)
    .join(' · ');

const size = ({ guilds, channels, messages, companions, reload }) => guilds.length + channels.length + messages.length + companions.length + (reload ? 1 : 0);

const nextRetry = until => t('attention.retry', { when: words.until(until, serverNow()), time: words.time(until) });

// Keeps the button in the header up to date, and opens the dialog. `polled(isChanged)` is called after each request.
export function attention({ showProblem, announce, polled }) {
  const button = byId('attention');
  let current = { guilds: [], channels: [], messages: [], companions: [], reload: null };
  let box = null;
  let list = null;

  // A button that changes an entry, and shows the problem if that fails. `question` is asked before.
  function actionButton(label, run, { title = null, question = null } = {}) {
    const node = el('button', { class: question ? 'quiet-button danger' : 'solid', title }, label);
    node.addEventListener('click', async () => {
      if (question && !(await confirmed(label, question, label))) return;
      node.disabled = true;
      try {
        await run();
      } catch (problem) {
        node.disabled = false;
        // 404: the entry is gone already.
        if (problem.status !== 404) showProblem(problem);
      }
      await poll();
      box?.querySelector('button')?.focus();
    });
    return node;
  }

  function guildEntry({ id, since, until, detail }) {
    return el(
      'li',
      null,
      el('p', null, pieces('attention.guild', { server: el('strong', null, name(id)), since: words.time(since) }), ' ', nextRetry(until)),
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton(t('attention.restart'), () => api.release(id))),
    );
  }

  function channelEntry({ id, guild, room, since, until, detail }) {
    return el(
      'li',
      null,
      el('p', null, pieces('attention.room', { room: el('strong', null, name(room)), server: name(guild), since: words.time(since) }), ' ', nextRetry(until)),
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton(t('attention.restart'), () => api.release(id))),
    );
  }

  function messageEntry({ id, guild, room, seq, at, attempts, detail }) {
    const quote = el('blockquote', { class: 'muted', dir: 'auto' }, '…');
    api.history(room, seq + 1, 1).then(
      ({ messages }) => {
        const found = messages?.find(other => other.seq === seq);
        if (found) quote.replaceChildren(name(found.from, { class: 'who' }), `: ${found.text}`);
        else say(quote, t('attention.text_gone'));
      },
      () => say(quote, t('attention.text_unreadable')),
    );
    return el(
      'li',
      null,
      el('p', null, pieces('attention.message', { number: el('strong', null, `#${seq}`), room: el('strong', null, name(room)), server: name(guild), count: attempts, at: words.moment(at) })),
      quote,
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton(t('base.try_again'), () => api.retry(id), { title: t('attention.try_again_about') }), actionButton(t('attention.drop'), () => api.drop(id), { question: t('attention.drop_question') })),
    );
  }

  const companionEntry = ({ id, folder }) => el('li', null, el('p', null, el('strong', null, name(id)), ': ', el('code', { dir: 'ltr' }, folder)));

  const section = (what, entries) => (entries.length ? [el('h3', null, t(`attention_titles.${what}`)), el('p', { class: 'muted' }, t(`attention_about.${what}`)), el('ul', { class: 'entries' }, entries)] : []);

  function draw() {
    if (!list) return;
    const { guilds, channels, messages, companions, reload } = current;
    list.replaceChildren(
      ...section('guilds', guilds.map(guildEntry)),
      ...section('rooms', channels.map(channelEntry)),
      ...section('messages', messages.map(messageEntry)),
      ...section('companions', companions.map(companionEntry)),
      ...section('settings', (reload?.problems ?? []).map(problem => el('li', null, el('p', { class: 'detail', dir: 'auto' }, plain(problem))))),
      reload ? actionButton(t('base.try_again'), () => api.readSettings()) : '',
      ...(size(current) ? [] : [el('p', null, t('attention.none'))]),
    );
  }

  async function poll() {
    const answer = await api.quarantine().catch(() => null);
    if (!answer) return;
    const before = JSON.stringify(current);
    const sizeBefore = size(current);
    current = { guilds: answer.guilds ?? [], channels: answer.channels ?? [], messages: answer.messages ?? [], companions: answer.companions ?? [], reload: answer.reload ?? null };
    button.hidden = size(current) === 0;
    say(button, t('attention.button', { what: summary(current) }));
    if (size(current) > sizeBefore) announce(`${summary(current)}.`);
    const isChanged = JSON.stringify(current) !== before;
    if (isChanged) draw();
    polled(isChanged);
  }

  button.addEventListener('click', () => {
    list = el('div', { class: 'attention-list' });
    box = dialog(t('attention.title'), list);
    box.addEventListener('close', () => {
      box = null;
      list = null;
    });
    draw();
    poll();
  });
  poll();
  setInterval(poll, POLL_MS);
  return { poll };
}
