// A server and a browser for the tests of one file, and pages that are closed after each test.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { after, before } from 'node:test';

import { startServer } from './server.mjs';

export const require = createRequire(join(resolve(process.env.TERTULIA_BROWSER_MODULES ?? '.'), 'package.json'));
const { chromium } = require('playwright-core');

const TIMEOUT_MS = 10_000;
const WIDE = { width: 1280, height: 800 };
export const PHONE = { width: 360, height: 740 };

// With this folder the page's files are read from disk instead of the binary, so that the page can be changed without compiling.
const FOLDER = process.env.TERTULIA_PAGE;

// How a page changes the texts that it is served, by the page.
const changes = new WeakMap();

async function serveFromDisk(context, url) {
  // A page that does not come from loopback may connect to it with this permission only.
  await context.grantPermissions(['local-network-access']);
  const types = { html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', json: 'application/json', svg: 'image/svg+xml' };
  const { headers } = await fetch(url).then(({ headers: all }) => ({ headers: Object.fromEntries(all) }));
  await context.route(
    ({ pathname }) => ['/', '/join'].includes(pathname) || pathname.startsWith('/page/'),
    async route => {
      const { pathname } = new URL(route.request().url());
      // At the root, guests get a page of their own.
      const name = pathname === '/' ? ((await (await route.fetch()).text()).includes('/page/guest-page.') ? 'guest.html' : 'index.html') : pathname === '/join' ? 'join.html' : pathname.slice('/page/'.length);
      const asked = route.request().headers()['accept-language'] ?? '';
      const chosen = (await context.cookies(url)).find(cookie => cookie.name === 'language')?.value;
      const language = chosen ?? ['de', 'es'].find(code => asked.startsWith(code)) ?? 'en';
      const { change = words => words, dir = 'ltr' } = changes.get(route.request().frame().page()) ?? {};
      const texts = JSON.stringify(change(JSON.parse(await readFile(join(FOLDER, `../../../texts/${language}.json`), 'utf8'))));
      const fill = html => html.replace('lang="en"', `lang="${language}" dir="${dir}"`).replaceAll(/\{([\w.]+)\}/gu, (_, key) => key.split('.').reduce((inner, part) => inner[part], JSON.parse(texts)));
      const body = name === 'en.json' || name.startsWith('later.') ? texts : name.endsWith('.html') ? fill(await readFile(join(FOLDER, name), 'utf8')) : await readFile(join(FOLDER, name));
      await route.fulfill({ status: 200, headers: { 'content-security-policy': headers['content-security-policy'] ?? '', 'content-type': types[name.split('.').at(-1)] }, body });
    },
  );
}

// Serves a page with other texts, and written in another direction. `change` gets the texts of a language.
export async function withTexts(page, change, dir = 'ltr') {
  if (FOLDER) return void changes.set(page, { change, dir });
  // A page that does not come from loopback may connect to it with this permission only.
  await page.context().grantPermissions(['local-network-access']);
  const english = JSON.parse(await readFile(new URL('../../../src/texts/en.json', import.meta.url), 'utf8'));
  const other = change(english);
  const text = (texts, key) => key.split('.').reduce((inner, part) => inner?.[part], texts);
  await page.route(
    ({ pathname }) => pathname === '/' || /^\/page\/[\w-]+\.en\.js$/u.test(pathname),
    async route => {
      const response = await route.fetch();
      let body = await response.text();
      if (new URL(route.request().url()).pathname === '/') {
        const source = await readFile(new URL('../../../src/adapters/console/page/index.html', import.meta.url), 'utf8');
        for (const [, key] of source.matchAll(/\{([\w.]+)\}/gu)) for (const [before, after] of [['>', '<'], ['"', '"']]) body = body.replaceAll(before + text(english, key) + after, before + text(other, key) + after);
        body = body.replace('<html lang="en">', `<html lang="en" dir="${dir}">`);
      } else {
        body = body.replace(/^modules\["en\.json"\] = .*;$/mu, () => `modules["en.json"] = ${JSON.stringify(other)};`);
      }
      await route.fulfill({ response, body });
    },
  );
}

// A page without scripts, which keeps the process of its origin alive while other pages come and go.
async function openBlank(context, url) {
  const page = await context.newPage();
  await page.goto(`${url}/page/icon.svg`);
  return page;
}

// Call it once in a file, with settings of the server and further switches of the browser. `server` and `browser` of the answer are there once the first test
// runs.
export function world(settings = {}, switches = []) {
  // People's browsers that no test uses, by their options. Starting one takes more time than most tests.
  const idle = new Map();
  let listener = null;

  // A browser of somebody's own, and a blank page in it.
  async function start(options) {
    // A service worker would answer besides the routes of tests.
    const context = await it.browser.newContext({ reducedMotion: 'reduce', serviceWorkers: 'block', ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    if (FOLDER) await serveFromDisk(context, it.server.url);
    return { context, blank: await openBlank(context, it.server.url) };
  }

  // One that was used before, or a new one. Another test gets it without windows, cookies and what was stored.
  async function borrow(t, options) {
    const kind = JSON.stringify(options);
    if (!idle.has(kind)) idle.set(kind, []);
    const { context, blank } = idle.get(kind).pop() ?? (await start(options));
    t.after(async () => {
      for (const page of context.pages()) if (page !== blank) await page.close();
      await context.clearCookies();
      await blank.evaluate(() => localStorage.clear());
      idle.get(kind).push({ context, blank });
    });
    return context;
  }

  // A page that listens to rooms for all tests, and who hears its events.
  async function listen() {
    const page = await openBlank(await it.browser.newContext(), it.server.url);
    const takers = new Map();
    await page.exposeFunction('told', (id, event) => takers.get(id)?.(event));
    return { page, takers };
  }

  const it = {
    server: null,
    browser: null,
    // Opens the page in a window of its own, as the operator, or a link as somebody who is not signed in. It fails the test if the page has an error.
    async open(t, room, { link = null, viewport = WIDE, storage = {}, prepare = async () => {}, ...options } = {}) {
      const context = await borrow(t, { viewport, colorScheme: 'light', ...options });
      const errors = [];
      t.after(() => assert.deepEqual(errors, [], 'errors of the page'));
      const page = await context.newPage();
      page.on('pageerror', error => errors.push(error.stack));
      // Most tests are about details.
      const remembered = Object.fromEntries(Object.entries({ decisions: 'shown', ...storage }).filter(([, value]) => value !== undefined));
      await page.addInitScript(stored => Object.entries(stored).forEach(([key, value]) => localStorage.setItem(`tertulia.${key}`, JSON.stringify(value))), remembered);
      if (it.server.token && !link) await context.request.post(`${it.server.url}/signin`, { data: { token: it.server.token } });
      await prepare(page);
      await page.goto(link ?? (room ? `${it.server.url}/#/${room}` : it.server.url));
      return page;
    },
    // The live view of a room, as a program sees it.
    async watch(t, room) {
      listener ??= await listen();
      const { page, takers } = listener;
      const id = crypto.randomUUID();
      const events = [];
      const waiting = [];
      takers.set(id, event => {
        events.push(event);
        for (const one of waiting.splice(0)) one();
      });
      t.after(() => takers.delete(id));
      const socket = await page.evaluateHandle(
        ([of, watched]) => {
          const opened = new WebSocket(`ws://${location.host}/api/live?room=${watched}&after=0`);
          opened.onmessage = ({ data }) => window.told(of, JSON.parse(data));
          return opened;
        },
        [id, room],
      );
      t.after(() => socket.evaluate(one => one.close()));
      // The first event that matches, which may have come before.
      async function event(matches) {
        for (let at = 0; ; at += 1) {
          while (at >= events.length) await new Promise(done => waiting.push(done));
          if (matches(events[at])) return events[at];
        }
      }
      await event(({ event: kind }) => kind === 'hello');
      return {
        event,
        // Votes for an external companion in the round about a message.
        async vote(companion, message, vote = {}) {
          await event(one => one.event === 'round_opened' && one.message_id === message && one.asked.includes(companion));
          await it.server.call('POST', `/api/rooms/${room}/states`, { from: companion, messageId: String(message), state: 'listen', importance: 0, selected: false, ...vote });
        },
        // Speaks as an external companion that the round about a message has selected. Returns the number of its message.
        async speak(companion, message, text) {
          const { seq: selected } = await event(one => one.event === 'round' && one.message_id === message && one.selected === companion);
          await event(one => one.event === 'respond' && one.companion === companion && one.seq > selected);
          return (await it.server.call('POST', `/api/rooms/${room}/statements`, { from: companion, message_id: message, text })).seq;
        },
      };
    },
  };
  before(async () => {
    it.server = await startServer(settings);
    // With one process for all windows of a person, most windows need not wait for a new one.
    const args = ['--disable-gpu', '--disable-dev-shm-usage', '--process-per-site', ...switches];
    it.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', chromiumSandbox: process.getuid?.() !== 0, args });
  });
  after(async () => {
    await it.browser?.close();
    await it.server?.stop();
  });
  return it;
}

// Opens the menu of the room.
// What the page learns as it connects is drawn before, because drawing may close the menu. Some tests have no connection.
export async function openMenu(page) {
  await page.locator('#connection[data-state=live]').waitFor({ state: 'attached', timeout: 1000 }).catch(() => {});
  await page.locator('#more[aria-expanded=false]').click();
}

// Listens to the call of a room on a server without services for speech.
export async function listenFirst(page) {
  await openMenu(page);
  await page.getByRole('button', { name: 'Voice ▸ Set up' }).click();
  await page.getByRole('button', { name: 'Listen to the call' }).click();
}

// Waits until a function of the page returns something true.
export const until = (page, check, argument) => page.waitForFunction(check, argument, { polling: 'raf', timeout: TIMEOUT_MS });

// For `prepare`: what the server sends over WebSockets waits until the answer is called.
export async function holdLive(page) {
  await page.addInitScript(() => {
    let held = [];
    window.WebSocket = class extends WebSocket {
      set onmessage(take) {
        super.onmessage = frame => (held ? held.push([take, frame]) : take(frame));
      }
    };
    window.releaseLive = () => {
      const frames = held;
      held = null;
      for (const [take, frame] of frames) take(frame);
    };
  });
  return () => page.evaluate(() => window.releaseLive());
}

// For `prepare`: `live(events)` of the page takes events as if the server had sent them.
export const feeds = page =>
  page.addInitScript(() => {
    window.WebSocket = class extends WebSocket {
      set onmessage(take) {
        super.onmessage = take;
        window.live = events => events.forEach((event, i) => take({ data: JSON.stringify({ at: new Date().toISOString(), seq: 1000 + i, ...event }) }));
      }
    };
  });

// Collects what a screen reader is told in `said` of the page.
export const listen = page =>
  page.evaluate(() => {
    window.said = [];
    new MutationObserver(changes => changes.forEach(({ addedNodes }) => addedNodes.forEach(node => window.said.push(node.textContent)))).observe(document.getElementById('announcements'), { childList: true });
  });
export const hears = (page, words) => until(page, text => window.said.includes(text), words);

// The next answer to a request waits until `release` is called. `held` ends once the server has given the answer.
export async function holdAnswer(page, url) {
  const [hold, held] = later();
  const [release, released] = later();
  await page.route(
    url,
    async route => {
      const response = await route.fetch();
      hold();
      await released;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  return { held, release };
}

function later() {
  let resolve = null;
  const promise = new Promise(done => (resolve = done));
  return [resolve, promise];
}

// The texts of all elements that match, with single spaces.
export const texts = async locator => (await locator.allTextContents()).map(text => text.replace(/\s+/gu, ' ').trim());
