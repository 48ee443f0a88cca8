// A phone: targets that a finger hits, one row of header, nothing cut off, and what the tools of a message cover.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sideways } from './support/sideways.mjs';
import { listenFirst, openMenu, PHONE, until, world } from './support/world.mjs';

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
  const box = await message.boundingBox();

  await page.touchscreen.tap(box.x + box.width - 20, box.y + box.height - 2);
  await page.locator('.chat-message:focus-within').waitFor();
  assert.equal(await message.locator('.story').count(), 0);

  const tool = await message.locator('[data-focus=outcomes]').boundingBox();
  await page.touchscreen.tap(tool.x + tool.width / 2, tool.y + tool.height / 2);
  await message.locator('.story').waitFor();
});

test('the browser’s Back cancels an edit, a reply, a story and a search before it leaves the room', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'The ferry was late.', 'Ana');
  const page = await it.open(t, room, { viewport: PHONE, hasTouch: true, isMobile: true, storage: { people: ['Ana'] } });
  await page.locator('.chat-message').waitFor();
  const address = page.url();

  for (const tool of ['edit', 'reply']) {
    await page.locator('.chat-message .words').tap();
    await page.locator(`.chat-message [data-focus=${tool}]`).tap();
    await page.locator('#compose-about').waitFor();
    await page.goBack();
    await page.locator('#compose-about').waitFor({ state: 'hidden' });
  }
  await page.locator('.chat-message .words').tap();
  await page.locator('.chat-message [data-focus=outcomes]').tap();
  await page.locator('.chat-message .story').waitFor();
  await page.goBack();
  await page.locator('.chat-message .story').waitFor({ state: 'detached' });
  await openMenu(page);
  await page.locator('#room-menu-actions .menu-item').first().tap();
  await page.locator('#find').waitFor();
  await page.goBack();
  await page.locator('#find').waitFor({ state: 'hidden' });
  assert.equal(page.url(), address);
});

test('without a connection the header still fits', async t => {
  const room = await it.server.room({ companions: ['aria', 'bruno'] });
  const page = await it.open(t, room, { locale: 'de-DE', viewport: PHONE, hasTouch: true, isMobile: true });
  await page.locator('#connection[data-state=live]').waitFor();

  await page.context().setOffline(true);
  await page.locator('#connection[data-state=lost]').waitFor();

  assert.deepEqual(await sideways(page), []);
  assert.deepEqual(await misfits(page), []);
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

const NARROW = { viewport: { width: 320, height: 740 }, hasTouch: true, isMobile: true };

for (const [language, locale] of [['English', 'en-GB'], ['German', 'de-DE']]) {
  test(`no dialog scrolls sideways on a narrow phone, in ${language}`, async t => {
    const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
    await it.server.call('PATCH', `/api/rooms/${room}`, { title: `Kitchenconversationsoftheneighbourhood ${language}` });
    const page = await it.open(t, room, { ...NARROW, locale, storage: { decisions: undefined } });
    await page.locator('#connection[data-state=live]').waitFor();
    const item = (part, at) => page.locator(`#${part}-menu-actions .menu-item`).nth(at);
    const views = {
      menu: null,
      name: () => item('room', 1),
      companions: () => item('room', 2),
      about: () => item('room', 6),
      export: () => item('room', 10),
      lore: () => item('room', 11),
      memory: () => item('room', 12),
      usage: () => item('server', 0),
      settings: () => item('server', 1),
      editor: () => item('server', 2),
      tokens: () => item('server', 4),
      model: () => page.locator('#model'),
      voice: () => page.locator('#voice-set-up'),
      keys: () => page.locator('#help'),
      deletion: () => page.locator('#room-menu-end .menu-item'),
    };
    for (const [name, opener] of Object.entries(views)) {
      await openMenu(page);
      if (opener) {
        await opener().tap();
        await page.locator('dialog[open] :is(form, table, .actions, .keys, .menu-item)').first().waitFor();
        for (const summary of await page.locator('dialog[open] summary').all()) await summary.tap();
      }
      assert.deepEqual(await sideways(page), [], name);
      await page.goBack();
      await until(page, () => !document.querySelector('dialog[open]') && document.querySelector('#room-menu').hidden);
    }
    await page.locator('#invite').tap();
    await page.locator('dialog[open] form').waitFor();
    assert.deepEqual(await sideways(page), []);
  });
}

test('on a phone Enter makes a new line, and a button sends', async t => {
  const page = await it.open(t, await it.server.room({ externals: ['zed'] }), { viewport: PHONE, hasTouch: true, isMobile: true });
  await page.locator('#connection[data-state=live]').waitFor();

  await page.locator('#message').fill('One');
  await page.locator('#message').press('Enter');
  await page.keyboard.type('two');
  assert.equal(await page.locator('#message').inputValue(), 'One\ntwo');
  await page.locator('#send').tap();

  await page.locator('.chat-message:not(.pending)', { hasText: 'two' }).waitFor();
});

test('Back closes what is open, and then leads to the room before', async t => {
  const [first, second] = [await it.server.room({ externals: ['zed'] }), await it.server.room({ externals: ['zed'] })];
  const page = await it.open(t, first, { viewport: PHONE, hasTouch: true, isMobile: true });
  const isIn = room => until(page, id => location.hash === `#/${id}` && document.querySelector(`.room[aria-current][data-room="${id}"]`), room);
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#room-title').tap();
  await page.locator(`.room[data-room="${second}"]`).tap();
  await isIn(second);

  await openMenu(page);
  await page.locator('#help').tap();
  await page.locator('dialog[open]').waitFor();
  await page.goBack();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await isIn(second);
  await openMenu(page);
  await page.goBack();
  await page.locator('#room-menu').waitFor({ state: 'hidden' });
  await isIn(second);
  // What was closed by itself is not in the way.
  await openMenu(page);
  await page.locator('#more').tap();
  await until(page, () => !history.state?.isOpen);
  await page.goBack();

  await isIn(first);
});

test('a link with a sign behind it works, and of an unknown room it is said', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'Here.');
  const page = await it.open(t, `${room}/999).`);
  await page.getByText('There is no message 999 in this room.').first().waitFor();
  const other = await it.open(t, `${room}.`);
  await other.locator('.chat-message', { hasText: 'Here.' }).waitFor();

  const lost = await it.open(t, 'nowhere');

  await lost.getByText('There is no room nowhere.').first().waitFor();
});

test('typed text outlives its window', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#message').fill('Not sent yet');
  const context = page.context();
  await page.close();

  const later = await context.newPage();
  await later.goto(`${it.server.url}/#/${room}`);

  await until(later, () => document.querySelector('#message').value === 'Not sent yet');
});

for (const viewport of [{ width: 360, height: 360 }, { width: 740, height: 360 }]) {
  test(`in a call with the keyboard open the conversation and the field are seen, ${viewport.width} px wide`, async t => {
    const room = await it.server.room({ companions: ['aria', 'bruno'] });
    const page = await it.open(t, room, { viewport, hasTouch: true, isMobile: true });
    await listenFirst(page);
    await page.getByRole('button', { name: 'Leave' }).waitFor();
    await page.locator('#message').tap();
    await page.keyboard.type('A longer text that takes more than two lines of the field on a phone, whether it is held upright or on its side.');

    const seen = await page.evaluate(() => ({ log: document.querySelector('#log').clientHeight, field: Math.max(...['#message', '#send', '#compose-how'].map(one => document.querySelector(one).getBoundingClientRect().bottom)), scrolled: scrollY, beyond: document.documentElement.scrollHeight - innerHeight }));

    assert.ok(seen.log >= 100 && seen.field <= viewport.height && !seen.scrolled && seen.beyond <= 0, JSON.stringify(seen));
    assert.equal(await page.getByRole('button', { name: 'Send' }).count(), 1);
  });
}

const LONG = 'Rindfleischetikettierungsüberwachung';

test('long words of names and titles break, and cover nothing', async t => {
  const room = await it.server.room({ companions: ['aria'], externals: [{ id: 'zed', name: LONG }] });
  await it.server.call('PATCH', `/api/rooms/${room}`, { title: `${LONG}${LONG.slice(0, 20)}` });
  const page = await it.open(t, room, { ...NARROW, locale: 'de-DE', storage: { decisions: 'shown' } });
  await page.locator('.card').first().waitFor();
  await it.server.say(room, 'Aria, bist du da?');
  await page.locator('.chat-message.companion:not(.draft)').waitFor();
  await page.locator('.remark', { hasText: LONG }).first().waitFor();

  // The arrow of the rooms is in sight beside a long title.
  const title = await page.locator('#room-title').evaluate(node => node.scrollWidth - node.clientWidth);
  assert.ok(title <= 1, `the title is ${title} px wider than its button`);

  await page.locator('.chat-message.companion button.who').first().tap();
  await page.locator('dialog[open] a.outlined', { hasText: LONG }).waitFor();
  assert.deepEqual(await sideways(page), []);
  await page.goBack();

  await openMenu(page);
  await page.locator('#server-menu-actions .menu-item').nth(2).tap();
  await page.locator('dialog[open] .editor input[maxlength="64"]').fill(LONG);
  assert.deepEqual(await sideways(page), []);
});

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
