// Friends elsewhere: a tunnel with a stand-in for its program, a guest who is removed, and a page without WebSockets.

import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { test } from 'node:test';

import { untranslatedIn } from './support/untranslated.mjs';
import { world } from './support/world.mjs';

const folder = mkdtempSync(path(tmpdir(), 'tertulia-tunnel-'));
const PROGRAM = path(folder, 'cloudflared');
writeFileSync(PROGRAM, '#!/bin/sh\necho "INF Requesting new quick Tunnel"; echo "INF |  https://calm-blue-hats.trycloudflare.com  |" >&2; exec tail -f /dev/null\n');
chmodSync(PROGRAM, 0o755);

const it = world({ TERTULIA__SERVER__ADMIN_TOKEN: 'a-token-for-these-tests', PATH: `${folder}:/usr/bin:/bin` });
const untranslated = untranslatedIn('de');
const isLive = page => page.locator('#connection[data-state=live]').waitFor();
const dialog = page => page.locator('dialog[open]').last();

test('one click starts a tunnel and makes the link with its address, and another ends it', async t => {
  const host = await it.open(t, await it.server.room({ externals: ['zed'] }), { locale: 'de-DE' });
  await isLive(host);
  await host.locator('#invite').click();
  await dialog(host).getByText('Der Link funktioniert nur auf diesem Computer').waitFor();

  await dialog(host).getByRole('button', { name: 'cloudflared starten' }).click();

  await dialog(host).getByText('Offen für Gäste unter').waitFor();
  assert.match(await dialog(host).locator('.made input').inputValue(), /^https:\/\/calm-blue-hats\.trycloudflare\.com\/join#[0-9a-f]{64}$/u);
  await dialog(host).locator('.made .qr').waitFor();
  assert.deepEqual(await untranslated(host), []);
  await dialog(host).getByRole('button', { name: 'Tunnel beenden' }).click();
  await dialog(host).getByText('Der Link funktioniert nur auf diesem Computer').waitFor();
});

test('a tunnel that does not open says why, and what it printed', async t => {
  writeFileSync(PROGRAM, '#!/bin/sh\necho "ERR failed to request quick Tunnel"\nexit 1\n');
  const host = await it.open(t, await it.server.room({ externals: ['zed'] }));
  await isLive(host);
  await host.locator('#invite').click();

  await dialog(host).getByRole('button', { name: 'Start cloudflared' }).click();

  await dialog(host).getByText('ended without opening a tunnel').waitFor();
  await dialog(host).getByText('ERR failed to request quick Tunnel').waitFor();
});

test('a domain gets its lines for proxies, and a check says what is wrong', async t => {
  const host = await it.open(t, await it.server.room({ externals: ['zed'] }));
  await isLive(host);
  await host.locator('#invite').click();
  await dialog(host).getByText('A domain of your own').click();
  await dialog(host).getByLabel('Name of your domain').fill('talk.invalid');
  await dialog(host).getByText(`reverse_proxy ${new URL(it.server.url).host}`).waitFor();
  await dialog(host).getByText('server_name talk.invalid;').waitFor();

  await dialog(host).getByRole('button', { name: 'Check' }).click();

  await dialog(host).getByText('The name leads nowhere').waitFor();
});

test('a removed guest is out at once, and the place is free', async t => {
  const room = await it.server.room({ guild: crypto.randomUUID(), externals: ['zed'] });
  const host = await it.open(t, room);
  await isLive(host);
  await host.locator('#invite').click();
  await dialog(host).locator('#invite-most').fill('1');
  await dialog(host).locator('form button').click();
  const link = await dialog(host).locator('.made input').inputValue();
  const join = async name => {
    const page = await it.open(t, null, { link });
    await page.locator('#join-name').fill(name);
    await page.keyboard.press('Enter');
    await isLive(page);
    return page;
  };
  const ben = await join('Ben');
  await ben.locator('#here button').click();
  await ben.getByText('an AI companion that another program plays').waitFor();
  await ben.keyboard.press('Escape');
  await host.keyboard.press('Escape');
  await host.locator('#invite').click();
  await dialog(host).getByRole('button', { name: 'Remove Ben' }).click();
  await dialog(host).locator('button.danger:enabled').click();

  const told = ben.getByRole('heading', { name: 'You were removed from the room' });
  await told.waitFor();
  await ben.goto(link);
  await told.waitFor();
  await join('Cem');
});

test('without WebSockets the page asks for messages, says so, and gets each once', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const noSockets = page => page.addInitScript(() => {
    globalThis.WebSocket = class extends EventTarget {
      constructor() {
        super();
        setTimeout(() => this.onclose?.());
      }
      close() {}
    };
  });
  const page = await it.open(t, room, { prepare: noSockets });
  await page.getByText('no WebSockets: messages come with a delay').waitFor();

  await it.server.say(room, 'first');
  await page.locator('.chat-message', { hasText: 'first' }).waitFor();
  await page.locator('#message').fill('second');
  await page.locator('#send').click();
  await page.locator('.chat-message:not(.pending)', { hasText: 'second' }).waitFor();
  await it.server.say(room, 'third');
  await page.locator('.chat-message', { hasText: 'third' }).waitFor();

  for (const text of ['first', 'second', 'third']) assert.equal(await page.locator('.chat-message', { hasText: text }).count(), 1, text);
});
