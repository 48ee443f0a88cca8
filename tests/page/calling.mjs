// Whether a message calls a person by name. Run with `node --test tests/page/calling.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load } from './support/modules.mjs';

const { calls } = await load('calling.js');

const cases = (name, [yes, no]) => {
  for (const text of yes) assert.equal(calls(text, name), true, `${name}: ${text}`);
  for (const text of no) assert.equal(calls(text, name), false, `${name}: ${text}`);
};

test('a name calls as a word of its own, anywhere in the text', () => {
  cases('Ben', [
    ['Ben, are you there?', 'I think Ben is right', 'ask **Ben**', '(Ben)', 'thanks, Ben!', 'Ben’s idea', '_Ben_ said so'],
    ['Benjamin came', 'a Benz', 'ruBen', 'no name here', ''],
  ]);
});

test('case matters where nothing else shows that somebody is called', () => {
  cases('Will', [
    ['@will come', 'thanks, will', 'will, come', 'Ask Will'],
    ['I will go', 'what will be', 'as you will'],
  ]);
});

test('code, links, quoted lines and mail addresses call nobody', () => {
  cases('Ben', [
    ['`Ben` is code, Ben is not'],
    ['`Ben`', '```\nBen\n```', '> Ben said that\nYes', 'https://example.org/Ben', 'Ben@example.org', '  > Ben'],
  ]);
});

test('names of several words, with accents and with signs are found', () => {
  cases('Ana María', [['hello Ana  María', 'Ana Mari\u0301a, come'], ['Ana', 'María']]);
  cases('C++ (fan)', [['ask C++ (fan) now'], ['C++']]);
  cases('José', [['Jose\u0301 and I'], ['Joséphine']]);
});

test('scripts without spaces need none', () => {
  cases('アナ', [['アナさん、こんにちは'], ['こんにちは']]);
  cases('Ana', [['Anaさん、どう?'], ['Anastasia']]);
});

test('nobody has no name', () => cases('  ', [[], ['anything', '  ']]));

test('a long text takes no longer than a moment', () => {
  const begin = performance.now();
  for (const part of ['a', 'a@', '`', '```', '> ', 'http://', 'Ben', 'ア']) calls(part.repeat(40_000), 'Ana');
  assert.ok(performance.now() - begin < 2000, `${performance.now() - begin} ms`);
});
