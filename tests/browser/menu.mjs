// The menu of a room, its name, the search, and links to messages.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();

test('a room is renamed, and keeps its id', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();

  await openMenu(page);
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('Name of the room').fill('  Harbour talk ');
  await page.keyboard.press('Enter');

  await page.locator('.room[aria-current] .room-name', { hasText: 'Harbour talk' }).waitFor();
  assert.equal((await it.server.call('GET', `/api/rooms/${room}`)).title, 'Harbour talk');
  assert.equal(new URL(page.url()).hash, `#/${room}`);
  await until(page, () => document.title === 'Harbour talk · tertulia');
  // Without a name of its own it has its id again.
  await openMenu(page);
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('Name of the room').fill('');
  await page.keyboard.press('Enter');
  await page.locator('.room[aria-current] .room-name', { hasText: room }).waitFor();
});

test('a name that cannot be is refused, and the field is named', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  for (const title of ['', 'x'.repeat(65), 'two\nlines', 'a\u202eb']) {
    await assert.rejects(it.server.call('PATCH', `/api/rooms/${room}`, { title }), error => error.status === 422 && /"field":"title"/u.test(error.message));
  }
});

test('the menu has the search', async t => {
  const page = await it.open(t, await it.server.room({ externals: ['zed'] }));
  await page.locator('#connection[data-state=live]').waitFor();

  await openMenu(page);
  await page.getByRole('button', { name: 'Find' }).click();

  await page.locator('#find-words:focus').waitFor();
});

test('the time of a message is a link to it, also to an earlier page', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const first = await it.server.say(room, 'the very first');
  await Promise.all(Array.from({ length: 210 }, (_, at) => it.server.say(room, `line ${at}`)));
  const page = await it.open(t, `${room}/${first}`);
  const target = page.locator('.chat-message', { hasText: 'the very first' });

  await target.waitFor();

  await until(page, () => {
    const box = [...document.querySelectorAll('.chat-message')].find(node => node.textContent.includes('the very first'))?.getBoundingClientRect();
    const log = document.querySelector('#log').getBoundingClientRect();
    return box && box.top >= log.top && box.bottom <= log.bottom;
  });
  assert.equal(await target.locator('a.permalink').getAttribute('href'), `#/${room}/${first}`);
  await page.locator('#to-end').click();
  await target.waitFor({ state: 'detached' });
  await page.evaluate(hash => (location.hash = hash), `#/${room}`);
  await page.evaluate(hash => (location.hash = hash), `#/${room}/${first}`);
  await target.waitFor();
});

test('the time of a message that was answered is a link, too', async t => {
  const room = await it.server.room({ companions: ['aria'], guild: 'links' });
  const page = await it.open(t, room);
  const message = await it.server.say(room, 'Aria, are you there?');
  const own = page.locator('.chat-message', { hasText: 'are you there' });
  await page.locator('.happened, .line').first().waitFor();

  await own.locator('a.permalink').click();

  await until(page, () => document.querySelector('.chat-message.flash'));
  assert.equal(await page.locator('.notice', { hasText: 'There is no message' }).count(), 0);
  assert.ok(page.url().endsWith(`#/${room}/${message}`));
});

test('export and usage are behind buttons', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const message = await it.server.say(room, 'Aria, are you there?');
  await page.locator('.chat-message.companion:not(.draft)').waitFor();

  await openMenu(page);
  const saved = async name => {
    await page.getByRole('button', { name: /^Export/u }).click();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name }).click()]);
    return [file.suggestedFilename(), await readFile(await file.path(), 'utf8')];
  };
  const [name, json] = await saved(/^Data/u);
  await openMenu(page);
  const [nameOfPage, html] = await saved(/^Page/u);
  assert.deepEqual([name, nameOfPage], [`${room}.ndjson`, `${room}.html`]);
  assert.match(html, /<div class="text" dir="auto">Aria, are you there\?<\/div>/u);
  const lines = json.trim().split('\n').map(line => JSON.parse(line));
  assert.ok(lines.some(({ seq }) => seq === message));

  await openMenu(page);
  await page.getByRole('button', { name: /^Usage/u }).click();
  await page.getByText('Demo mode: no AI is connected').waitFor();
  assert.equal(await page.locator('table.usage').count(), 0);
  await page.keyboard.press('Escape');

  // As if another model had been asked.
  await page.route('**/api/usage*', async route => {
    const answer = await (await route.fetch()).json();
    const [first, ...demo] = answer.guilds[0].by;
    first.provider = 'openrouter';
    const ofDemo = demo.reduce((sum, one) => sum + one.input_tokens, 0);
    Object.assign(answer.total, { input_tokens: ofDemo + 2000, cache_read_tokens: 1500 });
    await route.fulfill({ json: answer });
  });
  await openMenu(page);
  await page.getByRole('button', { name: /^Usage/u }).click();
  await page.locator('table.usage').waitFor();
  const rows = await texts(page.locator('table.usage tbody th'));
  assert.deepEqual(rows, ['Answers, also in demo mode', 'Requests to the AI', 'Failed requests', 'Tokens read', 'of which cached', 'Tokens written', 'Cost']);
  assert.deepEqual((await texts(page.locator('table.usage tbody tr', { hasText: 'of which cached' }).locator('td'))), ['75%', '75%']);
  assert.deepEqual((await texts(page.locator('table.usage tbody tr').first().locator('td'))), ['1', '1']);
});

test('usage shows how people received the answers: this week beside the one before, and each day', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await it.server.say(room, 'Aria, are you there?');
  await page.locator('.chat-message.companion:not(.draft)').waitFor();
  await it.server.say(room, 'Good to know.');
  const open = async () => {
    await openMenu(page);
    await page.getByRole('button', { name: /^Usage/u }).click();
    await page.getByText('How people received the answers').click();
    await page.locator('.received table').first().waitFor();
  };
  const row = name => texts(page.locator('.received table').first().locator('tr', { has: page.getByRole('rowheader', { name, exact: true }) }).locator('td'));

  // The next words of the person who was answered are on record at once.
  await open();
  const [before, last] = await row('Answers');
  assert.ok(before === '0' && Number(last) >= 1, `${before}, ${last}`);
  await page.keyboard.press('Escape');

  // As if people had talked for two weeks, and another AI had answered in the second one.
  const day = ago => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  const by = (ago, trigger, model, received) => ({ day: day(ago), companion: 'aria', trigger, model, received });
  const rows = [by(13, 'direct_address', 'good', { answered: 3, nothing_seen: 1 }), by(8, 'lull', 'good', { replied: 1 }), by(2, 'direct_address', 'other', { talked_past: 3, stopped: 1 })];
  await page.route('**/api/usage/receptions*', route => route.fulfill({ json: { from: `${day(13)}T00:00:00.000Z`, to: new Date().toISOString(), guilds: [{ guild: 'home', by: rows, incomplete: true }] } }));
  await open();
  assert.deepEqual(await row('Answers'), ['5', '4']);
  assert.deepEqual(await row('answered by the next message'), ['60% (3)', '–']);
  assert.deepEqual(await row('people talked on among themselves'), ['–', '75% (3)']);
  assert.equal(await page.locator('.received table').nth(1).locator('tbody tr').count(), 3);
  await page.getByText('Some answers are missing').waitFor();
  await page.getByLabel('Reason to speak').selectOption('it was quiet for a while');
  assert.deepEqual(await row('Answers'), ['1', '0']);
  await page.getByLabel('Reason to speak').selectOption('all');
  await page.getByLabel('AI model').selectOption('other');
  assert.deepEqual(await row('Answers'), ['0', '4']);
  assert.deepEqual(await texts(page.locator('.received table').nth(1).locator('tbody td')), ['–', '100% (4)', '–']);
});
