// “Reminders”: those of a room are listed and cancelled.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();

test('what a companion is asked for is listed and cancelled', async t => {
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

test('one that is due stands in the room as a line, not as words of its person', async t => {
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
