// The page in Spanish, and refusals in the reader's language.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { untranslatedIn } from './support/untranslated.mjs';
import { openMenu, world } from './support/world.mjs';

const untranslated = untranslatedIn('es');
const it = world();

test('a Spanish browser gets the page and its sentences in Spanish', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { locale: 'es-MX', storage: { decisions: undefined } });
  await page.getByText('Aria, Bruno y Cleo escuchan en esta sala').waitFor();
  await page.locator('#connection[data-state=live]').waitFor();
  assert.deepEqual(await untranslated(page), []);

  await page.locator('#message').fill('Aria, ¿estás ahí?');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion:not(.draft) [data-focus=outcomes]').press('Enter');
  await page.locator('.beforehand', { hasText: 'Aria respondió porque le hablaste a Aria.' }).waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Detalles', pressed: false }).click();
  await page.locator('.chat-message.user [data-focus=outcomes]').press('Enter');
  await page.locator('.outcomes', { hasText: 'Ana llamó a Aria por su nombre, así que Aria se planteó responder.' }).waitFor();
  assert.deepEqual(await untranslated(page), []);

  await page.locator('.card .who').first().click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Editar' }).click();
  await page.locator('details.more summary').click();
  assert.deepEqual(await untranslated(page), []);
});

test('what the server refuses is said in the language of the page', async t => {
  await it.server.room({ id: 'cocina' });
  for (const [locale, newRoom, create, refusal] of [
    ['es-ES', '+ Nueva sala', 'Crear', 'Ya existe la sala cocina; elige otro nombre o abre esa sala'],
    ['de-DE', '+ Neuer Raum', 'Anlegen', 'Es gibt schon einen Raum cocina; wähle einen anderen Namen oder öffne diesen Raum'],
    ['en-GB', '+ New room', 'Create', 'There is already a room cocina; choose another name, or open that room'],
  ]) {
    const page = await it.open(t, 'lobby', { locale });
    await page.getByRole('button', { name: newRoom }).click();
    await page.locator('#new-room-title').fill('Cocina');
    await page.getByRole('button', { name: create, exact: true }).click();
    await page.getByText(refusal).waitFor();
  }
});
