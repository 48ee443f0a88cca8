// What the server says besides its answers, in the words of the page: warnings, what is not ready, and what fails in a call.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, world } from './support/world.mjs';

const it = world();

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
