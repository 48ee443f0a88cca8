// Another statement in the place of the newest one.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PHONE, until, world } from './support/world.mjs';

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

test('a second browser sees the version that stands, and the mark of an edit only where somebody edited', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const [page, other] = [await it.open(t, room), await it.open(t, room)];
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  await statements(page).hover();
  await answerAgain(page).click();
  const shown = async (label, isEdited) => {
    for (const one of [page, other]) {
      await until(one, wanted => document.querySelector('.versions')?.textContent.includes(wanted), label);
      assert.equal(await statements(one).last().getByText('edited', { exact: true }).count(), isEdited ? 1 : 0, label);
    }
  };
  await shown('Version 2 of 2', false);
  await statements(page).last().hover();
  await page.locator('[data-focus=edit]').last().click();
  await page.locator('#message').fill('Edited words.');
  await page.keyboard.press('Enter');
  for (const one of [page, other]) await statements(one).getByText('Edited words.').waitFor();
  await shown('Version 2 of 2', true);

  await page.getByRole('button', { name: 'Previous version' }).click();
  await shown('Version 1 of 2', false);
  assert.equal(await other.getByRole('button', { name: 'Previous version' }).isDisabled(), true);
  await other.getByRole('button', { name: 'Next version' }).click();
  await shown('Version 2 of 2', true);
  await page.reload();
  await shown('Version 2 of 2', true);
  assert.equal(await page.getByText('was deleted').count(), 0);
});

test('a greeting is not replaced, and what was refused in a room is not told in the next one', async t => {
  const [room, other] = [await it.server.room({ companions: ['aria'] }), await it.server.room({ companions: ['aria'] })];
  const chat = [{ user_name: 'Ana', character_name: 'Aria' }, { name: 'Aria', is_user: false, mes: 'Good day!' }];
  await fetch(`${it.server.url}/api/rooms/${other}/import`, { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: chat.map(line => JSON.stringify(line)).join('\n') });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  await it.server.call('PATCH', `/api/rooms/${room}`, { companions: { aria: { paused: true } } });
  await page.locator('.card[data-doing=paused]').waitFor();
  await statements(page).hover();
  await answerAgain(page).click();
  await page.locator('.notice.problem').waitFor();

  await page.evaluate(id => (location.hash = `#/${id}`), other);
  await page.getByText('Good day!').waitFor();
  assert.equal(await page.locator('.notice.problem').count(), 0);
  assert.equal(await answerAgain(page).count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Continue' }).count(), 0);
});

test('an edit to nothing, and one of what was deleted meanwhile, say so', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, { storage: { people: ['Ben'] } });
  const seq = await it.server.say(room, 'Hello there.');
  await page.getByText('Hello there.').waitFor();
  await page.locator('#message').press('ArrowUp');
  await page.locator('#message').fill('');
  await page.keyboard.press('Enter');
  await page.locator('.notice.problem', { hasText: 'A message cannot be empty.' }).waitFor();

  await it.server.call('DELETE', `/api/rooms/${room}/messages/${seq}`);
  await page.getByText('Hello there.').waitFor({ state: 'detached' });
  await page.locator('#message').fill('Hello again.');
  await page.keyboard.press('Enter');
  await page.locator('.notice.problem', { hasText: 'This message was deleted meanwhile' }).waitFor();
  assert.equal(await page.locator('#message').inputValue(), 'Hello again.');
});

test('a swipe chooses another version, but not one that scrolls wide code', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  const { seq } = (await it.server.call('GET', `/api/rooms/${room}/history`)).messages.at(-1);
  await it.server.call('POST', `/api/rooms/${room}/messages/${seq}/again`);
  await page.getByText('Version 2 of 2').waitFor();
  const { seq: newest } = (await it.server.call('GET', `/api/rooms/${room}/history`)).messages.at(-1);
  await it.server.call('PATCH', `/api/rooms/${room}/messages/${newest}`, { text: `Here:\n\`\`\`\n${'wide '.repeat(60)}\n\`\`\`` });
  await statements(page).locator('pre').waitFor();
  await page.getByText('Version 2 of 2').waitFor();
  const asked = [];
  page.on('request', request => request.method() === 'PUT' && request.url().includes('/version') && asked.push(request.url()));
  const swipe = place =>
    statements(page).locator(place).first().evaluate(node => {
      const touch = x => new Touch({ identifier: 1, target: node, clientX: x, clientY: 300 });
      node.dispatchEvent(new TouchEvent('touchstart', { touches: [touch(50)], changedTouches: [touch(50)], bubbles: true }));
      node.dispatchEvent(new TouchEvent('touchend', { touches: [], changedTouches: [touch(250)], bubbles: true }));
    });

  await swipe('pre');
  await swipe('p');
  await page.getByText('Version 1 of 2').waitFor();
  assert.equal(asked.length, 1);
});
