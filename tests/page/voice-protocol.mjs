// The page's side of the examples of voice calls. Run with `node --test tests/page/voice-protocol.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const read = path => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
// The page's files are modules by how they are loaded, so they are loaded as modules here, too.
const load = async name => import(`data:text/javascript,${encodeURIComponent(await read(`src/adapters/console/page/${name}`))}`);

const examples = JSON.parse(await read('tests/contracts/voice-protocol.json'));
const protocol = await load('voice-protocol.js');

const bytes = hex => Uint8Array.from(hex.match(/../gu) ?? [], byte => Number.parseInt(byte, 16));
const hex = frame => [...frame].map(byte => byte.toString(16).padStart(2, '0')).join('');
const isRefusedAs = name => error => error instanceof protocol.Refused && error.name === name;

test('the limits and close codes are those of the examples', () => {
  assert.deepEqual(protocol.LIMITS, examples.limits);
  assert.deepEqual(protocol.CLOSE, examples.close);
});

test('packets of the microphone are written as in the examples', () => {
  for (const { number, packet, frame } of examples.microphone) assert.equal(hex(protocol.microphoneFrame(number, bytes(packet))), frame);
});

test('packets of companions are read as in the examples', () => {
  for (const { number, reply, packet, frame } of examples.companion) {
    const found = protocol.readFrame(bytes(frame).buffer);
    assert.deepEqual([found.number, found.reply, hex(found.packet)], [number, reply, packet]);
  }
});

test('other binary frames are refused by name', () => {
  for (const { frame, zeros = 0, error } of examples.refused_companion) {
    const whole = new Uint8Array([...bytes(frame), ...new Uint8Array(zeros)]);
    assert.throws(() => protocol.readFrame(whole.buffer), isRefusedAs(error), frame);
  }
});

test('messages to the server are written as in the examples', () => {
  const written = { mute: ({ on }) => protocol.mute(on), ignore: ({ on }) => protocol.ignore(on), played: ({ reply, samples }) => protocol.played(reply, samples), stop: ({ reply }) => protocol.stop(reply), say: ({ text }) => protocol.say(text), leave: () => protocol.leave() };
  for (const example of examples.from_page) assert.deepEqual(written[example.type](example), example);
});

test('messages from the server are read as in the examples', () => {
  for (const example of examples.from_server) assert.deepEqual(protocol.readMessage(JSON.stringify(example)), example);
});

test('other messages are refused by name', () => {
  for (const { frame, error } of examples.refused_from_server) assert.throws(() => protocol.readMessage(frame), isRefusedAs(error), frame);
});

test('the description of a room is that of the examples', () => {
  assert.ok(protocol.isDescription(examples.description));
  assert.ok(!protocol.isDescription({ ...examples.description, people: [{ user: 'Ben' }] }));
  assert.ok(!protocol.isDescription(null));
});
