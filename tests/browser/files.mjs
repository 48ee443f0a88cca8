// Pictures, text files and voice notes in the talk, those that are left out or wait with their room, and voice notes by keyboard.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';

import { file, png } from './support/cards.mjs';
import { holdAnswer, PHONE, texts, until, world } from './support/world.mjs';

const it = world({}, ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
const BLUE = png([32, 128, 192], null, 64);

async function choose(page, files) {
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.locator('#attach').click()]);
  await chooser.setFiles(files);
}

const drop = (page, kind, name, type, base64) =>
  page.locator('#message').evaluate(
    (node, [event, called, mime, data]) => {
      const carried = new DataTransfer();
      carried.items.add(new File([Uint8Array.from(atob(data), letter => letter.charCodeAt(0))], called, { type: mime }));
      const field = event === 'paste' ? 'clipboardData' : 'dataTransfer';
      node.dispatchEvent(event === 'paste' ? new ClipboardEvent('paste', { [field]: carried, bubbles: true, cancelable: true }) : new DragEvent(event, { [field]: carried, bubbles: true, cancelable: true }));
    },
    [kind, name, type, base64],
  );

test('pictures and text files are chosen, pasted and dropped, described, and seen by everybody', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room);
  const other = await it.open(t, room);

  await choose(page, [file('sea.png', BLUE, 'image/png')]);
  await drop(page, 'paste', 'pasted.png', 'image/png', png([200, 20, 20]).toString('base64'));
  await drop(page, 'drop', 'list.txt', 'text/plain', Buffer.from('bread, milk').toString('base64'));
  await until(page, () => document.querySelectorAll('#files .attachment').length === 3);
  await page.locator('#files input:not([type])').first().fill('the sea at noon');
  await page.locator('#files input[type=checkbox]').nth(1).check();
  await page.locator('#message').fill('hey aria, look');
  await page.getByRole('button', { name: 'Send', exact: true }).click();

  for (const one of [page, other]) {
    await one.locator('.chat-message img[alt="the sea at noon"]').waitFor();
    await until(one, () => document.querySelector('.chat-message img[alt="the sea at noon"]')?.naturalWidth === 64);
    await one.locator('.chat-message a.spoiler').waitFor();
    await one.locator('.chat-message a[download="list.txt"]').waitFor();
  }
  // A spoiler is shown by a first click, and opened by a second one.
  await other.locator('.chat-message a.spoiler').click();
  await other.locator('.chat-message a.spoiler').waitFor({ state: 'detached' });
  assert.equal(await page.locator('#files .attachment').count(), 0, 'the next message has none');
  await page.reload();
  await page.locator('.chat-message img[alt="the sea at noon"]').waitFor();
});

test('a file that is no picture and no text is refused by its name, and who posts a picture learns once that companions do not see it', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  await it.server.call('PUT', '/api/models', { base_url: 'http://127.0.0.1:9/v1', api_key: 'k', main: { model: 'large' } });
  t.after(() => it.server.call('DELETE', '/api/models'));
  const page = await it.open(t, room);
  await choose(page, [file('report.pdf', Buffer.from([37, 80, 68, 70, 0, 255]), 'application/pdf')]);
  await page.getByText('report.pdf is neither a picture').waitFor();

  for (let i = 0; i < 2; i += 1) {
    await choose(page, [file(`sea${i}.png`, BLUE, 'image/png')]);
    await page.locator('#files .attachment').waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('.chat-message:not(.pending) img').nth(i).waitFor();
    if (i) break;
    await page.locator('.notice', { hasText: 'only the descriptions' }).getByRole('button', { name: 'Change the connection' }).waitFor();
    await page.locator('.notice .quiet-button').click();
  }
  assert.equal(await page.locator('.notice', { hasText: 'only the descriptions' }).count(), 0);
});

const number = value => Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]);
const SCRIPT = '<script>parent.hit=window.hit=1</script><img src=x onerror="window.hit=1">';
const hostile = () => {
  const gif = Buffer.concat([Buffer.from('GIF89a'), Buffer.from([1, 0, 1, 0, 0, 0, 0])]);
  const frame = Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]);
  const broad = Buffer.from(BLUE);
  number(40_000).copy(broad, 16);
  number(40_000).copy(broad, 20);
  const pictures = {
    'svg.svg': `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1">${SCRIPT}</svg>`,
    'svg.png': `<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`,
    'page.jpg': `<!doctype html>${SCRIPT}`,
    'script.gif': Buffer.concat([Buffer.from('GIF89a/*'), Buffer.alloc(20), Buffer.from('*/=1;window.hit=1;')]),
    'behind.png': Buffer.concat([BLUE, Buffer.from(SCRIPT)]),
    'before.png': Buffer.concat([Buffer.from(SCRIPT), BLUE]),
    'cut.png': BLUE.subarray(0, 60),
    'sum.png': Buffer.concat([BLUE.subarray(0, 29), Buffer.from([1, 2, 3, 4]), BLUE.subarray(33)]),
    'broad.png': broad,
    'bomb.png': Buffer.concat([broad.subarray(0, 33), number(1000), Buffer.from('IDAT'), deflateSync(Buffer.alloc(1 << 20)).subarray(0, 1000), number(0)]),
    'frames.gif': Buffer.concat([gif, ...Array.from({ length: 5_000 }, () => frame), Buffer.from(';')]),
    'empty.gif': Buffer.concat([gif, Buffer.from(';')]),
    'comment.jpg': Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xfe, 0, SCRIPT.length + 2]), Buffer.from(SCRIPT), Buffer.from([0xff, 0xd9])]),
    'endless.jpg': Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(3_000, 0xff)]),
    'riff.webp': Buffer.concat([Buffer.from('RIFF'), Buffer.from([255, 255, 255, 255]), Buffer.from('WEBPVP8X'), Buffer.alloc(40)]),
    'icon.ico': Buffer.from([0, 0, 1, 0, 1, 0, 1, 1, 0, 0]),
    'map.bmp': Buffer.concat([Buffer.from('BM'), Buffer.alloc(60)]),
    'scan.tiff': Buffer.concat([Buffer.from('II*\0'), Buffer.alloc(60)]),
    'new.avif': Buffer.concat([number(32), Buffer.from('ftypavif'), Buffer.alloc(40)]),
    'photo.heic': Buffer.concat([number(32), Buffer.from('ftypheic'), Buffer.alloc(40)]),
    'empty.png': Buffer.alloc(0),
  };
  const others = {
    'page.html': `<!doctype html>${SCRIPT}`,
    'page.xhtml': `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">${SCRIPT}</html>`,
    'code.js': 'window.hit = 1',
    'style.css': '* { display: none }',
    'feed.xml': '<?xml-stylesheet href="javascript:window.hit=1"?><a/>',
    'mail.mhtml': `MIME-Version: 1.0\nContent-Type: text/html\n\n${SCRIPT}`,
    'wide.txt': Buffer.from(`\ufeff${SCRIPT}`, 'utf16le'),
    'latin.txt': Buffer.from([0x43, 0xe4, 0x66]),
    'nul.txt': 'a\0b',
    'paper.pdf': '%PDF-1.4 /OpenAction << /S /JavaScript /JS (app.alert(1)) >>',
    'film.swf': Buffer.concat([Buffer.from('FWS'), Buffer.alloc(20)]),
    'pack.zip': Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(30)]),
    'program.exe': Buffer.concat([Buffer.from('MZ'), Buffer.alloc(64)]),
    'song.mp3': Buffer.concat([Buffer.from('ID3'), Buffer.alloc(40)]),
    'talk.ogg': Buffer.concat([Buffer.from('OggS'), Buffer.alloc(60)]),
    '"><img src=x onerror="window.hit=1">.txt': 'a name',
    '../../../etc/passwd.txt': 'a path',
    'cod\u202etxt.exe.txt': 'a direction',
    'a\r\nSet-Cookie: hit=1.txt': 'a header',
    [`${'long'.repeat(80)}.txt`]: 'a long name',
  };
  return [...Object.entries(pictures), ...Object.entries(others)].map(([name, content]) => ({ name, buffer: Buffer.from(content), mimeType: name in pictures ? `image/${name.split('.').at(-1)}` : 'text/plain' }));
};

test('of 41 hostile files none runs, and none is served as a type that could', async t => {
  const room = await it.server.room({ companions: [] });
  const page = await it.open(t, room);
  page.on('dialog', () => assert.fail('a dialog of a file'));

  for (const one of hostile()) {
    await drop(page, 'drop', one.name, one.mimeType, one.buffer.toString('base64'));
    await page.locator('#files :is(.attachment, .form-problem)').first().waitFor();
    if (!(await page.locator('#files .attachment').count())) {
      await page.evaluate(() => document.querySelectorAll('#files .form-problem').forEach(node => node.remove()));
      continue;
    }
    await page.locator('#message').fill(`the file ${one.buffer.length}`);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('#files .attachment').waitFor({ state: 'detached' });
    // What is refused comes back into the field with the reason, or is a message that can be discarded.
    await until(page, () => !document.querySelector('.pending:not(.refused)'));
    await page.locator('#message').fill('');
    await page.evaluate(() => document.querySelectorAll('#files button').forEach(button => button.click()));
  }

  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  const files = messages.flatMap(({ seq, files: all = [] }) => all.map(({ id, name }) => ({ path: `/api/rooms/${room}/messages/${seq}/files/${id}`, name })));
  assert.ok(files.length > 5, `${files.length} were accepted`);
  for (const { path, name } of files) {
    const { headers } = await fetch(`${it.server.url}${path}`);
    assert.match(headers.get('content-type'), /^(image\/(png|jpeg|gif|webp)|text\/plain; charset=utf-8)$/u, name);
    assert.equal(headers.get('x-content-type-options'), 'nosniff', name);
    assert.match(headers.get('content-security-policy'), /default-src 'none'|sandbox/u, name);
    const opened = await page.context().newPage();
    const download = opened.waitForEvent('download').catch(() => null);
    await opened.goto(`${it.server.url}${path}`).catch(() => download);
    assert.equal(await opened.evaluate(() => window.hit ?? null), null, name);
    await opened.close();
  }
  assert.equal(await page.evaluate(() => window.hit ?? null), null);
});

test('a voice note is recorded while its button is held, and can be listened to', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  const page = await it.open(t, room, { viewport: PHONE, permissions: ['microphone'] });
  const record = page.locator('#record');
  await page.locator('#connection[data-state=live]').waitFor();

  await record.hover();
  await page.mouse.down();
  // The first time it says who recognises the words, and records nothing.
  // A dialog that opened before would be closed by the finger that is lifted.
  await page.mouse.up();
  await page.locator('dialog[open] .solid').click();
  // Released beside the button, and with Esc, it is discarded.
  for (const discard of [() => page.mouse.move(20, 20).then(() => page.getByText('Release to cancel.').waitFor()).then(() => page.mouse.up()), () => page.keyboard.press('Escape').then(() => page.mouse.up())]) {
    await record.hover();
    await page.mouse.down();
    await page.getByText('Release to send').waitFor();
    await until(page, () => Number(document.querySelector('#record').style.getPropertyValue('--level')) > 0);
    await discard();
    await page.locator('.recording-sign').waitFor({ state: 'detached' });
    await page.evaluate(() => document.querySelector('#record').style.removeProperty('--level'));
  }
  await record.hover();
  await page.mouse.down();
  await page.locator('#record.recording').waitFor();
  const began = Date.now();
  // The device beeps each second.
  await until(page, () => Number(document.querySelector('#record').style.getPropertyValue('--level')) > 0);
  await until(page, since => Date.now() - since > 1300, began);
  await page.mouse.up();

  await page.locator('.chat-message audio').waitFor();
  const [words] = await texts(page.locator('.chat-message'));
  assert.match(words, /voice note/iu);
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  assert.equal(messages.filter(({ files = [] }) => files.length).length, 1);
  assert.deepEqual(messages[0].files.map(({ kind, media_type: type }) => [kind, type]), [['voice', 'audio/ogg']]);
  const length = await page.locator('.chat-message audio').evaluate(async node => {
    const bytes = await (await fetch(node.src)).arrayBuffer();
    return (await new OfflineAudioContext(1, 1, 48_000).decodeAudioData(bytes)).duration;
  });
  assert.ok(length > 0.3 && length < 10, `${length} s`);
});

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

test('files that are attached before the room is there are kept for it', async t => {
  const room = await it.server.room({ companions: ['aria'] });
  let overview;
  const page = await it.open(t, room, { prepare: async opened => (overview = await holdAnswer(opened, '**/api/overview')) });
  await overview.held;
  // The module for files is still loading when the second one comes.
  await Promise.all(['one.png', 'two.png'].map(name => drop(page, 'drop', name, 'image/png', BLUE.toString('base64'))));
  await page.locator('#files .attachment').nth(1).waitFor();

  overview.release();
  await page.locator('#connection[data-state=live]').waitFor();
  await send(page);

  await page.locator('.chat-message:not(.pending) img').nth(1).waitFor();
});

test('a file that is still read when its message is sent waits for the next message', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await choose(page, [file('sea.png', BLUE, 'image/png')]);
  await page.locator('#files .attachment').waitFor();
  await page.locator('#message').fill('Look.');

  await page.locator('#message').evaluate((field, data) => {
    const carried = new DataTransfer();
    carried.items.add(new File([Uint8Array.from(atob(data), letter => letter.charCodeAt(0))], 'late.png', { type: 'image/png' }));
    field.dispatchEvent(new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true }));
    document.getElementById('send').click();
  }, BLUE.toString('base64'));

  await page.locator('#files .attachment', { hasText: 'late.png' }).waitFor();
  await page.locator('.chat-message:not(.pending) img').waitFor();
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
