// “About this room”: a room's own words, scenes, what one says of oneself, an imported chat, and the prompt of an answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, world } from './support/world.mjs';

const it = world();

async function opened(page) {
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
  const dialog = await opened(page);
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
  const dialog = await opened(page);
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
