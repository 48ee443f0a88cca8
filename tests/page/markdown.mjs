// What the page makes of Markdown that a model writes. Run with `node --test tests/page/markdown.mjs`; needs Node 18 or later, and no package.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, stub } from './support/modules.mjs';

// Its words do not matter here.
stub('texts.js', 'export const t = key => key');
await load('marked.js');
await load('dom.js');
const { draw, elsewhere, linked, read } = await load('markdown.js');

const MAX_CHARS = 20_000;
const filled = unit => unit.repeat(Math.ceil(MAX_CHARS / unit.length)).slice(0, MAX_CHARS);

test('a text that takes too long to read is refused', () => {
  const nested = mark => `${mark}a `.repeat(3_000) + ` a${mark}`.repeat(3_000);
  for (const text of [nested('_'), nested('*'), nested('~~'), filled('_a__'), filled('a_'), filled('__a_'), filled('> ')]) {
    assert.throws(() => read(text), { message: 'this Markdown takes too long to read' }, text.slice(0, 20));
  }
});

test('long texts that people and models write are read', () => {
  for (const unit of [
    'Some **bold** and _emphasised_ words, `code` and a_name_with_lines.\n\n',
    '- **Item**: some _words_ about it\n  - a sub *item*\n    - and __one__ more\n',
    '> quoted **words**\n',
    '| **a** | _b_ | ~c~ |\n',
  ]) {
    assert.ok(read(filled(unit)).length > 0, unit);
  }
});

test('a link whose text is another address says where it leads', () => {
  for (const [text, href, there] of [
    ['https://bank.example', 'https://evil.example/login', 'evil.example'],
    ['bank.example', 'https://evil.example/bank.example', 'evil.example'],
    ['Sign in at www.bank.example now', 'https://evil.example', 'evil.example'],
    ['ba\u202enk.example', 'https://evil.example', 'evil.example'],
    ['bank.example', 'https://b\u0430nk.example', 'xn--bnk-6cd.example'],
    ['https://bank.example@evil.example', 'https://bank.example@evil.example', 'evil.example'],
    ['192.0.2.1', 'https://198.51.100.7/', '198.51.100.7'],
    ['ana@bank.example', 'mailto:eva@evil.example?subject=x', 'eva@evil.example'],
  ]) {
    assert.equal(elsewhere(text, href), there, text);
  }
  for (const [text, href] of [
    ['the sea', 'https://evil.example'],
    ['https://bank.example:8080/a.b/c.tar.gz?d=e.example', 'https://bank.example:8080/a.b/c.tar.gz?d=e.example'],
    ['docs/security.md', 'https://bank.example/docs/security.md'],
    ['https://bank.example/a', 'https://www.bank.example/b'],
    ['WWW.Bank.example', 'https://bank.example'],
    ['bücher.example', 'https://xn--bcher-kva.example/'],
    ['version 1.25, e.g. this', 'https://bank.example'],
    ['ana@bank.example', 'mailto:ana@bank.example'],
    ['write to Ana', 'mailto:ana@bank.example'],
  ]) {
    assert.equal(elsewhere(text, href), null, text);
  }
});

// As much of a document as the drawing of links needs.
const node = tag => ({ tag, attributes: {}, children: [], setAttribute(name, value) { this.attributes[name] = value; }, append(...more) { this.children.push(...more); }, addEventListener() {} });
const all = tree => (Array.isArray(tree) ? tree.flatMap(all) : tree?.tag ? [tree, ...tree.children.flatMap(all)] : []);
const links = tree => all(tree).filter(({ tag }) => tag === 'a').map(({ attributes }) => attributes.href);

test('an address in a text keeps its own brackets and leaves what surrounds it', () => {
  globalThis.document = { createElement: node, createElementNS: (_, tag) => node(tag) };
  const page = 'https://example.org/a';
  const article = 'https://en.wikipedia.org/wiki/Rust_(game)';
  for (const [text, ...expected] of [
    [`See ${article} for more`, article],
    [`(see ${article})`, article],
    [`((${article})).`, article],
    [`(see ${page})`, page],
    [`[${page}] {${page}}`, page, page],
    [`${page}. Next`, page],
    [`${page}...`, page],
    [`请看${page}，谢谢`, page],
    [`请看（${page}）`, page],
    [`「${page}」を見て`, page],
    [`《${page}》！${page}。次`, page, page],
    [`“${page}” <${page}>`, page, page],
    [`**${page}**`, page],
    ['https://example.org/?q=a&b=c_d_e*f', 'https://example.org/?q=a&b=c_d_e*f'],
    ['https://a.b/c?d={x}', 'https://a.b/c?d={x}'],
    ['https:// and http://)'],
  ]) {
    assert.deepEqual(links(linked(text, part => [part])), expected, text);
    assert.deepEqual(links([draw(node('div'), text, part => [part])]), expected, text);
  }
  assert.ok(links(linked(`https://a.b/${')'.repeat(100_000)}`, part => [part])).length === 1);
});
