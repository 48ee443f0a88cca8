// The page in German.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { card, file, png } from './support/cards.mjs';
import { untranslatedIn } from './support/untranslated.mjs';
import { openMenu, PHONE, texts, world } from './support/world.mjs';

const untranslated = untranslatedIn('de');
const it = world();

test('a German browser gets the page in German, and in English once that is chosen', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { locale: 'de-DE', storage: { decisions: undefined } });
  await page.getByRole('heading', { name: 'Noch keine Nachrichten' }).waitFor();
  await page.getByText('Aria, Bruno und Cleo hören in diesem Raum zu').waitFor();
  await page.locator('#connection[data-state=live]').waitFor();
  assert.deepEqual(await untranslated(page), []);

  await page.locator('#message').fill('Aria, bist du da?');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion:not(.draft) [data-focus=outcomes]').press('Enter');
  await page.locator('.beforehand', { hasText: 'Aria hat geantwortet, weil du Aria angesprochen hast.' }).waitFor();
  assert.deepEqual(await untranslated(page), []);

  await openMenu(page);
  await page.getByRole('button', { name: 'Details', pressed: false }).click();
  await page.locator('.line.round .line-head').first().click();
  await page.locator('.round-story .vote-why').first().click();
  await page.locator('.vote-story > .story > .facts').waitFor();
  assert.match((await texts(page.locator('.line.round .line-words')))[0], /^Wer möchte auf „Aria, bist du da\?“ von Ana antworten\? Aria \d/u);
  assert.deepEqual(await untranslated(page), []);
  await page.locator('.card-head').first().press('Enter');
  await page.locator('.chat-message.user [data-focus=outcomes]').press('Enter');
  await page.locator('.outcomes').first().waitFor();
  assert.deepEqual(await untranslated(page), []);

  await openMenu(page);
  assert.deepEqual(await untranslated(page), []);
  await page.getByRole('button', { name: /^Verbrauch/u }).click();
  await page.locator('dialog', { hasText: 'Demomodus' }).waitFor();
  assert.deepEqual(await untranslated(page), []);
  await page.keyboard.press('Escape');
  for (const [button, inside] of [['#help', 'dialog .keys'], ['#model', 'dialog form.connect']]) {
    await openMenu(page);
    await page.locator(button).click();
    await page.locator(inside).waitFor();
    assert.deepEqual(await untranslated(page), []);
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: '+ Neuer Raum' }).click();
  await page.getByLabel('Name des Raums').waitFor();
  assert.deepEqual(await untranslated(page), []);

  await openMenu(page);
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('button', { name: '+ New room' }).waitFor();
  await page.locator('html[lang=en]').waitFor();
  await page.reload();
  await page.getByRole('button', { name: '+ New room' }).waitFor();
});

test('on a phone the language is in the menu, with its name', async t => {
  const page = await it.open(t, 'lobby', { locale: 'de-DE', viewport: PHONE, hasTouch: true, isMobile: true });
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#more').tap();

  await page.locator('#room-menu').getByText('Sprache').first().waitFor();
  await page.locator('#room-menu #language').waitFor();
  assert.deepEqual(await untranslated(page), []);
});

test('profiles, the editor and the preview of a card are in German', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { locale: 'de-DE' });
  await page.locator('.card .who').click();
  const dialog = page.locator('dialog[open]').last();
  await dialog.getByRole('button', { name: 'Bearbeiten' }).waitFor();
  assert.deepEqual(await untranslated(page), []);

  await dialog.getByRole('button', { name: 'Bearbeiten' }).click();
  await page.locator('details.more summary').click();
  await dialog.getByRole('button', { name: 'Ausprobieren' }).click();
  await dialog.locator('.said').waitFor();
  assert.deepEqual(await untranslated(page), []);
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });

  const odd = { ...card('Nell', { mes_example: `<START>\n${'{{char}}: Die Flut kommt. '.repeat(900)}`, alternate_greetings: 'Moin.', character_book: { entries: [{}] }, assets: [{ uri: 'https://example.org/a.png' }] }), tags: ['x'] };
  await page.locator('.make input[type=file]').setInputFiles(file('nell.png', png([40, 90, 160], odd), 'image/png'));
  await dialog.getByText('weil alles zusammen zu lang wäre').first().waitFor();
  for (const summary of await dialog.locator('summary').all()) await summary.click();
  assert.deepEqual(await untranslated(page), []);
  await dialog.locator('input[type=file]').setInputFiles(file('x.gif', Buffer.from('GIF89a'), 'image/gif'));
  await dialog.getByText('Sie ist ein GIF.').waitFor();
  assert.deepEqual(await untranslated(page), []);
});
