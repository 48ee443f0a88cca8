// In the dialog “Invite”: how friends elsewhere reach this server, by a tunnel, in the same network, or at a domain.

import * as api from './api.js';
import { confirmed } from './dialogs.js';
import { el, plain, svg } from './dom.js';
import { copyButton } from './markdown.js';
import { listed, pieces, t } from './texts.js';
import * as words from './words.js';

const LOOK_MS = 1000;
const PROGRAMS = { cloudflared: 'https://developers.cloudflare.com/cloudflare-one/networks/connectors/cloudflare-tunnel/downloads/', tailscale: 'https://tailscale.com/download' };
const LOST = new Set(['no_name', 'no_answer', 'other_server']);
const HOST = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/iu;

const paragraph = (text, kind = null) => el('p', { class: kind, dir: 'auto' }, text);
const code = text => el('code', { dir: 'ltr' }, plain(text));
const button = (label, onclick, kind = 'outlined') => el('button', { type: 'button', class: kind, onclick }, label);
const block = text => el('div', { class: 'code' }, copyButton(text, 'outlined'), el('pre', { tabindex: '0', dir: 'ltr' }, el('code', null, text)));

// A link as a QR code, of its rows.
export function qrNode(rows) {
  const dark = rows.flatMap((row, y) => [...row].map((module, x) => (module === '#' ? `M${x + 4} ${y + 4}h1v1h-1z` : '')));
  const side = rows.length + 8;
  return svg('svg', { class: 'qr', viewBox: `0 0 ${side} ${side}`, role: 'img', 'aria-label': t('elsewhere.qr'), 'shape-rendering': 'crispEdges' }, svg('path', { d: `M0 0h${side}v${side}H0z`, fill: '#fff' }), svg('path', { d: dark.join(''), fill: '#000' }));
}

// docs/network.md has the same lines; a test compares them.
export const caddy = (host, local) => `${host} {\n  reverse_proxy ${local}\n}`;
export const nginx = (host, local) => `map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
server {
  listen 443 ssl;
  server_name ${host};
  ssl_certificate     /etc/letsencrypt/live/${host}/fullchain.pem;
  ssl_certificate_key /etc/letsencrypt/live/${host}/privkey.pem;
  location / {
    proxy_pass http://${local};
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header Forwarded "";
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_buffering off;
    proxy_read_timeout 60s;
    client_max_body_size 32m;
  }
}`;
const settings = host => `[server]\npublic_url = "https://${host}"\ntrusted_proxies = ["127.0.0.1"]`;

// `isOpen()` tells whether the dialog is open, `changed(isNew)` is called when links begin with another address, `isNew` if
// one was opened, and `here()` resolves to the names of the guests who are in the room.
export async function elsewhere({ isOpen, changed, here }) {
  const tunnel = el('div');
  const network = el('div');
  const domain = el('div');
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  let urls = null; // the open ones, as shown
  let shown = ''; // the answer
  let timer = null;
  let isRunning = false;
  let checked = null; // the address of the tunnel, and the nodes that check it
  let cut = null; // why the last look failed

  // Sends a request, and shows what is open then.
  const change = (method, path, body) => async event => {
    event.currentTarget.disabled = true;
    problem.textContent = '';
    shown = '';
    await api.ask(method, `/api/addresses${path}`, body).then(draw, refusal => {
      problem.textContent = words.sentence(refusal.message);
      return look();
    });
  };
  const logNode = ({ program, log }, open) => (log.length ? el('details', { open }, el('summary', null, t('elsewhere.log', { program })), el('pre', { class: 'tunnel-log', tabindex: '0', dir: 'ltr' }, plain(log.join('\n')))) : null);

  function tunnelNodes({ programs, tunnel: one }) {
    const starts = programs.map(program => button(t('elsewhere.start', { program }), change('PUT', '/tunnel', { program }), 'solid'));
    const close = change('DELETE', '/tunnel');
    async function ask(event) {
      const { currentTarget } = event;
      const who = await here();
      if (!who.length || (await confirmed(t('elsewhere.end'), t('elsewhere.end_question', { who: listed(who).join(''), count: who.length }), t('elsewhere.end')))) await close({ currentTarget });
    }
    const end = (label, act = close) => el('p', { class: 'actions' }, button(t(label), act));
    if (one?.url) {
      // The result of the check is kept when the log is drawn again.
      if (checked?.url !== one.url) checked = { url: one.url, nodes: checkNodes(() => one.url, 'elsewhere.tunnel_lost') };
      const [press, found] = checked.nodes;
      const actions = end('elsewhere.end', ask);
      actions.append(' ', press);
      return [paragraph(pieces('elsewhere.tunnel_open', { url: code(one.url) })), actions, found, logNode(one)];
    }
    if (one && !one.problem) return [paragraph(t('elsewhere.starting', { program: one.program })), end('base.cancel'), logNode(one, true)];
    const why = one ? [paragraph(t(`tunnel_problems.${one.problem}`, { program: one.program }), 'form-problem'), logNode(one, true)] : [];
    if (!starts.length) {
      const links = Object.fromEntries(Object.entries(PROGRAMS).map(([name, href]) => [name, el('a', { href, target: '_blank', rel: 'noopener noreferrer' }, name)]));
      return [...why, paragraph(t('elsewhere.tunnel_about')), paragraph(pieces('elsewhere.no_program', links))];
    }
    return [paragraph(t('elsewhere.tunnel_about')), programs.includes('cloudflared') ? paragraph(t('elsewhere.cloudflare_reads'), 'muted') : null, ...why, el('p', { class: 'actions' }, starts)];
  }

  // A button that has the server request an address, and an element for the result. `lost` is the text for an address that does not reach this server.
  function checkNodes(address, lost = null) {
    const found = el('div', { role: 'status' });
    async function check(event) {
      const pressed = event.currentTarget;
      pressed.disabled = true;
      found.replaceChildren(paragraph(t('elsewhere.checking'), 'muted'));
      const answer = await api.ask('POST', '/api/addresses/check', { url: address() }).catch(refusal => ({ refusal }));
      const told = answer.refusal ? [paragraph(words.sentence(answer.refusal.message), 'form-problem')] : answer.faults.map(({ code: fault, detail = '' }) => paragraph(pieces(lost && LOST.has(fault) ? lost : `faults.${fault}`, { detail: el('bdi', null, plain(detail)) }), 'form-problem'));
      found.replaceChildren(...(told.length ? told : [paragraph(t('elsewhere.works'))]));
      pressed.disabled = false;
    }
    return [button(t('elsewhere.check'), check), found];
  }

  function networkNodes({ network: url, machine }) {
    if (url) return [paragraph(pieces('elsewhere.network_open', { url: code(url) })), el('p', { class: 'actions' }, button(t('elsewhere.close'), change('DELETE', '/network')))];
    return [paragraph(t('elsewhere.network_about')), paragraph(t('elsewhere.network_plain'), 'muted'), machine ? el('p', { class: 'actions' }, button(t('elsewhere.open', { address: machine }), change('PUT', '/network', {}))) : paragraph(words.sentence(t('refusals.no_network')), 'muted')];
  }

  function domainNodes({ public_url: known, local }) {
    const field = el('input', { id: 'elsewhere-host', class: 'lines', placeholder: 'talk.example.org', value: known?.replace(/^https?:\/\//u, '') ?? '', maxlength: 253, autocomplete: 'off', spellcheck: 'false', dir: 'ltr' });
    const lines = el('div');
    const host = () => field.value.trim().replace(/^https:\/\//u, '').replace(/\/$/u, '');
    const show = () => lines.replaceChildren(...(HOST.test(host()) ? [paragraph(t('elsewhere.caddy')), block(caddy(host(), local)), paragraph(t('elsewhere.nginx')), block(nginx(host(), local)), paragraph(t('elsewhere.settings')), block(settings(host()))] : []));
    field.addEventListener('input', show);
    const [press, found] = checkNodes(() => `https://${host()}`);
    show();
    return [paragraph(t('elsewhere.domain_about')), el('p', { class: 'link' }, el('label', { for: field.id, class: 'visually-hidden' }, t('elsewhere.host')), field, press), found, lines];
  }

  // A tunnel opens, and may end, by itself.
  function lookAgain() {
    clearTimeout(timer);
    if (isRunning) timer = setTimeout(() => isOpen() && look(), LOOK_MS);
  }

  function draw(answer) {
    isRunning = Boolean(answer.tunnel && !answer.tunnel.problem);
    lookAgain();
    if (problem.textContent === cut) problem.textContent = '';
    if (shown === JSON.stringify(answer)) return;
    shown = JSON.stringify(answer);
    const opened = [answer.tunnel?.url, answer.network].filter(Boolean);
    for (const [node, nodes] of [[tunnel, tunnelNodes], [network, networkNodes]]) node.replaceChildren(...nodes(answer).filter(Boolean));
    if (!domain.firstChild) domain.replaceChildren(...domainNodes(answer));
    if (urls && urls.join() !== opened.join()) changed(opened.some(url => !urls.includes(url)));
    urls = opened;
  }

  const look = () =>
    api.ask('GET', '/api/addresses').then(draw, refusal => {
      cut = problem.textContent = words.sentence(refusal.message);
      shown = '';
      lookAgain();
    });
  await look();
  const part = (title, node, open) => el('details', { class: 'way', open }, el('summary', null, el('strong', null, t(title))), node);
  return el('div', { class: 'elsewhere' }, el('h3', null, t('elsewhere.title')), problem, part('elsewhere.tunnel', tunnel, true), part('elsewhere.network', network), part('elsewhere.domain', domain));
}
