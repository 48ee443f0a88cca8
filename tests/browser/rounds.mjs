// Rounds in the conversation.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdLive, texts, world } from './support/world.mjs';

const it = world();

// A room with a round that is over, and the number of its message.
async function roomWithRound(t) {
  const room = await it.server.room({ externals: ['yan', 'zed'] });
  const live = await it.watch(t, room);
  const message = await it.server.say(room, 'zed, yan, are you there?');
  await live.vote('zed', message, { state: 'speak', importance: 4 });
  await live.vote('yan', message);
  await live.speak('zed', message, 'I am.');
  return { room, live, message };
}

test('a round is shown once, although the live connection is slow', async t => {
  const { room, message } = await roomWithRound(t);
  let release = null;
  const page = await it.open(t, room, {
    async prepare(window) {
      release = await holdLive(window);
    },
  });
  // Messages come without it, and the live connection sends the rest.
  await page.locator('.chat-message').first().waitFor();
  await release();
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('.line.round').first().waitFor();

  assert.deepEqual(await texts(page.locator('.log .line.round .line-words')), ['Who wants to answer “zed, yan, are you there?” by Ben? Zed 4 of 10 ★ · Yan – stayed silent · Zed was spoken to']);
});

test('a round of an earlier page is shown as it ended, with who was selected and why', async t => {
  const { room } = await roomWithRound(t);
  // More than a page of messages comes after it.
  await Promise.all(Array.from({ length: 210 }, (_, at) => it.server.say(room, `line ${at}`)));
  const page = await it.open(t, room);
  await page.locator('.chat-message').first().waitFor();
  assert.equal(await page.locator('.log .line.round').count(), 0);

  await page.locator('#log').evaluate(log => {
    const scroll = () => {
      log.scrollTop = 0;
      if (!log.querySelector('.line.round')) requestAnimationFrame(scroll);
    };
    scroll();
  });

  await page.locator('.log .line.round').waitFor();
  assert.deepEqual(await texts(page.locator('.log .line.round .line-words')), ['Who wants to answer “zed, yan, are you there?” by Ben? Zed 4 of 10 ★ · Yan – stayed silent · Zed was spoken to']);
});
