// The sentence below a message, and what is shown in the places of deleted ones. Run with `node --test tests/page/happened.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

await stub('texts.js', 'export const t = key => key; export const pieces = key => [key]; export const listed = all => all; export const has = () => true; export const LOCALE = "en"');
for (const name of ['tones.js', 'dom.js', 'companion.js', 'round-state.js', 'platforms.js', 'loop-guard.js', 'entries.js', 'floor.js', 'state.js', 'words.js']) await load(name);
const { addPage, fold, newRoom } = await load('state.js');
const { happened } = await load('happened.js');

const at = '2026-11-26T10:00:00Z';
const says = (text, from = 'Ana', more = {}) => ({ event: 'message', role: 'user', from, text, ...more });
const answers = (from, text, more = {}) => says(text, from, { role: 'companion', ...more });
const yes = (companion, trigger, ...messages) => ({ event: 'decision', companion, trigger, decision: 'YES', reason: 'model_yes', messages });
const stays = (companion, ...messages) => ({ event: 'decision', companion, trigger: 'lull', decision: 'NO', reason: 'other_addressed', messages });

function roomOf(...events) {
  const room = newRoom('kitchen');
  const companions = ['aria', 'bruno', 'cleo', 'dario'].map(id => ({ id, name: id[0].toUpperCase() + id.slice(1), doing: 'listening', closing: 'none' }));
  for (const event of [{ event: 'hello', at, last: 0, state: { companions, late: [] } }, ...events.map((one, i) => ({ seq: i + 1, at, ...one }))]) fold(room, event);
  return room;
}

// The sentences about all decisions: each with its companions, and the message that it names.
function sentences(room, next = null) {
  const said = [...room.seen.values()].filter(({ kind, seq }) => kind === 'message' && seq !== next?.seq);
  return happened(room, room.entries.filter(({ kind }) => kind === 'decision'), said, next).map(({ key, companions, message }) => [key, companions.join(), message?.text ?? null]);
}

test('who stays out says to whom its message spoke, not the newest one', () => {
  const asked = 'Aria, Bruno and Cleo: what do you think of each other?';
  const room = roomOf(says(asked), answers('aria', 'Bruno, you first.'), says('Well, good evening everybody.'), stays('dario', asked));

  assert.deepEqual(sentences(room), [['stayed_out.other', 'dario', asked]]);
});

test('nobody is named where the message names nobody, or is not known', () => {
  for (const messages of [['Good evening everybody.'], ['It was edited since.'], ['Dario, and Aria: hello']]) {
    const room = roomOf(says('Aria, hello.'), says('Good evening everybody.'), says('Dario, and Aria: hello'), stays('dario', ...messages));

    assert.deepEqual(sentences(room), [['stayed_out.other_addressed', 'dario', null]], messages[0]);
  }
});

test('who was spoken to answers the message that names it, also as part of no other word, or the reply to its own', () => {
  const room = roomOf(answers('aria', 'Tea?'), says('Ariadne is a name, too.'), says('Yes.', 'Ben', { reply_to: 1 }), says('Hm.'), yes('aria', 'direct_address', 'Ariadne is a name, too.', 'Yes.', 'Hm.'));

  assert.deepEqual(sentences(room, { kind: 'message', role: 'companion', from: 'aria', seq: 9 }), [['answered.direct_address', 'aria', 'Yes.']]);
});

test('companions that answer different messages are in different sentences', () => {
  const room = roomOf(says('Aria, hello.'), says('Bruno, hello.', 'Ben'), yes('aria', 'direct_address', 'Aria, hello.'), stays('bruno', 'Aria, hello.'), stays('cleo', 'Bruno, hello.'));

  assert.deepEqual(sentences(room, { kind: 'message', role: 'companion', from: 'aria', seq: 9 }), [
    ['answered.direct_address', 'aria', 'Aria, hello.'],
    ['stayed_out.other', 'bruno', 'Aria, hello.'],
    ['stayed_out.other', 'cleo', 'Bruno, hello.'],
  ]);
});

test('no reason is made up once its message is deleted', () => {
  const room = roomOf(answers('bruno', 'Aria, are you there?'), says('Aria, hello.'), yes('aria', 'direct_address', 'Aria, hello.'), stays('cleo', 'Aria, hello.'));
  const { version } = room.entries.at(-1);
  fold(room, { event: 'deleted', seq: 5, at, messages: [2] });

  assert.deepEqual(sentences(room, { kind: 'message', role: 'companion', from: 'aria', seq: 9 }), [['answered.deleted', 'aria', null], ['stayed_out.other_addressed', 'cleo', null]]);
  assert.ok(room.entries.at(-1).version > version, 'it is drawn again');
});

test('where all are paused, it is said below the last message', () => {
  const room = roomOf({ event: 'paused', paused: true }, says('Hello?'), says('Anybody?'), { event: 'paused', paused: false }, says('Ah.'));
  const said = room.entries.filter(({ kind }) => kind === 'message');

  assert.deepEqual(happened(room, [], said.slice(0, 1), said[1]), []);
  assert.deepEqual(happened(room, [], said.slice(0, 2), said[2]).map(({ key }) => key), ['stayed_out.room_paused']);
  assert.deepEqual(happened(room, [], said), []);
});

const tombstones = room => room.entries.filter(({ kind }) => kind === 'tombstone').map(({ seq, companion }) => [seq, companion]);

test('only messages are counted as deleted messages', () => {
  const room = roomOf(says('Hello.'), says('Bye.'));
  fold(room, { event: 'deleted', seq: 50, at, messages: [1, 30, 31, 32] });
  assert.deepEqual(tombstones(room), [[1, null]]);

  const other = roomOf(says('Hello.'));
  fold(other, { event: 'deleted', seq: 50, at, messages: [30, 31] });
  assert.deepEqual(tombstones(other), []);

  // What is not loaded yet is a message if it was deleted alone.
  const early = newRoom('kitchen');
  for (const messages of [[1], [2, 3]]) fold(early, { event: 'deleted', seq: 50, at, messages });
  addPage(early, { messages: [{ ...says('Hello.'), seq: 5 }], deleted: [] }, [], { complete: true });
  assert.deepEqual(tombstones(early), [[1, null]]);

  // The history names messages only.
  const late = newRoom('kitchen');
  addPage(late, { messages: [], deleted: [3] }, [], { complete: true });
  assert.deepEqual(tombstones(late), [[3, null]]);
});

test('a replaced answer names its companion, whichever event comes first', () => {
  const deleted = { event: 'deleted', messages: [1] };
  const respond = { event: 'respond', companion: 'aria', ticket: 2, again: 1 };
  for (const events of [[deleted, respond], [respond, deleted]]) assert.deepEqual(tombstones(roomOf(answers('aria', 'Tea.'), ...events)), [[1, 'aria']]);
});

test('a message is marked as refused until every model accepts it again', () => {
  const refused = asked => ({ message: 1, asked, model: 'm at here' });
  const room = roomOf(says('The film had a grenade in it.'));
  const now = event => fold(room, { seq: 9, at, ...event }, true);
  const isMarked = () => room.filtered.has(1);

  now({ event: 'filtered', ...refused('decision') });
  now({ event: 'filtered', ...refused('statement') });
  now({ event: 'unfiltered', ...refused('decision') });
  assert.ok(isMarked());
  const { version } = room.entries[0];
  now({ event: 'unfiltered', ...refused('statement') });
  assert.ok(!isMarked());
  assert.ok(room.entries[0].version > version, 'it is drawn again');

  fold(room, { event: 'hello', at, last: 9, state: { companions: [], late: [], filtered: [refused('decision')] } });
  assert.ok(isMarked());
  now({ event: 'edited', message: 1, text: 'The film was loud.' });
  assert.ok(!isMarked());
});
