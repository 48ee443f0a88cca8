// Companions of one's own: they are made, changed, copied, deleted, imported and exported on the page.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { card, file, jsonFile, png } from './support/cards.mjs';
import { openMenu, texts, until, world } from './support/world.mjs';

const it = world();

const GREEN = [40, 160, 90];
const RED = [200, 40, 40];

const make = (name, more = {}) => it.server.call('POST', '/api/companions', { companion: { name, persona: `You are ${name}.`, ...more } });
const profileOf = id => it.server.call('GET', `/api/companions/${id}`);

async function lobby(t, options) {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), options);
  await page.locator('.card').first().waitFor();
  return page;
}

// The dialog on top.
const dialog = page => page.locator('dialog[open]').last();
const button = (page, name) => dialog(page).getByRole('button', { name, exact: true });

async function openProfile(page, name) {
  await openMenu(page);
  await page.getByRole('button', { name: 'Choose companions' }).click();
  await page.getByRole('button', { name: `Profile ${name}` }).click();
  await dialog(page).getByRole('heading', { name, exact: true }).waitFor();
}

const isShown = image => image.evaluate(node => node.complete && node.naturalWidth > 0);

test('a companion is made with the keyboard alone, joins the room, and answers', async t => {
  const page = await lobby(t);
  await page.locator('.make').getByRole('button', { name: '+ New companion' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#companion-name:focus').waitFor();
  await page.keyboard.type('Großmutter Hilde');
  await page.keyboard.press('Tab');
  await page.locator('#companion-persona:focus').waitFor();
  await page.keyboard.type('You are a retired baker.');
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');

  await page.getByText('Großmutter Hilde is saved on this server.').waitFor();
  await page.locator('.card', { hasText: 'Großmutter Hilde' }).waitFor();
  const { companion } = await profileOf('grossmutter-hilde');
  assert.deepEqual([companion.persona, companion.interjection], ['You are a retired baker.', 'eager']);
  await page.locator('#message').fill('Großmutter Hilde, are you there?');
  await page.keyboard.press('Enter');
  // A click on its name opens the profile.
  await page.locator('.chat-message.companion:not(.draft) button.who', { hasText: 'Großmutter Hilde' }).click();
  await dialog(page).getByText('You are a retired baker.').waitFor();
  await button(page, 'Why?').first().click();
  await dialog(page).locator('.sentences').waitFor();
});

test('a name that somebody in the room has is told while one types, and nothing is saved under it', async t => {
  const page = await lobby(t);
  const ids = async () => (await it.server.call('GET', '/api/companions')).companions.map(({ id }) => id);
  const before = await ids();
  await page.getByRole('button', { name: '+ New companion' }).click();
  await page.locator('#companion-name').fill('ARIA ');
  await page.locator('#companion-name-problem', { hasText: '“ARIA” is already a name of Aria' }).waitFor();
  await button(page, 'Save').click();
  await page.locator('#companion-name:focus[aria-invalid]').waitFor();
  await page.locator('#companion-name-problem', { hasText: '“Aria” is already a name of aria' }).waitFor();
  assert.deepEqual(await ids(), before);

  await page.locator('#companion-name').fill('Arian');
  await button(page, 'Save').click();
  await page.locator('.card', { hasText: 'Arian' }).waitFor();
});

test('without a name nothing is saved, and what is wrong is said at its field', async t => {
  const page = await lobby(t);
  await page.getByRole('button', { name: '+ New companion' }).click();
  await button(page, 'Save').click();
  await page.locator('#companion-name:focus[aria-invalid]').waitFor();
  await dialog(page).getByText('Give a name.').waitFor();

  await page.locator('#companion-name').fill('Ot\u200bto');
  await button(page, 'Save').click();
  await page.locator('#companion-name-problem', { hasText: 'U+200B' }).waitFor();
  await page.locator('#companion-name').fill('Otto');
  await page.locator('#companion-persona').fill('ä'.repeat(7500));
  await dialog(page).getByText('14.6 of 16 KB').waitFor();
  await page.locator('#companion-persona').fill('ä'.repeat(8200));
  await button(page, 'Save').click();
  await page.locator('#companion-persona:focus[aria-invalid]').waitFor();
});

test('what was typed is not lost by Escape or a click outside', async t => {
  const page = await lobby(t);
  await page.getByRole('button', { name: '+ New companion' }).click();
  await page.locator('#companion-name').fill('Ida');
  await page.keyboard.press('Escape');
  // A click that comes too early may be the second one of a double click.
  await page.locator('dialog .danger:not(:disabled)', { hasText: 'Close without saving' }).waitFor();
  await button(page, 'Keep editing').click();
  await page.mouse.click(5, 5);
  await button(page, 'Keep editing').click();
  assert.equal(await page.locator('#companion-name').inputValue(), 'Ida');

  await page.keyboard.press('Escape');
  await page.locator('dialog .danger:not(:disabled)', { hasText: 'Close without saving' }).click();
  await page.locator('dialog').first().waitFor({ state: 'detached' });
});

test('two people who edit at once: the second one is told, and loses nothing', async t => {
  const { id } = await make('Rosa', { tone: 'Softly.' });
  const page = await lobby(t);
  await openProfile(page, 'Rosa');
  await button(page, 'Edit').click();
  await page.locator('#companion-persona').fill('You are Rosa, who sails.');
  const theirs = await profileOf(id);
  await it.server.call('PUT', `/api/companions/${id}`, { revision: theirs.revision, companion: { ...theirs.companion, tone: 'Loudly.' } });

  await button(page, 'Save').click();
  await dialog(page).getByText('Somebody else changed Rosa meanwhile.').waitFor();
  assert.equal((await profileOf(id)).companion.tone, 'Loudly.');
  await button(page, 'Show their version').click();
  await dialog(page).locator('.theirs', { hasText: 'Loudly.' }).waitFor();
  await button(page, 'Save my version').click();
  await dialog(page).getByText('Rosa is saved on this server.').waitFor();

  const { companion } = await profileOf(id);
  assert.deepEqual([companion.persona, companion.tone], ['You are Rosa, who sails.', 'Softly.']);
});

test('a companion that was deleted while somebody edits it can be saved as a new one', async t => {
  const { id, revision } = await make('Paul');
  const page = await lobby(t);
  await openProfile(page, 'Paul');
  await button(page, 'Edit').click();
  await page.locator('#companion-persona').fill('You are Paul, again.');
  await it.server.call('DELETE', `/api/companions/${id}?revision=${encodeURIComponent(revision)}`);

  await button(page, 'Save').click();
  await button(page, 'Save as a new companion').click();
  await page.getByText('Paul is saved on this server.').first().waitFor();

  assert.equal((await profileOf(id)).companion.persona, 'You are Paul, again.');
});

test('a copy takes everything with it, and deleting asks first and can be undone', async t => {
  await make('Vera', { tone: 'Slowly.', greetings: ['Good evening.'] });
  const page = await lobby(t);
  await openProfile(page, 'Vera');
  await button(page, 'Copy').click();
  await page.locator('#companion-name').fill('Vera the Second');
  await button(page, 'Save').click();
  await page.locator('.card', { hasText: 'Vera the Second' }).waitFor();
  const { companion, rooms } = await profileOf('vera-the-second');
  assert.deepEqual([companion.tone, companion.greetings, rooms.length], ['Slowly.', ['Good evening.'], 1]);

  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.locator('.card .who', { hasText: 'Vera the Second' }).click();
  await button(page, 'Delete').click();
  await button(page, 'Keep').click();
  await button(page, 'Delete').click();
  await page.locator('dialog .danger:not(:disabled)', { hasText: 'Delete' }).last().click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await profileOf('vera-the-second');
  await page.locator('.card .who', { hasText: 'Vera the Second' }).click();
  await button(page, 'Delete').click();
  await page.locator('dialog .danger:not(:disabled)', { hasText: 'Delete' }).last().click();
  await page.getByText('Vera the Second will be deleted in a minute').waitFor();
  await page.locator('.notice', { hasText: 'will be deleted' }).getByRole('button', { name: 'Delete now' }).click();
  await page.locator('.card', { hasText: 'Vera the Second' }).waitFor({ state: 'detached' });

  await assert.rejects(profileOf('vera-the-second'), { status: 404 });
  assert.equal((await profileOf('vera')).companion.name, 'Vera');
});

test('a card in a PNG is shown before it becomes a companion, and its picture is wherever the companion is', async t => {
  const page = await lobby(t);
  await page.locator('.make input[type=file]').setInputFiles(file('nell.png', png(GREEN, card('Nell')), 'image/png'));
  const persona = page.locator('#card-persona');
  await until(page, () => document.querySelector('#card-persona')?.value.includes('Nell keeps a tea house'));
  assert.equal((await persona.inputValue()).includes('log book'), false);
  await dialog(page).getByText('Best in the evening.').waitFor();
  await dialog(page).locator('.unused li', { hasText: 'Settings for other programs' }).waitFor();

  await page.locator('#card-name').fill('Captain Nell');
  await until(page, () => document.querySelector('#card-persona').value.includes('Captain Nell keeps'));
  await dialog(page).getByLabel('before everything else').check();
  await until(page, () => document.querySelector('#card-persona').value.includes('log book'));
  await button(page, 'Use this').click();
  await page.locator('#companion-name').waitFor();
  assert.equal(await page.locator('#companion-name').inputValue(), 'Captain Nell');
  await button(page, 'Save').click();
  await page.locator('.card', { hasText: 'Captain Nell' }).waitFor();

  const { companion, has_card: hasCard, picture } = await profileOf('captain-nell');
  assert.equal(hasCard, true);
  assert.match(companion.persona, /log book/u);
  assert.doesNotMatch(companion.persona, /Stay brief/u);
  const image = page.locator('.card', { hasText: 'Captain Nell' }).locator('.face img');
  await until(page, path => [...document.querySelectorAll('.card .face img')].some(node => node.getAttribute('src') === `${path}?size=28` && node.naturalWidth > 0), picture);
  assert.equal(await isShown(image), true);
  await page.locator('#message').fill('Captain Nell, are you there?');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion:not(.draft) .face img').waitFor();
});

test('a card in JSON without a name asks for one, and can be dropped on the editor', async t => {
  const page = await lobby(t);
  await page.getByRole('button', { name: '+ New companion' }).click();
  const text = JSON.stringify(card('', { description: 'A gull that knows the tides.' }));
  const data = await page.evaluateHandle(content => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([content], 'gull.json', { type: 'application/json' }));
    return transfer;
  }, text);
  await page.locator('form.editor').dispatchEvent('drop', { dataTransfer: data });

  await dialog(page).getByText('This card has no name. Choose one.').waitFor();
  await page.locator('#card-name').fill('Gull');
  await dialog(page).getByRole('button', { name: 'Use this', disabled: false }).click();
  await page.locator('#companion-name').waitFor();
  assert.equal(await page.locator('dialog').count(), 1);
  await button(page, 'Save').click();
  await page.locator('.card', { hasText: 'Gull' }).waitFor();

  assert.match((await profileOf('gull')).companion.persona, /knows the tides/u);
});

test('a companion that is made for a new room is chosen there', async t => {
  const page = await lobby(t);
  await page.getByRole('button', { name: '+ New room' }).click();
  await page.getByLabel('Room name').fill('harbour');
  await page.locator('.companion-picker').getByRole('button', { name: '+ New companion' }).click();
  await page.locator('#companion-name').fill('Udo');
  await button(page, 'Save').click();
  await page.locator('.companion-picker').getByLabel('Udo').waitFor();
  assert.equal(await page.locator('.companion-picker').getByLabel('Udo').isChecked(), true);
  assert.equal(await page.getByLabel('Room name').inputValue(), 'harbour');
  await page.getByRole('button', { name: 'Create' }).click();

  await page.locator('.card', { hasText: 'Udo' }).waitFor();
  assert.deepEqual((await profileOf('udo')).rooms.map(({ id }) => id), ['harbour']);
});

test('a file that is no card is refused with what to do, and another one can be chosen', async t => {
  const page = await lobby(t);
  await page.locator('.make input[type=file]').setInputFiles(file('plain.png', png(RED), 'image/png'));
  await dialog(page).getByText('This file holds no character card.').waitFor();
  await dialog(page).locator('input[type=file]').setInputFiles(jsonFile('other.json', { a: 1 }));
  await dialog(page).getByText('This file holds no character card').waitFor();

  await dialog(page).locator('input[type=file]').setInputFiles(jsonFile('cal.json', card('Cal')));
  await until(page, () => document.querySelector('#card-name')?.value === 'Cal');
  await page.keyboard.press('Escape');

  await assert.rejects(profileOf('cal'), { status: 404 });
});

test('a companion can be tried before it is saved', async t => {
  const page = await lobby(t);
  await page.getByRole('button', { name: '+ New companion' }).click();
  await page.locator('#companion-name').fill('Tom');
  await dialog(page).getByRole('button', { name: 'a dry sceptic' }).click();
  assert.match(await page.locator('#companion-persona').inputValue(), /^You doubt/u);
  await page.locator('#companion-message').fill('Tom, what is new?');
  await page.keyboard.press('Enter');

  await dialog(page).getByText(/Would Tom speak\? (yes|no)/u).waitFor();
  assert.ok((await texts(dialog(page).locator('.said')))[0].length > 'Tom: '.length);
  await assert.rejects(profileOf('tom'), { status: 404 });
});

test('a picture is chosen, replaced and removed, and the companion is exported', async t => {
  const { id } = await make('Pia', { persona: 'You are Pia, who paints.' });
  const page = await lobby(t);
  await openProfile(page, 'Pia');
  await button(page, 'Edit').click();
  const chosen = dialog(page).locator('.picture-row input[type=file]');
  await chosen.setInputFiles(file('pia.txt', Buffer.from('no picture'), 'image/png'));
  await dialog(page).getByText('This file cannot be used as a picture.').waitFor();
  await chosen.setInputFiles(file('pia.png', png(GREEN, null, 512), 'image/png'));
  await dialog(page).locator('.picture img').waitFor();
  await button(page, 'Save').click();
  await dialog(page).getByText('Pia is saved on this server.').waitFor();
  // It is sent about as large as it is shown.
  await until(page, () => document.querySelector('.profile-head img')?.naturalWidth === 96);

  const [json] = await Promise.all([page.waitForEvent('download'), dialog(page).getByRole('link', { name: 'Export as a card (JSON)' }).click()]);
  const exported = JSON.parse(await readFile(await json.path(), 'utf8'));
  assert.equal((exported.data ?? exported).name, 'Pia');
  const [image] = await Promise.all([page.waitForEvent('download'), button(page, 'Export as a card (PNG)').click()]);
  assert.equal(image.suggestedFilename(), 'Pia.png');
  const again = await it.server.call('GET', `/api/companions/${id}`);
  assert.match(again.picture, /^\/pictures\/pia\//u);

  await button(page, 'Edit').click();
  await button(page, 'Remove the picture').click();
  await button(page, 'Save').click();
  await dialog(page).getByText('Pia is saved on this server.').waitFor();
  assert.equal((await profileOf(id)).picture, undefined);
});

test('from its profile a companion joins and leaves the room', async t => {
  await make('Lea');
  const page = await lobby(t);
  await openProfile(page, 'Lea');
  await dialog(page).getByText('In no room yet.').waitFor();
  await dialog(page).getByRole('button', { name: /^Add to/u }).click();
  await dialog(page).getByRole('button', { name: /^Remove from/u }).waitFor();
  await page.locator('.card', { hasText: 'Lea' }).waitFor({ state: 'attached' });

  await dialog(page).getByRole('button', { name: /^Remove from/u }).click();
  await dialog(page).getByText('In no room yet.').waitFor();
  await page.locator('.card', { hasText: 'Lea' }).waitFor({ state: 'detached' });
});

test('what a companion can say first is offered in an empty room', async t => {
  await make('Mia', { greetings: ['The lamp is lit.', 'Who is there?'] });
  const page = await it.open(t, await it.server.room({ companions: ['mia'] }));
  await page.getByText('Or let a companion begin').click();
  await page.locator('.suggestion', { hasText: 'Who is there?' }).waitFor();

  await page.locator('.suggestion', { hasText: 'Let Mia begin: The lamp is lit.' }).click();

  await page.locator('.chat-message.companion', { hasText: 'The lamp is lit.' }).waitFor();
  await page.locator('.suggestion').first().waitFor({ state: 'detached' });
});

test('a dialog is loaded when it is opened, and says so if it cannot be', async t => {
  const page = await lobby(t);
  const loaded = [];
  page.on('request', request => /(-later|companion-editor)\.js/u.test(request.url()) && loaded.push(request.url()));
  let isAway = true;
  await page.route(/(-later|companion-editor)\.js/u, route => (isAway ? route.abort() : route.continue()));
  const make = page.locator('.make').getByRole('button', { name: '+ New companion' });

  await make.click();
  await page.getByText('The server cannot be reached.').waitFor();
  const before = loaded.length;
  isAway = false;
  await make.click();

  await page.locator('#companion-name:focus').waitFor();
  assert.ok(before > 0 && loaded.length > before, loaded.join(' '));
});
