// The talk without decisions.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdAnswer, openMenu, PHONE, texts, until, world } from './support/world.mjs';

const it = world();

test('details are behind a switch, which is remembered', async t => {
  const room = await it.server.room({ companions: ['aria'], externals: ['zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { decisions: undefined } });
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message);
  await page.locator('.chat-message').waitFor();
  await page.locator('#companions .ring').first().waitFor({ state: 'hidden' });
  assert.equal(await page.locator('section.round, .line.round').count(), 0);

  await openMenu(page);
  await page.getByRole('button', { name: 'Details', pressed: false }).click();

  await page.locator('section.round, .line.round').first().waitFor();
  await page.locator('#companions .ring').first().waitFor();
  await page.reload();
  await page.locator('section.round, .line.round').first().waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Details', pressed: true }).click();
  await page.locator('section.round, .line.round').first().waitFor({ state: 'detached' });
  assert.equal(await page.locator('.chat-message').count(), 1);
});

test('an answer that follows at once needs no line, and Why? says how it came about', async t => {
  const room = await it.server.room({ companions: ['aria'], externals: ['zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'Yes, Ana.');

  // That Zed answered is seen.
  await page.locator('.chat-message.companion').waitFor();
  assert.equal(await page.locator('.happened, .line, .round').count(), 0);
  await page.locator('.chat-message.companion [data-focus=outcomes]').press('Enter');
  await page.locator('.beforehand', { hasText: 'Zed answered because Ben spoke to Zed.' }).waitFor();
});

test('without decisions one line says who is thinking or paused', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  await page.locator('#connection[data-state=live]').waitFor();

  await it.server.call('PATCH', `/api/rooms/${room}`, { companions: { yan: { paused: true } } });
  await it.server.say(room, 'zed, are you there?');

  await page.locator('#presence', { hasText: 'zed is thinking' }).waitFor();
  await page.locator('#presence', { hasText: 'yan is paused' }).waitFor();
});

test('several companions that do the same are one number', async t => {
  const room = await it.server.room({ externals: ['xia', 'yan', 'zed'] });
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  await page.locator('#connection[data-state=live]').waitFor();

  await it.server.say(room, 'xia, yan and zed, are you there?');
  await page.locator('#presence', { hasText: '3 are thinking…' }).waitFor();
  await it.server.call('PATCH', `/api/rooms/${room}`, { paused: true });

  await page.locator('#presence', { hasText: 'All are paused' }).waitFor();
  assert.equal(await page.locator('#presence > span').count(), 1);
});

test('what the server answered before an event does not undo the event', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  await page.locator('#connection[data-state=live]').waitFor();
  const state = await holdAnswer(page, '**/state');

  await it.server.call('PATCH', `/api/rooms/${room}`, { companions: { yan: { paused: true } } });
  await state.held;
  await it.server.say(room, 'zed, are you there?');
  await page.locator('#presence', { hasText: 'zed is thinking' }).waitFor();
  state.release();
  await until(page, () => performance.getEntriesByType('resource').filter(({ name, responseEnd }) => name.endsWith('/state') && responseEnd).length > 1);

  assert.deepEqual(await texts(page.locator('#presence > span')), ['Yan is paused', 'Zed is thinking…']);
});

test('on a phone nothing is cut off at the side', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria', 'bruno', 'cleo'] }), { viewport: PHONE, hasTouch: true, isMobile: true });
  await page.locator('#connection[data-state=live]').waitFor();

  const wide = () => page.evaluate(() => document.documentElement.scrollWidth > 360);

  assert.equal(await wide(), false);
  await page.locator('#more').click();
  assert.equal(await wide(), false);
  await page.locator('#decisions').click();
  assert.equal(await wide(), false);
});

test('the name of a visitor is asked once, before the first message', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();

  // It does not have to be filled in, and the message comes first.
  await page.locator('#message:focus').waitFor();
  await page.getByLabel('Your name, for example:').fill('Rosa');
  await page.locator('#message').fill('Hello.');
  await page.keyboard.press('Enter');

  const author = page.locator('.chat-message:not(.pending) header .who');
  await author.waitFor();
  assert.deepEqual(await texts(author), ['Rosa']);
  await page.locator('#your-name').waitFor({ state: 'hidden' });
  await page.reload();
  await page.locator('.chat-message').waitFor();
  assert.equal(await page.locator('#your-name').isVisible(), false);
  assert.deepEqual(await texts(page.locator('#compose-as')), ['Rosa:']);

  // It can be changed there.
  await page.locator('#compose-as').click();
  await page.getByLabel('Your name', { exact: true }).fill('Rosalind');
  await page.keyboard.press('Enter');
  await page.locator('#message:focus').waitFor();
  assert.deepEqual(await texts(page.locator('#compose-as')), ['Rosalind:']);
});

test('who sends with the offered name is not asked again', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#your-name').waitFor();
  await page.locator('#message').fill('Hello.');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message:not(.pending)').waitFor();
  await page.reload();
  await page.locator('.chat-message').waitFor();

  assert.equal(await page.locator('#your-name').isVisible(), false);
});

test('nobody answers while the room is paused, which is said below the message and on the card', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.call('PATCH', `/api/rooms/${room}`, { paused: true });
  await page.locator('#presence', { hasText: 'Aria is paused' }).waitFor();
  await page.locator('.room[aria-current] .room-about', { hasText: 'paused' }).waitFor();
  await it.server.say(room, 'Aria, are you there?');

  await page.locator('.happened', { hasText: 'Aria was paused.' }).waitFor();
  await page.locator('.card-head').click();
  await page.locator('.card', { hasText: 'Paused with the whole room' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'End the pause', exact: true }).count(), 0);
});

test('one line tells how many others listened, and opens into one reason for each', async t => {
  const room = await it.server.room({ externals: ['xia', 'yan', 'zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  const message = await it.server.say(room, 'xia, yan and zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.vote('xia', message);
  await live.vote('yan', message);
  await live.speak('zed', message, 'Yes, Ben.');

  await page.getByRole('button', { name: '2 others listened' }).click();

  assert.deepEqual(await texts(page.locator('.happened li')), ['Zed answered because Ben spoke to Zed. Why?', 'Xia had nothing to add. Why?', 'Yan had nothing to add. Why?']);
  await page.getByRole('button', { name: 'Why? Yan' }).click();
  await page.locator('.happened .story .sentences').waitFor();
  await page.getByRole('button', { name: '2 others listened' }).click();
  await page.locator('.happened ul').waitFor({ state: 'detached' });
});

test('who answers after others have answered did not only listen', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  await it.server.say(room, 'aria, bruno, cleo: what do you think of tea?');

  await page.locator('.chat-message.companion:not(.draft)').nth(2).waitFor();

  // The talk itself says that all of them have answered.
  await page.locator('.happened').waitFor({ state: 'detached' });
});
