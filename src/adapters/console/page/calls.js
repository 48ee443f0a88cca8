// The calls of tools of a statement: what was used, and cards for what somebody must confirm. Loaded on use.

import { call as request } from './api.js';
import { el, plain } from './dom.js';
import { listed, t } from './texts.js';

function stateOf(call) {
  if (call.outcome) return t(`calls.${call.outcome === 'answered' ? 'done' : call.outcome}`);
  return t(call.confirmed === null ? 'calls.nobody' : call.confirmed ? 'calls.running' : 'calls.declined');
}

// The card of a call. Whoever may not decide about it sees only its tool.
async function drawCard(node, path, tool, companion) {
  const call = await request('GET', path).catch(() => null);
  if (!call?.is_open) return node.replaceChildren(el('span', { class: 'aside' }, call ? `${plain(tool)} · ${stateOf(call)}` : plain(tool)));
  const again = () => node.isConnected && drawCard(node, path, tool, companion);
  const problem = el('p', { class: 'danger', role: 'alert' });
  const buttons = [];
  const decide = confirm => async () => {
    buttons.forEach(button => (button.disabled = true));
    await request('POST', path, { confirm }).then(again, error => {
      problem.textContent = error.message;
      buttons.forEach(button => (button.disabled = false));
    });
  };
  const button = (label, confirm, kind) => el('button', { type: 'button', class: kind, onclick: decide(confirm) }, t(label));
  buttons.push(button('calls.confirm', true, 'solid'), button('calls.decline', false, 'quiet-button'));
  node.replaceChildren(el('p', null, t('calls.open', { companion, tool: plain(tool) })), el('pre', { dir: 'ltr' }, plain(call.arguments)), el('p', null, buttons[0], ' ', buttons[1]), problem);
  setTimeout(again, Math.max(0, Date.parse(call.until) - Date.now()) + 500);
}

// Draws the calls of a message into `box`.
export function drawCalls(box, room, { calls }, companion) {
  const made = calls.filter(call => call.outcome);
  const used = made.map(({ tool, outcome }) => (outcome === 'answered' ? plain(tool) : `${plain(tool)} (${t(`calls.${outcome}`)})`));
  const cards = calls.filter(call => !call.outcome && call.until).map(({ call, tool }) => {
    const node = el('div', { role: 'group' });
    drawCard(node, `/api/rooms/${encodeURIComponent(room.id)}/calls/${call}`, tool, companion);
    return node;
  });
  box.replaceChildren(...(used.length ? [el('span', { class: 'aside' }, t('calls.used', { tools: listed(used) }))] : []), ...cards);
}
