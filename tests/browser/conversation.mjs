// Messages in the conversation, and what becomes of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();
const lines = page => texts(page.locator('.log > [data-key]'));

test('a message may begin with a character that is a key outside of the field', async t => {
  const page = await it.open(t, await it.server.room({ externals: ['zed'] }));
  await page.locator('#connection[data-state=live]').waitFor();

  for (const text of ['?huh', '/etc/hosts']) {
    await page.locator('#message').focus();
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
  }
  await page.locator('.chat-message:not(.pending) .words', { hasText: '/etc/hosts' }).waitFor();

  assert.deepEqual(await texts(page.locator('.chat-message .words')), ['?huh', '/etc/hosts']);
});

test('outside of a field, ? shows the keys and / finds', async t => {
  const page = await it.open(t, await it.server.room({ externals: ['zed'] }));
  // Whoever enters a room leaves the search.
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('#log').focus();

  await page.keyboard.press('?');
  await page.locator('dialog[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.locator('#log').focus();
  await page.keyboard.press('/');

  await page.locator('#find-words:focus').waitFor();
});

test('a deleted message leaves a mark in its place, also after a reload', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const live = await it.watch(t, room);
  await it.server.say(room, 'The ferry was late.');
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.speak('zed', message, 'I am.');
  const page = await it.open(t, room);
  await page.locator('.chat-message', { hasText: 'I am.' }).waitFor();

  await it.server.call('DELETE', `/api/rooms/${room}/messages/${message}`);
  await page.getByText('A message was deleted').waitFor();

  const order = async () => (await lines(page)).filter(line => /late|deleted|Who wants|I am/u.test(line)).map(line => line.match(/late|deleted|Who wants|I am/u)[0]);
  assert.deepEqual(await order(), ['late', 'deleted', 'Who wants', 'I am']);
  await page.reload();
  await page.getByText('A message was deleted').waitFor();
  await page.locator('.line.round').waitFor();
  assert.deepEqual(await order(), ['late', 'deleted', 'Who wants', 'I am']);
  // The mark has no date, and begins no day. Midnight may be between the messages that are left.
  const dates = await page.locator('.chat-message time').evaluateAll(all => all.map(time => new Date(time.dateTime).toDateString()));
  assert.equal(await page.locator('.day').count(), new Set(dates).size);
});

test('deleted messages of earlier pages have their marks, and those next to each other are one', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const gone = [];
  for (const text of ['one', 'two', 'three']) gone.push(await it.server.say(room, text));
  // More than a page of messages comes after them.
  await Promise.all(Array.from({ length: 210 }, (_, at) => it.server.say(room, `line ${at}`)));
  for (const seq of gone) await it.server.call('DELETE', `/api/rooms/${room}/messages/${seq}`);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  // The newest messages are shown first. From there somebody scrolls up.
  await page.waitForFunction(() => {
    const log = document.getElementById('log');
    return log.scrollTop > 0 && log.scrollTop + log.clientHeight > log.scrollHeight - 5;
  });

  await page.locator('#log').evaluate(log => {
    const scroll = () => {
      log.scrollTop = 0;
      if (!log.textContent.includes('were deleted')) requestAnimationFrame(scroll);
    };
    scroll();
  });

  await page.getByText('3 messages were deleted').waitFor();
});

test('a refused message stays where it was written, while the conversation goes on', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'before');
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await page.route('**/messages', route => route.fulfill({ status: 422, contentType: 'application/problem+json', body: JSON.stringify({ status: 422, title: 'Unprocessable', detail: 'is too long', field: 'text' }) }), { times: 1 });

  await page.locator('#message').fill('refused');
  await page.keyboard.press('Enter');
  await page.locator('.pending.refused').waitFor();
  await it.server.say(room, 'after');
  await page.locator('.chat-message .words', { hasText: 'after' }).waitFor();

  const order = () => texts(page.locator('.chat-message .words'));
  assert.deepEqual(await order(), ['before', 'refused', 'after']);
  await page.reload();
  await page.locator('.chat-message .words', { hasText: 'after' }).waitFor();
  assert.deepEqual(await order(), ['before', 'refused', 'after']);
  await page.getByRole('button', { name: 'Send again' }).click();
  await until(page, () => !document.querySelector('.pending'));
  assert.deepEqual(await order(), ['before', 'after', 'refused']);
});

test('a message that cannot be stored now is sent again by itself, once', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const away = { status: 503, contentType: 'application/problem+json', body: JSON.stringify({ status: 503, title: 'Service Unavailable', detail: 'this node stands by' }) };
  await page.route('**/messages', route => route.fulfill(away), { times: 1 });

  await page.locator('#message').fill('still there');
  await page.keyboard.press('Enter');
  await page.locator('.pending.waiting').waitFor();
  await until(page, () => !document.querySelector('.pending'));

  assert.deepEqual(await texts(page.locator('.chat-message .words')), ['still there']);
});

test('words that could not be sent outlive their window, and another one sends them once', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const posts = [];
  const away = await it.open(t, room);
  await away.locator('#connection[data-state=live]').waitFor();
  await away.route(/\/messages$/u, route => (route.request().method() === 'POST' ? route.abort() : route.continue()));
  await away.locator('#message').fill('Later, then.');
  await away.keyboard.press('Enter');
  await away.locator('.pending.waiting').waitFor();

  // While it is open it keeps them.
  const other = await away.context().newPage();
  other.on('request', request => request.method() === 'POST' && request.url().endsWith('/messages') && posts.push(request));
  await other.goto(away.url());
  await other.locator('#connection[data-state=live]').waitFor();
  await other.evaluate(() => navigator.locks.request('outbox', () => {}));
  assert.equal(await other.locator('.chat-message').count(), 0);
  await away.close();
  await other.reload();
  await other.locator('.chat-message:not(.pending)', { hasText: 'Later, then.' }).waitFor();

  assert.equal(posts.length, 1);
  assert.deepEqual((await it.server.call('GET', `/api/rooms/${room}/history`)).messages.map(({ text }) => text), ['Later, then.']);
  assert.equal(await other.evaluate(id => localStorage.getItem(`tertulia.outbox.${id}`), room), null);
});

test('a duplicated tab neither sends nor drops the messages of the tab that it was copied from', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const isPost = request => request.method() === 'POST' && request.url().endsWith('/messages');
  await page.route(/\/messages$/u, route => (isPost(route.request()) ? route.abort() : route.continue()));
  await page.locator('#message').fill('Later, then.');
  await page.keyboard.press('Enter');
  await page.locator('.pending.waiting').waitFor();

  // The browser copies what is stored for the tab.
  const copy = await page.context().newPage();
  await copy.addInitScript(entries => entries.forEach(([key, value]) => sessionStorage.setItem(key, value)), await page.evaluate(() => Object.entries(sessionStorage)));
  const posts = [];
  copy.on('request', request => isPost(request) && posts.push(JSON.parse(request.postData()).text));
  await copy.goto(page.url());
  await copy.locator('#connection[data-state=live]').waitFor();
  await copy.locator('#message').fill('And I?');
  await copy.keyboard.press('Enter');
  await copy.locator('.chat-message:not(.pending)', { hasText: 'And I?' }).waitFor();

  assert.deepEqual([posts, await texts(copy.locator('.chat-message .words'))], [['And I?'], ['And I?']]);
  await page.unroute(/\/messages$/u);
  await page.reload();
  await page.locator('.chat-message:not(.pending)', { hasText: 'Later, then.' }).waitFor();
  assert.deepEqual((await it.server.call('GET', `/api/rooms/${room}/history`)).messages.map(({ text }) => text), ['And I?', 'Later, then.']);
});

test('a button that is pressed right after another name was typed is pressed once', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.locator('#me').fill('Somebody else');
  const button = await page.locator('#people .deletes').boundingBox();

  await page.mouse.move(button.x + 5, button.y + 5);
  await page.mouse.down();
  // People hold a button for longer than the page takes to draw.
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.mouse.up();

  // Nothing is on record under this name.
  await page.getByText('Nothing that Somebody else said is stored.').waitFor();
  assert.equal(await page.locator('#me').inputValue(), 'Somebody else');
});

test('the page itself never scrolls, however much is in it', async t => {
  const room = await it.server.room({ externals: ['una', 'vic', 'wim', 'xia', 'yan', 'zed'] });
  const live = await it.watch(t, room);
  for (let round = 0; round < 6; round += 1) {
    const message = await it.server.say(room, 'una, vic, are you there?');
    await live.vote('una', message);
    await live.vote('vic', message);
    await live.event(one => one.event === 'round' && one.message_id === message);
  }
  for (const viewport of [{ width: 1280, height: 420 }, { width: 800, height: 420 }, { width: 360, height: 420 }]) {
    const page = await it.open(t, room, { viewport });
    await page.locator('.round').nth(3).waitFor();

    const beyond = await page.evaluate(() => {
      scrollTo(0, 1000);
      return [document.scrollingElement.scrollTop, document.querySelector('.page').scrollHeight - document.querySelector('.page').clientHeight];
    });

    assert.deepEqual(beyond, [0, 0], `${viewport.width} px wide`);
  }
});

test('the conversation follows new messages while the message field changes its height', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  for (let at = 0; at < 30; at += 1) await it.server.say(room, `line ${at}`);
  const page = await it.open(t, room);
  await page.locator('.chat-message .words', { hasText: 'line 29' }).waitFor();

  await page.locator('#message').focus();
  for (let line = 0; line < 5; line += 1) {
    await page.keyboard.type('several lines');
    await page.keyboard.press('Shift+Enter');
  }
  // What the field did is seen by the page in the next frame.
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  await it.server.say(room, 'the newest');

  await until(page, () => {
    const newest = [...document.querySelectorAll('.chat-message .words')].find(words => words.textContent === 'the newest');
    return newest?.getBoundingClientRect().bottom <= document.querySelector('#log').getBoundingClientRect().bottom;
  });
  assert.equal(await page.locator('#to-end').isVisible(), false);
});

test('Stop ends one reply, and nobody else’s', async t => {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room);
  await page.locator('#connection[data-state=live]').waitFor();
  const message = await it.server.say(room, 'zed, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });

  await page.getByRole('button', { name: 'Stop Zed' }).click();

  await page.locator('.line', { hasText: 'Zed stopped: somebody pressed Stop' }).waitFor();
  await page.locator('.draft').waitFor({ state: 'detached' });
  await assert.rejects(live.speak('zed', message, 'I am.'), error => error.status === 409);
  await assert.rejects(it.server.call('POST', `/api/rooms/${room}/replies/zed/stop`, {}), error => error.status === 409 && /not writing/u.test(error.message));
  await assert.rejects(it.server.call('POST', `/api/rooms/${room}/replies/nobody/stop`, {}), error => error.status === 404);
});
