// Pictures and character cards, as files that are chosen on the page.

import { deflateSync } from 'node:zlib';

const table = Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});
const crc = bytes => (bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;

const number = value => Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]);

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  return Buffer.concat([number(data.length), body, number(crc(body))]);
}

// A square of one colour, with a card in it if one is given.
export function png(colour, card = null, side = 16) {
  const row = Buffer.concat([Buffer.from([0]), ...Array.from({ length: side }, () => Buffer.from(colour))]);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', Buffer.concat([number(side), number(side), Buffer.from([8, 2, 0, 0, 0])])),
    ...(card ? [chunk('tEXt', Buffer.from(`chara\0${Buffer.from(JSON.stringify(card)).toString('base64')}`, 'latin1'))] : []),
    chunk('IDAT', deflateSync(Buffer.concat(Array.from({ length: side }, () => row)))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

export const card = (name, more = {}) => ({
  spec: 'chara_card_v2',
  spec_version: '2.0',
  data: {
    name,
    description: '{{char}} keeps a tea house by the harbour.',
    personality: 'dry and warm',
    scenario: '',
    first_mes: 'Come in, the kettle is on.',
    mes_example: '',
    creator_notes: 'Best in the evening.',
    system_prompt: 'Write in the style of a log book.',
    post_history_instructions: 'Stay brief.',
    alternate_greetings: [],
    tags: ['harbour'],
    creator: 'Nell',
    character_version: '1',
    character_book: null,
    extensions: { depth_prompt: { prompt: 'x' } },
    ...more,
  },
});

export const file = (name, buffer, mimeType) => ({ name, mimeType, buffer });
export const jsonFile = (name, value) => file(name, Buffer.from(JSON.stringify(value)), 'application/json');
