// Puts Opus packets into an Ogg file. Pure.

import { LIMITS } from './voice-protocol.js';

// A page has at most 255 pieces of 255 bytes, and a packet at most six.
const PACKETS_IN_PAGE = 40;

const CHECKSUMS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24;
  for (let bit = 0; bit < 8; bit++) sum = (sum << 1) ^ (sum & 0x8000_0000 ? 0x04c1_1db7 : 0);
  return sum;
});

// One page of an Ogg file (RFC 3533) with whole packets.
function page(kind, granule, number, packets) {
  const pieces = packets.flatMap(({ length }) => [...Array(Math.floor(length / 255)).fill(255), length % 255]);
  const head = 27 + pieces.length;
  const bytes = new Uint8Array(packets.reduce((sum, { length }) => sum + length, head));
  const view = new DataView(bytes.buffer);
  bytes.set([...'OggS'].map(letter => letter.charCodeAt(0)));
  bytes[5] = kind;
  view.setBigUint64(6, BigInt(granule), true);
  view.setUint32(14, 1, true);
  view.setUint32(18, number, true);
  bytes[26] = pieces.length;
  bytes.set(pieces, 27);
  let at = head;
  for (const packet of packets) {
    bytes.set(packet, at);
    at += packet.length;
  }
  view.setUint32(22, bytes.reduce((sum, byte) => (sum << 8) ^ CHECKSUMS[(sum >>> 24) ^ byte], 0) >>> 0, true);
  return bytes;
}

// The pages of an Ogg file with one Opus stream (RFC 7845) of packets of 20 ms.
export function ogg(packets) {
  const header = (name, length) => {
    const bytes = new Uint8Array(length);
    bytes.set([...name].map(letter => letter.charCodeAt(0)));
    return bytes;
  };
  const head = header('OpusHead', 19);
  head.set([1, 1], 8);
  const view = new DataView(head.buffer);
  view.setUint16(10, 312, true);
  view.setUint32(12, LIMITS.sample_rate, true);
  const pages = [page(2, 0, 0, [head]), page(0, 0, 1, [header('OpusTags', 16)])];
  for (let at = 0; at < packets.length; at += PACKETS_IN_PAGE) {
    const end = Math.min(at + PACKETS_IN_PAGE, packets.length);
    pages.push(page(end === packets.length ? 4 : 0, end * LIMITS.samples_per_frame, pages.length, packets.slice(at, end)));
  }
  return pages;
}
