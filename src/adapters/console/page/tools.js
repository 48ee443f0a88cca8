// “Tools”: the servers of tools with their tools, whose right each one is, and what waits to be accepted. Loaded on use.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { LOCALE, t } from './texts.js';
import * as words from './words.js';

// A text, of which the words that another one has not are marked.
function marked(now = '', before = now) {
  const [one, other] = [now, before].map(text => plain(text).split(/(\s+)/u));
  let begin = 0;
  while (begin < Math.min(one.length, other.length) && one[begin] === other[begin]) begin += 1;
  let end = one.length;
  for (let last = other.length; end > begin && last > begin && one[end - 1] === other[last - 1]; last -= 1) end -= 1;
  return [one.slice(0, begin), one.slice(begin, end), one.slice(end)].map((part, i) => (i === 1 && part.length ? el('mark', null, part.join('')) : part.join('')));
}

// A value of a tool, with the one that was accepted if it differs.
function part(label, now, before) {
  const shown = (text, other) => el('pre', { class: 'lines', dir: 'auto' }, text ? marked(text, other) : '–');
  return before === undefined || before === now ? [el('p', { class: 'muted' }, label), shown(now)] : [el('p', { class: 'muted' }, t('tool_servers.before', { what: label })), shown(before, now), el('p', { class: 'muted' }, t('tool_servers.now', { what: label })), shown(now, before)];
}

export function showTools() {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const list = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
  const refused = refusal => (problem.textContent = plain(words.upper(refusal.message)));
  const button = (label, act, kind) => el('button', { type: 'button', class: kind, onclick: act }, label);

  async function accept(tools) {
    problem.textContent = '';
    const view = await api.ask('POST', '/api/tools/accept', { tools: Object.fromEntries(tools.map(({ name, hash }) => [name, hash])) }).catch(refused);
    if (view?.servers) draw(view);
    else refresh();
  }

  const waits = tool => tool.state !== 'accepted' && !tool.problem;
  const either = new Intl.ListFormat(LOCALE, { type: 'disjunction' });
  function right({ allow, roles, confirm, approvers, guilds }) {
    const asIds = approvers.filter(one => one !== 'cause').join(', ');
    const by = [approvers.includes('cause') && t('tool_servers.by.cause'), asIds && t('tool_servers.by.roles', { roles: asIds }), t('tool_servers.by.operator')].filter(Boolean);
    return [t(`tool_servers.allow.${allow}`, { roles: roles.join(', ') }), confirm === 'always' ? t('tool_servers.confirmed', { who: either.format(by) }) : null, guilds ? t('tool_servers.guilds', { guilds: guilds.join(', ') || '–' }) : null].filter(Boolean).join(', ');
  }
  const json = value => value && JSON.stringify(value, null, 1);

  function entry(tool) {
    const { name, state, read_only: readOnly, description, parameters, accepted, problem: why } = tool;
    const standing = why ? t('tool_servers.unusable', { why }) : state === 'accepted' ? right(tool.right) : t(`tool_servers.state.${state}`);
    const reads = value => t(value ? 'tool_servers.reads' : 'tool_servers.changes');
    const details = el('details', { open: waits(tool) }, el('summary', null, t('tool_servers.details')), part(t('tool_servers.description'), description, accepted?.description), part(t('tool_servers.parameters'), json(parameters), json(accepted?.parameters)), accepted && accepted.read_only !== readOnly ? part(t('tool_servers.effect'), reads(readOnly), reads(accepted.read_only)) : null);
    return el('li', null, el('p', null, el('strong', null, plain(name)), `: ${reads(readOnly)} · `, el('span', { class: waits(tool) || why ? 'danger' : null }, plain(standing))), details, waits(tool) ? el('p', { class: 'actions' }, button(t('tool_servers.accept'), () => accept([tool]), 'solid')) : null);
  }

  function section(server) {
    const waiting = server.tools.filter(waits);
    const state = [t(server.connected ? 'tool_servers.connected' : 'tool_servers.disconnected'), server.about];
    return el('section', null, el('h3', null, plain(server.name)), el('p', { class: 'muted' }, plain(`${server.place} · ${state.filter(Boolean).join(' · ')}`)), server.problem ? el('p', { class: 'danger', dir: 'auto' }, plain(words.upper(server.problem))) : null, waiting.length > 1 ? el('p', { class: 'actions' }, button(t('tool_servers.accept_all', { count: waiting.length }), () => accept(waiting), 'quiet-button')) : null, el('ul', { class: 'entries' }, server.tools.map(entry)));
  }

  function draw({ search, servers, problem: why }) {
    list.replaceChildren(...[why ? el('p', { class: 'danger', dir: 'auto' }, plain(why)) : null, search ? el('p', null, t('tool_servers.search', { host: search })) : null, ...servers.map(section), search || servers.length ? null : el('p', { class: 'muted' }, t('tool_servers.none'))].filter(Boolean));
  }

  const refresh = () => api.ask('GET', '/api/tools').then(draw, refused);

  dialog(t('tool_servers.title'), el('p', null, t('tool_servers.what')), problem, list, el('p', { class: 'actions' }, button(t('tool_servers.refresh'), refresh, 'quiet-button')));
  refresh();
}
