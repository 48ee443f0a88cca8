// The versions of an answer, by keyboard and for a screen reader.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { listen, until, world } from './support/world.mjs';

const it = world();
const statements = page => page.locator('.chat-message.companion:not(.draft)');
const focused = page => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
const rightTo = async (page, name) => {
  for (let step = 0; step < 9 && (await focused(page)) !== name; step += 1) await page.keyboard.press('ArrowRight');
  assert.equal(await focused(page), name);
};
const hasFocus = (page, name) => until(page, wanted => (document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent) === wanted, name);

test('all tools of an answer with versions are reached by keys, a chosen version is announced, and an earlier answer shows its versions', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno'] });
  const page = await it.open(t, room, { storage: { decisions: undefined } });
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');
  await statements(page).waitFor();
  const first = await statements(page).locator('.words').textContent();
  await listen(page);

  await page.keyboard.press('Alt+ArrowUp');
  await page.locator('.chat-message.companion:focus').waitFor();
  await rightTo(page, 'Replace this answer');
  const before = await statements(page).getAttribute('data-key');
  await page.keyboard.press('Enter');
  // The focus stays with the answer.
  await until(page, gone => document.activeElement.matches('.chat-message.companion') && document.activeElement.dataset.key !== gone && document.activeElement.querySelector('.versions button'), before);

  await rightTo(page, 'Previous version');
  await rightTo(page, 'Delete');
  for (let step = 0; step < 9 && (await focused(page)) !== 'Previous version'; step += 1) await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Enter');
  await page.getByText('Version 1 of 2', { exact: false }).first().waitFor();
  await hasFocus(page, 'Next version');
  await until(page, words => window.said.filter(said => said.startsWith('Version')).length === 1 && window.said.includes(`Version 1 of 2. ${words}`), first);
  await rightTo(page, 'Why?');

  await it.server.say(room, 'Bruno, and you?');
  await statements(page).nth(1).waitFor();
  await statements(page).first().getByText('2 versions').click();
  await statements(page).first().getByText('Only the newest answer can be changed.').waitFor();
  assert.match(await statements(page).first().locator('.versions li').textContent(), /^Version 2 of 2 /u);
});
