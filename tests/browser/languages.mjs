// The page in German and Spanish, refusals in the reader's language, and what the server says besides its answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { card, file, png } from './support/cards.mjs';
import { untranslatedIn } from './support/untranslated.mjs';
import { openMenu, PHONE, texts, world } from './support/world.mjs';

const it = world();
const notGerman = untranslatedIn('de');

test('a German browser gets the page in German, and in English once that is chosen', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { locale: 'de-DE', storage: { decisions: undefined } });
  await page.getByRole('heading', { name: 'Noch keine Nachrichten' }).waitFor();
  await page.getByText('Aria, Bruno und Cleo hören in diesem Raum zu').waitFor();
  await page.locator('#connection[data-state=live]').waitFor();
  assert.deepEqual(await notGerman(page), []);

  await page.locator('#message').fill('Aria, bist du da?');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion:not(.draft) [data-focus=outcomes]').press('Enter');
  await page.locator('.beforehand', { hasText: 'Aria hat geantwortet, weil du Aria angesprochen hast.' }).waitFor();
  assert.deepEqual(await notGerman(page), []);

  await openMenu(page);
  await page.getByRole('button', { name: 'Details', pressed: false }).click();
  await page.locator('.line.round .line-head').first().click();
  await page.locator('.round-story .vote-why').first().click();
  await page.locator('.vote-story > .story > .facts').waitFor();
  assert.match((await texts(page.locator('.line.round .line-words')))[0], /^Wer möchte auf „Aria, bist du da\?“ von Ana antworten\? Aria \d/u);
  assert.deepEqual(await notGerman(page), []);
  await page.locator('.card-head').first().press('Enter');
  await page.locator('.chat-message.user [data-focus=outcomes]').press('Enter');
  await page.locator('.outcomes').first().waitFor();
  assert.deepEqual(await notGerman(page), []);

  await openMenu(page);
  assert.deepEqual(await notGerman(page), []);
  await page.getByRole('button', { name: /^Verbrauch/u }).click();
  await page.locator('dialog', { hasText: 'Demomodus' }).waitFor();
  assert.deepEqual(await notGerman(page), []);
  await page.keyboard.press('Escape');
  for (const [button, inside] of [['#help', 'dialog .keys'], ['#model', 'dialog form.connect']]) {
    await openMenu(page);
    await page.locator(button).click();
    await page.locator(inside).waitFor();
    assert.deepEqual(await notGerman(page), []);
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: '+ Neuer Raum' }).click();
  await page.getByLabel('Name des Raums').waitFor();
  assert.deepEqual(await notGerman(page), []);

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
  assert.deepEqual(await notGerman(page), []);
});

test('profiles, the editor and the preview of a card are in German', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { locale: 'de-DE' });
  await page.locator('.card .who').click();
  const dialog = page.locator('dialog[open]').last();
  await dialog.getByRole('button', { name: 'Bearbeiten' }).waitFor();
  assert.deepEqual(await notGerman(page), []);

  await dialog.getByRole('button', { name: 'Bearbeiten' }).click();
  await page.locator('details.more summary').click();
  await dialog.getByRole('button', { name: 'Ausprobieren' }).click();
  await dialog.locator('.said').waitFor();
  assert.deepEqual(await notGerman(page), []);
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });

  const odd = { ...card('Nell', { mes_example: `<START>\n${'{{char}}: Die Flut kommt. '.repeat(900)}`, alternate_greetings: 'Moin.', character_book: { entries: [{}] }, assets: [{ uri: 'https://example.org/a.png' }] }), tags: ['x'] };
  await page.locator('.make input[type=file]').setInputFiles(file('nell.png', png([40, 90, 160], odd), 'image/png'));
  await dialog.getByText('weil alles zusammen zu lang wäre').first().waitFor();
  for (const summary of await dialog.locator('summary').all()) await summary.click();
  assert.deepEqual(await notGerman(page), []);
  await dialog.locator('input[type=file]').setInputFiles(file('x.gif', Buffer.from('GIF89a'), 'image/gif'));
  await dialog.getByText('Sie ist ein GIF.').waitFor();
  assert.deepEqual(await notGerman(page), []);
});

const notSpanish = untranslatedIn('es');

test('a Spanish browser gets the page and its sentences in Spanish', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { locale: 'es-MX', storage: { decisions: undefined } });
  await page.getByText('Aria, Bruno y Cleo escuchan en esta sala').waitFor();
  await page.locator('#connection[data-state=live]').waitFor();
  assert.deepEqual(await notSpanish(page), []);

  await page.locator('#message').fill('Aria, ¿estás ahí?');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion:not(.draft) [data-focus=outcomes]').press('Enter');
  await page.locator('.beforehand', { hasText: 'Aria respondió porque le hablaste a Aria.' }).waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Detalles', pressed: false }).click();
  await page.locator('.chat-message.user [data-focus=outcomes]').press('Enter');
  await page.locator('.outcomes', { hasText: 'Ana llamó a Aria por su nombre, así que Aria se planteó responder.' }).waitFor();
  assert.deepEqual(await notSpanish(page), []);

  await page.locator('.card .who').first().click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Editar' }).click();
  await page.locator('details.more summary').click();
  assert.deepEqual(await notSpanish(page), []);
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

// Looks like Aria, with a Greek letter.
const ALIKE = '\u0391ria';

const LANGUAGES = [
  {
    locale: 'en-GB',
    name: `“${ALIKE}” is a name of the companion aria, or looks like one; choose another name`,
    shared: ['aria has the name “Aria” too, so the two cannot be in rooms of one server.'],
    discord: 'Not connected yet; Discord cannot be reached: no route to host; something new.',
    store: 'Nothing can be stored at the moment, try again.',
    aloud: 'Your words were not said. The message has no visible characters; write something.',
  },
  {
    locale: 'de-DE',
    name: `„${ALIKE}“ ist ein Name des Begleiters aria oder sieht so aus; nimm einen anderen`,
    shared: ['Aria heißt auch „Aria“; deshalb können die beiden nicht in Räumen eines Servers sein.'],
    discord: 'Noch nicht verbunden; Discord ist nicht erreichbar: no route to host; something new.',
    store: 'Gerade lässt sich nichts speichern; versuch es noch einmal.',
    aloud: 'Deine Worte wurden nicht gesagt. Die Nachricht hat keine sichtbaren Zeichen; schreib etwas.',
  },
  {
    locale: 'es-ES',
    name: `“${ALIKE}” es un nombre de aria, o se le parece; elige otro`,
    shared: ['Aria también se llama “Aria”, así que los dos no pueden estar en salas del mismo servidor.'],
    discord: 'Aún sin conectar; no se puede conectar con Discord: no route to host; something new.',
    store: 'Ahora mismo no se puede guardar nada; inténtalo de nuevo.',
    aloud: 'Tus palabras no se dijeron. El mensaje no tiene caracteres visibles; escribe algo.',
  },
];

// What is not ready, as the server says it. A page may be older than its server, and not know a code.
const NOT_READY = [
  { part: 'store', ready: false, detail: 'messages cannot be stored at the moment', why: [{ code: 'not_stored' }] },
  { part: 'discord', ready: false, detail: 'English', why: [{ code: 'discord_unconnected' }, { code: 'discord_unreachable', error: 'no route to host' }, { code: 'other', text: 'something new' }] },
];

for (const { locale, name, shared, discord, store, aloud } of LANGUAGES) {
  test(`warnings are in the language of the page, ${locale}`, async t => {
    const room = await it.server.room({ companions: ['aria'] });
    const page = await it.open(t, room, { locale, storage: { people: [ALIKE] } });
    await page.locator('#connection[data-state=live]').waitFor({ state: 'attached' });
    await page.locator('#message').fill('Hello?');
    await page.keyboard.press('Enter');
    await page.locator('#notices', { hasText: name }).waitFor();

    const { id, revision } = await it.server.call('POST', '/api/companions', { companion: { name: 'Aria' } });
    t.after(() => it.server.call('DELETE', `/api/companions/${id}?revision=${revision}`));
    const { warnings } = await it.server.call('GET', `/api/companions/${id}`);
    assert.match(warnings[0], /^It shares the name "Aria" with aria/u);
    await it.server.room({ id: `alone-${id}-${locale}`, guild: `alone-${locale}`, companions: [id] });
    await page.goto(`${it.server.url}/#/alone-${id}-${locale}`);
    await page.locator('.card .who').click();
    await page.locator('dialog[open] ul.danger').waitFor();
    assert.deepEqual((await texts(page.locator('dialog[open] ul.danger li'))).map(text => text.toLowerCase()), shared.map(text => text.toLowerCase()));
  });

  test(`what is not ready is in the language of the page, ${locale}`, async t => {
    const change = async route => {
      const response = await route.fetch();
      const answer = await response.json();
      Object.assign(answer.readiness ?? answer, { parts: NOT_READY });
      await route.fulfill({ json: answer });
    };
    const prepare = page => Promise.all(['**/api/overview', '**/readyz'].map(url => page.route(url, change)));
    const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { locale, prepare });
    await page.locator('.card').first().waitFor();
    await openMenu(page);
    await page.locator('#model').click();
    await page.locator('dialog[open] dd.danger', { hasText: store }).waitFor();
    assert.deepEqual(await texts(page.locator('dialog[open] dd.danger')), [store, discord]);
  });

  test(`what fails in a call is in the language of the page, ${locale}`, async t => {
    const room = await it.server.room({ companions: ['aria'] });
    const page = await it.open(t, room, { locale, storage: { people: ['Ana'] } });
    await page.locator('#connection[data-state=live]').waitFor({ state: 'attached' });
    await openMenu(page);
    await page.locator('#voice-set-up').click();
    await page.locator('dialog[open] button').last().click();
    await page.locator('#voice[data-phase=live]').waitFor();

    await page.locator('#message').fill('\u200b');
    await page.locator('#send').click();

    await page.locator('.voice-trouble').waitFor();
    assert.deepEqual(await texts(page.locator('.voice-trouble')), [aloud]);
  });
}
