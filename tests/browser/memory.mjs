// “What companions remember” and “Reminders”: seen, corrected, erased or cancelled, and turned off.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();

async function opened(page) {
  await openMenu(page);
  await page.getByRole('button', { name: 'What companions remember' }).click();
  await page.locator('dialog[open] .entries li').first().waitFor();
  return page.locator('dialog[open]');
}

test('what somebody asks to remember is listed, corrected and erased', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, remember that my cat is called Mora');
  await page.locator('.notice', { hasText: 'Noted: “my cat is called Mora”' }).waitFor();
  await page.locator('.chat-message.companion:not(.draft)').waitFor();
  await it.server.say(room, 'Aria, remember that my password is hunter2');
  await page.locator('.notice', { hasText: 'Not noted: passwords, keys and card numbers are never kept.' }).waitFor();

  const dialog = await opened(page);
  assert.deepEqual(await texts(dialog.locator('.entries li p[dir=auto]')), ['my cat is called Mora']);
  assert.doesNotMatch(await dialog.textContent(), /null|undefined/u);

  await dialog.getByRole('button', { name: 'Correct' }).click();
  await dialog.getByLabel('What is to be remembered instead').fill('my cat is called Nora');
  await page.keyboard.press('Enter');
  await dialog.locator('.entries li', { hasText: 'Nora' }).waitFor();
  assert.equal((await it.server.call('GET', `/api/rooms/${room}/notes`)).notes[0].text, 'my cat is called Nora');

  await dialog.getByRole('button', { name: 'Erase' }).click();
  const question = page.locator('dialog[open]', { hasText: 'companions may look it up' });
  await question.locator('button.danger:enabled').click();
  await dialog.getByText('There are no notes yet.').waitFor();
  assert.deepEqual((await it.server.call('GET', `/api/rooms/${room}/notes`)).notes, []);
});

test('notes are turned off and on, and a text that is too long is refused in words', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const { guild } = await it.server.call('GET', `/api/rooms/${room}/notes`);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();

  const dialog = await opened(page);
  await dialog.getByRole('button', { name: 'Take no more notes' }).click();
  await dialog.getByText('Companions take no notes in any room.').waitFor();
  assert.equal((await it.server.call('GET', `/api/rooms/${room}/notes`)).on, false);
  await dialog.getByRole('button', { name: 'Take notes' }).click();
  await dialog.getByRole('button', { name: 'Take no more notes' }).waitFor();
  await dialog.getByRole('button', { name: 'Use them in all rooms' }).click();
  await dialog.getByText('in your other rooms').waitFor();
  assert.equal((await it.server.call('GET', `/api/rooms/${room}/notes`)).across_rooms, true);
  await dialog.getByRole('button', { name: 'Use them only in their rooms' }).click();
  await dialog.getByText('in this room only').waitFor();

  await it.server.call('PUT', '/api/notes', { guild, person: 'Ben', on: false });
  assert.equal((await it.server.call('GET', `/api/notes?guild=${guild}&person=Ben`)).on, false);
  const correct = it.server.call('PATCH', `/api/rooms/${room}/notes/1`, { text: 'word '.repeat(30) });
  await assert.rejects(correct, error => error.status === 422 && /too long for a note/u.test(error.message));
});

test('a reminder that a companion is asked for is listed and cancelled', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, remind me in two hours to feed the cat');
  await page.locator('.chat-message.companion:not(.draft)', { hasText: 'reminder 1 is set' }).waitFor();
  // Its time was understood in the zone of the server; the list has it by the clock of this device.
  await page.getByRole('button', { name: 'When is it due?' }).click();
  await page.locator('dialog[open]').getByText('Your times are read in UTC.').waitFor();
  await page.keyboard.press('Escape');

  await openMenu(page);
  await page.getByRole('button', { name: 'Reminders', exact: true }).click();
  const dialog = page.locator('dialog[open]');
  await dialog.locator('.entries li p[dir=auto]').first().waitFor();
  assert.deepEqual(await texts(dialog.locator('.entries li p[dir=auto]')), ['feed the cat']);
  assert.doesNotMatch(await dialog.textContent(), /null|undefined|NaN/u);

  await dialog.getByRole('button', { name: 'Cancel: feed the cat' }).press('Enter');
  await dialog.getByText('No reminders are set here.').waitFor();
  await dialog.getByRole('status').getByText('Cancelled: feed the cat').waitFor({ state: 'attached' });
  // The focus stays in the dialog.
  await until(page, () => document.activeElement.closest('dialog'));
  assert.deepEqual((await it.server.call('GET', `/api/rooms/${room}/reminders`)).reminders, []);
});

test('a reminder that is due stands in the room as a line, not as words of its person', async t => {
  const room = await it.server.room();
  const text = 'Reminder for Ruth: eat';
  await it.server.call('POST', `/api/rooms/${room}/events`, { id: 'due', kind: 'weather', who: 'Ruth', text });
  // A real one is due after a minute at the earliest.
  const rename = async route => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll('"weather"', '"reminder"') });
  };
  const page = await it.open(t, room, { prepare: page => page.route('**/history**', rename) });

  await page.locator('.line', { hasText: text }).waitFor();

  assert.equal(await page.locator('.chat-message').count(), 0);
  assert.doesNotMatch(await page.locator('#log').textContent(), /event:/u);
});
