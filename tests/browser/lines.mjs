// The lines below messages, measured against the talk.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { feeds, texts, world } from './support/world.mjs';

const it = world();

const LINES = '.log :is(.happened, .line, .remark, .round)';
const letters = async (page, selector) => (await texts(page.locator(selector))).join('').replace(/\s/gu, '').length;

// Letters of lines for each letter of talk: the share does not grow with the number of companions.
const measured = count => async t => {
  const ids = ['s', 't', 'u', 'v', 'w', 'x', 'y', 'z'].slice(-count).map(letter => `${letter}en`);
  const room = await it.server.room({ externals: ids });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { decisions: 'hidden' } });
  for (const [speaker, text] of [['xen', 'The ferry was late again this morning, because the wind turned.'], ['yen', 'At least the coffee on board has got better since they bought the new machine.']]) {
    const message = await it.server.say(room, `${ids.join(', ')}: what do you think of the ferry this morning?`);
    for (const id of ids.filter(one => one !== speaker)) await live.vote(id, message);
    await live.vote(speaker, message, { state: 'speak', importance: 4 });
    const spoken = await live.speak(speaker, message, text);
    // So that the round about the answer ends.
    for (const id of ids.filter(one => one !== speaker)) await live.vote(id, spoken);
  }
  await page.locator('.happened', { hasText: `${count - 1} others listened` }).nth(1).waitFor();

  const [lines, talk] = [await letters(page, LINES), await letters(page, '.log .chat-message .words')];

  t.diagnostic(`${count} companions: ${lines} letters of lines, ${talk} of talk, ${Math.round((100 * lines) / talk)} %`);
  assert.ok(lines * 5 < talk, `${lines} letters of lines, ${talk} of talk`);
};

test('the lines are less than a fifth of the talk', { concurrency: true }, t =>
  Promise.all([3, 8].map(count => t.test(`with ${count} companions`, measured(count)))));

test('of a call with noise only what ended an answer is told, and the rest with details', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const [page, detailed] = await Promise.all([undefined, 'shown'].map(decisions => it.open(t, room, { storage: { decisions }, prepare: feeds })));
  const spoken = (text, more) => ({ event: 'message', id: text, role: 'user', from: 'Ben', text, modality: 'voice', ...more });
  const interrupted = verdict => ({ event: 'interrupted', companion: 'aria', verdict });
  const turn = (verdict, i) => [
    spoken(`Is the ferry late again, for the ${i + 1}th time?`),
    { event: 'extended', companion: 'aria', ticket: i },
    interrupted(verdict),
    spoken('Yes, because the wind has turned.', { id: `answer ${i}`, role: 'companion', from: 'aria' }),
  ];
  const events = [...Array(8).fill('unducked'), 'few_words', 'played_out', 'noise', 'took_too_long'].flatMap(turn);

  for (const one of [page, detailed]) {
    await one.locator('#connection[data-state=live]').waitFor();
    await one.evaluate(all => window.live(all), events);
  }
  await page.getByText('people did not stop talking').waitFor();
  await detailed.getByText('begins again').first().waitFor();

  const [lines, talk] = [await letters(page, LINES), await letters(page, '.log .chat-message .words')];
  t.diagnostic(`${lines} letters of lines, ${talk} of talk, ${Math.round((100 * lines) / talk)} %`);
  assert.ok(lines > 0 && lines * 5 < talk, `${lines} letters of lines, ${talk} of talk`);
});

test('interruptions one after the other are one line that opens into counts, and one speaker has one mark', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { prepare: feeds });
  await page.locator('#connection[data-state=live]').waitFor();
  const spoken = text => ({ event: 'message', id: text, role: 'user', from: 'Ben', text, modality: 'voice' });
  const interrupted = verdict => ({ event: 'interrupted', companion: 'aria', verdict });

  await page.evaluate(events => window.live(events), [spoken('One.'), spoken('Two.'), ...Array(8).fill(interrupted('unducked')), interrupted('played_out')]);
  await page.locator('.line summary').click();

  assert.deepEqual(await texts(page.locator('.log .line')), ['Aria spoke to the end while somebody talked▸8 × Aria spoke on, because the talking soon stopped' + 'Aria spoke to the end while somebody talked']);
  assert.equal(await page.getByText('in the call').count(), 1);
});
