// The line below a message, and what is shown in the places of deleted ones. Run with `node --test tests/page/happened.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

await stub('texts.js', 'export const t = key => key; export const pieces = key => [key]; export const listed = all => all; export const has = () => true; export const LOCALE = "en"');
for (const name of ['storage.js', 'tones.js', 'dom.js', 'companion.js', 'round-state.js', 'platforms.js', 'loop-guard.js', 'entries.js', 'floor.js', 'state.js', 'words.js']) await load(name);
const { addPage, fold, newRoom } = await load('state.js');
const { gather, happened, outcomes } = await load('happened.js');
await load('calling.js');
const { announcement } = await load('announcements.js');

const at = '2026-11-26T10:00:00Z';
const says = (text, from = 'Ana', more = {}) => ({ event: 'message', role: 'user', from, text, ...more });
const answers = (from, text, more = {}) => says(text, from, { role: 'companion', ...more });
const yes = (companion, trigger, ...messages) => ({ event: 'decision', companion, trigger, decision: 'YES', reason: 'model_yes', messages });
const stays = (companion, reason, ...messages) => ({ event: 'decision', companion, trigger: 'lull', decision: 'NO', reason, messages });
const fails = companion => ({ event: 'error', companion, error: 'timeout', retry_at: at });

function roomOf(...events) {
  const room = newRoom('kitchen');
  const companions = ['aria', 'bruno', 'cleo', 'dario'].map(id => ({ id, name: id[0].toUpperCase() + id.slice(1), doing: 'listening', closing: 'none' }));
  for (const event of [{ event: 'hello', at, last: 0, state: { companions, late: [] } }, ...events.map((one, i) => ({ seq: i + 1, at, ...one }))]) fold(room, event);
  gather(room);
  return room;
}

const message = (room, text) => room.entries.findLast(entry => entry.kind === 'message' && entry.text === text);
// What each companion did with a message.
const rows = (room, text) => outcomes(room, message(room, text)).map(({ companion, key }) => [companion, key]);
// What stands below it.
function line(room, text) {
  const shown = happened(room, message(room, text));
  const ids = some => some?.map(({ companion }) => companion).join() ?? '';
  return shown && { answered: ids(shown.answered), others: shown.others ?? 0, unable: ids(shown.unable), ...(shown.isNobody ? { isNobody: true } : {}), ...(shown.waits?.length ? { waits: ids(shown.waits) } : {}), ...(shown.isPaused ? { isPaused: true } : {}) };
}

test('a decision stands below the message that it was about, not below the newest one', () => {
  const asked = 'Aria, Bruno and Cleo: what do you think of each other?';
  const room = roomOf(says(asked), answers('aria', 'Bruno, you first.'), says('Well, good evening everybody.'), stays('dario', 'other_addressed', asked));

  assert.deepEqual(rows(room, asked), [['dario', 'stayed_out.meant']]);
  assert.deepEqual(rows(room, 'Well, good evening everybody.'), []);
});

test('who was meant is not said where the message names nobody', () => {
  const room = roomOf(says('Good evening everybody.'), stays('dario', 'other_addressed', 'Good evening everybody.'));

  assert.deepEqual(rows(room, 'Good evening everybody.'), [['dario', 'stayed_out.other_addressed']]);
});

test('a companion stands in one line with one reason', () => {
  const room = roomOf(says('Hello.'), stays('bruno', 'other_addressed', 'Hello.'), stays('bruno', 'model_no', 'Hello.'), yes('aria', 'turn', 'Hello.'), answers('aria', 'Hi.'));

  assert.deepEqual(rows(room, 'Hello.'), [['aria', 'answered.turn'], ['bruno', 'stayed_out.model_no']]);
});

test('an answer that follows at once needs no line, one behind another message does', () => {
  const room = roomOf(says('Aria, hello.'), yes('aria', 'direct_address', 'Aria, hello.'), answers('aria', 'Hi.'), says('Bruno?'), yes('bruno', 'direct_address', 'Bruno?'), says('The ferry is late.', 'Ben'), answers('bruno', 'Yes?'));

  assert.equal(line(room, 'Aria, hello.'), null);
  assert.deepEqual(line(room, 'Bruno?'), { answered: 'bruno', others: 0, unable: '' });
});

test('others are counted, and where nobody answered that is said', () => {
  const room = roomOf(says('Aria, hello.'), yes('aria', 'direct_address', 'Aria, hello.'), stays('bruno', 'model_no', 'Aria, hello.'), stays('cleo', 'model_no', 'Aria, hello.'), answers('aria', 'Hi.'), says('Anybody?'), stays('bruno', 'model_no', 'Anybody?'), stays('cleo', 'closed', 'Anybody?'));

  assert.deepEqual(line(room, 'Aria, hello.'), { answered: '', others: 2, unable: '' });
  assert.deepEqual(line(room, 'Anybody?'), { answered: '', others: 0, unable: '', isNobody: true });
});

test('a wish that was outvoted and renewed counts as the answer that came of it', () => {
  const room = roomOf(says('Bruno and Cleo?'), yes('bruno', 'direct_address', 'Bruno and Cleo?'), yes('cleo', 'direct_address', 'Bruno and Cleo?'), answers('bruno', 'Tea.'), yes('cleo', 'direct_address', 'Bruno and Cleo?', 'Tea.'), answers('cleo', 'Coffee.'));

  assert.deepEqual(rows(room, 'Bruno and Cleo?'), [['bruno', 'answered.direct_address'], ['cleo', 'answered.direct_address']]);
  assert.deepEqual(message(room, 'Coffee.').wish.seq, 5);
});

test('below what a companion said stands only who could not answer, and that they wait as long as it is the last word', () => {
  const guard = ['bruno', 'cleo'].map(companion => stays(companion, 'loop_guard', 'Tea.'));
  const room = roomOf(says('Hello.'), answers('aria', 'Tea.'), ...guard);
  assert.deepEqual(line(room, 'Tea.'), { answered: '', others: 0, unable: '', waits: 'bruno,cleo' });

  assert.equal(line(roomOf(says('Hello.'), answers('aria', 'Tea.'), ...guard, says('Right.')), 'Tea.'), null);
  assert.equal(line(roomOf(answers('aria', 'Tea.'), stays('bruno', 'model_no', 'Tea.')), 'Tea.'), null);
});

test('a failed question is told until another one says what came of it', () => {
  const failed = [says('Hello.'), stays('cleo', 'model_no', 'Hello.'), fails('bruno')];
  const room = roomOf(...failed, says('And good evening.', 'Ben'), fails('bruno'));
  assert.deepEqual(line(room, 'Hello.'), { answered: '', others: 0, unable: 'bruno' });
  assert.deepEqual(rows(room, 'And good evening.'), []);

  const later = roomOf(...failed, says('And good evening.', 'Ben'), yes('bruno', 'lull', 'Hello.', 'And good evening.'), answers('bruno', 'Good evening.'));
  assert.deepEqual(rows(later, 'Hello.'), [['cleo', 'stayed_out.model_no']]);
  assert.deepEqual(rows(later, 'And good evening.'), [['bruno', 'answered.lull']]);
});

test('limits and a model that cannot decide are no silence, also where the reason is not told', () => {
  for (const reason of ['budget', 'unreadable', 'unavailable']) {
    const room = roomOf(says('Hello.'), stays('bruno', reason, 'Hello.'), stays('cleo', 'model_no', 'Hello.'));

    assert.deepEqual(line(room, 'Hello.'), { answered: '', others: 0, unable: 'bruno' }, reason);
  }
});

test('nothing is said of a deleted message', () => {
  const room = roomOf(answers('bruno', 'Aria, are you there?'), says('Aria, hello.'), yes('aria', 'direct_address', 'Aria, hello.'), stays('cleo', 'other_addressed', 'Aria, hello.'));
  fold(room, { event: 'deleted', seq: 5, at, messages: [2] });
  gather(room);

  assert.deepEqual(rows(room, 'Aria, are you there?'), []);
});

test('where all are paused, it is said below the last message', () => {
  const room = roomOf({ event: 'paused', paused: true }, says('Hello?'), says('Anybody?'), { event: 'paused', paused: false }, says('Ah.'));

  assert.equal(line(room, 'Hello?'), null);
  assert.equal(line(room, 'Anybody?').isPaused, true);
  assert.equal(line(room, 'Ah.'), null);
});

test('a decision that comes while the companion is already answering is about what it read, too', () => {
  const again = [{ event: 'respond', companion: 'aria', ticket: 1 }, says('And the ferry?', 'Ben'), { event: 'replanning', companion: 'aria', ticket: 1, message: 4, until: at }, { event: 'replanned', companion: 'aria', ticket: 2, replaces: 1, messages: [] }];
  const room = roomOf(says('Aria, hello.'), yes('aria', 'direct_address', 'Aria, hello.'), ...again, answers('aria', 'Hi, and it is late.'));

  assert.deepEqual(rows(room, 'And the ferry?'), [['aria', 'answered.replan']]);
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

test('a reminder that is due is announced in its own words, by and to nobody', () => {
  const due = { ...says('Reminder for Ana: eat', 'Ana'), kind: 'reminder' };

  assert.equal(announcement(roomOf(due), due, 'Ana'), 'Reminder for Ana: eat');
  assert.match(announcement(roomOf(due), says('Ana, tea?', 'Ben'), 'Ana'), /said_to/u);
});

test('who speaks after a long silence answers nobody', () => {
  const room = roomOf(says('Good night.', 'Ben'), stays('bruno', 'model_no', 'Good night.'), yes('bruno', 'silence'), answers('bruno', 'Who is awake?'));

  assert.deepEqual(rows(room, 'Good night.'), [['bruno', 'stayed_out.model_no']]);
});
