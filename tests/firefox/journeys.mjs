// Six journeys in Firefox: what a person does from the first visit on. It is driven over WebDriver BiDi.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';

import { startServer } from '../browser/support/server.mjs';

const require = createRequire(join(resolve(process.env.TERTULIA_FIREFOX_MODULES ?? '.'), 'package.json'));
const puppeteer = require('puppeteer-core');

const TOKEN = 'a-token-for-these-tests';
const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 360, height: 740 };

let server = null;
let firefox = null;

before(async () => {
  server = await startServer({ TERTULIA__SERVER__ADMIN_TOKEN: TOKEN });
  // Somebody who asked for no language gets English.
  firefox = await puppeteer.launch({ browser: 'firefox', executablePath: process.env.FIREFOX, headless: true, extraPrefsFirefox: { 'intl.accept_languages': 'en-GB,en', 'ui.prefersReducedMotion': 1 } });
});
after(async () => {
  await firefox?.close();
  await server?.stop();
});

// A window of somebody's own, which fails the test if the page has an error.
async function open(t, address, { viewport = WIDE, signedIn = true } = {}) {
  const context = await firefox.createBrowserContext();
  const page = await context.newPage();
  const errors = [];
  // Firefox also reports a connection that is left while it is made.
  page.on('pageerror', error => error.message.includes('ws://') || errors.push(error.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(errors, [], 'errors of the page');
  });
  page.setDefaultTimeout(15_000);
  await page.setViewport(viewport);
  if (signedIn) {
    await page.goto(`${server.url}/signin`);
    await page.evaluate(token => fetch('/signin', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) }), TOKEN);
  }
  await page.goto(`${server.url}${address}`);
  return page;
}

const isLive = page => page.waitForSelector('#connection[data-state=live]');
const press = (page, label) => page.locator(`::-p-aria([name="${label}"][role="button"])`).click();
const heard = (page, words) => page.waitForFunction(text => [...document.querySelectorAll('.chat-message:not(.pending)')].some(node => node.textContent.includes(text)), {}, words);

async function say(page, words) {
  await page.type('#message', words);
  await page.keyboard.press('Enter');
}

test('first visit: a name, the first words, and an answer', async t => {
  const page = await open(t, '/');
  await isLive(page);
  await page.waitForSelector('.welcome');
  await page.locator('#your-name-field').fill('Dora');

  await say(page, 'Aria, good morning!');

  await heard(page, 'Aria, good morning!');
  await page.waitForSelector('.chat-message.companion');
  assert.equal(await page.$eval('.chat-message.user .who', node => node.textContent), 'Dora');
});

test('chat: a reply, an edit and a deletion', async t => {
  const room = await server.room({ externals: ['zed'] });
  const page = await open(t, `/#/${room}`);
  await isLive(page);
  await say(page, 'The ferry was late.');
  await heard(page, 'The ferry was late.');

  await page.keyboard.press('ArrowUp');
  await page.keyboard.type(' Again.');
  await page.keyboard.press('Enter');
  await heard(page, 'The ferry was late. Again.');

  const seq = await server.say(room, 'By how much?');
  await heard(page, 'By how much?');
  await page.goto(`${server.url}/#/${room}/${seq}`);
  await page.waitForSelector(`[data-key=m${seq}]:focus-within`);
  await server.call('DELETE', `/api/rooms/${room}/messages/${seq}`);
  await page.waitForSelector('.tombstone, [data-key^=x]');
});

test('guest: an invitation, a name, and words in both directions', async t => {
  const room = await server.room({ externals: ['zed'] });
  const host = await open(t, `/#/${room}`);
  await isLive(host);
  await press(host, 'Invite');
  await press(host, 'Make a link');
  const link = await host.waitForSelector('dialog .made input').then(field => field.evaluate(node => node.value));
  await host.keyboard.press('Escape');

  const guest = await open(t, link.slice(server.url.length), { signedIn: false });
  await guest.waitForSelector('#join-name');
  await guest.type('#join-name', 'Gus');
  await guest.keyboard.press('Enter');
  await isLive(guest);
  await say(guest, 'Hello from Gus.');

  await heard(host, 'Hello from Gus.');
  await say(host, 'Welcome!');
  await heard(guest, 'Welcome!');
});

test('phone width: nothing is wider than the screen, and the menus open', async t => {
  const room = await server.room({ companions: ['aria', 'bruno'] });
  const page = await open(t, `/#/${room}`, { viewport: PHONE });
  await isLive(page);
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(await width(), PHONE.width);

  await page.locator('#room-title').click();
  await page.waitForSelector('body.side-open');
  assert.equal(await width(), PHONE.width);
  await page.keyboard.press('Escape');
  await page.waitForSelector('body:not(.side-open)');

  await page.locator('#more').click();
  await page.waitForSelector('#room-menu:not([hidden])');
  assert.equal(await width(), PHONE.width);
});

test('unread: another room counts and says that it needs the person, and the mark is kept', async t => {
  const [here, there] = [await server.room({ externals: ['zed'] }), await server.room({ externals: ['zed'] })];
  const page = await open(t, `/#/${here}`);
  await isLive(page);
  await server.say(there, 'Ana, are you there?');
  await server.say(there, 'It is about the boat.');

  await page.reload();

  const mark = `[data-room=${there}] .room-unread`;
  await page.waitForSelector(mark);
  assert.equal(await page.$eval(`[data-room=${there}] .room-needs`, node => node.textContent), 'needs you');
  assert.match(await page.title(), /^\(2, needs you\) /u);
  await page.locator(`[data-room=${there}]`).click();
  await page.waitForSelector(mark, { hidden: true });
});

test('companion: it is made, speaks in its room, and the focus comes back', async t => {
  const page = await open(t, `/#/${await server.room({ externals: ['zed'] })}`);
  await isLive(page);
  await press(page, '+ New companion');
  await page.waitForSelector('#companion-name');
  await page.type('#companion-name', 'Zora');
  await page.type('#companion-persona', 'You are Zora, who knows the tides.');
  await press(page, 'Save');
  await page.waitForSelector('dialog', { hidden: true });
  await page.waitForFunction(() => [...document.querySelectorAll('.card-head')].some(node => node.textContent.includes('Zora')));
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BUTTON');

  await say(page, 'Zora, when is high tide?');

  await page.waitForSelector('.chat-message.companion');
});
