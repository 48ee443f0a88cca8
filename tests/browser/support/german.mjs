// What a page in German shows that is not German.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const flat = (section, before = '') => Object.entries(section).flatMap(([key, value]) => (typeof value === 'string' ? [[before + key, value]] : flat(value, `${before}${key}.`)));
const read = async language => flat(JSON.parse(await readFile(new URL(`../../../src/texts/${language}.json`, import.meta.url), 'utf8')));
const german = await read('de');
const keys = german.map(([key]) => key.replace(/\.(one|other)$/u, ''));
const words = new Set(german.map(([, text]) => text));
// Texts that are never German.
const english = new Set((await read('en')).map(([, text]) => text).filter(text => !words.has(text)));

// Everything on the page that people read or hear, and that is no text for them in German.
export async function untranslated(page) {
  const shown = await page.evaluate(() => {
    const found = [];
    for (const node of document.body.querySelectorAll('*')) {
      for (const name of ['aria-label', 'aria-valuetext', 'title', 'placeholder', 'data-words']) found.push(node.getAttribute(name) ?? '');
      for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) found.push(child.textContent);
    }
    return found.map(text => text.trim()).filter(Boolean);
  });
  assert.ok(shown.length > 20);
  return shown.filter(text => english.has(text) || keys.some(key => text.includes(key)) || /\{[\w.]*\}|undefined|NaN|\[object/u.test(text));
}
