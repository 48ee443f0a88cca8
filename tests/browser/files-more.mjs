// Files that are left out or wait with their room, the end of the talk while pictures load, and voice notes by keyboard.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { file, png } from './support/cards.mjs';
import { PHONE, texts, until, world } from './support/world.mjs';

const it = world({}, ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
const BLUE = png([32, 128, 192], null, 64);

async function choose(page, files) {
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.locator('#attach').click()]);
  await chooser.setFiles(files);
}

const send = page => page.getByRole('button', { name: 'Send', exact: true }).click();

test('what is not taken is told until the message is sent, and what is attached stays with its room', async t => {
  const [room, other] = [await it.server.room({ companions: ['aria'] }), await it.server.room({ companions: ['aria'] })];
  const page = await it.open(t, room);
  const said = page.locator('#files .form-problem');
  await choose(page, [file('doc.pdf', Buffer.from([37, 80, 68, 70, 0, 255]), 'application/pdf'), file('long.txt', Buffer.alloc(70_000, 'a'), 'text/plain')]);
  await choose(page, Array.from({ length: 6 }, (_, i) => file(`sea${i}.png`, BLUE, 'image/png')));
  await until(page, () => document.querySelectorAll('#files .form-problem').length === 3);
  const problems = await texts(said);

  await page.evaluate(id => (location.hash = `#/${id}`), other);
  await page.locator('#files').waitFor({ state: 'hidden' });
  await page.evaluate(id => (location.hash = `#/${id}`), room);
  await page.locator('#files .attachment').nth(3).waitFor();
  await said.nth(2).locator('button').click();
  const closed = await said.count();
  await send(page);

  assert.deepEqual(problems.map(text => text.replace(' ✕', '')), ['doc.pdf is neither a picture (PNG, JPEG, WebP or GIF) nor a text file (UTF-8).', 'long.txt is larger than 64 KB.', '2 files were left out: a message has at most 4.']);
  assert.equal(closed, 2);
  await page.locator('#files').waitFor({ state: 'hidden' });
  await page.locator('.chat-message:not(.pending) img').nth(3).waitFor();
  // A message without words is quoted by what it is.
  await page.locator('.chat-message').hover();
  await page.locator('[data-focus=reply]').click();
  await page.getByText('4 pictures').waitFor();
  await page.locator('#message').fill('Nice.');
  await send(page);
  await page.locator('.answers', { hasText: '4 pictures' }).waitFor();
});

test('the end of the talk stays in view while own pictures load', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  for (let i = 0; i < 12; i += 1) await it.server.say(room, `${'Words and more words. '.repeat(40)}${i}`);
  const page = await it.open(t, room, { viewport: PHONE });
  await page.locator('.chat-message').last().waitFor();
  for (let i = 1; i < 3; i += 1) {
    await choose(page, [file('sea.png', png([32, 128, 192], null, 700), 'image/png')]);
    await page.locator('#files .attachment').waitFor();
    await send(page);
    await until(page, count => [...document.querySelectorAll('.chat-message:not(.pending) img')].filter(image => image.naturalWidth === 700).length === count, i);
    await until(page, () => document.querySelector('#log').scrollHeight - document.querySelector('#log').scrollTop - document.querySelector('#log').clientHeight < 40);
  }
  assert.equal(await page.locator('#to-end').isVisible(), false);
});

test('a voice note that the keyboard began counts anew each time, ends by a press, and is discarded in another room', async t => {
  const [room, other] = [await it.server.room({ companions: ['aria'] }), await it.server.room({ companions: ['aria'] })];
  const page = await it.open(t, room, { permissions: ['microphone'] });
  const record = page.locator('#record');
  const seconds = text => page.locator('.recording-sign', { hasText: `${text} s` }).waitFor();
  await page.locator('#connection[data-state=live]').waitFor();
  await record.focus();
  await page.keyboard.press('Space');
  await page.locator('dialog[open]').getByText('The recording is kept with your message.').waitFor();
  await page.locator('dialog[open] .solid').click();

  await record.focus();
  await page.keyboard.press('Space');
  await seconds(2);
  await page.evaluate(id => (location.hash = `#/${id}`), other);
  await page.locator('.notice', { hasText: 'you went to another room' }).waitFor();
  await page.locator('.recording-sign').waitFor({ state: 'detached' });

  await record.focus();
  await page.keyboard.press('Space');
  await seconds(0);
  await seconds(2);
  await record.click();
  await page.locator('.chat-message audio').waitFor();
  const of = async id => (await it.server.call('GET', `/api/rooms/${id}/history`)).messages.length;
  assert.deepEqual([await of(room), await of(other)], [0, 1]);

  // Too short is told until the next attempt.
  await record.hover();
  await page.mouse.down();
  await page.locator('#record.recording').waitFor();
  await page.mouse.up();
  const short = page.locator('.notice.problem', { hasText: 'Hold the button while you talk.' });
  await short.waitFor();
  await page.mouse.down();
  await short.waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await page.mouse.up();
});
