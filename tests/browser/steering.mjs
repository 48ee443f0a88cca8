// Steering a room: its own words and scenes, rounds, versions of an answer, and lorebooks.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdLive, listen, openMenu, texts, until, world } from './support/world.mjs';

const it = world();

async function aboutRoom(page) {
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'About this room' }).click();
  return page.locator('dialog[open]');
}

// The part of the dialog with this heading.
const part = (dialog, title) => dialog.locator('form', { has: dialog.page().getByRole('heading', { name: title, exact: true }) });

test('a room gets instructions, a style and a note, and its people say who they are', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const dialog = await aboutRoom(page);
  assert.doesNotMatch(await dialog.textContent(), /null|undefined|room_words/u);

  const words = part(dialog, 'For its companions');
  await words.getByLabel('Instructions').fill('We are on a ship.');
  await words.getByLabel('How companions write').selectOption('role-play');
  await words.getByLabel('Note within the conversation').fill('A storm comes up.');
  await words.getByRole('button', { name: 'Save' }).click();
  await words.getByText('Saved.').waitFor();
  const me = part(dialog, 'About you');
  await me.getByLabel('What companions should know').fill('I am the cook.');
  await me.getByRole('button', { name: 'Save' }).click();
  await me.getByText('Saved.').waitFor();
  const scene = part(dialog, 'Scene and first words');
  await scene.getByLabel('Scene').fill('Night falls over the sea.');
  await scene.getByRole('button', { name: 'Write the scene' }).click();
  await page.locator('.chat-message', { hasText: 'Night falls over the sea.' }).waitFor();

  // What is typed beside is not lost without a word.
  await words.getByLabel('Instructions').fill('We are on a boat.');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Keep editing' }).click();
  await words.getByLabel('Instructions').fill('We are on a ship.');

  const { words: kept } = await it.server.call('GET', `/api/rooms/${room}`);
  assert.deepEqual(kept, { instructions: 'We are on a ship.', style: 'role-play', note: 'A storm comes up.', note_depth: 4 });
  await it.server.say(room, 'Aria, are you there?');
  const answer = page.locator('.chat-message.companion:not(.draft)');
  await answer.waitFor();
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  const prompt = await it.server.call('GET', `/api/rooms/${room}/messages/${messages.at(-1).seq}/prompt`);
  const all = prompt.messages.map(message => message.text).join('\n');
  for (const text of ['We are on a ship.', 'A storm comes up.', 'Night falls over the sea.']) assert.ok(all.includes(text), all);

  await page.keyboard.press('Escape');
  await answer.hover();
  await answer.getByRole('button', { name: 'Why?' }).click();
  await answer.getByRole('button', { name: 'The prompt as it was sent' }).click();
  await page.locator('dialog[open]', { hasText: 'We are on a ship.' }).waitFor();
});

test('a chat of SillyTavern becomes the history of an empty room, and a new conversation begins after it', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const dialog = await aboutRoom(page);
  const lines = [
    { user_name: 'unused', character_name: 'unused', chat_metadata: { note_prompt: 'Stay brief.' } },
    { name: 'Me', is_user: true, mes: 'Hello, Aria.', send_date: 'June 19, 2023 2:20pm' },
    { name: 'Aria', is_user: false, mes: 'Good day!', swipes: ['Hm.', 'Good day!'], swipe_id: 1 },
    { name: 'Aria', is_system: true, mes: 'Hidden.' },
    { name: 'Me', is_user: true, mes: 'Of the next day.', send_date: 'Jun 20, 2023, 2:08 PM' },
    { name: 'Aria', mes: 'Of the future.', send_date: '2131-01-01T00:00:00Z' },
    { name: 'Me', is_user: true, mes: 'Of the day before.', send_date: 'June 19, 2023 9:00pm' },
  ];
  const form = part(dialog, 'Chat from SillyTavern');
  await form.getByLabel('File (JSONL)').setInputFiles({ name: 'chat.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(lines.map(line => JSON.stringify(line)).join('\n')) });
  await form.getByRole('button', { name: 'Import' }).click();
  await form.getByText('5 messages are here now. 1 hidden or empty one was left out. 2 had no readable time').waitFor();
  await form.getByText('Stay brief.').waitFor();
  // The page that imports it shows the same as one that is opened later: a day that comes twice has two headings.
  for (const one of [page, await it.open(t, room)]) {
    await one.getByText('Of the day before.').waitFor();
    assert.deepEqual((await texts(one.locator('.day'))).slice(-3), ['Monday, June 19, 2023', 'Tuesday, June 20, 2023', 'Monday, June 19, 2023']);
    await one.locator('#rooms .room-about', { hasText: /yr\. ago/u }).first().waitFor({ state: 'attached' });
  }
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  assert.deepEqual(messages.map(message => [message.from, message.role, message.text, message.at.slice(0, 10)]).slice(0, 2)[0], ['Ana', 'user', 'Hello, Aria.', '2023-06-19']);
  assert.equal(messages[1].from, 'aria');

  await page.keyboard.press('Escape');
  await openMenu(page);
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.locator('dialog[open] button.danger:enabled').click();
  await page.getByText('A new conversation began').waitFor();
  assert.ok((await texts(page.locator('.chat-message .words'))).some(text => text.includes('Good day!')), 'it can still be read');
});

// A room with a round that is over, and the number of its message.
async function roomWithRound(t) {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const message = await it.server.say(room, 'zed, yan, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.vote('yan', message);
  await live.speak('zed', message, 'I am.');
  return { room, live, message };
}

test('a round is shown once, although the live connection is slow', async t => {
  const { room, message } = await roomWithRound(t);
  let release = null;
  const page = await it.open(t, room, {
    async prepare(window) {
      release = await holdLive(window);
    },
  });
  // Messages come without it, and the live connection sends the rest.
  await page.locator('.chat-message').first().waitFor();
  await release();
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('.line.round').first().waitFor();

  assert.deepEqual(await texts(page.locator('.log .line.round .line-words')), ['Who wants to answer “zed, yan, are you there?” by Ben? Zed 4 of 10 ★ · Yan – stayed silent · Zed was spoken to']);
});

test('a round of an earlier page is shown as it ended, with who was selected and why', async t => {
  const { room } = await roomWithRound(t);
  // More than a page of messages comes after it.
  await Promise.all(Array.from({ length: 210 }, (_, at) => it.server.say(room, `line ${at}`)));
  const page = await it.open(t, room);
  await page.locator('.chat-message').first().waitFor();
  assert.equal(await page.locator('.log .line.round').count(), 0);

  await page.locator('#log').evaluate(log => {
    const scroll = () => {
      log.scrollTop = 0;
      if (!log.querySelector('.line.round')) requestAnimationFrame(scroll);
    };
    scroll();
  });

  await page.locator('.log .line.round').waitFor();
  assert.deepEqual(await texts(page.locator('.log .line.round .line-words')), ['Who wants to answer “zed, yan, are you there?” by Ben? Zed 4 of 10 ★ · Yan – stayed silent · Zed was spoken to']);
});

const statements = page => page.locator('.chat-message.companion:not(.draft)');
const focused = page => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
const rightTo = async (page, name) => {
  for (let step = 0; step < 9 && (await focused(page)) !== name; step += 1) await page.keyboard.press('ArrowRight');
  assert.equal(await focused(page), name);
};
const hasFocus = (page, name) => until(page, wanted => (document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent) === wanted, name);

test('all tools of an answer with versions are reached by keys, a chosen version is announced, and an earlier answer shows its versions', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno'] });
  const page = await it.open(t, room, { storage: { decisions: undefined } });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  const first = await statements(page).locator('.words').textContent();
  await listen(page);

  await page.keyboard.press('Alt+ArrowUp');
  await page.locator('.chat-message.companion:focus').waitFor();
  await rightTo(page, 'Replace this answer');
  const before = await statements(page).getAttribute('data-key');
  await page.keyboard.press('Enter');
  // The focus stays with the answer.
  await until(page, gone => document.activeElement.matches('.chat-message.companion') && document.activeElement.dataset.key !== gone && document.activeElement.querySelector('.versions button'), before);

  await rightTo(page, 'Previous version');
  await rightTo(page, 'Delete');
  for (let step = 0; step < 9 && (await focused(page)) !== 'Previous version'; step += 1) await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Enter');
  await page.getByText('Version 1 of 2', { exact: false }).first().waitFor();
  await hasFocus(page, 'Next version');
  await until(page, words => window.said.filter(said => said.startsWith('Version')).length === 1 && window.said.includes(`Version 1 of 2. ${words}`), first);
  await rightTo(page, 'Why?');

  await it.server.say(room, 'Bruno, and you?');
  await statements(page).nth(1).waitFor();
  await statements(page).first().getByText('2 versions').click();
  await statements(page).first().getByText('Only the newest answer can be changed.').waitFor();
  assert.match(await statements(page).first().locator('.versions li').textContent(), /^Version 2 of 2 /u);
});

async function lorebooks(page) {
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Lorebooks' }).click();
  await page.getByText('There is no lorebook yet.').waitFor();
  return page.locator('dialog[open]').last();
}

test('a lorebook is made, counts in its room, and is told under an answer', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const list = await lorebooks(page);

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

test('a lorebook is read from a file, what is lost is told, and nothing is kept before it is saved', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const list = await lorebooks(page);
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
