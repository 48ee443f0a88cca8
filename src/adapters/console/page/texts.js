// The texts of the page in the language that the server has chosen for it (src/texts). `{name}` in a text is filled in; a text with a number has two
// forms, chosen by `count`.

import texts from './en.json' with { type: 'json' };

// The service worker has no document, and is there once for each language.
export const LANGUAGE = globalThis.document?.documentElement.lang ?? location.pathname.split('.').at(-2);
export const LANGUAGES = { en: 'English', de: 'Deutsch', es: 'Español' };
// For numbers and dates: the language as this browser's region writes it.
export const LOCALE = navigator.languages.find(one => one.startsWith(LANGUAGE)) ?? LANGUAGE;

function find(key, count) {
  const found = key.split('.').reduce((inner, part) => inner?.[part], texts);
  return (typeof found === 'object' ? found[count === 1 ? 'one' : 'other'] : found) ?? key;
}

const shown = value => (typeof value === 'number' ? value.toLocaleString(LOCALE) : value);

// The pieces of a text in their order; what is filled in may be nodes, too.
export const pieces = (key, values = {}) => find(key, values.count).split(/\{(\w+)\}/u).map((piece, i) => (i % 2 ? (shown(values[piece]) ?? '') : piece)).filter(piece => piece !== '');

export const t = (key, values) => pieces(key, values).join('');

// Whether there is such a text, for codes of the server that this page may not know.
export const has = key => find(key) !== key;

const conjunction = new Intl.ListFormat(LOCALE, { type: 'conjunction' });
// “A, B and C”, of texts or nodes.
export const listed = items => conjunction.formatToParts(items.map(String)).map(({ type, value }, i) => (type === 'element' ? items[i / 2] : value));

let later = null;
// Few visits need the words of refusals and warnings, and of modules that are loaded later: they are loaded with the first one. Without those of a refusal the server's own words are shown.
export const loadLater = () => (later ??= fetch(`/page/later.${LANGUAGE}.json`).then(response => response.ok && response.json().then(words => Object.assign(texts, words))).catch(() => (later = null)));

// A sentence about these fields starts with a verb.
const FIELDS = { text: 'message', from: 'name', base_url: 'address', api_key: 'key', 'main.model': 'model' };
export function subject(field) {
  if (Object.hasOwn(FIELDS, field)) return `${t(`fields.${FIELDS[field]}`)} `;
  return /\bextra_/u.test(field) ? `${field} ` : '';
}

// A sentence of the server in the words of the page. `why` is its code, with values; one without a text here is shown as the server words it, in English.
export function inWords(why, english = '') {
  const { code, field = '', ...values } = why ?? {};
  if (!has(`refusals.${code}`)) return why?.text ?? english;
  return subject(field) + t(`refusals.${code}`, values);
}
// The same of sentences that stand in a row.
export const allInWords = (whys, english) => (whys?.length ? whys.map(why => inWords(why)).join('; ') : english);

// Asks the server for the page in another language, from now on.
export function speak(language) {
  document.cookie = `language=${language}; path=/; max-age=31536000; samesite=lax`;
  location.reload();
}
