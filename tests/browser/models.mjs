// A model is connected on the page, its trouble is said in the talk, and its Markdown is drawn.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startModel } from './support/model.mjs';
import { startServer } from './support/server.mjs';
import { openMenu, texts, until, world } from './support/world.mjs';

const KEY = 'sk-right';
const STATEMENT = 'Take **tea** with `honey`:\n\n- black\n- [green](https://tea.example/)\n- [no](javascript:alert(1))\n\n```js\nlet a = "<b>";\n```\n<img src=x onerror="document.title=\'hacked\'"> see https://rain.example/a?b=1.';

const it = world();
let model = null;
before(async () => {
  model = await startModel({ key: KEY, statement: STATEMENT });
});
after(() => model.stop());

async function connect(page, key, url = model.url) {
  await page.locator('dialog form.connect').waitFor();
  await page.locator('[name=base_url]').fill(url);
  if (key !== null) await page.locator('[name=api_key]').fill(key);
  await page.locator('[name=model]').fill('large');
}

test('a wrong key is said in the talk at once, is mended on the page, and is never shown', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.getByText('companions speak in ready-made sentences').waitFor();
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, 'sk-wrong');
  await page.getByRole('button', { name: 'Show models' }).click();
  await page.locator('.result .danger', { hasText: 'rejected' }).waitFor();
  // What was not tested is tested first.
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.locator('.result .failure', { hasText: 'The API key was rejected' }).waitFor();
  assert.equal((await it.server.call('GET', '/api/models')).source, 'rehearsal');
  await page.getByRole('button', { name: 'Connect anyway' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });

  await it.server.say(room, 'Aria, what helps against rain?');

  await page.locator('#model-trouble', { hasText: 'Aria can’t answer: the API key was rejected.' }).waitFor();
  await page.locator('#model.failing', { hasText: 'The API key was rejected' }).waitFor({ state: 'attached' });
  await page.locator('.missing, .line.error', { hasText: 'the API key was rejected' }).first().waitFor();

  await page.locator('#model-trouble button').click();
  await connect(page, KEY);
  await page.locator('dialog .troubles .failure').waitFor();
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.tried li', { hasText: 'Answers work' }).waitFor();
  // What was wrong before does not stand beside a good test.
  await page.locator('dialog .troubles .failure').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await until(page, () => document.querySelector('#model').textContent === 'AI: large');
  await page.locator('#model-trouble').waitFor({ state: 'hidden' });
  assert.equal((await page.content()).includes(KEY), false);

  await it.server.say(room, 'Aria, are you there?');
  await page.locator('.companion:not(.draft) .rich').first().waitFor();
  assert.deepEqual(await texts(page.locator('.companion:not(.draft) .rich').first().locator('li')), ['black', 'green', '[no](javascript:alert(1))']);
  assert.deepEqual(await page.locator('.companion:not(.draft) .rich').first().locator('a').evaluateAll(all => all.map(one => one.href)), ['https://tea.example/', 'https://rain.example/a?b=1']);
  assert.equal(await page.locator('.companion:not(.draft) .rich').first().locator('pre').textContent(), 'let a = "<b>";');
  assert.equal(await page.locator('.companion .rich img').count(), 0);
  assert.match(await page.locator('.companion:not(.draft) .rich').first().textContent(), /<img src=x/u);
  assert.notEqual(await page.title(), 'hacked');
});

test('another address asks for the key again, and disconnecting leads back to rehearsal', async t => {
  const other = await startModel({ statement: 'Hello.' });
  t.after(() => other.stop());
  await it.server.call('PUT', '/api/models', { base_url: model.url, api_key: KEY, main: { model: 'large' } });
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openMenu(page);
  await page.locator('#model', { hasText: 'large' }).click();
  await connect(page, null, other.url);
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.result .danger', { hasText: 'The API key is needed' }).waitFor();
  assert.equal(await page.locator('[name=api_key]').inputValue(), '');
  await page.getByText('This server needs no key').click();
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.tried li', { hasText: 'Answers work' }).waitFor();
  assert.deepEqual([...other.keys], []);
  await page.getByRole('button', { name: 'Disconnect' }).click();

  await page.locator('#model', { hasText: 'Demo mode' }).waitFor({ state: 'attached' });
  assert.equal((await it.server.call('GET', '/api/models')).source, 'rehearsal');
});

test('a model that does not follow the format of decisions is named', async t => {
  const vague = await startModel({ decision: 'Well, who can say?', statement: 'Hello.' });
  t.after(() => vague.stop());
  await it.server.call('PUT', '/api/models', { base_url: vague.url, api_key: '', main: { model: 'large' } });
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();

  await it.server.say(room, 'Aria, are you there?');

  await page.locator('#model-trouble', { hasText: 'gave no clear yes or no' }).waitFor();
  await it.server.call('DELETE', '/api/models');
});

test('Stop also ends the call of the model', async t => {
  const model = await startModel({});
  t.after(() => model.stop());
  t.after(() => it.server.call('DELETE', '/api/models'));
  await it.server.call('PUT', '/api/models', { base_url: model.url, main: { model: 'large' }, side: { model: 'small' } });
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await it.server.say(room, 'Aria, are you there?');

  await page.getByRole('button', { name: 'Stop Aria' }).click();

  await page.locator('.line', { hasText: 'Aria stopped: somebody pressed Stop' }).waitFor();
  await model.abandoned();
  assert.equal(await page.locator('.draft').count(), 0);
});

test('connecting after a failed test asks first, and a change after a good one is said not to be tested', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, 'sk-wrong');
  const testButton = page.getByRole('button', { name: 'Test', exact: true });
  await testButton.click();
  await page.locator('.result .failure').waitFor();

  const failed = await page.locator('.result').textContent();
  assert.equal(failed.match(/\b401\b/gu).length, 1, failed);
  assert.match(failed, /^The API key was rejected\. Type the key for this address again/u);
  assert.doesNotMatch(failed, /sk-wrong/u);
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByText('The test failed: the API key was rejected. Connect anyway?').waitFor();
  assert.equal((await it.server.call('GET', '/api/models')).source, 'rehearsal');

  await page.locator('[name=api_key]').fill(KEY);
  await page.getByText('You changed something. Test again.').waitFor();
  await testButton.click();
  await page.locator('.tried li', { hasText: 'Answers work' }).waitFor();
  assert.equal(await page.locator('.result .failure, .result > .danger').count(), 0);
  await page.getByRole('button', { name: 'Show models' }).click();
  await page.getByText('2 models. Choose one:').waitFor();
  await page.getByRole('button', { name: 'small', exact: true }).click();
  await page.getByText('You changed something. Test again.').waitFor();
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.locator('#model', { hasText: 'small' }).waitFor({ state: 'attached' });
  await it.server.call('DELETE', '/api/models');
});

test('a failed test may be connected anyway, and an old error is gone while a new test runs', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, 'sk-wrong');
  const testButton = page.getByRole('button', { name: 'Test', exact: true });
  await testButton.click();
  await page.locator('.result .failure').waitFor();
  let answer = null;
  const answered = new Promise(done => {
    answer = done;
  });
  await page.route('**/api/models/try', async route => {
    await answered;
    await route.continue();
  });
  await testButton.click();
  await page.locator('button:disabled', { hasText: 'Test…' }).waitFor();
  assert.equal(await page.locator('.result').textContent(), '');
  answer();
  await page.locator('.result .failure').waitFor();

  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByRole('button', { name: 'Connect anyway' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });

  assert.equal((await it.server.call('GET', '/api/models')).source, 'page');
  await it.server.call('DELETE', '/api/models');
});

test('a key that is set on the server and belongs to no address is used only if that is chosen', async t => {
  const server = await startServer({ TERTULIA__MODELS__MAIN__API_KEY: KEY });
  t.after(() => server.stop());
  const page = await it.open(t);
  await page.goto(server.url);
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, null);
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.result .danger', { hasText: 'say whether the key of the settings is meant for this server' }).waitFor();
  await page.getByText('Use the key that is set on the server').click();
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.tried li', { hasText: 'Answers work' }).waitFor();
  await page.getByText('This server needs no key').click();
  assert.equal(await page.getByLabel('Use the key that is set on the server').isChecked(), false);
  await page.getByText('Use the key that is set on the server').click();
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.locator('#model', { hasText: 'large' }).waitFor({ state: 'attached' });

  const shown = await server.call('GET', '/api/models');
  assert.deepEqual([shown.source, shown.has_key, JSON.stringify(shown).includes(KEY)], ['page', true, false]);
});

test('an address and a key are taken as they are copied, and what is wrong with them is said in the words of the page', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openMenu(page);
  await page.locator('#model').click();
  const show = page.getByRole('button', { name: 'Show models' });
  const address = page.locator('[name=base_url]');

  // Without its beginning, with the end of a request, and with a space after the key.
  await address.fill(model.url.replace('http://', '') + '/chat/completions');
  await page.locator('[name=api_key]').fill(`${KEY} `);
  await show.click();
  await page.getByText('2 models. Choose one:').waitFor();
  assert.equal(await address.inputValue(), model.url);

  await address.fill('models.example/v1');
  await page.locator('[name=api_key]').focus();
  assert.equal(await address.inputValue(), 'https://models.example/v1');

  await address.fill('http://127.0.0.1:9/v1');
  await show.click();
  await page.locator('.result .danger', { hasText: 'Check that the AI service runs' }).waitFor();
});

test('while a model is tested the seconds count, and a slow one is given more time, which is kept', async t => {
  const slow = await startModel({ statement: 'Hello.' });
  t.after(() => slow.stop());
  t.after(() => it.server.call('DELETE', '/api/models'));
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, null, slow.url);
  let timeOut = null;
  const timedOut = new Promise(done => {
    timeOut = done;
  });
  const tries = [];
  // The first test ends as if the model had not answered in time.
  await page.route('**/api/models/try', async route => {
    tries.push(route.request().postDataJSON());
    if (tries.length > 1) return route.continue();
    await timedOut;
    const tried = { model: 'large', works: false, detail: 'no answer within 12s', secs: 12, input_tokens: 0, output_tokens: 0 };
    return route.fulfill({ json: { decision: { ...tried, error: 'timeout' }, statement: { ...tried, error: 'cancelled' } } });
  });
  await page.clock.install();
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.locator('.waiting', { hasText: /^Still waiting: [01] s of 15 s$/u }).waitFor();
  await page.clock.runFor(11_000);
  await page.locator('.waiting', { hasText: /^Still waiting: 1[12] s of 15 s$/u }).waitFor();
  await page.clock.runFor(8_000);
  // The decision is there by now, or the test would be over: a statement is awaited.
  await page.locator('.waiting', { hasText: / s of 135 s$/u }).waitFor();
  timeOut();
  await page.locator('.result .failure', { hasText: 'No answer came in time' }).waitFor();
  assert.equal(await page.locator('.waiting').textContent(), '');

  await page.getByRole('button', { name: 'Give it 60 s' }).click();

  await page.locator('.tried li', { hasText: 'Decisions work' }).waitFor();
  assert.deepEqual(tries.map(({ timeout_secs, short_decisions }) => [timeout_secs, short_decisions]), [[undefined, undefined], [60, true]]);
  assert.equal(await page.getByLabel('Seconds for a decision').inputValue(), '60');
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.locator('#model', { hasText: 'large' }).waitFor({ state: 'attached' });
  const { timeout_secs, short_decisions, side, main } = await it.server.call('GET', '/api/models');
  assert.deepEqual([timeout_secs, short_decisions, side.timeout_secs, main.timeout_secs], [60, true, 60, 120]);
});

test('limits of the settings are named, and no more time is offered', async t => {
  const limits = Object.fromEntries(['TIMEOUT_SECS', 'FIRST_TOKEN_TIMEOUT_SECS', 'IDLE_TIMEOUT_SECS'].map(key => [`TERTULIA__MODELS__MAIN__${key}`, '0.5']));
  const server = await startServer(limits);
  t.after(() => server.stop());
  const silent = await startModel({});
  t.after(() => silent.stop());
  const page = await it.open(t);
  await page.goto(server.url);
  await openMenu(page);
  await page.locator('#model').click();
  await connect(page, null, silent.url);

  await page.getByRole('button', { name: 'Test', exact: true }).click();

  await page.locator('.result', { hasText: 'The settings limit how long the AI may take: models.main.first_token_timeout_secs (TERTULIA__MODELS__MAIN__FIRST_TOKEN_TIMEOUT_SECS)' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /Give it/u }).count(), 0);
  assert.equal(await page.locator('[name=timeout_secs]').isDisabled(), true);
});
