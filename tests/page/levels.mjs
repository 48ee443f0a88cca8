// How often a companion speaks, as the page shows and sends it. Run with `node --test tests/page/levels.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

await stub('texts.js', 'export const t = (key, values) => (values ? `${key} ${Object.values(values)}` : key); export const has = () => true; export const LOCALE = "en"');
const words = await load('words.js');
const { ownSettings } = await load('companion.js');

test('quiet hours at all times are the lowest level, and others are said besides', () => {
  const of = quiet_hours => ownSettings({ repetition: true, quiet_hours });

  assert.equal(words.INTERJECTION_LEVELS[0], words.levelOf('eager', of('always').quietHours));
  assert.equal(words.levelOf('eager', of('23:00-08:00').quietHours), 'eager');
  assert.equal(words.levelOf('eager', of(undefined).quietHours), 'eager');
  assert.deepEqual(['always', '23:00-08:00', undefined].map(hours => words.ownSettings(of(hours))), ['', 'cards.quiet_hours 23:00-08:00', '']);
});
