// On a phone: what the tools of a message cover, and what a press beside a menu does.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, PHONE, world } from './support/world.mjs';

const it = world();

// Between them, the longest names of tools, and the smallest phones.
for (const [locale, width] of [['en-GB', 320], ['de-DE', 320], ['de-DE', 360], ['es-ES', 320], ['es-ES', 360]]) {
  test(`the tools of a message cover neither its author nor its words, ${width} px wide, in ${locale}`, async t => {
    const room = await it.server.room({ externals: ['zed'] });
    const live = await it.watch(t, room);
    const number = await it.server.say(room, 'zed, are you there?', 'Magdalena');
    await live.vote('zed', number, { state: 'speak', importance: 4 });
    await live.speak('zed', number, 'I am.');
    const page = await it.open(t, room, { locale, viewport: { width, height: 640 }, hasTouch: true, isMobile: true, storage: { decisions: 'hidden', people: ['Magdalena'] } });
    await page.locator('.chat-message.companion:not(.draft)').waitFor();
    await page.locator('.card').first().waitFor({ state: 'attached' });

    for (const who of ['user', 'companion']) {
      await page.locator(`.chat-message.${who} .words`).tap();
      await page.locator(`.chat-message.${who}:focus-within [data-focus=delete]`).waitFor();
      const [tools, author, words] = await page.locator(`.chat-message.${who}`).evaluate(node => ['.tools', 'header .who', '.words'].map(part => node.querySelector(part).getBoundingClientRect().toJSON()));
      assert.ok(tools.left >= 0 && tools.right <= width, `they reach from ${tools.left} to ${tools.right}`);
      for (const part of [author, words]) assert.ok(tools.top >= part.bottom - 1, `${who}: they begin at ${tools.top}, what they cover ends at ${part.bottom}`);
      const next = await page.locator(`.chat-message.${who}`).evaluate(node => node.nextElementSibling?.getBoundingClientRect().top ?? Infinity);
      assert.ok(tools.bottom <= next + 1, `${who}: they end at ${tools.bottom}, what follows begins at ${next}`);
    }
  });
}

test('on a phone a companion speaks next and writes for me from its profile, and what was typed stays', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true, storage: { decisions: 'shown', people: ['Ana'] } });
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('.card').nth(2).waitFor();
  const cut = await page.locator('.card-who .who').evaluateAll(all => all.filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflow !== 'visible').map(node => node.textContent));
  assert.deepEqual(cut, []);

  await it.server.say(room, 'Aria, are you there?');
  const who = page.locator('.chat-message.companion:not(.draft) button.who', { hasText: 'Aria' }).first();
  await page.locator('#message').fill('I was about to say');
  await who.tap();
  await page.locator('dialog[open]').getByRole('button', { name: 'Write for me' }).tap();
  await page.locator('.notice', { hasText: 'below what you typed' }).waitFor();
  assert.match(await page.locator('#message').inputValue(), /^I was about to say\n\n./u);
  await page.locator('.notice').getByRole('button', { name: 'Undo' }).tap();
  assert.equal(await page.locator('#message').inputValue(), 'I was about to say');

  const answers = await page.locator('.chat-message.companion:not(.draft)').count();
  await who.tap();
  await page.locator('dialog[open]').getByRole('button', { name: 'Speak next' }).tap();
  await page.locator('.chat-message.companion:not(.draft)').nth(answers).waitFor();
});

test('a finger beside the open menu or the list of rooms closes it, and presses nothing else', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true });
  const suggestion = page.locator('.suggestion').first();
  await suggestion.waitFor();
  const { x, y } = await suggestion.boundingBox();
  const beside = async () => page.touchscreen.tap(x + 5, y + 10);

  await openMenu(page);
  await beside();
  await page.locator('#room-menu').waitFor({ state: 'hidden' });
  await page.locator('#room-title').tap();
  await page.locator('#side').waitFor();
  await page.touchscreen.tap(PHONE.width - 5, y + 10);
  await page.locator('#side').waitFor({ state: 'hidden' });
  assert.equal(await page.locator('.chat-message').count(), 0);
  await beside();
  await page.locator('.chat-message').first().waitFor();
});
