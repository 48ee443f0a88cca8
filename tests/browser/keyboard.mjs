// Tasks without a pointer, and what a screen reader is told: the tree that Chromium gives it, and what is announced.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { feeds, hears, listen, until, world } from './support/world.mjs';

const it = world();

const OPERATED = new Set(['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'spinbutton', 'DisclosureTriangle', 'dialog', 'article']);
const MOST_STEPS = 60;

// What a screen reader reads, in its order.
async function tree(page) {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  const children = new Map(nodes.map(node => [node.nodeId, node]));
  const inOrder = node => [node, ...(node.childIds ?? []).flatMap(id => (children.has(id) ? inOrder(children.get(id)) : []))];
  return inOrder(nodes[0])
    .filter(node => !node.ignored)
    .map(node => ({ role: node.role?.value, name: node.name?.value ?? '', description: node.description?.value ?? '', isFocused: (node.properties ?? []).some(({ name, value }) => name === 'focused' && value.value) }));
}
const nameless = async page => (await tree(page)).filter(({ role, name }) => OPERATED.has(role) && !name.trim()).map(({ role }) => role);
// What has the focus. The document has it, too.
const focused = async page => (await tree(page)).findLast(node => node.isFocused) ?? null;

// Goes to the element with this name by the tab key, and checks that its focus can be seen.
async function go(page, name, key = 'Tab') {
  for (let step = 0; step < MOST_STEPS; step += 1) {
    if (!name.test((await focused(page))?.name ?? '')) {
      await page.keyboard.press(key);
      continue;
    }
    const isSeen = await page.evaluate(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return document.activeElement.matches('textarea, input') || (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0);
    });
    assert.ok(isSeen, `the focus of ${name} is not shown`);
    return;
  }
  assert.fail(`the tab key does not reach ${name}`);
}

const MENU = /^(Menu|More)$/u;

// What is not shown is in the menu.
async function press(page, name) {
  const isShown = await page.getByRole('button', { name }).first().isVisible();
  for (const next of isShown ? [name] : [MENU, name]) {
    await go(page, next);
    await page.keyboard.press('Enter');
  }
}

const hasFocus = (page, name) => until(page, wanted => new RegExp(wanted, 'u').test(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent), name.source);
const isKept = page => until(page, () => document.activeElement !== document.body);
const dialogOpens = page => page.locator('dialog[open]').waitFor();
const dialogCloses = page => page.locator('dialog[open]').waitFor({ state: 'detached' });

async function open(t, setup = { companions: ['aria', 'bruno'] }) {
  const page = await it.open(t, await it.server.room(setup), { storage: { decisions: undefined } });
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('.card, #companions > *').first().waitFor();
  return page;
}

test('a first message, and why it was answered', async t => {
  const page = await open(t);
  await page.keyboard.type('Aria, good morning!');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion').waitFor();

  await go(page, /^Conversation$/u, 'Shift+Tab');
  for (let step = 0; step < 5 && !(await page.locator('.chat-message.companion:focus').count()); step += 1) await page.keyboard.press('ArrowUp');
  const { role, name, description } = await focused(page);
  assert.match(`${role} ${name}`, /^article Aria, /u);
  assert.match(description, /Ana/u);

  for (let step = 0; step < 5 && (await focused(page)).name !== 'Why?'; step += 1) await page.keyboard.press('ArrowRight');
  const button = await page.evaluateHandle(() => document.activeElement);
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.companion .story .quiet-button').first().waitFor();
  assert.deepEqual(await nameless(page), []);
  // Another one in its place would be read as a move.
  assert.deepEqual(await button.evaluate(node => [node === document.activeElement, node.textContent, node.ariaExpanded, Boolean(document.getElementById(node.getAttribute('aria-controls')))]), [true, 'Why?', 'true', true]);
  await page.keyboard.press('Escape');
  await hasFocus(page, /^Why\?$/u);
});

test('few keys lead to the newest message, and bring back what was deleted', async t => {
  const page = await open(t, { externals: ['una', 'vic', 'wim', 'xia', 'yan', 'zed'] });
  await page.keyboard.type('Good morning!');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message.user:not(.pending)').waitFor();

  await page.keyboard.press('Alt+ArrowUp');
  await page.locator('.chat-message.user:focus').waitFor();
  for (let step = 0; step < 4 && (await focused(page)).name !== 'Delete'; step += 1) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message').waitFor({ state: 'detached' });
  await listen(page);
  await page.keyboard.press('Control+z');
  await page.locator('.chat-message', { hasText: 'Good morning!' }).waitFor();
  await hears(page, 'The message is back.');

  // In a text the keys undo what was typed.
  await page.locator('.chat-message.user').focus();
  for (let step = 0; step < 4 && (await focused(page)).name !== 'Delete'; step += 1) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.locator('.chat-message').waitFor({ state: 'detached' });
  await page.locator('#message').focus();
  await page.keyboard.type('a');
  await page.keyboard.press('Control+z');
  assert.equal(await page.locator('.notice').count(), 1);
});

test('while a companion thinks, a screen reader is given nothing new', async t => {
  const room = await it.server.room({ externals: ['una'] });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { decisions: 'shown' } });
  await page.locator('#connection[data-state=live]').waitFor();
  const message = await it.server.say(room, 'Una, good morning!');
  await live.event(one => one.event === 'round_opened' && one.message_id === message);
  await page.locator('.card[data-doing=asked]').waitFor();

  const clock = page.locator('.card .doing > [aria-hidden]');
  const before = await clock.textContent();
  await page.evaluate(() => {
    window.news = [];
    const take = changes => changes.forEach(({ target }) => {
      const node = target.closest ? target : target.parentElement;
      if (!node.closest('[aria-hidden=true]') && node.checkVisibility()) window.news.push(node.outerHTML);
    });
    new MutationObserver(take).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await until(page, shown => document.querySelector('.card .doing > [aria-hidden]').textContent !== shown, before);
  await until(page, shown => document.querySelector('.card .doing > [aria-hidden]').textContent !== shown, await clock.textContent());

  assert.deepEqual(await page.evaluate(() => window.news), []);
});

test('an invitation begins with its first field', async t => {
  const page = await open(t);
  await press(page, /^Invite$/u);
  await page.locator('#invite-ends:focus').waitFor();
});

test('dialogs have names for everything, and give the focus back', async t => {
  const page = await open(t);
  for (const name of [/^Rename/u, /^Invite$/u, /^Keyboard shortcuts/u, /^\+ New companion$/u]) {
    await press(page, name);
    await dialogOpens(page);
    assert.deepEqual(await nameless(page), [], name.source);
    await page.keyboard.press('Escape');
    await dialogCloses(page);
    await hasFocus(page, new RegExp(`${name.source}|${MENU.source}`, 'u'));
  }

  await press(page, /^\+ New companion$/u);
  await hasFocus(page, /^$/u);
  await page.keyboard.type('Zora');
  await press(page, /^Save$/u);
  await dialogCloses(page);
  await hasFocus(page, /^\+ New companion$/u);
});

test('the focus stays near what was pressed when that is drawn again or goes away', async t => {
  const page = await open(t);
  await listen(page);
  await press(page, /^Pause the whole room/u);
  await hears(page, 'The whole room was paused');
  await isKept(page);
  await go(page, /^Dismiss$/u);
  await page.keyboard.press('Enter');
  await page.locator('#model-trouble').waitFor({ state: 'hidden' });
  await isKept(page);

  await press(page, /^Delete this room/u);
  await dialogOpens(page);
  await press(page, /^Delete$/u);
  await page.locator('.notice button').first().waitFor();
  await isKept(page);
  // The seconds that are left are not read again and again.
  await press(page, /^Undo$/u);
  await page.locator('.notice').waitFor({ state: 'detached' });
  await isKept(page);
});

test('the tab key leaves the page behind its last button', async t => {
  const page = await open(t);
  await page.locator('#send').focus();
  await page.keyboard.press('Tab');

  await page.evaluate(() => document.body.append(document.createElement('i')));
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

  assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
});

test('a call is joined and left', async t => {
  const page = await open(t);
  const leave = page.getByRole('button', { name: /^Leave/u });
  await press(page, /^(Join the call|Voice ▸ Set up)$/u);
  await dialogOpens(page);
  assert.deepEqual(await nameless(page), []);
  // Where voice is not set up, that is said first.
  do {
    await press(page, /^Listen to the call$/u);
    await leave.or(page.locator('dialog[open]')).first().waitFor();
  } while (await page.locator('dialog[open]').count());
  await listen(page);
  await press(page, /^Leave/u);
  await leave.waitFor({ state: 'detached' });
  await hears(page, 'Ana left the voice call.');
  await isKept(page);
});

test('with eight companions messages are announced, and whom they are for, and nothing else', async t => {
  const externals = ['ann', 'ben', 'cat', 'dan', 'eva', 'fay', 'gil', 'hal'];
  const room = await it.server.room({ externals });
  const live = await it.watch(t, room);
  const page = await it.open(t, room, { storage: { people: ['Ana'] } });
  await page.locator('#connection[data-state=live]').waitFor();
  await listen(page);

  const ask = 'ann, ben, cat, dan, eva, fay, gil, hal: who is right?';
  const message = await it.server.say(room, ask, 'Dora');
  for (const id of externals) await live.vote(id, message, id === 'fay' ? { state: 'speak', importance: 4 } : {});
  await live.speak('fay', message, 'I think Ana knows.');
  await until(page, () => window.said.some(said => said.includes('knows')));

  assert.deepEqual(await page.evaluate(() => window.said), [`Dora: ${ask}`, 'Fay to you: I think Ana knows.']);
});

test('what has the focus in a new companion is not below the bar with the buttons', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }), { viewport: { width: 1280, height: 600 }, storage: { decisions: undefined } });
  await page.locator('#connection[data-state=live]').waitFor();
  await press(page, /^\+ New companion$/u);
  await dialogOpens(page);

  const hidden = [];
  for (let height = 760; height < 880; height += 20) {
    await page.setViewportSize({ width: 1280, height });
    await page.locator('dialog input[maxlength="64"]').focus();
    await go(page, /^More: /u);
    if (await page.evaluate(() => document.activeElement.getBoundingClientRect().bottom > document.querySelector('dialog .last').getBoundingClientRect().top)) hidden.push(height);
  }

  assert.deepEqual(hidden, []);
});

test('an edit says whose message it is, and that it is saved', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  await it.server.say(room, 'The ferry was late.', 'Ana');
  const page = await it.open(t, room, { storage: { people: ['Ana'], decisions: undefined } });
  await page.locator('#connection[data-state=live]').waitFor();
  await page.locator('.chat-message').waitFor();
  await listen(page);

  // The field has the focus already.
  await page.locator('#message').press('ArrowUp');
  await hears(page, 'Editing your message');
  assert.equal((await focused(page)).description, 'Editing your message');
  await page.getByRole('button', { name: 'Save' }).waitFor();
  await page.keyboard.type(' Again.');
  await page.keyboard.press('Enter');
  await hears(page, 'The change is saved.');
  await page.getByRole('button', { name: 'Send' }).waitFor();
  assert.equal((await focused(page)).description, '');
});

test('of many messages at once the newest are read, and how many more there are', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const page = await it.open(t, room, { storage: { decisions: undefined }, prepare: feeds });
  await page.locator('#connection[data-state=live]').waitFor();
  await listen(page);

  await page.evaluate(() => window.live(['One', 'Two', 'Three', 'Four', 'Five', 'Six'].map(text => ({ event: 'message', id: text, role: 'user', from: 'Dora', text }))));
  await hears(page, 'Dora: Six');

  assert.deepEqual(await page.evaluate(() => window.said), ['3 more messages', 'Dora: Four', 'Dora: Five', 'Dora: Six']);
});
