// Versions of an answer, edits and replaced answers in the state of a room. Run with `node --test tests/page/versions.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

await stub('texts.js', 'export const t = key => key; export const has = () => true; export const LOCALE = "en"');
for (const name of ['storage.js', 'tones.js', 'dom.js', 'companion.js', 'round-state.js', 'platforms.js', 'loop-guard.js', 'entries.js', 'floor.js']) await load(name);
const { fold, newRoom } = await load('state.js');
const words = await load('words.js');

const at = '2026-11-26T10:00:00Z';
const answer = { event: 'message', role: 'companion', from: 'aria', text: 'Two.', reply: 4, versions: { texts: ['One.', 'Two.'], standing: 1 } };

function roomOf(...events) {
  const room = newRoom('kitchen');
  for (const event of [{ event: 'hello', at, last: 0, state: {} }, ...events.map((one, i) => ({ seq: i + 1, at, ...one }))]) fold(room, event);
  return room;
}

test('the version that stands is the one that the server names, also after an edit, and only an edit is one', () => {
  const edit = (text, more) => ({ event: 'edited', message: 1, text, ...more });
  const seen = [];
  const steps = [edit('Two and a half.', { edited: true }), edit('One.', { version: 0, edited: false }), edit('Two and a half.', { version: 1, edited: true })];
  for (let i = 1; i <= steps.length; i += 1) {
    const [{ text, edited, versions }] = roomOf(answer, ...steps.slice(0, i)).entries;
    seen.push([text, edited, versions.standing, versions.texts.join(' ')]);
  }

  assert.deepEqual(seen, [['Two and a half.', true, 1, 'One. Two and a half.'], ['One.', false, 0, 'One. Two and a half.'], ['Two and a half.', true, 1, 'One. Two and a half.']]);
});

test('where an answer was replaced nothing is said to those who did not see the request', () => {
  const kinds = more => roomOf(answer, { event: 'deleted', messages: [1], ...more }, { ...answer, text: 'Three.' }).entries.map(({ kind }) => kind);

  assert.deepEqual(kinds({ replaced: true }), ['message']);
  assert.deepEqual(kinds({}), ['tombstone', 'message']);
});

test('an imported message has its own time, and what was long ago is told in months and years', () => {
  const [entry] = roomOf({ ...answer, said_at: '2023-10-13T20:20:00Z' }).entries;
  const now = Date.parse(at);

  assert.equal(entry.at, '2023-10-13T20:20:00Z');
  assert.equal(entry.isReply, true);
  assert.deepEqual([entry.at, '2026-07-01T00:00:00Z', '2026-11-01T00:00:00Z'].map(then => words.ago(then, now)), ['3 yr. ago', '5 mo. ago', '25 days ago']);
});

test('a message without words is quoted by what it is', () => {
  const of = (files, more = {}) => words.beginning({ text: '', files, voiceNote: null, ...more });

  assert.equal(of([{ kind: 'image' }]), 'messages.quote_pictures');
  assert.equal(of([{ kind: 'file', name: 'list.txt' }]), 'list.txt');
  assert.equal(of([{ kind: 'voice' }], { voiceNote: { secs: 3 } }), 'messages.voice_note');
  assert.equal(of([{ kind: 'image' }], { text: 'Look!' }), 'Look!');
});
