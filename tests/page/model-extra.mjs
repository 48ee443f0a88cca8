// The form for experts in the dialog of the models. Run with `node --test tests/page/model-extra.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load } from './support/modules.mjs';

const { fieldsOf, jsonOf, linesOf, valuesOf } = await load('model-extra.js');

test('a secret in use is a name without a value, and stays so', () => {
  const shown = { 'x-gateway-key': null, 'api-version': '2025-01-01' };

  assert.equal(linesOf(shown), 'x-gateway-key:\napi-version: 2025-01-01');
  assert.deepEqual(valuesOf(linesOf(shown)), shown);
  assert.equal(linesOf(undefined), '');
});

test('values may have colons and equals signs, and lines may be empty', () => {
  assert.deepEqual(valuesOf('\n  x-key : abc==\n\nHTTP-Referer: https://example.org/a?b=c\napi-version=2025-01-01\r\nx-kept\n'), {
    'x-key': 'abc==',
    'HTTP-Referer': 'https://example.org/a?b=c',
    'api-version': '2025-01-01',
    'x-kept': null,
  });
});

test('fields are a JSON object or nothing', () => {
  const fields = { chat_template_kwargs: { enable_thinking: false }, reasoning_effort: 'low' };

  assert.deepEqual(fieldsOf(jsonOf(fields)), fields);
  assert.equal(jsonOf({}), '');
  assert.deepEqual(fieldsOf(' \n'), {});
  for (const wrong of ['{', '[1]', '"low"', 'null', 'reasoning_effort: low']) assert.equal(fieldsOf(wrong), null, wrong);
});
