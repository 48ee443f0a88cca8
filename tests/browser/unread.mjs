// Marks for messages that were not seen, and the order of rooms.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { texts, until, world } from './support/world.mjs';

const it = world();

// As if the window were hidden, or shown again.
const hide = (page, state) =>
  page.evaluate(value => {
    Object.defineProperty(document, 'visibilityState', { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);

test('a room shows how many messages came since the person last looked', async t => {
  const [here, there] = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  await it.server.say(there, 'seen before');
  const page = await it.open(t, there);
  await page.locator('.chat-message').waitFor();
  await page.locator(`.room[data-room=${here}]`).click();
  await page.locator(`.room[data-room=${here}][aria-current]`).waitFor();

  await it.server.say(there, 'one');
  await it.server.say(there, 'two');
  await page.reload();

  const mark = page.locator(`.room[data-room=${there}] .room-unread`);
  await mark.waitFor();
  assert.deepEqual(await texts(mark), ['2 unread']);
  assert.equal(await page.locator('.room-unread').count(), 1);
  await page.locator(`.room[data-room=${there}]`).click();
  await mark.waitFor({ state: 'detached' });
  await page.reload();
  await page.locator('.chat-message', { hasText: 'two' }).waitFor();
  assert.equal(await page.locator('.room-unread').count(), 0);
});

test('while the window is hidden its title counts messages', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await hide(page, 'hidden');

  await it.server.say(room, 'one');
  await it.server.say(room, 'two');
  await it.server.say(room, 'three');

  await until(page, () => document.title.startsWith('(3) '));
  await hide(page, 'visible');
  await until(page, id => document.title === `${id} · tertulia`, room);
  assert.equal(await page.locator('.room-unread').count(), 0);
});

test('a room in which the person was called by name needs them, and the mark is in the title, too', async t => {
  const [here, there] = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  const page = await it.open(t, here, { storage: { people: ['Ana'], seen: { [here]: '9', [there]: '2020-01-01T00:00:00.000Z' } } });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(there, 'Somebody else was here.');
  await it.server.say(there, 'What does Ana think?');

  await page.reload();

  const room = page.locator(`.room[data-room=${there}]`);
  await room.locator('.room-needs').waitFor();
  assert.deepEqual(await texts(room.locator('.room-unread, .room-needs')), ['2 unread', 'needs you']);
  assert.equal(await page.title(), `(2, needs you) ${here} · tertulia`);
});

test('what is seen in one window is seen in all, and what is deleted is not unread', async t => {
  const [here, there] = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  const page = await it.open(t, here);
  await page.locator('#connection[data-state=live]').waitFor();
  const mark = page.locator(`.room[data-room=${there}] .room-unread`);
  const look = () => hide(page, 'visible'); // loads the rooms again
  await it.server.say(there, 'one');
  await look();
  await mark.waitFor();

  const other = await page.context().newPage();
  await other.goto(`${it.server.url}/#/${there}`);
  await mark.waitFor({ state: 'detached' });
  await other.close();

  const seq = await it.server.say(there, 'not meant');
  await look();
  await mark.waitFor();
  await it.server.call('DELETE', `/api/rooms/${there}/messages/${seq}`);
  await look();
  await mark.waitFor({ state: 'detached' });
});

test('the room with the newest message is listed first', async t => {
  const rooms = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  for (const at of [1, 0, 2]) await it.server.say(rooms[at], 'hello');

  const page = await it.open(t, rooms[1]);
  await page.locator('.room').first().waitFor();

  const order = (await texts(page.locator('.room .room-name'))).filter(name => rooms.includes(name));
  assert.deepEqual(order, [rooms[2], rooms[0], rooms[1]]);
});
