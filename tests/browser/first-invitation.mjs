// The first invitation of a server without an admin token.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { world } from './support/world.mjs';

const it = world();

test('the first invitation makes an admin token, this browser stays signed in, and others are asked for it', async t => {
  const room = await it.server.room({ externals: ['zed'] });
  const host = await it.open(t, room, { storage: { people: ['Ana'] } });
  await host.locator('#connection[data-state=live]').waitFor();
  await host.locator('#invite').click();
  await host.getByText('When you make the first link, this server gets a password').waitFor();
  await host.locator('dialog form button').click();
  await host.getByText('It is in the file').waitFor();
  await host.getByText('When you make the first link, this server gets a password').waitFor({ state: 'detached' });

  await host.reload();
  await host.locator('#connection[data-state=live]').waitFor();

  const other = await it.open(t, null, { link: `${it.server.url}/signin` });
  await other.getByLabel('Password of this server').waitFor();
  assert.equal((await other.request.get(`${it.server.url}/api/rooms`)).status(), 401);
});
