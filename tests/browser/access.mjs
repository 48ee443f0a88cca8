// What axe-core finds on the page, its dialogs, profiles and the editor, wide (in light and dark) and on a phone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { card, file, png } from './support/cards.mjs';
import { startModel } from './support/model.mjs';
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

const dialog = page => page.locator('dialog[open]').last();
const fitsWidth = page => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('dialog')].every(node => node.scrollWidth <= node.clientWidth));

async function open(t, options) {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), options);
  await page.locator('.card').first().waitFor();
  return page;
}

async function fine(page) {
  assert.deepEqual(await problems(page), []);
  assert.equal(await fitsWidth(page), true);
}

for (const [kind, options] of Object.entries(KINDS)) {
  const narrow = kind === 'phone';

  test(`axe-core finds nothing in a profile and the editor, ${kind}`, async t => {
    const page = await open(t, options);
    if (narrow) await page.locator('#room-title').click();
    await openMenu(page);
    await page.getByRole('button', { name: 'Choose companions' }).click();
    await page.getByText('For developers').click();
    await page.getByRole('button', { name: 'Profile Aria' }).waitFor();
    await fine(page);
    await page.getByRole('button', { name: 'Profile Aria' }).click();
    await dialog(page).getByRole('heading', { name: 'Aria', exact: true }).waitFor();
    await fine(page);

    await dialog(page).getByRole('button', { name: 'Edit' }).click();
    await page.locator('#companion-name').fill('');
    await page.locator('details.more summary').click();
    await page.getByRole('button', { name: '+ Add a greeting' }).click();
    await dialog(page).getByRole('button', { name: 'Save' }).click();
    await dialog(page).getByText('Give a name.').waitFor();
    await fine(page);
    await page.locator('#companion-name').fill('Aria');
    await dialog(page).getByRole('button', { name: 'Try it' }).click();
    await dialog(page).locator('.said').waitFor();
    await fine(page);
  });

  test(`axe-core finds nothing in the preview of a card, ${kind}`, async t => {
    const page = await open(t, options);
    if (narrow) await page.locator('#room-title').click();
    await openMenu(page);
    await page.getByRole('button', { name: 'Choose companions' }).click();
    const long = card('Nell', { mes_example: `<START>\n${'{{char}}: The tide is late. '.repeat(900)}` });
    await page.locator('.companion-picker input[type=file]').setInputFiles(file('nell.png', png([40, 90, 160], long), 'image/png'));
    await dialog(page).getByText('because all of it would be too long').first().waitFor();
    for (const summary of await dialog(page).locator('summary').all()) await summary.click();
    await fine(page);

    await dialog(page).locator('input[type=file]').setInputFiles(file('x.png', png([1, 2, 3]), 'image/png'));
    await dialog(page).getByText('This file cannot be imported.').waitFor();
    await fine(page);
  });
}

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
