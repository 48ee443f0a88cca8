// Whether a message calls a person by name.

const ELSEWHERE = /```.*?(?:```|(?![^]))|`[^`\n]*`|^ {0,3}>[^\n]*$|(?<!\w)\w+:\/\/\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+/gmsu;
// A name may stand beside letters of scripts that are written without spaces.
const UNSPACED = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}';
const LETTER = `(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}]`;
const isUnspaced = new RegExp(`^[${UNSPACED}]`, 'u');

const plain = text => text.normalize('NFC').trim();

// Whether the name stands in the text as a word of its own, outside code, links and quoted lines. After an “@” and beside a comma case does not matter; elsewhere
// it does, because some names are everyday words.
export function calls(text, name) {
  const wanted = plain(name);
  if (!wanted) return false;
  const words = wanted.split(/\s+/u).map(word => word.replace(/[\\^$.*+?()[\]{}|/-]/gu, '\\$&')).join('\\s+');
  const before = isUnspaced.test(wanted) ? '' : `(?<!${LETTER})`;
  const after = isUnspaced.test([...wanted].at(-1)) ? '' : `(?!${LETTER})`;
  const read = plain(text.replace(ELSEWHERE, ' '));
  for (const { 0: found, index } of read.matchAll(new RegExp(`${before}${words}${after}`, 'giu'))) {
    const isExact = found.replace(/\s+/gu, ' ') === wanted.replace(/\s+/gu, ' ');
    if (isExact || /[@,]\s*$/u.test(read.slice(0, index)) || /^\s*[,:]/u.test(read.slice(index + found.length))) return true;
  }
  return false;
}
