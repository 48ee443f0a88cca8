// What axe-core finds in profiles, the editor and the preview of a card, in light, dark and on a phone; and the same in German.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { card, file, png } from './support/cards.mjs';
import { openMenu, world } from './support/world.mjs';

const it = world();

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
