// What axe-core finds in Markdown, the menu and its dialogs, and the dialog of models, in light, dark and on a phone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { startModel } from './support/model.mjs';
import { openMenu, world } from './support/world.mjs';

const it = world();

const RICH = 'Two **good** ones:\n\n1. [The Summer Book](https://example.org/summer)\n2. *Invisible Cities*\n\n> Short chapters.\n\n```js\nconst minutes = 180; // a line of code that is longer than a telephone is wide, so that it has to be scrolled\n```\n\nand `inline` code.';

// A room in which a companion answered with Markdown and another one is writing.
async function richTalk(t, options) {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const message = await it.server.say(room, 'zed, which book?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, RICH);
  const page = await it.open(t, room, options);
  await page.locator('.rich pre').waitFor();
  return { room, live, page };
}

for (const [kind, options] of Object.entries(KINDS)) {
  test(`axe-core finds nothing in Markdown, with and without decisions, ${kind}`, async t => {
    const { room, live, page } = await richTalk(t, options);
    assert.deepEqual(await problems(page), []);

    // There is something to stop.
    const message = await it.server.say(room, 'zed, and on the way back?');
    await live.vote('zed', message, { state: 'speak', importance: 4 });
    await page.locator('.draft').waitFor();
    assert.deepEqual(await problems(page), []);

    await openMenu(page);
    await page.locator('#decisions').click();
    await page.locator('.chat-only').waitFor();
    await page.locator('.chat-message.companion:not(.draft) [data-focus=outcomes]').press('Enter');
    await page.locator('.beforehand').waitFor();
    assert.deepEqual(await problems(page), []);
  });

  test(`axe-core finds nothing in the menu, the usage and the renaming, ${kind}`, async t => {
    const { page } = await richTalk(t, { ...options, storage: { seen: { lobby: '2020-01-01T00:00:00.000Z' } } });
    await openMenu(page);
    assert.deepEqual(await problems(page), []);

    await page.getByRole('button', { name: /^Usage/u }).click();
    await page.locator('dialog :is(table.usage, p:not(.muted))').first().waitFor();
    assert.deepEqual(await problems(page), []);

    await page.keyboard.press('Escape');
    await openMenu(page);
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.locator('#room-new-title').waitFor();
    assert.deepEqual(await problems(page), []);

    await page.keyboard.press('Escape');
    // Closing a dialog goes back in the history, and a reload must not come before that.
    await page.waitForFunction(() => !history.state?.isOpen);
    await it.server.say('lobby', 'unread');
    await page.reload();
    await page.locator('#connection[data-state=live]').waitFor();
    if (kind === 'phone') await page.locator('#room-title').click();
    await page.locator('.room .room-unread').first().waitFor();
    assert.deepEqual(await problems(page), []);
  });
}

// A failing model changes the models of the whole server, so this comes last.
for (const [kind, options] of Object.entries(KINDS)) {
  test(`axe-core finds nothing in the dialog of models, and while a model fails, ${kind}`, async t => {
    const model = await startModel({ key: 'right', statement: 'Hello.' });
    t.after(() => model.stop());
    t.after(() => it.server.call('DELETE', '/api/models'));
    const room = await it.server.room({ companions: ['aria'] });
    const page = await it.open(t, room, options);
    await page.locator('#connection[data-state=live]').waitFor();
    await openMenu(page);
    await page.locator('#model').click();
    await page.locator('dialog[open]').waitFor();
    assert.deepEqual(await problems(page), []);
    await page.keyboard.press('Escape');

    await it.server.call('PUT', '/api/models', { base_url: model.url, api_key: 'wrong', main: { model: 'large' }, side: { model: 'small' } });
    await it.server.say(room, 'Aria, are you there?');
    await page.locator('#model-trouble:not(.quiet)').waitFor();
    assert.deepEqual(await problems(page), []);
  });
}
