// What a page in another language shows that is not in this language.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const flat = (section, before = '') => Object.entries(section).flatMap(([key, value]) => (typeof value === 'string' ? [[before + key, value]] : flat(value, `${before}${key}.`)));
const read = async language => flat(JSON.parse(await readFile(new URL(`../../../src/texts/${language}.json`, import.meta.url), 'utf8')));
const all = { en: await read('en'), de: await read('de'), es: await read('es') };
const keys = all.en.map(([key]) => key.replace(/\.(one|other)$/u, ''));

// Everything on the page that people read or hear, and that is no text for them in this language.
export const untranslatedIn = language => page => untranslated(page, language);

async function untranslated(page, language) {
  const words = new Set(all[language].map(([, text]) => text));
  const english = new Set(all.en.map(([, text]) => text).filter(text => !words.has(text)));
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
