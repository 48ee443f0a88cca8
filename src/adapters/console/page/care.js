// What needs an operator: guilds that are kept away, rooms that are left alone, and messages that were set aside. Shown in the head while there is
// any, and told apart in a dialog with what can be done about each.

import * as api from './api.js';
import { serverNow } from './clock.js';
import { dialog } from './dialogs.js';
import { byId, el, name, plain, say } from './dom.js';
import * as words from './words.js';

const AGAIN_MS = 30_000;
const SURE_MS = 4000;

const sum = ({ guilds, channels, messages }) =>
  [
    guilds.length ? `${words.count(guilds.length, 'guild')} kept away` : '',
    channels.length ? `${words.count(channels.length, 'room')} left alone` : '',
    messages.length ? `${words.count(messages.length, 'message')} set aside` : '',
  ]
    .filter(Boolean)
    .join(' · ');

const size = ({ guilds, channels, messages }) => guilds.length + channels.length + messages.length;

const left = until => words.until(until, serverNow());

// Keeps the sign in the head true, and opens the dialog. `looked(isChanged)` is called after each look.
export function care({ tell, announce, looked }) {
  const button = byId('care');
  let known = { guilds: [], channels: [], messages: [] };
  let box = null;
  let list = null;

  // A button that does something to an entry, and says so when it cannot be done. One that cannot be undone is asked twice.
  function act(label, title, run, isFinal = false) {
    const node = el('button', { class: isFinal ? 'quiet-button danger' : 'solid', title }, label);
    node.addEventListener('click', async () => {
      if (isFinal && !node.dataset.sure) {
        node.dataset.sure = 'yes';
        say(node, 'really?');
        setTimeout(() => {
          delete node.dataset.sure;
          say(node, label);
        }, SURE_MS);
        return;
      }
      node.disabled = true;
      try {
        await run();
      } catch (problem) {
        node.disabled = false;
        // Somebody else was faster.
        if (problem.status !== 404) tell(problem);
      }
      await look();
      box?.querySelector('button')?.focus();
    });
    return node;
  }

  function guild({ id, since, until, detail }) {
    return el(
      'li',
      null,
      el('p', null, el('strong', null, name(id)), ` is kept away since ${words.time(since)}; it is tried again ${left(until)}, at ${words.time(until)}.`),
      el('p', { class: 'hush detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'ways' }, act('release', 'Start it again now', () => api.release(id))),
    );
  }

  function channel({ id, guild: of, room, since, until, detail }) {
    return el(
      'li',
      null,
      el('p', null, el('strong', null, name(room)), ' of ', name(of), ` is left alone since ${words.time(since)}; it is tried again ${left(until)}, at ${words.time(until)}.`),
      el('p', { class: 'hush detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'ways' }, act('release', 'Try it again now', () => api.release(id))),
    );
  }

  function message({ id, guild: of, room, seq, at, attempts, detail }) {
    const said = el('blockquote', { class: 'hush', dir: 'auto' }, '…');
    api.history(room, seq + 1, 1).then(
      ({ messages }) => {
        const found = messages?.find(other => other.seq === seq);
        if (found) said.replaceChildren(name(found.from, { class: 'who' }), `: ${found.text}`);
        else say(said, 'what it said is not on record any more');
      },
      () => say(said, 'what it said cannot be read here'),
    );
    return el(
      'li',
      null,
      el('p', null, 'message ', el('strong', null, `#${seq}`), ' in ', el('strong', null, name(room)), ' of ', name(of), `: its channel died of it ${words.times(attempts)}, last on ${words.moment(at)}`),
      said,
      el('p', { class: 'hush detail', dir: 'auto' }, plain(detail)),
      el('p', { class: 'ways' }, act('try again', 'It is heard once more, as if it were said now', () => api.retry(id)), act('drop', 'It is never considered; what was said stays in the history', () => api.drop(id), true)),
    );
  }

  function draw() {
    if (!list) return;
    const { guilds, channels, messages } = known;
    list.replaceChildren(
      ...(guilds.length
        ? [el('h3', null, 'guilds kept away'), el('p', { class: 'hush' }, 'Their actors died again and again. Nobody answers there until they are back; what is said meanwhile is kept, and handled then. All other guilds go on.'), el('ul', { class: 'entries' }, guilds.map(guild))]
        : []),
      ...(channels.length
        ? [el('h3', null, 'rooms left alone'), el('p', { class: 'hush' }, 'Each dies whenever it goes on from its record, or has one that cannot be read: it says which below. Nobody answers there until that is over; what is said meanwhile is kept, and handled then. The rest of its guild goes on. If it never comes back, go back to a backup, or delete the room.'), el('ul', { class: 'entries' }, channels.map(channel))]
        : []),
      ...(messages.length
        ? [el('h3', null, 'messages set aside'), el('p', { class: 'hush' }, 'Each made its channel die again and again: a fault of this program, which is worth a report. The talk goes on without them.'), el('ul', { class: 'entries' }, messages.map(message))]
        : []),
      ...(size(known) ? [] : [el('p', null, 'Nothing is kept away or set aside any more.')]),
    );
  }

  async function look() {
    const answer = await api.quarantine().catch(() => null);
    if (!answer) return;
    const before = JSON.stringify(known);
    const had = size(known);
    known = { guilds: answer.guilds ?? [], channels: answer.channels ?? [], messages: answer.messages ?? [] };
    const now = size(known);
    button.hidden = now === 0;
    say(button, `${sum(known)} ▸ see`);
    if (now > had) announce(`${sum(known)}.`);
    const isChanged = JSON.stringify(known) !== before;
    if (isChanged) draw();
    looked(isChanged);
  }

  button.addEventListener('click', () => {
    list = el('div', { class: 'care-list' });
    box = dialog('What needs you', list);
    box.addEventListener('close', () => {
      box = null;
      list = null;
    });
    draw();
    look();
  });
  look();
  setInterval(look, AGAIN_MS);
  return { look };
}
