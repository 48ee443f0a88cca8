// The voice room of the page, as far as it needs no microphone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { hears, listen, listenFirst, openMenu, texts, until, world } from './support/world.mjs';

const it = world();

// A window that listens to the call of a room of its own.
async function call(t, options) {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, options);
  await page.locator('#connection[data-state=live]').waitFor();
  await listenFirst(page);
  await page.locator('#voice[data-phase=live]').waitFor();
  return { room, page };
}

test('words that cannot be said aloud are refused in whole sentences, and come back', async t => {
  const { page } = await call(t);

  // A text that looks empty, but is not.
  await page.locator('#message').fill('\u200b');
  // Who only listens sends words, and says nothing.
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.voice-trouble').waitFor();

  assert.deepEqual(await texts(page.locator('.voice-trouble')), ['Your words were not said. The message has no visible characters; write something.']);
  assert.equal(await page.locator('#message').inputValue(), '\u200b');
});

test('in a call one field is for words to be said aloud and for messages', async t => {
  const { room, page } = await call(t);
  const modalities = async () => (await it.server.call('GET', `/api/rooms/${room}/history`)).messages.filter(({ role }) => role === 'user').map(({ text, modality }) => [text, modality ?? 'text']);

  // This server recognises no speech, so words are typed to be said.
  await page.getByRole('button', { name: 'The call', exact: true, pressed: true }).waitFor();
  assert.equal(await page.locator('.write :is(textarea, input):visible').count(), 1);
  await page.locator('#message').fill('Lovely rain.');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message:not(.pending)', { hasText: 'Lovely rain.' }).waitFor();
  await page.getByRole('button', { name: 'The chat', exact: true }).click();
  await page.locator('#message:focus').waitFor();
  await page.keyboard.type('And written rain.');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message:not(.pending)', { hasText: 'And written rain.' }).waitFor();

  assert.deepEqual(await modalities(), [['Lovely rain.', 'voice'], ['And written rain.', 'text']]);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.locator('#compose-how').waitFor({ state: 'hidden' });
});

test('in a call, an edit and another room are written', async t => {
  const { page } = await call(t);
  const other = await it.server.room({ companions: ['aria'] });
  await page.locator('#compose-how').waitFor();

  await page.evaluate(hash => (location.hash = hash), `#/${other}`);
  await page.locator('#compose-how').waitFor({ state: 'hidden' });

  await page.locator('#message').fill('Written elsewhere.');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message:not(.pending)', { hasText: 'Written elsewhere.' }).waitFor();
  assert.equal((await it.server.call('GET', `/api/rooms/${other}/history`)).messages[0].modality ?? 'text', 'text');
  await page.getByRole('button', { name: 'Go there' }).click();
  await page.getByRole('button', { name: 'The call', exact: true, pressed: true }).waitFor();
  await page.getByRole('button', { name: 'The chat', exact: true }).click();
  await page.locator('#message').fill('Rain.');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message:not(.pending)', { hasText: 'Rain.' }).waitFor();
  await page.getByRole('button', { name: 'The call', exact: true }).click();
  await page.keyboard.press('ArrowUp');
  await page.locator('#compose-how').waitFor({ state: 'hidden' });
  assert.equal(await page.locator('#message').inputValue(), 'Rain.');
});

test('consent is asked for in words that are read, and who cannot join is told why', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openMenu(page);
  await page.getByRole('button', { name: 'Voice ▸ Set up' }).click();
  await page.getByRole('button', { name: 'Join the call' }).click();
  const consent = page.getByRole('dialog', { name: 'Before you join' });
  await consent.waitFor();
  const read = await consent.evaluate(node => (node === document.activeElement ? node.getAttribute('aria-describedby').split(' ').map(id => document.getElementById(id).textContent) : []));
  assert.ok(read.some(text => text.includes('microphone')), read.join());

  await listen(page);
  await consent.getByRole('button', { name: 'Join the call' }).press('Enter');

  // No test has a microphone.
  await page.locator('#voice[data-phase=over]').waitFor();
  await hears(page, await page.locator('.voice-about').textContent());
  await until(page, () => document.activeElement.textContent === 'Join the call');
});

for (const [kind, options] of Object.entries(KINDS)) {
  test(`axe-core finds nothing in a call, ${kind}`, async t => {
    const { page } = await call(t, options);
    assert.deepEqual(await problems(page), []);
  });
}
