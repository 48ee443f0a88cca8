// Rooms: making, listing and deleting them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();

test('a new room does not replace one with the same name', async t => {
  const taken = await it.server.room({ id: 'taken', externals: ['zed'] });
  const page = await it.open(t, 'lobby');
  await page.locator('.room[aria-current]').waitFor();

  await page.getByRole('button', { name: '+ New room' }).click();
  await page.getByLabel('Room name').fill('Taken');
  await page.getByRole('button', { name: 'Create' }).click();
  const open = page.getByRole('button', { name: 'Open taken' });
  await open.waitFor();

  assert.deepEqual((await it.server.call('GET', `/api/rooms/${taken}`)).companions.map(({ id }) => id), ['zed']);
  await open.click();
  await page.locator('.room[data-room=taken][aria-current]').waitFor();
});

test('in a new room the message field has the focus', async t => {
  const page = await it.open(t, 'lobby');
  await page.locator('.room[aria-current]').waitFor();

  await page.getByRole('button', { name: '+ New room' }).click();
  await page.getByLabel('Room name').fill('harbour');
  await page.getByRole('button', { name: 'Create' }).click();

  await page.locator('.room[data-room=harbour][aria-current]').waitFor();
  await page.locator('#message:focus').waitFor();
});

test('a room without companions says why nobody answers, and what to do', async t => {
  const room = await it.server.room();
  await it.server.say(room, 'Is anybody here?');
  const page = await it.open(t, room);
  const notice = page.locator('#no-companions');
  await notice.getByRole('button', { name: 'Choose companions' }).click();

  await page.getByRole('group', { name: 'Companions in this room' }).getByLabel('Aria').check();
  await page.getByRole('button', { name: 'Save' }).click();

  await page.locator('.card', { hasText: 'Aria' }).waitFor();
  await notice.waitFor({ state: 'hidden' });
});

test('words for a room that is deleted in another window stay there, and go nowhere else', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const sent = [];
  page.on('request', request => request.method() === 'POST' && sent.push(request.url()));
  const other = await it.open(t, room);

  await page.locator('#message').pressSequentially('for this room alo');
  await openMenu(other);
  await other.getByRole('button', { name: 'Delete this room' }).click();
  await other.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText(`The room “${room}” was deleted`).first().waitFor();
  await page.keyboard.type('ne');
  await page.keyboard.press('Enter');

  assert.equal(await page.locator('#message').inputValue(), 'for this room alo');
  assert.deepEqual(sent, []);
  assert.equal(await page.locator('#voice').isVisible(), false);
  // Who deletes a room goes to another one.
  await other.locator('.room[aria-current]').waitFor();
  await page.locator('.room[data-room=lobby]').click();
  await until(page, () => document.querySelector('.room[aria-current]')?.dataset.room === 'lobby' && !document.querySelector('#message').readOnly);
  assert.equal(await page.locator('#message').inputValue(), '');
});

test('a double click deletes no room, and a message that is deleted can be brought back', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'keep me');
  const page = await it.open(t, room);
  const message = page.locator('.chat-message', { hasText: 'keep me' });
  await message.hover();

  await message.getByRole('button', { name: 'Delete' }).click();
  await message.waitFor({ state: 'detached' });
  const kept = (await it.server.call('GET', `/api/rooms/${room}/history`)).messages.length;
  await page.getByRole('button', { name: 'Undo' }).click();
  await message.waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Delete this room' }).dblclick();
  const askedAboutRoom = await page.locator('dialog p').first().textContent();
  await page.keyboard.press('Escape');

  assert.equal(kept, 1);
  assert.ok(askedAboutRoom.includes(room));
  assert.equal((await it.server.call('GET', `/api/rooms/${room}/history`)).messages.length, 1);

  await message.hover();
  await message.getByRole('button', { name: 'Delete' }).click();
  await page.locator('#message').fill('the next action');
  await page.keyboard.press('Enter');
  await page.getByText('A message was deleted').waitFor();
  while ((await it.server.call('GET', `/api/rooms/${room}/history`)).messages[0].text !== 'the next action');
});

test('what a companion said is edited, with a mark, and deleted when the page is left', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  await it.server.say(room, 'hey aria, are you there?');
  const page = await it.open(t, room);
  const answer = page.locator('.chat-message.companion').first();
  await answer.hover();
  await answer.getByRole('button', { name: 'Edit' }).click();
  await page.locator('#message').fill('I never said that.');
  // The mark is there before the record has the new words.
  const changed = page.waitForResponse(response => response.request().method() === 'PATCH');
  await page.keyboard.press('Enter');
  await answer.getByText('edited').waitFor();
  await changed;
  const of = async () => (await it.server.call('GET', `/api/rooms/${room}/history`)).messages.find(one => one.role === 'companion')?.text;
  assert.equal(await of(), 'I never said that.');

  await answer.hover();
  await answer.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  await page.goto(new URL('/api/openapi.json', page.url()).href);
  const again = await it.open(t, room);
  await again.getByText('A message was deleted').waitFor();
  while (await of());
});

// For `prepare`: the page sees a room as a channel of Discord, where nobody writes from here.
const asChannel = (room, channel) => async page => {
  await page.addInitScript(
    ([id, shown]) => {
      window.WebSocket = class extends WebSocket {
        constructor(url) {
          super(String(url).replace(encodeURIComponent(shown), id));
        }
      };
    },
    [room, channel],
  );
  await page.route(/\/api\/(overview|rooms)/u, async route => {
    const response = await route.fetch({ url: route.request().url().replace(encodeURIComponent(channel), room) });
    await route.fulfill({ response, body: (await response.text()).replaceAll(`"${room}"`, `"${channel}"`) });
  });
};

test('what a companion said in a channel of Discord is edited, and nothing else is written there', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  await it.server.say(room, 'hey aria, are you there?');
  const page = await it.open(t, 'discord:1:2', { prepare: asChannel(room, 'discord:1:2') });
  const answer = page.locator('.chat-message.companion').first();
  await answer.hover();
  assert.equal(await page.locator('#compose:visible').count(), 0);
  await answer.getByRole('button', { name: 'Edit' }).click();
  await page.locator('#message:focus').fill('I never said that.');
  const changed = page.waitForResponse(response => response.request().method() === 'PATCH');
  await page.keyboard.press('Enter');
  await changed;
  await answer.getByText('I never said that.').waitFor();
  await page.locator('#compose').waitFor({ state: 'hidden' });

  assert.equal((await it.server.call('GET', `/api/rooms/${room}/history`)).messages.find(one => one.role === 'companion').text, 'I never said that.');
});

test('what a page that is gone has deleted is deleted at the next visit', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  await it.server.say(room, 'Words to take back.');
  const page = await it.open(t, room);
  const message = page.locator('.chat-message', { hasText: 'Words to take back.' });
  await message.hover();
  await message.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  const stored = await page.evaluate(() => localStorage.getItem('tertulia.removing'));
  await page.getByRole('button', { name: 'Undo' }).click();
  await message.waitFor();
  // A page that crashed would have left this.
  const later = await page.context().newPage();
  await later.addInitScript(text => localStorage.setItem('tertulia.removing', text), stored);
  await later.clock.install({ time: Date.now() + 66_000 });
  await later.goto(page.url());

  await page.getByText('A message was deleted').waitFor();
  await until(page, () => localStorage.getItem('tertulia.removing') === '[]');
});

test('a room with a name in any script is deleted after a question that counts its messages, and brought back', async t => {
  const title = 'おばあちゃんの台所';
  const page = await it.open(t, 'lobby');
  const entry = page.locator('.room', { hasText: title });
  await page.getByRole('button', { name: '+ New room' }).click();
  await page.getByLabel('Room name').fill(title);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.room[aria-current]', { hasText: title }).waitFor();
  const { id } = (await it.server.call('GET', '/api/rooms')).rooms.find(room => room.title === title);
  await it.server.say(id, 'keep me');
  await page.locator('.chat-message', { hasText: 'keep me' }).waitFor();

  await openMenu(page);
  await page.getByRole('button', { name: 'Delete this room' }).click();
  const asked = await page.locator('dialog p').first().textContent();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await entry.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();

  assert.equal(asked, `The room “${title}” and its only message will be deleted. You can undo this for a minute.`);
  await page.locator('.room[aria-current]', { hasText: title }).waitFor();
  await page.locator('.chat-message', { hasText: 'keep me' }).waitFor();
});

test('what a person said is counted, and forgotten after a question', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'one', 'Zoe');
  await it.server.say(room, 'two', 'Zoe');
  const page = await it.open(t, room);
  // Before, the page does not know in which guild to look.
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.locator('#me').fill('Zoe');
  await page.locator('#me').press('Enter');

  await page.getByRole('button', { name: 'Delete my messages' }).click();
  const asked = await page.locator('dialog p').first().textContent();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('2 messages were deleted.').first().waitFor();
  const left = (await it.server.call('GET', `/api/rooms/${room}/history`)).messages;
  await openMenu(page);
  await page.getByRole('button', { name: 'Delete my messages' }).click();

  assert.equal(asked, '2 messages will be deleted: all that Zoe said, in all rooms.');
  assert.deepEqual(left, []);
  await page.getByText('Nothing that Zoe said is stored.').first().waitFor();
});

test('all rooms can be listed', async t => {
  for (let at = 10; at < 30; at += 1) await it.server.room({ id: `many-${at}`, externals: ['zed'] });
  const page = await it.open(t, 'lobby');
  const all = (await it.server.call('GET', '/api/rooms')).rooms.map(({ id, title }) => title ?? id);

  await page.getByRole('button', { name: /^Show \d+ more/u }).click();

  assert.deepEqual((await texts(page.locator('.room .room-name'))).sort(), all.sort());
});
