// Calls of tools that somebody must confirm: cards with buttons, who may press them, and what became of the calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { it, roomOfFriends, say, visit } from './support/friends.mjs';
import { PHONE, texts } from './support/world.mjs';

const LONG = 'feed-the-cat-'.repeat(30);
const card = page => page.locator('.to-confirm');
const doIt = page => page.getByRole('button', { name: 'Do it' });

test('a call is made once somebody presses “Do it”, and not after “Don’t”, and what became of it stays', async t => {
  const room = await roomOfFriends({ companions: ['aria'] });
  const page = await it.open(t, room, { storage: { people: ['Ana'] } });
  await say(page, 'Aria, roll 2d6!');
  await doIt(page).waitFor();
  assert.match(await card(page).textContent(), /Aria wants to use roll\..*Asked for by Ana\{"dice":"2d6"\}Do it Don’t/u);

  await doIt(page).click();
  await page.getByText('roll was confirmed. Result: Done.').waitFor();
  await card(page).getByText('roll · Done').waitFor();

  await say(page, 'Aria, roll 3d6!');
  await page.getByRole('button', { name: 'Don’t' }).click();
  await card(page).getByText('roll · Declined').waitFor();
  await page.reload();
  await card(page).getByText('roll · Declined').waitFor();
  assert.deepEqual(await texts(card(page)), ['roll · Done', 'roll · Declined']);
  assert.equal(await page.getByText('was confirmed').count(), 1);
});

test('where only operators confirm, a guest sees who is waited for, and the room needs the operator', async t => {
  const other = await roomOfFriends({ externals: ['zed'] });
  const { room, host, ben } = await visit(t, { companions: ['aria'] });
  await host.locator(`.room[data-room=${other}]`).click();
  await host.locator(`.room[data-room=${other}][aria-current]`).waitFor();
  await say(ben, 'Aria, remind me in ten minutes to feed the cat');
  await ben.getByText('Waits for the operator').waitFor();
  assert.equal(await doIt(ben).count(), 0);
  const at = `/api/rooms/${room}/calls`;
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  const { call } = messages.at(-1).calls[0];
  const refused = await ben.evaluate(async ([path]) => (await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"confirm":true}' })).json(), [`${at}/${call}`]);
  assert.equal(refused.detail, 'only an operator can confirm this');

  await host.reload();
  await host.locator(`.room[data-room=${room}] .room-needs`).waitFor();
  await host.locator(`.room[data-room=${room}]`).click();
  await host.getByText('Asked for by Ben').waitFor();
  await doIt(host).click();

  await card(ben).getByText('remind · Done').waitFor();
});

test('on a phone a card is shown in full, and in view', async t => {
  const room = await roomOfFriends({ companions: ['aria'] });
  await it.server.say(room, 'A line.\n'.repeat(30), 'Ben');
  const page = await it.open(t, room, { viewport: PHONE, storage: { people: ['Ana'] } });
  await say(page, `Aria, remind me in ten minutes to ${LONG}`);
  for (const open of [() => {}, () => page.reload()]) {
    await open();
    await doIt(page).waitFor();
    assert.equal(await card(page).evaluate(node => [node, ...node.children].every(one => one.scrollWidth <= innerWidth && one.getBoundingClientRect().right <= innerWidth)), true);
    assert.match(await card(page).textContent(), new RegExp(LONG, 'u'));
    await page.waitForFunction(() => document.querySelector('.to-confirm button').getBoundingClientRect().bottom <= document.querySelector('#log').getBoundingClientRect().bottom);
  }
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/card.png` });
});

test('people vote in a poll with a click, and the newest vote counts', async t => {
  const { room, host, ben } = await visit(t, { companions: ['aria'] });
  await say(host, 'Aria, poll: Where do we eat? Here or there');
  const options = page => page.locator('.poll button');
  await options(ben).first().waitFor();
  assert.deepEqual(await texts(options(ben)), ['Here · 0', 'there · 0']);

  await options(host).first().click();
  await options(ben).first().click();
  await options(ben).filter({ hasText: 'Here · 2' }).waitFor();
  await options(ben).last().click();

  await options(host).filter({ hasText: 'there · 1' }).waitFor();
  assert.deepEqual(await texts(options(host)), ['Here · 1', 'there · 1']);
  assert.equal(await options(ben).last().getAttribute('aria-pressed'), 'true');
  await host.reload();
  await options(host).filter({ hasText: 'there · 1' }).waitFor();
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  assert.equal(messages.filter(message => message.role === 'companion').length, 1, 'nobody answers a vote');
});
