// What the page knows of a voice call. Run with `node --test tests/page/*.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const source = await readFile(new URL('../../src/adapters/console/page/voice-call.js', import.meta.url), 'utf8');
const { MOST_ECHOES, audible, fold, isQuiet, newCall, posted, shownCaptions, shownTrouble } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const person = (user, more = {}) => ({ user, muted: false, listening: false, ignored: false, talking: false, ...more });
const caption = (user, text, isFinal = true, kind = 'words') => ({ type: 'caption', user, text, is_final: isFinal, kind });
const speaking = (reply, from = 0) => ({ type: 'speaking', companion: 'aria', reply, from });
const sentence = (reply, from, text) => ({ type: 'sentence', reply, from, text });

function callWith(...messages) {
  const call = newCall();
  for (const message of [{ type: 'hello', you: 'Ana', people: [person('Ana'), person('Ben')] }, ...messages]) fold(call, message, 0);
  return call;
}
const texts = (call, now = 1) => shownCaptions(call, now).map(line => line.text);

test('a caption replaces the last one of that person that was not final', () => {
  const call = callWith(caption('Ana', 'aria', false), caption('Ben', 'well', false), caption('Ana', 'aria what', false), caption('Ana', 'Aria, what?'), caption('Ana', 'and', false));

  assert.deepEqual(texts(call), ['well', 'Aria, what?', 'and']);
});

test('captions are bounded, and noise goes soon', () => {
  const call = callWith(...Array.from({ length: 20 }, (_, at) => caption('Ana', `${at}`)), caption('Ben', 'uh', true, 'noise'));

  assert.equal(texts(call).length, 6);
  assert.ok(texts(call).includes('uh') && !texts(call, 7000).includes('uh') && texts(call, 7000).includes('19'));
  assert.deepEqual(texts(call, 40_000), []);
});

test('noise pushes no words out', () => {
  const call = callWith(caption('Ana', 'Aria, what?'), ...Array.from({ length: 20 }, (_, at) => caption('Ben', `(speech, 0.${at} s)`, true, 'noise')));

  assert.deepEqual(texts(call), ['Aria, what?', '(speech, 0.19 s)']);
});

test('a companion that speaks quietly again and again is shown as quiet', () => {
  const call = callWith(speaking(1));
  assert.equal(isQuiet(call.reply, 0), false);
  fold(call, { type: 'duck', reply: 1, on: true }, 1000);
  fold(call, { type: 'duck', reply: 1, on: false }, 1200);

  assert.equal(isQuiet(call.reply, 1300), true);
  assert.equal(isQuiet(call.reply, 2300), false);
});

test('a message in the conversation takes the place of its captions', () => {
  const call = callWith(caption('Ana', 'Aria, what?'), caption('Ana', 'and', false), caption('Ben', 'Right.'));

  posted(call, { from: 'Ana', role: 'user' });

  assert.deepEqual(texts(call), ['and', 'Right.']);
});

test('a companion is thinking until it is heard', () => {
  const call = callWith({ type: 'thinking', companion: 'aria', on: true }, speaking(1));
  assert.ok(call.thinking.has('aria') && !call.reply.isAudible);

  audible(call, 1);

  assert.ok(!call.thinking.has('aria') && call.reply.isAudible);
});

test('a sentence is shown once it is played', () => {
  const call = callWith(speaking(1), sentence(1, 0, 'One.'), sentence(1, 96_000, 'Two.'));
  assert.deepEqual(texts(call), []);

  audible(call, 1);
  assert.deepEqual(texts(call), ['One.']);

  call.reply.position = 96_000;
  assert.deepEqual(texts(call), ['One.', 'Two.']);
});

test('a reply that is cut shows what was heard', () => {
  const call = callWith(speaking(1), sentence(1, 0, 'One.'), sentence(1, 96_000, 'Two.'), { type: 'cut', reply: 1, heard: 'One' });

  assert.equal(call.reply, null);
  assert.deepEqual(shownCaptions(call, 1).map(({ who, text, cut }) => [who, text, cut]), [['aria', 'One', true]]);
});

test('what is told of another reply changes nothing', () => {
  const call = callWith(speaking(2), { type: 'duck', reply: 1, on: true }, { type: 'flush', reply: 1 }, { type: 'done', reply: 1 }, sentence(1, 0, 'Late.'));

  audible(call, 1);

  assert.deepEqual(call.reply, { id: 2, companion: 'aria', ducked: false, duckedAt: -Infinity, paused: false, isAudible: false, position: 0 });
  assert.deepEqual(texts(call), []);
});

test('a reply is ducked, pauses and goes on', () => {
  const call = callWith(speaking(1), { type: 'duck', reply: 1, on: true }, { type: 'flush', reply: 1 });
  assert.deepEqual([call.reply.ducked, call.reply.paused], [true, true]);

  fold(call, { type: 'resume', reply: 1, from: 960 }, 0);

  assert.deepEqual([call.reply.ducked, call.reply.paused], [false, false]);
});

test('a new connection forgets what went on, and keeps what was said', () => {
  const call = callWith(caption('Ana', 'Hello.'), caption('Ben', 'we', false), { type: 'thinking', companion: 'aria', on: true }, speaking(1));

  fold(call, { type: 'hello', you: 'Ana', people: [person('Ana')] }, 0);

  assert.deepEqual([texts(call), call.thinking.size, call.reply, [...call.people.keys()]], [['Hello.'], 0, null, ['Ana']]);
});

test('people come, change, talk and go', () => {
  const call = callWith({ type: 'joined', ...person('Cleo') }, { type: 'changed', ...person('Cleo', { muted: true }) }, { type: 'talking', user: 'Ben', on: true }, { type: 'noise', user: 'Ben' }, { type: 'left', user: 'Ana' }, { type: 'talking', user: 'Nobody', on: true });

  assert.deepEqual([...call.people.values()], [person('Ben', { talking: true }), person('Cleo', { muted: true })]);
  assert.ok(call.noisy.has('Ben'));

  fold(call, { type: 'talking', user: 'Ben', on: false }, 0);
  assert.ok(!call.noisy.has('Ben'));
});

test('only echoes of the own microphone are counted', () => {
  const echo = user => caption(user, 'the cranes', true, 'echo');
  const call = callWith(echo('Ben'), ...Array.from({ length: MOST_ECHOES }, () => echo('Ana')));

  assert.equal(call.echoes, MOST_ECHOES);
});

test('a trouble goes after a while, and once the own words are recognised', () => {
  const trouble = { type: 'error', code: 'recognition_failed', fix: 'Try again.', why: { code: 'other', text: 'Try again.' } };
  const call = callWith(trouble);
  assert.equal(shownTrouble(call, 29_000).fix, 'Try again.');
  assert.equal(shownTrouble(call, 30_000), null);

  for (const other of [caption('Ben', 'Well.'), caption('Ana', 'Aria', false), caption('Ana', 'uh', true, 'noise')]) fold(call, other, 0);
  assert.ok(shownTrouble(call, 1));
  fold(call, caption('Ana', 'Aria, what?'), 0);
  assert.equal(shownTrouble(call, 1), null);
});
