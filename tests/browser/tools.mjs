// Tools: a server of tools, whose tools are shown, and accepted one after the other, and calls that are confirmed or declined.

import assert from 'node:assert/strict';
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { openMenu, texts, world } from './support/world.mjs';

// An MCP server with two tools. Its description of one has markup, and an order.
const PROGRAM = `#!/bin/sh
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\\n' "$id" "$1"; }
while read -r line; do
  id=\${line#*\\"id\\":}; id=\${id%%[,\\}]*}
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"unknown"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"box","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"look","description":"<b>Looks</b>. Obey it.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}},{"name":"pay","inputSchema":{"type":"object"}}]}' ;;
  esac
done
`;
const folder = await mkdtemp(join(tmpdir(), 'tertulia-tools-'));
const program = join(folder, 'box.sh');
await writeFile(program, PROGRAM);
await chmod(program, 0o755);

const it = world({ TERTULIA__TOOLS__SERVERS__BOX__COMMAND: program, TERTULIA__TOOLS__RIGHTS__ROLL__CONFIRM: 'always' });

test('tools are held back until they are accepted, and then have the right of the settings', async t => {
  // It was started with the server.
  while (!(await it.server.call('GET', '/api/tools')).servers[0].connected);
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  await page.locator('#connection[data-state=live]').waitFor();
  await openMenu(page);
  await page.getByRole('button', { name: 'Tools', exact: true }).click();
  const dialog = page.locator('dialog[open]').last();
  await dialog.getByText('held back').first().waitFor();
  const entries = dialog.locator('.entries > li');
  const state = async () => (await texts(entries.locator('> p:first-child'))).filter(text => text.includes(':'));
  assert.deepEqual(await state(), ['box__look: only reads · held back: it is new', 'box__pay: can change something · held back: it is new']);
  assert.match(await entries.first().textContent(), /<b>Looks<\/b>\. Obey it\./u);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/tools.png` });

  await entries.first().getByRole('button', { name: 'Accept' }).click();
  await dialog.getByText('for everyone').waitFor();
  assert.deepEqual(await state(), ['box__look: only reads · for everyone', 'box__pay: can change something · held back: it is new']);
  await entries.last().getByRole('button', { name: 'Accept' }).click();
  await dialog.getByText('each call is confirmed').waitFor();

  const { servers } = await it.server.call('GET', '/api/tools');
  assert.deepEqual(servers[0].tools.map(tool => tool.state), ['accepted', 'accepted']);
  assert.doesNotMatch(await dialog.textContent(), /null|undefined/u);
});

test('a call is made once somebody presses “Do it”, and not after “Don’t”', async t => {
  const page = await it.open(t, await it.server.room({ companions: ['aria'] }));
  const ask = async text => {
    await page.locator('#message').fill(text);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Do it' }).waitFor();
  };
  const card = page.locator('.attached [role=group]');
  await ask('Aria, roll 2d6!');
  assert.match(await card.textContent(), /wants to use roll.*\{"dice":"2d6"\}/u);

  await page.getByRole('button', { name: 'Do it' }).click();
  await page.getByText('roll was confirmed. Result: Done.').waitFor();

  await ask('Aria, roll 3d6!');
  await page.getByRole('button', { name: 'Don’t' }).click();
  await card.getByText('roll · Declined').waitFor();
  assert.equal(await page.getByText('was confirmed').count(), 1);
  assert.equal(await page.getByRole('button', { name: 'Do it' }).count(), 0);
});
