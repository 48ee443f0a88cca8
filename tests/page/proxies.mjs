// The lines for proxies that the page shows are those of the documentation, which `.ci/proxies` tries. Run with `node --test tests/page/proxies.mjs`.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

const imported = { 'api.js': [], 'dialogs.js': ['confirmed'], 'dom.js': ['el', 'plain', 'svg'], 'markdown.js': ['copyButton'], 'texts.js': ['listed', 'pieces', 't'], 'words.js': [] };
for (const [name, exported] of Object.entries(imported)) await stub(name, exported.map(one => `export const ${one} = null;`).join('\n'));
const { caddy, nginx } = await load('elsewhere.js');

test('the page shows the lines for proxies of the documentation', async () => {
  const network = await readFile(new URL('../../docs/network.md', import.meta.url), 'utf8');

  for (const lines of [caddy, nginx]) assert.ok(network.includes(`\n${lines('talk.example.org', '127.0.0.1:7878')}\n\`\`\``), lines('talk.example.org', ''));
});
