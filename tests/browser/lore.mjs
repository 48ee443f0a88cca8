// Lorebooks: made on the page, read from a file, in the prompt, and told under Why?.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, world } from './support/world.mjs';

const it = world();

async function opened(page) {
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Lorebooks' }).click();
  await page.getByText('There is no lorebook yet.').waitFor();
  return page.locator('dialog[open]').last();
}

test('a lorebook is made, counts in its room, and is told under an answer', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const list = await opened(page);

  await list.getByRole('button', { name: 'New lorebook' }).click();
  const editor = page.locator('dialog[open]').last();
  await editor.getByLabel('Name', { exact: true }).fill('Valley');
  await editor.getByRole('button', { name: 'New entry' }).click();
  await editor.getByLabel('Name (only for you)').fill('Mill');
  await editor.getByLabel('Key words', { exact: true }).fill('mill, tower\n/a{1,2}b/, /(?=a)b/');
  await editor.getByLabel('Text', { exact: true }).fill('The mill burned down.');
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/editor.png` });
  await editor.getByRole('button', { name: 'Save' }).click();
  await page.getByText('looks ahead or behind').waitFor();
  await page.locator('dialog[open]').last().getByRole('button', { name: 'Cancel' }).click();

  await list.getByText('Saved.').waitFor();
  const { book } = await it.server.call('GET', '/api/lorebooks/valley');
  assert.deepEqual(book.entries[0].keys, ['mill', 'tower', '/a{1,2}b/', '/(?=a)b/']);
  assert.deepEqual(await texts(list.locator('.entries li p:first-child')), ['Valley 1 entry']);
  assert.doesNotMatch(await list.textContent(), /null|undefined/u);
  const { books } = await it.server.call('GET', '/api/lorebooks');
  assert.deepEqual(books.map(book => book.rooms), [[room]]);
  await it.server.say(room, 'Aria, where is the mill?');
  await page.keyboard.press('Escape');
  await page.locator('.chat-message.companion:not(.draft)').waitFor();
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  assert.deepEqual(messages.at(-1).lore, ['Valley: Mill']);
  const { story } = await it.server.call('GET', `/api/why?room=${room}&message=${messages.at(-1).seq}`);
  assert.ok(story.some(line => line.text === 'In the prompt from lorebooks: Valley: Mill.'));
  await it.server.call('DELETE', `/api/lorebooks/valley?revision=${(await it.server.call('GET', '/api/lorebooks/valley')).revision}`);
});

test('a file is read, what is lost is told, and nothing is kept before it is saved', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const list = await opened(page);
  const file = { entries: { 0: { key: ['ring'], comment: 'Ring', content: 'One ring.', probability: 10 } } };

  await list.locator('input[type=file]').setInputFiles({ name: 'Middle.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) });

  const editor = page.locator('dialog[open]').last();
  await editor.getByText('Chance is not used: 1 entry always counts.').waitFor();
  assert.equal(await editor.getByLabel('Name', { exact: true }).inputValue(), 'Middle');
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/read.png` });
  assert.deepEqual((await it.server.call('GET', '/api/lorebooks')).books, []);
  await editor.getByRole('button', { name: 'Save' }).click();
  await list.locator('.entries li', { hasText: 'Middle' }).waitFor();
  const exported = await it.server.call('GET', '/api/lorebooks/middle/file?as=risu');
  assert.equal(exported.data[0].key, 'ring');
  await list.locator('input[type=file]').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{}') });
  await list.locator('.form-problem', { hasText: 'JSON' }).waitFor();
});
