// Who is here and who is typing, as the page knows it. Run with `node --test tests/page/presence.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

// Their words do not matter here.
await stub('texts.js', 'export const t = key => key; export const pieces = key => [key]; export const listed = all => all; export const has = () => true; export const LOCALE = "en"');
for (const name of ['storage.js', 'tones.js', 'dom.js', 'companion.js', 'round-state.js', 'platforms.js', 'loop-guard.js', 'entries.js', 'floor.js', 'state.js', 'words.js', 'happened.js', 'typing.js']) await load(name);
const { fold, newRoom } = await load('state.js');
const { gather, outcomes } = await load('happened.js');
const { typing } = await load('typing.js');

const at = '2026-11-26T10:00:00Z';
// A room as a guest sees it: without votes and counters.
function guestsRoom(...events) {
  const room = newRoom('kitchen');
  const hello = { event: 'hello', at, last: 0, state: { companions: ['aria', 'bruno'].map(id => ({ id, name: id, doing: 'listening', closing: 'none' })), late: [] } };
  for (const event of [hello, ...events.map((one, i) => ({ seq: i + 1, at, ...one }))]) fold(room, event);
  return room;
}

// A server that counts what it is told, and a clock.
function told() {
  const all = [];
  const clock = { now: 0 };
  return { all, clock, sign: typing((room, on) => all.push(`${clock.now} ${room} ${on}`), () => clock.now) };
}

test('typing is told at once and then every three seconds', () => {
  const { all, clock, sign } = told();
  for (; clock.now < 7000; clock.now += 500) sign.typed('kitchen', 'well');

  assert.deepEqual(all, ['0 kitchen true', '3000 kitchen true', '6000 kitchen true']);
});

test('who empties the field or sends is not typing any more, which is told once', () => {
  const { all, sign } = told();
  for (const text of ['', 'w', 'we', '  ', '', 'again', '']) sign.typed('kitchen', text);
  sign.stop();

  assert.deepEqual(all, ['0 kitchen true', '0 kitchen false', '0 kitchen true', '0 kitchen false']);
});

test('typing in another room ends it in this one', () => {
  const { all, sign } = told();
  sign.typed('kitchen', 'well');
  sign.typed('attic', 'well');

  assert.deepEqual(all, ['0 kitchen true', '0 kitchen false', '0 attic true']);
});

test('the people of a room are those that were told last', () => {
  const room = guestsRoom();
  const first = fold(room, { event: 'people', people: [{ name: 'Ana' }, { name: 'Ben', guest: true, typing: true }] });
  assert.deepEqual(first, ['people']);
  assert.deepEqual(room.people, [{ name: 'Ana', isGuest: false, isTyping: false }, { name: 'Ben', isGuest: true, isTyping: true }]);

  fold(room, { event: 'people', people: [null, { name: 7 }, { name: 'Ben', typing: 'yes' }] });
  assert.deepEqual(room.people, [{ name: 'Ben', isGuest: false, isTyping: false }]);
  fold(room, { event: 'people' });
  assert.deepEqual(room.people, []);
});

test('a guest, who sees no votes, sees who thinks and who speaks next', () => {
  const thinks = { event: 'evaluate', companion: 'aria', trigger: 'lull' };
  const wants = { event: 'decision', companion: 'aria', trigger: 'lull', decision: 'YES', reason: 'model_yes' };
  const doing = room => ['aria', 'bruno'].map(id => room.companions.get(id).doing);

  assert.deepEqual(doing(guestsRoom(thinks)), ['asked', 'listening']);
  assert.deepEqual(doing(guestsRoom(thinks, wants, { event: 'round', selected: 'aria' })), ['waiting_its_turn', 'listening']);
  // Who wanted to speak when this window was opened, and was not selected.
  const room = guestsRoom();
  room.companions.get('bruno').doing = 'wants_to_speak';
  fold(room, { event: 'round', seq: 9, at, selected: 'aria' });
  assert.deepEqual(doing(room), ['waiting_its_turn', 'listening']);
});

// A round as guests get it.
const round = more => ({ seq: 4, at, message_id: 1, phase: 'open', asked: ['aria', 'bruno'], answers: {}, selected: null, speaker: null, outcome: null, late: false, closed_at: null, ...more });

test('a guest, who sees no votes, sees of a round who thinks, who speaks next and who answered', () => {
  const answers = { aria: 5, bruno: 6 };
  const isOver = { answers, selected: 'bruno', speaker: 'bruno', closed_at: at };
  const decided = (companion, decision, reason) => ({ event: 'decision', companion, decision, reason, trigger: 'interjection' });
  const events = [
    { event: 'message', role: 'user', from: 'Ben', text: 'What now?' },
    ...['aria', 'bruno'].map(companion => ({ event: 'evaluate', companion, trigger: 'interjection' })),
    { event: 'round_opened', rounds: [round()] },
    { ...decided('aria', 'YES', 'model_yes'), rounds: [round({ answers: { aria: 5 } })] },
    { ...decided('bruno', 'YES', 'model_yes'), rounds: [round({ answers })] },
    { event: 'round', message_id: 1, selected: 'bruno', rounds: [round({ ...isOver, phase: 'waiting' })] },
    { event: 'respond', companion: 'bruno', ticket: 1, rounds: [round({ ...isOver, phase: 'speaking' })] },
    { event: 'statement', companion: 'bruno', ticket: 1, rounds: [round({ ...isOver, phase: 'over', outcome: 'posted' })] },
    { event: 'message', role: 'companion', from: 'bruno', name: 'Bruno', text: 'Tea.' },
  ];
  const doing = (...some) => ['aria', 'bruno'].map(id => guestsRoom(...some).companions.get(id).doing);

  assert.deepEqual(doing(...events.slice(0, 6)), ['wants_to_speak', 'wants_to_speak']);
  assert.deepEqual(doing(...events.slice(0, 7)), ['listening', 'waiting_its_turn']);
  const room = guestsRoom(...events);
  const behind = room.entries.filter(entry => entry.kind !== 'message' && !entry.round);
  assert.deepEqual(behind.map(({ kind, outcome, ballots }) => [kind, outcome, ...ballots.keys()]), [['round', 'posted', 'aria', 'bruno']]);
  gather(room);
  assert.deepEqual(outcomes(room, room.entries[0]).map(({ key, companion }) => [key, companion]), [['answered.interjection', 'bruno'], ['stayed_out.wanted', 'aria']]);
});

test('a guest gets what stands below a message from decisions alone', () => {
  const said = { event: 'message', role: 'user', from: 'Ben', text: 'Aria?' };
  const decided = (companion, decision, reason) => ({ event: 'decision', companion, decision, reason, trigger: 'direct_address' });
  const room = guestsRoom(said, decided('bruno', 'NO', 'other_addressed'), decided('aria', 'YES', 'model_yes'), { event: 'message', role: 'companion', from: 'aria', name: 'Aria', text: 'Yes?' });
  gather(room);

  assert.deepEqual(outcomes(room, room.entries[0]).map(({ key, companion }) => [key, companion]), [['answered.direct_address', 'aria'], ['stayed_out.meant', 'bruno']]);
});
