// The voice room of the page, as far as it needs no microphone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { texts, world } from './support/world.mjs';

const it = world();

test('words that cannot be said aloud are refused in whole sentences', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await page.getByRole('button', { name: 'Only listen' }).click();
  await page.locator('#voice[data-phase=live]').waitFor();

  // A text that looks empty, but is not.
  await page.locator('#voice-say').fill('\u200b');
  await page.getByRole('button', { name: 'Say', exact: true }).click();
  await page.locator('.voice-trouble').waitFor();

  assert.deepEqual(await texts(page.locator('.voice-trouble')), ['Not said. The text has no visible characters; write something.']);
});
