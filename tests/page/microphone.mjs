// The microphone's sound in frames. Run with `node --test tests/page/microphone.mjs`.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const source = await readFile(new URL('../../src/adapters/console/page/microphone-worklet.js', import.meta.url), 'utf8');

// The samples of the frames that a second of a tone makes, taken at this rate.
function framesOf(rate, hertz) {
  class Processor {
    port = { postMessage: ({ samples }) => this.sent.push(...samples) };
    sent = [];
  }
  let Microphone = null;
  new Function('AudioWorkletProcessor', 'registerProcessor', 'sampleRate', source)(Processor, (_, made) => (Microphone = made), rate);
  const microphone = new Microphone();
  for (let at = 0; at < rate; at += 128) microphone.process([[Float32Array.from({ length: 128 }, (_, i) => Math.sin((2 * Math.PI * hertz * (at + i)) / rate))]]);
  return microphone.sent;
}

// How much of a tone is in these samples of 48 kHz: 1 if it is the whole tone.
function share(samples, hertz) {
  const along = wave => samples.reduce((sum, sample, at) => sum + sample * wave((2 * Math.PI * hertz * at) / 48_000), 0);
  return (2 / samples.length) * Math.hypot(along(Math.sin), along(Math.cos));
}

for (const rate of [8000, 16_000, 44_100, 48_000, 88_200, 96_000, 192_000]) {
  test(`a tone keeps its length and its pitch at ${rate} Hz`, () => {
    const samples = framesOf(rate, 440);

    assert.ok(Math.abs(samples.length - 48_000) <= 960 + 128 * 6, `${samples.length} samples`);
    assert.ok(share(samples, 440) > 0.97, `${share(samples, 440)}`);
  });
}

test('what comes at 48 kHz is taken as it is', () => {
  const samples = framesOf(48_000, 440);

  assert.ok(samples.every((sample, at) => at === 0 || sample === Math.fround(Math.sin((2 * Math.PI * 440 * (at - 1)) / 48_000))));
});

test('what a frame cannot hold is weakened', () => {
  assert.ok(share(framesOf(96_000, 40_000), 8000) < 0.5);
});
