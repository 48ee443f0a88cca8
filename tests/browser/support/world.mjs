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
      const language = chosen ?? (asked.startsWith('de') ? 'de' : 'en');
      const texts = await readFile(join(FOLDER, `../../../texts/${language}.json`), 'utf8');
      const fill = html => html.replace('lang="en"', `lang="${language}"`).replaceAll(/\{([\w.]+)\}/gu, (_, key) => key.split('.').reduce((inner, part) => inner[part], JSON.parse(texts)));
      const body = name === 'en.json' ? texts : name.endsWith('.html') ? fill(await readFile(join(FOLDER, name), 'utf8')) : await readFile(join(FOLDER, name));
      await route.fulfill({ status: 200, headers: { 'content-security-policy': headers['content-security-policy'] ?? '', 'content-type': types[name.split('.').at(-1)] }, body });
    },
  );
}

// Call it once in a file. `server` and `browser` of the answer are there once the first test runs.
export function world(settings = {}) {
  const it = {
    server: null,
    browser: null,
    // Opens the page in a window of its own, as the operator, or a link as somebody who is not signed in. It fails the test if the page has an error.
    async open(t, room, { link = null, viewport = WIDE, colorScheme = 'light', storage = {}, prepare = async () => {}, ...options } = {}) {
      const context = await it.browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(TIMEOUT_MS);
      if (FOLDER) await serveFromDisk(context, it.server.url);
      // Most tests are about details.
      const remembered = Object.fromEntries(Object.entries({ decisions: 'shown', ...storage }).filter(([, value]) => value !== undefined));
      await context.addInitScript(stored => Object.entries(stored).forEach(([key, value]) => localStorage.setItem(`tertulia.${key}`, JSON.stringify(value))), remembered);
      if (it.server.token && !link) await context.request.post(`${it.server.url}/signin`, { data: { token: it.server.token } });
      return it.window(t, context, room, prepare, link);
    },
    // Opens another window of the same browser.
    async window(t, context, room, prepare = async () => {}, link = null) {
      const page = await context.newPage();
      const errors = [];
      page.on('pageerror', error => errors.push(error.stack));
      t.after(async () => {
        await context.close();
        assert.deepEqual(errors, [], 'errors of the page');
      });
      await prepare(page);
      await page.goto(link ?? (room ? `${it.server.url}/#/${room}` : it.server.url));
      return page;
    },
    // The live view of a room, as a program sees it.
    async watch(t, room) {
      const context = await it.browser.newContext();
      t.after(() => context.close());
      const page = await context.newPage();
      await page.goto(`${it.server.url}/page/icon.svg`);
      const events = [];
      const waiting = [];
      await page.exposeFunction('told', event => {
        events.push(event);
        for (const one of waiting.splice(0)) one();
      });
      await page.evaluate(id => {
        const socket = new WebSocket(`ws://${location.host}/api/live?room=${id}&after=0`);
        socket.onmessage = ({ data }) => window.told(JSON.parse(data));
      }, room);
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
    it.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', chromiumSandbox: process.getuid?.() !== 0, args: ['--disable-gpu', '--disable-dev-shm-usage'] });
  });
  after(async () => {
    await it.browser?.close();
    await it.server?.stop();
  });
  return it;
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
