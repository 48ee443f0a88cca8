// Marks for messages that were not seen, notifications, the page without a server, and the order of rooms.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { problems } from './support/axe.mjs';
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
  assert.equal(await page.locator('.room .room-unread').count(), 1);
  await page.locator(`.room[data-room=${there}]`).click();
  await mark.waitFor({ state: 'detached' });
  await page.locator('.day', { hasText: 'New messages' }).waitFor();
  assert.deepEqual((await texts(page.locator('.chat-message .words, .day'))).slice(1), ['seen before', 'New messages', 'one', 'two']);
  await page.reload();
  await page.locator('.chat-message', { hasText: 'two' }).waitFor();
  assert.equal(await page.locator('.room .room-unread').count(), 0);
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
  assert.equal(await page.locator('.room .room-unread').count(), 0);
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

// A browser whose person has not decided about notifications, and a worker that takes what it is told to show.
async function withNotifications(page) {
  await page.addInitScript(() => {
    window.told = [];
    window.Notification = class {
      static permission = 'default';
      static async requestPermission() {
        return (this.permission = 'granted');
      }
    };
    const active = { postMessage: message => window.told.push(message) };
    Object.defineProperty(navigator, 'serviceWorker', { value: { register: async () => {}, ready: Promise.resolve({ active }), addEventListener() {} } });
  });
}

test('the first mention that is missed offers notifications, and later ones of hidden windows are told to the worker', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room, { storage: { people: ['Ana'] }, prepare: withNotifications });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Ana, you see this.');
  await page.locator('.chat-message', { hasText: 'you see this' }).waitFor();
  assert.equal(await page.locator('#offer').count(), 0);

  await hide(page, 'hidden');
  await it.server.say(room, 'Ana, you do not see this.');
  await page.locator('#offer').waitFor();
  await hide(page, 'visible');
  assert.deepEqual(await problems(page), []);
  await page.getByRole('button', { name: 'Yes, tell me' }).click();
  await page.locator('#offer').waitFor({ state: 'detached' });

  await hide(page, 'hidden');
  await it.server.say(room, 'The ferry is late.');
  const seq = await it.server.say(room, 'And Ana is early.');
  await until(page, () => window.told.length);
  assert.deepEqual(await page.evaluate(() => window.told), [{ title: `Ben mentioned you in ${room}`, tag: room, hash: `#/${room}/${seq}` }]);
});

test('who does not want notifications is not asked again', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room, { storage: { people: ['Ana'] }, prepare: withNotifications });
  await page.locator('#connection[data-state=live]').waitFor();
  await hide(page, 'hidden');
  await it.server.say(room, 'Ana?');
  await page.getByRole('button', { name: 'No, thanks' }).click();

  await it.server.say(room, 'Ana, once more?');
  await until(page, () => document.title.startsWith('(2, '));

  assert.equal(await page.locator('#offer').count(), 0);
  assert.deepEqual(await page.evaluate(() => window.told), []);
});

// The worker's script is put together by the server.
test('from the second visit on the page says that the server cannot be reached, and what was typed is there again', { skip: Boolean(process.env.TERTULIA_PAGE) }, async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room, { serviceWorkers: 'allow' });
  t.after(() => page.context().setOffline(false));
  await page.locator('#connection[data-state=live]').waitFor();
  assert.equal(await page.evaluate(() => navigator.serviceWorker.getRegistrations().then(all => all.length)), 0);
  await page.reload();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.locator('#message').fill('typed before the tunnel');

  await page.context().setOffline(true);
  await page.reload();
  await page.getByRole('heading', { name: 'tertulia cannot be reached' }).waitFor();
  assert.deepEqual(await page.evaluate(() => caches.keys()), []);
  assert.deepEqual(await problems(page), []);

  await page.context().setOffline(false);
  // It looks again by itself.
  await page.locator('#connection[data-state=live]').waitFor();
  assert.equal(await page.locator('#message').inputValue(), 'typed before the tunnel');
});

test('the room with the newest message is listed first', async t => {
  const rooms = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  for (const at of [1, 0, 2]) await it.server.say(rooms[at], 'hello');

  const page = await it.open(t, rooms[1]);
  await page.locator('.room').first().waitFor();

  const order = (await texts(page.locator('.room .room-name'))).filter(name => rooms.includes(name));
  assert.deepEqual(order, [rooms[2], rooms[0], rooms[1]]);
});
