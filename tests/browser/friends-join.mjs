// The page to join: names, a second look at a link, operators, and links that lead nowhere.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { dialog, isLive, it, visit } from './support/friends.mjs';

test('a name is taken once, and nobody has that of a companion', async t => {
  const { link } = await visit(t, { companions: ['aria'] });
  const page = await it.open(t, null, { link });

  for (const taken of ['Aria', 'Ben', 'BEN']) {
    await page.locator('#join-name').fill(taken);
    await page.keyboard.press('Enter');
    await page.getByText(/The name is (a name of the companion|the name of somebody)/u).waitFor();
  }
  await page.locator('#join-name').fill('Cem');
  await page.keyboard.press('Enter');
  await isLive(page);
});

test('a guest who leaves is out, and comes back to the room with the link while still in it', async t => {
  const { host, link, ben } = await visit(t);
  await ben.goto(link);
  await ben.getByText('You are in this room already, as Ben.').waitFor();
  await ben.getByRole('link', { name: 'Open the room' }).click();
  await isLive(ben);

  await ben.locator('#more').click();
  await ben.getByRole('button', { name: 'Leave' }).click();
  await dialog(ben).locator('button.danger:enabled').click();

  await ben.getByRole('heading', { name: 'You have left' }).waitFor();
  await host.locator('#here', { hasNotText: 'Ben' }).waitFor();
});

test('an operator needs no invitation', async t => {
  const { room, host, link } = await visit(t);
  await host.goto(link);
  await host.getByText('You operate this server').waitFor();

  await host.getByRole('link', { name: 'Open the room' }).click();

  await host.locator(`.room[data-room=${room}][aria-current]`).waitFor();
});

test('a link that is full says so before a name is asked', async t => {
  const { link } = await visit(t);
  const page = await it.open(t, null, { link: `${it.server.url}/join` });
  await page.route('**/api/invitations/look', route => route.fulfill({ status: 409, json: { title: 'Conflict' } }));
  await page.goto(link);

  await page.getByText('This link has let in as many guests as it allows.').waitFor();
  assert.equal(await page.locator('#join-name').count(), 0);
});

test('a server that starts again is no end of a visit', async t => {
  const { ben } = await visit(t);
  await ben.route('**/api/visit', route => route.fulfill({ status: 503, json: {} }), { times: 1 });

  await ben.goto(`${it.server.url}/join?ended`);
  await ben.getByText('Connection lost').waitFor();
  await isLive(ben);

  await ben.context().clearCookies();
  await ben.goto(`${it.server.url}/join?ended`);
  await ben.getByRole('heading', { name: 'Your visit has ended' }).waitFor();
});

test('in demo mode a guest is told that no AI reads along', async t => {
  const { link, ben } = await visit(t, { companions: ['aria'] });
  const isDemo = async route => {
    const response = await route.fetch();
    return route.fulfill({ response, json: { ...(await response.json()), demo: true } });
  };
  const page = await it.open(t, null, { link: `${it.server.url}/join` });
  await page.route('**/api/invitations/look', isDemo);
  await page.goto(link);
  await page.getByText('Demo mode: no AI is connected').waitFor();
  assert.equal(await page.getByText('sent to the AI model').count(), 0);

  await ben.route('**/api/visit', isDemo);
  await ben.reload();
  await ben.locator('.welcome', { hasText: 'Demo mode' }).waitFor();
  // A call is offered once there are services for speech.
  await ben.route('**/voice', route => route.fulfill({ json: { recognition: { provider: 'ear', host: null }, fallbacks: [], recognises_words: true, synthesis: [{ provider: 'mouth', host: null }], people: [] } }));
  await ben.reload();
  await ben.locator('#voice').getByRole('button', { name: 'Talk' }).click();
  await dialog(ben).getByText('Demo mode').waitFor();
});

test('without a secret the page to join says what to do', async t => {
  const page = await it.open(t, null, { link: `${it.server.url}/join` });

  await page.getByRole('heading', { name: 'There is no such invitation' }).waitFor();
});
