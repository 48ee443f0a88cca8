// A phone: targets that a finger hits, one row of header, nothing cut off.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PHONE, world } from './support/world.mjs';

const it = world();
const LEAST_PX = 40;

// The visible buttons, links and fields of the header, the composer and the cards that are too small, or reach beyond the screen.
const misfits = page =>
  page.evaluate(least => {
    const all = [...document.querySelectorAll('.top :is(button, a, select), .write :is(button, a, select), .companions :is(button, a, select)')];
    return all
      .filter(node => node.checkVisibility({ visibilityProperty: true }) && !node.closest('.skip, .meters'))
      .map(node => [node, node.getBoundingClientRect()])
      .filter(([, { width, height, left, right }]) => width < least - 0.01 || height < least - 0.01 || left < 0 || right > innerWidth)
      .map(([node, { width, height, left, right }]) => `${node.id || node.className} ${node.textContent.trim().slice(0, 20)}: ${Math.round(width)} × ${Math.round(height)} px, from ${Math.round(left)} to ${Math.round(right)}`);
  }, LEAST_PX);

for (const [companions, size] of [[['aria'], 'one companion'], [['aria', 'bruno'], 'two companions'], [['aria', 'bruno', 'cleo'], 'three companions']]) {
  test(`every button of the header, the composer and the cards is large enough for a finger, with ${size}`, async t => {
    const room = await it.server.room({ companions });
    await it.server.call('PATCH', `/api/rooms/${room}`, { title: `A room with a name longer than most names, ${size}` });
    const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true });
    await page.locator('#connection[data-state=live]').waitFor();
    await page.locator('.card').first().waitFor();
    assert.deepEqual(await misfits(page), []);

    await page.locator('.card-head').first().tap();
    await page.locator('.card[data-open] .controls').waitFor();
    assert.deepEqual(await misfits(page), []);
    await page.locator('.card-head').first().tap();

    await page.locator('#more').tap();
    await page.locator('#room-menu').waitFor();
    assert.deepEqual(await misfits(page), []);
    // Which models answer is reached there, too.
    await page.locator('#room-menu #model').waitFor();
    await page.locator('#decisions').tap();
    assert.deepEqual(await misfits(page), []);
  });
}

test('the header is one row, and nothing is cut off', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria', 'bruno'] }), { viewport: PHONE, hasTouch: true, isMobile: true });
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#model').waitFor({ state: 'attached' });

  const [tops, height, wide] = await page.evaluate(() => {
    const shown = [...document.querySelectorAll('.top > :is(h1, button, span:not(.gap))')].filter(node => node.checkVisibility() && node.getBoundingClientRect().width > 0);
    const middles = shown.map(node => node.getBoundingClientRect()).map(({ top, bottom }) => Math.round((top + bottom) / 2));
    return [Math.max(...middles) - Math.min(...middles), document.querySelector('.top').getBoundingClientRect().height, document.documentElement.scrollWidth];
  });

  assert.ok(tops <= 2, `the middles of what is in the header differ by ${tops} px`);
  assert.ok(height <= 56, `the header is ${height} px high`);
  assert.equal(wide, PHONE.width);
});

test('a finger presses no tool that it cannot see', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'The ferry was late.');
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true });
  const message = page.locator('.chat-message');
  await message.waitFor();
  // Once the companions are known, messages are drawn again.
  await page.locator('.card').first().waitFor();
  const tool = await message.locator('[data-focus=outcomes]').boundingBox();

  await page.touchscreen.tap(tool.x + tool.width / 2, tool.y + tool.height / 2);
  await page.locator('.chat-message:focus-within').waitFor();
  assert.equal(await message.locator('.story').count(), 0);

  await page.touchscreen.tap(tool.x + tool.width / 2, tool.y + tool.height / 2);
  await message.locator('.story').waitFor();
});

test('the line about rehearsal is small', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { viewport: PHONE, hasTouch: true, isMobile: true });
  const line = page.locator('#model-trouble.quiet');
  await line.waitFor();

  const { height } = await line.boundingBox();

  assert.ok(height <= 60, `it is ${height} px high`);
});

test('two companions stay in one row while one of them speaks', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true });
  const height = () => page.locator('#companions').evaluate(node => node.getBoundingClientRect().height);
  await page.locator('.card').nth(1).waitFor();
  const before = await height();

  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await page.locator('.card[data-doing=speaking]').waitFor();

  assert.equal(await height(), before);
});
