// Friends in a room: the operator invites, guests join with a link, talk and call, and are out once the link is revoked.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { dialog, heard, invite, isLive, it, join, roomOfFriends, say, visit } from './support/friends.mjs';
import { listenFirst, openMenu, texts, until } from './support/world.mjs';

test('a friend joins with a link, both talk, and each sees that the other is here and typing', async t => {
  const room = await roomOfFriends({ externals: ['zed'] });
  await it.server.say(room, 'Said before the invitation.', 'Ana');
  const host = await it.open(t, room, { storage: { people: ['Ana'], decisions: undefined } });
  await isLive(host);
  const link = await invite(host);

  const ben = await it.open(t, null, { link });
  await ben.getByText('AI companion').waitFor();
  assert.equal(new URL(ben.url()).hash, '');
  await ben.getByLabel('Your name').fill('Ben');
  await ben.getByRole('button', { name: 'Join' }).click();
  await isLive(ben);
  assert.equal(new URL(ben.url()).hash, `#/${room}`);
  await ben.locator('#here', { hasText: 'Ana' }).waitFor();
  await host.locator('#here', { hasText: 'Ben' }).waitFor();
  assert.deepEqual(await texts(ben.locator('#here li')), ['Here now:', 'Ana', 'Ben (you)', 'Zed AI']);
  assert.deepEqual(await texts(host.locator('#here li')), ['Ben (guest)', 'Zed AI']);

  await host.locator('#message').pressSequentially('Hello');
  await ben.locator('#presence .person', { hasText: 'Ana' }).waitFor();
  await host.keyboard.press('Enter');
  await heard(ben, 'Hello');
  await ben.locator('#presence .person').waitFor({ state: 'detached' });
  await ben.locator('#message').pressSequentially('Hi');
  await host.locator('#presence .person', { hasText: 'Ben is typing' }).waitFor();
  await ben.keyboard.press('Enter');
  await heard(host, 'Hi');
  await host.locator('#presence .person').waitFor({ state: 'detached' });

  assert.equal(await ben.getByText('Said before the invitation.').count(), 0);
  await ben.close();
  await host.locator('#here', { hasNotText: 'Ben' }).waitFor();
});

test('a guest edits and deletes own messages only, and finds nothing that only operators may do', async t => {
  const { host, ben } = await visit(t);
  await say(host, 'The host was here.');
  await say(ben, 'The guest was here.');
  await heard(ben, 'The host');
  await heard(ben, 'The guest');
  await heard(host, 'The guest');

  assert.deepEqual((await texts(ben.locator('.tools'))).sort(), ['Reply', 'ReplyEditDelete']);
  assert.equal(await ben.locator('#room-menu, #model, #decisions, #invite, #people, .card, button.who, .permalink').count(), 0);
  await ben.locator('#message').press('ArrowUp');
  await say(ben, 'The guest is here.');
  await heard(host, 'The guest is here.');
  await ben.locator('.chat-message', { hasText: 'The guest is here.' }).locator('[data-focus=delete]').press('Enter');
  await ben.getByRole('button', { name: 'Delete now' }).click();
  await host.getByText('A message was deleted').waitFor();
  assert.equal(await ben.locator('.chat-message').count(), 1);
});

test('one sentence below a message tells a guest who answered, without votes', async t => {
  const { ben } = await visit(t, { companions: ['aria'] });

  await say(ben, 'Aria, are you there?');
  await ben.locator('.chat-message.companion:not(.draft)').waitFor();

  // That she answered is seen.
  assert.equal(await ben.locator('.happened, .line, .round, .stop-reply').count(), 0);
  await ben.reload();
  await ben.locator('.chat-message.companion').waitFor();
});

test('a guest is told once, below the first answer, that companions are AI, and the operator is not', async t => {
  const { room, host, ben } = await visit(t, { companions: ['aria'] });
  const ask = async (page, text, answers) => {
    await say(page, text);
    await page.locator('.chat-message.companion:not(.draft)').nth(answers - 1).waitFor();
  };

  await ask(host, 'Aria, are you there?', 1);
  assert.equal(await host.locator('.of-server').count(), 0);
  await ask(ben, 'Aria, do you hear me?', 2);
  for (const page of [ben, host]) await page.locator('.chat-message.companion .of-server', { hasText: 'Companions here are AI, not people.' }).waitFor();
  await ask(ben, 'Aria, and what is your name?', 3);
  await ben.reload();
  await ben.locator('.chat-message.companion').nth(2).waitFor();

  assert.equal(await ben.locator('.of-server').count(), 1);
  assert.deepEqual(await texts(ben.locator('.chat-message[data-ai-generated] header .ai')), ['AI', 'AI', 'AI']);
  const { messages } = await it.server.call('GET', `/api/rooms/${room}/history`);
  assert.deepEqual(messages.map(({ role, ai = false, notice = null }) => [role, ai, notice]).filter(([, ai, notice]) => ai && notice), [['companion', true, {}]]);
});

test('the notice stays with the answer that takes the place of the first one, and a guest is told of no deletion', async t => {
  const { host, ben } = await visit(t, { companions: ['aria'] });
  const answer = page => page.locator('.chat-message.companion:not(.draft)');
  await say(ben, 'Aria, do you hear me?');
  for (const page of [ben, host]) await answer(page).locator('.of-server').waitFor();
  const key = await answer(ben).getAttribute('data-key');

  await answer(host).hover();
  await host.getByRole('button', { name: 'Replace this answer' }).click();
  await ben.locator(`[data-key="${key}"]`).waitFor({ state: 'detached' });
  await answer(ben).locator('.of-server').waitFor();
  await host.getByRole('button', { name: 'Previous version' }).click();
  await host.getByText('Version 1 of 2').waitFor();
  for (const isReloaded of [false, true]) {
    if (isReloaded) await ben.reload();
    await answer(ben).locator('.of-server').waitFor();
    assert.equal(await ben.getByText('was deleted').count(), 0);
    assert.equal(await ben.getByText('edited', { exact: true }).count(), 0);
  }
});

test('somebody at risk is shown where to find help, and nobody else is', async t => {
  const { room, host, ben } = await visit(t, { companions: ['aria'] });
  const cleo = await join(t, await invite(host), 'Cleo');

  await say(ben, 'Aria, I want to die.');
  await ben.locator('.chat-message .help', { hasText: 'Please talk to somebody, now' }).waitFor();
  await say(ben, 'Aria, are you there?');
  for (const page of [host, cleo, ben]) await page.locator('.chat-message.companion:not(.draft)').waitFor();
  await ben.reload();
  await ben.locator('.chat-message .help', { hasText: 'Only you see this.' }).waitFor();

  for (const page of [host, cleo]) {
    assert.equal(await page.locator('.help').count(), 0);
    await page.getByRole('button', { name: 'Aria stayed silent.' }).waitFor();
  }
  assert.equal(await ben.locator('.help').count(), 1);
  const { decisions } = await it.server.call('GET', `/api/decisions?room=${room}`);
  assert.ok(decisions.some(({ decision, reason }) => decision === 'NO' && reason === 'risk'), JSON.stringify(decisions));
});

test('a guest is told that a companion cannot answer, and the owner also why', async t => {
  const { host, ben } = await visit(t, { companions: ['aria'] });
  t.after(() => it.server.call('DELETE', '/api/models'));
  await it.server.call('PUT', '/api/models', { base_url: 'http://127.0.0.1:9/v1', api_key: 'k', main: { model: 'large' }, side: { model: 'small' } });

  await say(ben, 'Aria, are you there?');

  await ben.locator('.happened', { hasText: 'Aria cannot answer now' }).waitFor();
  await host.locator('.happened', { hasText: 'Aria could not answer: the model could not be reached' }).waitFor();
  await ben.locator('.happened-head').click();
  assert.deepEqual(await texts(ben.locator('.happened li')), ['Aria cannot answer now']);
});

test('a guest is in the call under the own name', async t => {
  const { room, host, ben } = await visit(t, { companions: ['aria'] });

  // Without services for speech, only whoever looks for a call begins one.
  assert.equal(await ben.locator('#voice').isVisible(), false);
  await listenFirst(host);
  await ben.locator('.voice-about', { hasText: 'In the voice call: Ana' }).waitFor({ timeout: 5000 });
  await ben.getByRole('button', { name: 'Listen to the call' }).click();
  await ben.locator('#voice[data-phase=live]').waitFor();
  await ben.locator('#more').click();
  await ben.locator('#leave').click();
  await dialog(ben).getByText('You leave the voice call, too.').waitFor();
  await dialog(ben).getByRole('button', { name: 'Stay' }).click();
  assert.deepEqual((await it.server.call('GET', `/api/rooms/${room}/voice`)).people.map(({ user }) => user).sort(), ['Ana', 'Ben']);
  await host.locator('.voice-people', { hasText: 'Ben' }).waitFor();
  await ben.locator('.voice-people', { hasText: 'Ana' }).waitFor();

  await ben.locator('#voice').getByRole('button', { name: 'Leave' }).click();
  await host.locator('.voice-people', { hasNotText: 'Ben' }).waitFor();
});

test('once a link is revoked, its guests are told at once, and it leads nowhere', async t => {
  const { host, link, ben } = await visit(t);
  await host.locator('#invite').click();
  await dialog(host).getByText('Ben (here now)').waitFor();
  await dialog(host).getByRole('button', { name: 'Revoke' }).click();
  await dialog(host).getByText('Ben must leave at once').waitFor();
  await dialog(host).locator('button.danger:enabled').click();

  await ben.getByRole('heading', { name: 'Your visit has ended' }).waitFor();
  await host.getByText('Links that no longer work (1)').click();
  await host.locator('.invitations li', { hasText: 'revoked' }).waitFor();
  assert.equal(await host.locator('.invitations').getByRole('button', { name: 'Revoke' }).count(), 0);
  await ben.goto(link);
  await ben.getByRole('heading', { name: 'There is no such invitation' }).waitFor();
});

test('an operator does not write under the name of a guest', async t => {
  const { host } = await visit(t, { externals: ['zed'], people: ['Ana', 'Ben'] });

  await host.getByRole('button', { name: 'Write as Ben' }).waitFor({ state: 'detached' });
  await openMenu(host);
  await host.locator('#me').fill('ben');
  await host.keyboard.press('Enter');
  await host.getByText('Ben is a guest here.').waitFor();
  assert.equal(await host.locator('#me').inputValue(), 'Ana');

  // One who is not here is known to the server.
  await host.route('**/messages', route => route.fulfill({ status: 422, json: { title: 'Invalid', field: 'from', detail: 'is the name of a guest' } }), { times: 1 });
  await say(host, 'Hello');
  await host.locator('#your-name-field:focus').waitFor();
  await host.keyboard.type('Eva');
  await host.keyboard.press('Enter');
  await host.getByRole('button', { name: 'Send again' }).click();
  await heard(host, 'Hello');
  await host.locator('.chat-message', { hasText: 'Eva' }).waitFor();
});

test('who pretends to be somebody else is here under that name', async t => {
  const { host, ben } = await visit(t, { externals: ['zed'], people: ['Ana', 'Dora', 'Eva'] });

  await openMenu(host);
  await host.getByRole('button', { name: 'Write as Eva again' }).waitFor();
  await host.getByRole('button', { name: 'Write as Dora' }).click();

  await ben.locator('#here', { hasText: 'Dora' }).waitFor();
  await until(ben, () => !document.querySelector('#here').textContent.includes('Ana'));
});
