// Whether a recording is a correct Ogg file. Run with `node --test tests/page/ogg.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load } from './support/modules.mjs';

await load('voice-protocol.js');
const { ogg } = await load('ogg.js');

const text = bytes => String.fromCharCode(...bytes);

// The checksum of RFC 3533, bit by bit.
function checksum(page) {
  let sum = 0;
  page.forEach((byte, at) => {
    sum ^= (at >= 22 && at < 26 ? 0 : byte) << 24;
    for (let bit = 0; bit < 8; bit++) sum = (sum << 1) ^ (sum < 0 ? 0x04c11db7 : 0);
  });
  return sum >>> 0;
}

function read(page) {
  const view = new DataView(page.buffer);
  assert.equal(text(page.subarray(0, 4)), 'OggS');
  assert.equal(view.getUint32(22, true), checksum(page));
  const pieces = [...page.subarray(27, 27 + page[26])];
  const packets = [];
  let at = 27 + page[26];
  let length = 0;
  for (const piece of pieces) {
    length += piece;
    if (piece === 255) continue;
    packets.push(page.subarray(at, at + length));
    at += length;
    length = 0;
  }
  assert.equal(at, page.length);
  return { kind: page[5], granule: Number(view.getBigUint64(6, true)), number: view.getUint32(18, true), packets };
}

test('a recording begins with its headers, and has every packet once', () => {
  const packets = Array.from({ length: 95 }, (_, n) => new Uint8Array([0, 1, 254, 255, 256, 510, 1275][n % 7] || 3).fill(n));

  const pages = ogg(packets).map(read);

  assert.deepEqual(pages.map(({ kind }) => kind), [2, 0, 0, 0, 4]);
  assert.deepEqual(pages.map(({ number }) => number), [0, 1, 2, 3, 4]);
  assert.deepEqual(pages.map(({ granule }) => granule), [0, 0, 40 * 960, 80 * 960, 95 * 960]);
  const [[head], [tags], ...rest] = pages.map(page => page.packets);
  assert.deepEqual([text(head.subarray(0, 8)), head[8], head[9], head.length], ['OpusHead', 1, 1, 19]);
  assert.deepEqual([text(tags.subarray(0, 8)), tags.length], ['OpusTags', 16]);
  assert.deepEqual(rest.flat(), packets);
});
