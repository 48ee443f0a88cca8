// Settings are made on the page: a limit, who runs the server, and a service for speech that is tried first.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { openMenu, world } from './support/world.mjs';

const it = world();

const openSettings = async (page, part) => {
  await openMenu(page);
  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  await page.getByRole('button', { name: part, exact: true }).click();
};
const field = (page, key) => page.locator(`dialog [name="${key}"]`);
const saved = page => page.getByText('Saved, and in force.').waitFor();

test('a limit that is set on the page is said in the head when it is used up, and is changed there', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  await openSettings(page, 'Limits and prices');
  await field(page, 'models.guild_tokens_per_day').fill('-3');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('label.field .danger', { hasText: '0 or more' }).waitFor();
  await field(page, 'models.guild_tokens_per_day').fill('200,000');
  await field(page, 'gate.guild_statements_per_day').fill('0');
  await page.getByRole('button', { name: 'Save' }).click();
  await saved(page);
  await page.keyboard.press('Escape');

  await it.server.say(room, 'Aria, are you there?');

  await page.locator('#used-up', { hasText: 'Answers' }).click();
  await field(page, 'gate.guild_statements_per_day').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await saved(page);
  assert.equal(await field(page, 'gate.guild_statements_per_day').inputValue(), '5000');
  await page.keyboard.press('Escape');
  await it.server.say(room, 'Aria, and now?');
  await page.locator('.companion:not(.draft) .rich').first().waitFor();
});

test('votes together are proposed in the settings, and not in the form of a new room', async t => {
  const page = await it.open(t, 'lobby');
  await page.route('**/api/companions', async route => {
    const response = await route.fetch();
    const { companions, ...others } = await response.json();
    await route.fulfill({ response, json: { ...others, companions: [...companions, ...[1, 2, 3, 4].map(number => ({ ...companions[0], id: `more${number}`, name: `More ${number}` }))] } });
  });
  await page.getByRole('button', { name: '+ New room' }).click();
  const form = page.locator('form', { has: page.locator('#new-room-title') });
  await form.locator('input:checked').nth(3).waitFor();
  assert.doesNotMatch(await form.textContent(), /turn_taking/u);
  await page.getByRole('button', { name: 'Cancel' }).click();

  await openSettings(page, 'Limits and prices');

  await page.locator('dialog p', { hasText: 'turn_taking.voting' }).waitFor();
});

test('a service for speech is tried before it is kept, its key is never shown, and what cannot be is named at its field', async t => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    request.resume().on('end', () => response.writeHead(401, { 'content-type': 'application/json' }).end('{"error": {"message": "Incorrect API key"}}'));
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  t.after(() => new Promise(done => server.close(done).closeAllConnections()));
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openSettings(page, 'Voice');
  await field(page, 'speech.synthesis').selectOption('openai');
  await field(page, 'speech.services.page_voice.base_url').fill(`http://127.0.0.1:${server.address().port}/v1`);
  await field(page, 'speech.services.page_voice.api_key').fill('sk-secret');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.settings .danger', { hasText: 'AI model' }).waitFor();
  await field(page, 'speech.services.page_voice.model').fill('tts-1');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.settings .tried .danger', { hasText: 'Voice' }).waitFor();
  assert.ok(asked.length > 0);
  assert.equal((await it.server.call('GET', '/api/settings')).fields['speech.synthesis'].value, 'rehearsal');
  await page.getByRole('button', { name: 'Keep it anyway' }).click();
  await saved(page);
  const kept = await it.server.call('GET', '/api/settings');
  assert.equal(kept.fields['speech.synthesis'].value, 'page_voice');
  assert.equal(JSON.stringify(kept).includes('sk-secret') || (await page.content()).includes('sk-secret'), false);
  await field(page, 'speech.synthesis').selectOption('');
  await page.getByRole('button', { name: 'Save' }).click();
  await saved(page);
  assert.equal((await it.server.call('GET', '/api/settings')).fields['speech.synthesis'].value, 'rehearsal');
});

test('who runs the server and the time zone are set, and a wrong address is named', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await openSettings(page, 'General');
  await field(page, 'safety.operator').fill('The Book Club');
  await field(page, 'safety.privacy').fill('club.example');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('label.field:has([name="safety.privacy"]) .danger', { hasText: 'privacy text' }).waitFor();
  // What is typed is not lost with another part, nor with the dialog.
  for (const leave of [() => page.getByRole('button', { name: 'Voice', exact: true }).click(), () => page.keyboard.press('Escape')]) {
    await leave();
    await page.getByRole('button', { name: 'Keep editing' }).click();
  }
  await field(page, 'safety.privacy').fill('https://club.example/privacy');
  await page.getByRole('button', { name: /^Take time zone/ }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await saved(page);
  const { fields } = await it.server.call('GET', '/api/settings');
  assert.equal(fields['safety.operator'].value, 'The Book Club');
  assert.ok(fields['prompt.time_zone'].value);
  if (process.env.SCREENSHOTS) {
    for (const part of ['Voice', 'Discord', 'Limits and prices', 'General']) {
      await page.getByRole('button', { name: part, exact: true }).click();
      await page.waitForTimeout(300);
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/${part.split(' ')[0]}.png` });
    }
  }
});

test('Back from the models leads to the settings', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { storage: { decisions: undefined } });
  await openSettings(page, 'General');
  await page.getByRole('button', { name: 'Models', exact: true }).click();
  await page.locator('dialog[open]', { hasText: 'Connect an AI' }).waitFor();

  await page.keyboard.press('Escape');

  await page.getByRole('button', { name: 'General', exact: true, pressed: true }).waitFor();
  // While companions can answer, nothing is read about why not.
  assert.equal(await page.locator('#model-trouble').getAttribute('aria-label'), 'Models');
});
