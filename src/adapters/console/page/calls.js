// The calls of tools of a statement: what was used, and cards for what somebody must confirm. Loaded on use.

import { call as request } from './api.js';
import { el, plain } from './dom.js';
import { showReminders } from './reminders.js';
import { listed, t } from './texts.js';
import { number } from './words.js';

// After this the server knows no call that waits, whatever this device takes for the time.
const OVER_MS = 3_600_000;
const age = ({ until }) => Date.now() - Date.parse(until);

// What became of a call that had to be confirmed. `null`: it may wait.
function ended(call) {
  const { outcome } = call;
  if (outcome) return t(`calls.${outcome}`);
  if (call.confirmed === true) return t(age(call) > OVER_MS ? 'calls.unknown' : 'calls.running');
  if (call.confirmed === false) return t('calls.declined');
  return age(call) > OVER_MS ? t('calls.nobody') : null;
}

function waitsFor({ approvers = [], asked_by: who }) {
  return approvers.includes('cause') && who ? t('calls.waits_cause', { who }) : t('calls.waits_operator');
}

// The card of a call. Whoever may not decide about it sees no buttons, and guests only the tools of what others asked for.
async function drawCard(node, path, known, companion) {
  const drawn = () => node.dispatchEvent(new Event('drawn', { bubbles: true }));
  const tool = plain(known.tool);
  const line = state => (node.replaceChildren(el('span', { class: 'aside' }, `${tool} · ${state}`)), drawn());
  const end = ended(known);
  if (end) return line(end);
  const call = await request('GET', path).catch(() => null);
  const again = () => node.isConnected && drawCard(node, path, known, companion);
  const atItsEnd = () => setTimeout(again, Math.min(Math.max(0, -age(call ?? known)), 120_000) + 500);
  // The server could not be asked.
  if (!call && age(known) < 0) return (line(t('calls.waits')), setTimeout(again, 3_000));
  if (!call?.is_open) return line(ended({ ...known, ...call }) ?? t('calls.nobody'));
  const problem = el('p', { class: 'danger', role: 'alert' });
  const decide = confirm => async () => {
    buttons.forEach(button => (button.disabled = true));
    await request('POST', path, { confirm }).then(again, error => {
      problem.textContent = error.message;
      buttons.forEach(button => (button.disabled = false));
    });
  };
  const button = (label, confirm, kind) => el('button', { type: 'button', class: kind, onclick: decide(confirm) }, t(label));
  const buttons = call.may_decide ? [button('calls.confirm', true, 'solid'), button('calls.decline', false, 'quiet-button')] : [];
  const asked = call.asked_by ? el('p', { class: 'aside' }, t('calls.asked', { who: call.asked_by })) : '';
  const actions = el('p', { class: 'aside' }, buttons.length ? buttons.flatMap(one => [one, ' ']) : waitsFor(call));
  node.replaceChildren(el('p', null, t('calls.open', { companion, tool })), asked, el('pre', { dir: 'ltr' }, plain(call.arguments)), actions, problem);
  drawn();
  atItsEnd();
}

// A poll. The newest reply of each person that is one of its options is a vote. On a platform people vote there.
function drawPoll(room, seq, { question, options }, me) {
  const votes = new Map();
  const folded = word => word.trim().toLowerCase();
  for (const { replyTo, from, text } of room.entries) {
    const chosen = replyTo === seq && options.find(option => folded(option) === folded(text));
    if (chosen) votes.set(from, chosen);
  }
  const problem = el('p', { class: 'danger', role: 'alert' });
  const vote = text => request('POST', `/api/rooms/${encodeURIComponent(room.id)}/messages`, { from: me, text, reply_to: seq, background: true });
  const row = option => {
    const label = `${plain(option)} · ${number([...votes.values()].filter(vote => vote === option).length)}`;
    const choose = () => vote(option).catch(error => (problem.textContent = error.message));
    return el('li', null, me && !room.platform ? el('button', { type: 'button', class: 'quiet-button', 'aria-pressed': String(votes.get(me) === option), onclick: choose }, label) : label);
  };
  return el('div', { class: 'poll', role: 'group', 'aria-label': plain(question) }, el('p', null, plain(question)), el('ul', null, options.map(row)), problem);
}

// Draws the calls of a message into `box`. `me` is the name under which one writes.
export function drawCalls(box, room, { calls, seq }, companion, me) {
  const made = calls.filter(call => call.outcome && !call.until && !call.poll);
  const used = made.map(({ tool, outcome }) => (outcome === 'answered' ? plain(tool) : `${plain(tool)} (${t(`calls.${outcome}`)})`));
  const cards = calls.filter(call => call.until).map(known => {
    const node = el('div', { class: 'to-confirm', role: 'group' });
    const { call } = known;
    drawCard(node, `/api/rooms/${encodeURIComponent(room.id)}/calls/${call}`, known, companion);
    return node;
  });
  const polls = calls.filter(call => call.poll).map(({ poll }) => drawPoll(room, seq, poll, me));
  // The list has the time by the clock of this device, and says in which time zone it was understood.
  const hasReminder = made.some(({ tool, outcome }) => tool === 'remind' && outcome === 'answered');
  const when = hasReminder ? [' ', el('button', { type: 'button', class: 'quiet-button', onclick: () => showReminders(room, me) }, t('calls.when'))] : '';
  box.replaceChildren(...(used.length ? [el('span', { class: 'aside' }, t('calls.used', { tools: listed(used).join('') }), when)] : []), ...cards, ...polls);
}
