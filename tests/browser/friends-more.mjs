// The pages of a guest on a phone, in German, and what axe-core finds on them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KINDS, problems } from './support/axe.mjs';
import { dialog, isLive, it, roomOfFriends, say, visit } from './support/friends.mjs';
import { untranslatedIn } from './support/untranslated.mjs';
import { PHONE } from './support/world.mjs';

const untranslated = untranslatedIn('de');

test('on a phone the page of a guest fits, and its buttons are large enough for a finger', async t => {
  const { ben } = await visit(t, { companions: ['aria', 'bruno', 'cleo'], guest: { viewport: PHONE, hasTouch: true, isMobile: true } });

  const misfits = await ben.evaluate(() =>
    [...document.querySelectorAll('.top :is(button, a, select), .write :is(button, a, select)')]
      .filter(node => node.checkVisibility({ visibilityProperty: true }) && !node.closest('.skip'))
      .map(node => [node, node.getBoundingClientRect()])
      .filter(([node, { width, height, left, right }]) => width < 39.9 || height < 39.9 || left < 0 || right > innerWidth || node.scrollWidth > node.clientWidth + 1)
      .map(([node, { width, height }]) => `${node.id || node.className} ${width} × ${height}`),
  );
  assert.deepEqual(misfits, []);
  assert.equal(await ben.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
});

test('a German friend is invited, joins, talks and leaves in German', async t => {
  const room = await roomOfFriends({ companions: ['aria'] });
  const host = await it.open(t, room, { locale: 'de-DE', storage: { people: ['Ana'], decisions: undefined } });
  await isLive(host);
  await host.getByRole('button', { name: 'Einladen' }).click();
  await dialog(host).getByRole('button', { name: 'Link erstellen' }).click();
  const link = await dialog(host).locator('.made input').inputValue();
  assert.deepEqual(await untranslated(host), []);
  await host.keyboard.press('Escape');

  const ben = await it.open(t, null, { link, locale: 'de-DE' });
  await ben.getByRole('button', { name: 'Mitmachen' }).waitFor();
  await ben.getByText('ein KI-Begleiter, kein Mensch').waitFor();
  await ben.getByLabel('Dein Name').fill('Ben');
  await ben.keyboard.press('Enter');
  await ben.locator('.welcome').waitFor();
  assert.deepEqual(await untranslated(ben), []);
  await say(ben, 'Aria, bist du da?');
  await ben.locator('.chat-message.companion:not(.draft)').waitFor();
  await ben.locator('#more').click();
  await ben.locator('#leave').click();
  await dialog(ben).waitFor();
  assert.deepEqual(await untranslated(ben), []);
});

for (const [kind, options] of Object.entries(KINDS)) {
  test(`axe-core finds nothing on the pages of a guest and in the dialog of invitations, ${kind}`, async t => {
    const room = await roomOfFriends({ companions: ['aria', 'bruno'] });
    const host = await it.open(t, room, { storage: { people: ['Ana'], decisions: undefined }, ...options });
    await isLive(host);
    await host.locator('#invite').click();
    await dialog(host).locator('form button').click();
    const link = await dialog(host).locator('.made input').inputValue();
    assert.deepEqual(await problems(host), []);

    const ben = await it.open(t, null, { link, ...options });
    await ben.locator('#join-name').waitFor();
    assert.deepEqual(await problems(ben), []);
    await ben.locator('#join-name').fill('Ben');
    await ben.keyboard.press('Enter');
    await ben.locator('#here', { hasText: 'Ana' }).waitFor();
    assert.deepEqual(await problems(ben), []);
    await say(ben, 'Aria, are you there?');
    await ben.locator('.chat-message.companion:not(.draft)').waitFor();
    assert.deepEqual(await problems(ben), []);
  });
}

test('a guest says what companions shall know, and it goes when the guest leaves', async t => {
  const { room, ben } = await visit(t, { companions: ['aria'] });
  await ben.locator('#about-me').click();
  const form = dialog(ben).locator('form');
  await form.getByLabel('What companions should know of Ben').fill('I am the cook.');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('Saved.').waitFor();
  const { guild } = await it.server.call('GET', `/api/rooms/${room}`);
  const exported = () => fetch(`${it.server.url}/api/export?guild=${guild}&person=Ben`, { headers: { authorization: `Bearer ${it.server.token}` } }).then(response => response.text());
  assert.match(await exported(), /"described":\{"console:[^"]+":"I am the cook\."\}/u);

  await ben.keyboard.press('Escape');
  await ben.locator('#more').click();
  await ben.locator('#leave').click();
  await dialog(ben).locator('button.danger:enabled').click();
  await ben.getByRole('heading', { name: 'You have left' }).waitFor();
  assert.doesNotMatch(await exported(), /cook/u);
});
