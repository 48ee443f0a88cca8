// Reads Markdown in bounded time. `marked.js` looks for the end of each emphasis anew, and nests without end, so that a text that a model can write
// would stop the page for seconds.

import { Lexer, Tokenizer } from './marked.js';

// How many characters may be looked through in vain for an end, in all, and how deep one thing may be in another.
const MOST_READ = 3_000_000;
const DEEPEST = 50;

const EMPHASIS = /^([*_])\1*(?!\1)\S/u;
const STRUCK = /^~+[^~\s]/u;
const LIST = /^ {0,3}(?:[*+-]|\d{1,9}[.)])/u;
const QUOTATION = /^ {0,3}>/u;

class BoundedTokenizer extends Tokenizer {
  #left = MOST_READ;
  #depth = 0;

  #within(begins, text, read) {
    if (!begins.test(text)) return read();
    if (this.#left < text.length || this.#depth === DEEPEST) throw new RangeError('this Markdown takes too long to read');
    this.#depth += 1;
    try {
      const found = read();
      this.#left -= found ? found.raw.length : text.length;
      return found;
    } finally {
      this.#depth -= 1;
    }
  }

  emStrong(text, ...more) {
    return this.#within(EMPHASIS, text, () => super.emStrong(text, ...more));
  }

  del(text, ...more) {
    return this.#within(STRUCK, text, () => super.del(text, ...more));
  }

  list(text) {
    return this.#within(LIST, text, () => super.list(text));
  }

  blockquote(text) {
    return this.#within(QUOTATION, text, () => super.blockquote(text));
  }
}

// What `marked.js` finds in a text. Throws if that takes too long.
export const read = text => new Lexer({ gfm: true, breaks: true, tokenizer: new BoundedTokenizer() }).lex(text);
