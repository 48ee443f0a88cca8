// Runs in the browser beside the page, also while no page is open: says that the server cannot be reached, when a page is opened then, and shows notifications.
// It stores nothing, and takes no part in other requests.

import { LANGUAGE, t } from './texts.js';

const PAGES = ['/', '/join'];
const LOOK_AGAIN_MS = 5000;
const STYLE = ':root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#fbfaf7,#171614);color:light-dark(#23211d,#e9e5dc)}body{margin:0;min-height:100vh;display:grid;place-items:center}main{max-width:28rem;padding:1.5rem}h1{font-size:1.25rem}button{font:inherit;padding:.5rem 1rem}';
// Reloads once the server answers.
const SCRIPT = `const look=()=>fetch('/healthz').then(answer=>answer.ok&&location.reload(),()=>{});setInterval(look,${LOOK_AGAIN_MS});addEventListener('online',look);document.querySelector('button').onclick=()=>location.reload()`;
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

const escaped = text => text.replace(/[&<]/gu, sign => `&#${sign.codePointAt(0)};`);

function offline() {
  const [title, about, again] = ['offline.title', 'offline.about', 'base.try_again'].map(key => escaped(t(key)));
  const html = `<!doctype html><html lang="${LANGUAGE}" dir="auto"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · tertulia</title><style>${STYLE}</style><main><h1>${title}</h1><p>${about}</p><p><button>${again}</button></p></main><script>${SCRIPT}</script></html>`;
  return new Response(html, { status: 503, headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY } });
}

async function answer(request) {
  const response = await fetch(request).catch(offline);
  if (response.status !== 401) return response;
  // A proxy asks for a password, which browsers pass on to people only where there is no worker. The page brings it back.
  await registration.unregister();
  return Response.redirect(request.url);
}

const windows = () => clients.matchAll({ type: 'window', includeUncontrolled: true });

// A visible window shows what there is. Several hidden ones tell the same, and a later message of the same room disturbs nobody again: a notification takes the place
// of another one with its tag.
async function notify({ title, tag, hash }) {
  if ((await windows()).some(({ visibilityState }) => visibilityState === 'visible')) return;
  await registration.showNotification(title, { tag, lang: LANGUAGE, icon: '/page/icon-192.png', data: hash });
}

async function show(hash) {
  const [open] = await windows();
  if (!open) return clients.openWindow(`/${hash}`);
  open.postMessage({ hash });
  return open.focus();
}

addEventListener('install', () => skipWaiting());
addEventListener('fetch', event => {
  const { mode, method, url } = event.request;
  if (mode === 'navigate' && method === 'GET' && PAGES.includes(new URL(url).pathname)) event.respondWith(answer(event.request));
});
addEventListener('message', event => event.waitUntil(notify(event.data)));
addEventListener('notificationclick', event => {
  event.notification.close();
  event.waitUntil(show(event.notification.data));
});
