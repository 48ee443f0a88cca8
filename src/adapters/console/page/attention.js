// What needs an operator: quarantined guilds, suspended rooms, dead letters and lost companions. The header shows how many there are, and a dialog lists each with
// what can be done about it.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { confirmed, dialog } from './dialogs.js';
import { byId, el, name, plain, say } from './dom.js';
import * as words from './words.js';

const POLL_MS = 30_000;

const summary = ({ guilds, channels, messages, companions }) =>
  [
    guilds.length ? `${words.count(guilds.length, 'server')} stopped after errors` : '',
    channels.length ? `${words.count(channels.length, 'room')} stopped after errors` : '',
    messages.length ? `${words.count(messages.length, 'message')} could not be handled` : '',
    companions.length ? `${words.count(companions.length, 'companion')} not loaded` : '',
  ]
    .filter(Boolean)
    .join(' · ');

const size = ({ guilds, channels, messages, companions }) => guilds.length + channels.length + messages.length + companions.length;

const nextRetry = until => `Next retry ${words.until(until, serverNow())}, at ${words.time(until)}.`;

// Keeps the button in the header up to date, and opens the dialog. `polled(isChanged)` is called after each request.
export function attention({ showProblem, announce, polled }) {
  const button = byId('attention');
  let current = { guilds: [], channels: [], messages: [], companions: [] };
  let box = null;
  let list = null;

  // A button that changes an entry, and shows the problem if that fails. `question` is asked before.
  function actionButton(label, title, run, question = null) {
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
      el('p', null, el('strong', null, name(id)), ` is stopped since ${words.time(since)}. ${nextRetry(until)}`),
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton('Restart', 'Restart it now', () => api.release(id))),
    );
  }

  function channelEntry({ id, guild, room, since, until, detail }) {
    return el(
      'li',
      null,
      el('p', null, el('strong', null, name(room)), ' in ', name(guild), ` is stopped since ${words.time(since)}. ${nextRetry(until)}`),
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton('Restart', 'Restart it now', () => api.release(id))),
    );
  }

  function messageEntry({ id, guild, room, seq, at, attempts, detail }) {
    const quote = el('blockquote', { class: 'muted', dir: 'auto' }, '…');
    api.history(room, seq + 1, 1).then(
      ({ messages }) => {
        const found = messages?.find(other => other.seq === seq);
        if (found) quote.replaceChildren(name(found.from, { class: 'who' }), `: ${found.text}`);
        else say(quote, 'The text of this message is no longer on record.');
      },
      () => say(quote, 'The text of this message cannot be read here.'),
    );
    return el(
      'li',
      null,
      el('p', null, 'Message ', el('strong', null, `#${seq}`), ' in ', el('strong', null, name(room)), ' of ', name(guild), `: its room failed ${words.times(attempts)}, last on ${words.moment(at)}.`),
      quote,
      el('p', { class: 'muted detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'actions' }, actionButton('Try again', 'Handle the message once more, as if it had just been sent', () => api.retry(id)), actionButton('Drop', 'Never consider the message; it stays in the history', () => api.drop(id), 'The message stays in the history, and no companion ever considers it.')),
    );
  }

  const companionEntry = ({ id, folder }) => el('li', null, el('p', null, el('strong', null, name(id)), ': ', el('code', { dir: 'ltr' }, folder)));

  function draw() {
    if (!list) return;
    const { guilds, channels, messages, companions } = current;
    list.replaceChildren(
      ...(guilds.length
        ? [el('h3', null, 'Servers that are stopped after errors'), el('p', { class: 'muted' }, 'Each of these failed again and again, and is stopped for a while. Until it is restarted, no companion answers there; new messages are stored, and handled after the restart. Everything else keeps running.'), el('ul', { class: 'entries' }, guilds.map(guildEntry))]
        : []),
      ...(channels.length
        ? [el('h3', null, 'Rooms that are stopped after errors'), el('p', { class: 'muted' }, 'Each of these rooms fails when it is restored from its record, or its record cannot be read; the reason is shown below. Until it is restarted, no companion answers there; new messages are stored, and handled after the restart. All other rooms keep running. If every restart fails, restore a backup or delete the room.'), el('ul', { class: 'entries' }, channels.map(channelEntry))]
        : []),
      ...(messages.length
        ? [el('h3', null, 'Messages that could not be handled'), el('p', { class: 'muted' }, 'Each of these messages made its room fail several times. That is a bug in tertulia: please report it. The conversation continues without these messages.'), el('ul', { class: 'entries' }, messages.map(messageEntry))]
        : []),
      ...(companions.length
        ? [el('h3', null, 'Companions that were not loaded'), el('p', { class: 'muted' }, 'Each of these companions left its rooms at the last reload, because its folder has neither companion.toml nor persona files (*.md). Add them, or remove the folder, and send SIGHUP again.'), el('ul', { class: 'entries' }, companions.map(companionEntry))]
        : []),
      ...(size(current) ? [] : [el('p', null, 'Nothing needs your attention any more.')]),
    );
  }

  async function poll() {
    const answer = await api.quarantine().catch(() => null);
    if (!answer) return;
    const before = JSON.stringify(current);
    const sizeBefore = size(current);
    current = { guilds: answer.guilds ?? [], channels: answer.channels ?? [], messages: answer.messages ?? [], companions: answer.companions ?? [] };
    button.hidden = size(current) === 0;
    say(button, `${summary(current)} ▸ Details`);
    if (size(current) > sizeBefore) announce(`${summary(current)}.`);
    const isChanged = JSON.stringify(current) !== before;
    if (isChanged) draw();
    polled(isChanged);
  }

  button.addEventListener('click', () => {
    list = el('div', { class: 'attention-list' });
    box = dialog('Needs attention', list);
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
