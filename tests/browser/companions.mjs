// What the page says of companions.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { texts, world } from './support/world.mjs';

const it = world({ TERTULIA__TURN_TAKING__MAX_COMPANION_STREAK: '1' });
const cards = page => texts(page.locator('.card .who'));

test('a companion that has left keeps its name', async t => {
  const room = await it.server.room({ companions: ['bruno'], externals: ['yan', { id: 'zed', name: 'Zedekiah' }] });
  const live = await it.watch(t, room);
  const message = await it.server.say(room, 'Zedekiah, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'I am.');
  await it.server.room({ id: room, companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('.card', { hasText: 'Aria' }).waitFor();

  await page.locator('.chat-message.companion', { hasText: 'I am.' }).waitFor();
  await page.getByText('Bruno, Yan, and Zedekiah left').waitFor();

  assert.deepEqual(await texts(page.locator('.chat-message.companion header .who')), ['Zedekiah']);
  assert.deepEqual(await cards(page), ['Aria']);
});

test('after the loop guard nobody is shown as wanting to speak', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const first = await it.server.say(room, 'yan, are you there?');
  const second = await it.server.say(room, 'zed, are you there?', 'Dora');
  // Zed answers, which is the most that companions may say, before Yan has voted.
  await live.vote('zed', second, { state: 'speak', importance: 5 });
  await live.speak('zed', second, 'I am.');

  await live.vote('yan', first, { state: 'speak', importance: 5 });
  await page.locator('.line.loop_guard').waitFor();

  assert.deepEqual(await page.locator('.log, .cards').getByText('wants to speak').count(), 0);
  await page.locator('.line.round', { hasText: 'yan, are you there?' }).locator('.line-words', { hasText: 'too often in a row' }).waitFor();
  const round = await texts(page.locator('.line.round', { hasText: 'yan, are you there?' }).locator('.line-words'));
  assert.deepEqual(round, [`Who wants to answer “yan, are you there?” by Ben? Yan 5 of 10 · Zed did not think about it · Nobody speaks · companions had spoken too often in a row`]);
});

test('an external companion that has ended the conversation is not shown as listening', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const message = await it.server.say(room, 'yan, zed, are you there?');

  await live.vote('zed', message, { closing: 'terminal' });
  await live.vote('yan', message, { state: 'speak', importance: 5 });
  await live.speak('yan', message, 'I am.');

  const round = page.locator('.line.round', { hasText: 'yan, zed, are you there?' });
  await round.waitFor();
  assert.deepEqual(await texts(round.locator('.line-words')), [`Who wants to answer “yan, zed, are you there?” by Ben? Yan 5 of 10 ★ · Zed ends the conversation · Yan was spoken to`]);
  const card = page.locator('.card', { has: page.locator('.who', { hasText: 'Zed' }) });
  assert.match((await texts(card.locator('.card-now')))[0], /^conversation ended/u);
});

test('a companion with another name has it in pages that are open', async t => {
  const room = await it.server.room({ externals: [{ id: 'zed', name: 'Zedekiah' }] });
  const live = await it.watch(t, room);
  const message = await it.server.say(room, 'Zedekiah, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'I am.');
  const page = await it.open(t, room);
  await page.locator('.card', { hasText: 'Zedekiah' }).waitFor();

  await it.server.room({ id: room, externals: [{ id: 'zed', name: 'Zora' }] });
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));

  await page.locator('.chat-message.companion header .who', { hasText: 'Zora' }).waitFor();
  assert.deepEqual(await cards(page), ['Zora']);
});

test('a card opens with a click on its head, and the profile with one on the name', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();

  await page.locator('.card-head .ring').click();
  await page.locator('.card .controls select').waitFor();
  // The words that lie over it take no clicks.
  const words = await page.locator('.card .doing').boundingBox();
  await page.mouse.click(words.x + words.width / 2, words.y + words.height / 2);

  await page.locator('.card .controls select').waitFor({ state: 'hidden' });
  await page.locator('.card-head .who').click();
  await page.locator('dialog').getByRole('heading', { name: 'Aria', exact: true }).waitFor();
});

test('who names a companion that is not in the room can add it', async t => {
  const room = await it.server.room({ companions: ['aria'], externals: [{ id: 'zed', name: 'Zed', aliases: ['z'] }] });
  const page = await it.open(t, room);
  const hint = page.locator('#not-here');
  await page.locator('.card').nth(1).waitFor();

  await page.locator('#message').fill('Aria and Brunos friend?');
  assert.equal(await hint.isVisible(), false);
  await page.locator('#message').fill('Aria, where is bruno?');
  await page.getByText('Bruno is not in this room.').waitFor();
  await page.getByRole('button', { name: 'Add Bruno' }).click();

  await page.locator('.card', { hasText: 'Bruno' }).waitFor();
  await hint.waitFor({ state: 'hidden' });
  assert.equal(await page.locator('#message').inputValue(), 'Aria, where is bruno?');
  const { companions } = (await it.server.call('GET', '/api/rooms')).rooms.find(({ id }) => id === room);
  assert.deepEqual(companions.map(({ id, name, aliases, external }) => [id, name, aliases, external]).filter(([id]) => id !== 'aria'), [
    ['bruno', 'Bruno', ['bru', 'signor bruno'], false],
    ['zed', 'Zed', ['z'], true],
  ]);
});

test('Why? on a card says the decision first, and the rest step by step', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await page.locator('.chat-message.companion:not(.draft)').waitFor();

  await page.locator('.card-head .ring').click();
  await page.locator('.card').getByRole('button', { name: 'Why?' }).click();
  const explanation = page.locator('.explanation');
  await explanation.locator('.decided', { hasText: /^Aria wanted to speak/u }).waitFor();
  assert.equal(await explanation.locator('.sentences').isVisible(), false);

  await explanation.getByText('Step by step').click();
  await explanation.locator('.sentences', { hasText: 'Ben called Aria by name' }).waitFor();
});
