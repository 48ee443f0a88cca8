// The page to join: names, a second look at a link, operators, and links that lead nowhere.

import { test } from 'node:test';

import { dialog, isLive, it, visit } from './support/friends.mjs';

test('a name is taken once, and nobody has that of a companion', async t => {
  const { link } = await visit(t, { companions: ['aria'] });
  const page = await it.open(t, null, { link });

  for (const taken of ['Aria', 'Ben', 'BEN']) {
    await page.locator('#join-name').fill(taken);
    await page.keyboard.press('Enter');
    await page.getByText('This name does not work here').waitFor();
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

  await ben.getByRole('button', { name: 'Leave' }).click();
  await dialog(ben).locator('button.danger:enabled').click();

  await ben.getByRole('heading', { name: 'You have left' }).waitFor();
  await host.locator('#here').waitFor({ state: 'hidden' });
});

test('an operator needs no invitation', async t => {
  const { room, host, link } = await visit(t);
  await host.goto(link);
  await host.getByText('You operate this server').waitFor();

  await host.getByRole('link', { name: 'Open the room' }).click();

  await host.locator(`.room[data-room=${room}][aria-current]`).waitFor();
});

test('without a secret the page to join says what to do', async t => {
  const page = await it.open(t, null, { link: `${it.server.url}/join` });

  await page.getByRole('heading', { name: 'There is no such invitation' }).waitFor();
});
