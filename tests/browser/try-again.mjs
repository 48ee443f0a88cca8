// Another statement in the place of the newest one.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until, world } from './support/world.mjs';

const it = world();
const statements = page => page.locator('.chat-message.companion:not(.draft)');
const answerAgain = page => page.getByRole('button', { name: 'Replace this answer' });

test('Replace this answer writes another statement in the place of the newest one', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).first().waitFor();
  await it.server.say(room, 'Aria, and now?');
  await statements(page).nth(1).waitFor();
  const key = await statements(page).nth(1).getAttribute('data-key');

  // Only the newest one can be replaced.
  assert.equal(await answerAgain(page).count(), 1);
  await statements(page).nth(1).hover();
  await answerAgain(page).click();

  await page.getByText('Aria was asked for another answer.').waitFor();
  assert.equal(await page.getByText('was deleted').count(), 0);
  await until(page, gone => [...document.querySelectorAll('.chat-message.companion:not(.draft)')].filter(node => node.dataset.key !== gone).length === 2, key);
  assert.match(await statements(page).last().textContent(), /Replace this answer/u);
  // The replaced one does not count.
  assert.match(await page.locator('#meters').textContent(), /Answers in a row 1\/4/u);

  await until(page, gone => !document.querySelector(`[data-key="${gone}"]`), key);
  const replaced = await statements(page).last().getAttribute('data-key');
  await statements(page).last().hover();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Aria was asked to continue.').waitFor();
  await until(page, gone => [...document.querySelectorAll('.chat-message.companion:not(.draft)')].filter(node => node.dataset.key !== gone).length === 2 && !document.querySelector(`[data-key="${gone}"]`), replaced);
  const exported = await (await fetch(`${it.server.url}/api/export?room=${room}&as=markdown`)).text();
  assert.doesNotMatch(exported, /deleted/u);
  assert.equal(exported.match(/\*\*Aria\*\*/gu).length, 2);
});

test('what may not be tried again says so, and stays', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  await it.server.call('PATCH', `/api/rooms/${room}`, { companions: { aria: { paused: true } } });
  await page.locator('.card[data-doing=paused]').waitFor();

  await statements(page).hover();
  await answerAgain(page).click();

  await page.locator('.notice.problem', { hasText: /^This answer cannot be replaced now: its companion .*paused.*\./u }).waitFor();
  assert.equal(await statements(page).count(), 1);
  assert.equal(await answerAgain(page).isEnabled(), true);
});

test('messages of people, of external companions and before the newest one are not tried again', async t => {
  const room = await it.server.room({ companions: ['aria'], externals: ['zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'I am.');
  await statements(page).first().waitFor();
  assert.equal(await answerAgain(page).count(), 0);

  await it.server.say(room, 'Aria, and you?');
  await statements(page).nth(1).waitFor();
  assert.equal(await answerAgain(page).count(), 1);
  const key = await statements(page).nth(1).getAttribute('data-key');
  await it.server.say(room, 'Thank you, Aria and Zed.', 'Ben');
  await page.locator('.chat-message', { hasText: 'Thank you' }).waitFor();

  await until(page, gone => !document.querySelector(`[data-key="${gone}"] [data-focus=replace]`), key);
});
