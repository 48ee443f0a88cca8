// What axe-core finds on the page, in light, dark and on a phone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { openMenu, until, world } from './support/world.mjs';

const it = world();

// A room with messages, a round, a refused message and a decision that is open.
async function talk(t, options) {
  const room = await it.server.room({ companions: ['aria'], externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  await it.server.say(room, 'The ferry was late.');
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'I am.');
  const page = await it.open(t, room, options);
  await page.locator('#connection[data-state=live]').waitFor();
  await page.route('**/messages', route => route.fulfill({ status: 422, contentType: 'application/problem+json', body: '{"status": 422, "detail": "is too long", "field": "text"}' }));
  await page.locator('#message').fill('refused');
  await page.locator('#send').click();
  await page.locator('.pending.refused').waitFor();
  await page.locator('.line.round .line-head').first().click();
  await page.locator('.round-story').waitFor();
  return page;
}

for (const [kind, options] of Object.entries(KINDS)) {
  test(`axe-core finds nothing in a conversation, ${kind}`, async t => {
    const page = await talk(t, options);

    assert.deepEqual(await problems(page), []);
  });

  test(`axe-core finds nothing in an empty room, its forms and dialogs, ${kind}`, async t => {
    const page = await it.open(t, await it.server.room({ companions: ['aria', 'bruno', 'cleo'] }), options);
    await page.locator('.welcome').waitFor();
    assert.deepEqual(await problems(page), []);

    if (kind === 'phone') await page.locator('#room-title').click();
    await page.getByRole('button', { name: '+ New room' }).click();
    await openMenu(page);
    await page.getByRole('button', { name: 'Choose companions' }).click();
    await until(page, () => document.querySelectorAll('.companion-picker').length === 2);
    assert.deepEqual(await problems(page), []);

    await page.keyboard.press('Escape');
    await openMenu(page);
    await page.locator('#help').click();
    await page.locator('dialog[open]').waitFor();
    assert.deepEqual(await problems(page), []);
  });
}
