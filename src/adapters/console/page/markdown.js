// Draws the Markdown of messages. `marked.js` (MIT, see its head) reads it; nothing is ever set as HTML: what the reader finds becomes elements
// with texts, and HTML in a message is shown as the text that it is.

import { el, plain } from './dom.js';
import { Lexer, Tokenizer } from './marked.js';
import { t } from './texts.js';

// A longer text is shown as it is.
const MAX_CHARS = 20_000;
const MAX_DEPTH = 12;
// In more of a link's text nobody looks for an address.
const MOST_LINK_CHARS = 2000;
const COPIED_MS = 2000;
const SAFE = /^(https?:\/\/|mailto:)/iu;

// White space, quotation marks and the punctuation of scripts without spaces are no part of an address.
const NOT_IN_ADDRESS = '\\s<>"\'“”„«»。，、；：？！…～（）「」『』【】《》〈〉〔〕［］｛｝｡､｢｣';
const LINK_IN_TEXT = new RegExp(`\\bhttps?:\\/\\/[^${NOT_IN_ADDRESS}]+`, 'giu');
const BEGINNING_ADDRESS = new RegExp(`^[^${NOT_IN_ADDRESS}]*`, 'u');
const AFTER_ADDRESS = '.,;:!?*`';
const BRACKETS = { ')': '(', ']': '[', '}': '{' };

// How many characters may be looked through in vain for an end, in all, and how deep one thing may be in another.
const MOST_READ = 3_000_000;
const DEEPEST = 50;

const EMPHASIS = /^([*_])\1*(?!\1)\S/u;
const STRUCK = /^~+[^~\s]/u;
const LIST = /^ {0,3}(?:[*+-]|\d{1,9}[.)])/u;
const QUOTATION = /^ {0,3}>/u;

// An address in a text, with its host. The dots of its path are no other hosts.
const ADDRESS = /(?<![\p{L}\p{N}/._@-])(?:[a-z][a-z+.-]*:\/\/)?(?:[^\s/@]*@)?(?<host>(?:[\p{L}\p{N}-]+\.)+\p{L}[\p{L}\p{N}-]+|(?:\d{1,3}\.){3}\d{1,3})(?![\p{L}\p{N}@-])(?::\d+)?(?:[/?#]\S*)?/giu;

const count = (text, char) => text.split(char).length - 1;

// The address at the beginning of a text, without punctuation after it, and without brackets that it closes and does not open.
function addressOf(text) {
  const [address] = BEGINNING_ADDRESS.exec(text);
  const surplus = Object.fromEntries(Object.entries(BRACKETS).map(([close, open]) => [close, count(address, close) - count(address, open)]));
  let end = address.length;
  for (; end > 0; end -= 1) {
    const last = address[end - 1];
    if (surplus[last] > 0) surplus[last] -= 1;
    else if (!AFTER_ADDRESS.includes(last)) break;
  }
  return address.slice(0, end);
}

// The addresses in a text, each as `[address, index]`.
function addresses(text) {
  const found = [...text.matchAll(LINK_IN_TEXT)].map(({ 0: all, index }) => [addressOf(all), index]);
  return found.filter(([address]) => /:\/\/[^/]/u.test(address));
}

function hostOf(address) {
  try {
    return new URL(address).hostname.replace(/^www\./u, '');
  } catch {
    return null;
  }
}

// Where a link leads, if its text says another address or hides it behind the name of a user. Otherwise null.
export function elsewhere(text, href) {
  const shown = plain(text).replace(/\s+/gu, ' ').slice(0, MOST_LINK_CHARS);
  const addresses = [...shown.matchAll(ADDRESS)];
  if (/^mailto:/iu.test(href)) {
    const mailbox = href.replace(/^mailto:/iu, '').replace(/\?.*$/su, '');
    return addresses.length && !shown.includes(mailbox) ? mailbox : null;
  }
  const host = hostOf(href);
  if (!host) return null;
  const isSame = addresses.every(({ groups }) => hostOf(`http://${groups.host}`) === host);
  return isSame && !new URL(href).username ? null : host;
}

function link(href, text, ...content) {
  const there = elsewhere(text, href);
  return [
    el('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow' }, content),
    there && el('span', { class: 'leads-to', dir: 'ltr' }, ` (${there})`),
  ];
}

const asWritten = (text, marks) => el('p', { class: 'as-written' }, linked(text, marks));

// A text in which addresses are links. `marks(text)` marks the words that are searched for.
export function linked(text, marks) {
  const parts = [];
  let from = 0;
  for (const [url, index] of addresses(text)) {
    parts.push(marks(text.slice(from, index)), link(url, url, marks(url)));
    from = index + url.length;
  }
  return [...parts, marks(text.slice(from))];
}

// Reads Markdown in bounded time. `marked.js` looks for the end of each emphasis anew, and nests without end, so that a text that a model can write
// would stop the page for seconds.
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

  // An address that is no link as it stands ends where it would end in what people write.
  url(text) {
    const found = super.url(text);
    if (!found || found.href.startsWith('mailto:')) return found;
    const address = addressOf(found.raw);
    const rest = found.raw.length - address.length;
    if (!rest || !address) return found;
    return { ...found, raw: address, text: address, href: found.href.slice(0, -rest), tokens: [{ type: 'text', raw: address, text: address }] };
  }
}

// What `marked.js` finds in a text. Throws if that takes too long.
export const read = text => new Lexer({ gfm: true, breaks: true, tokenizer: new BoundedTokenizer() }).lex(text);

// A button that copies a text.
export function copyButton(text, kind = 'copy') {
  const button = el('button', { class: kind, type: 'button' }, t('base.copy'));
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard?.writeText(plain(text)).then(() => true, () => false);
    button.textContent = t(isCopied ? 'base.copied' : 'base.copy_by_hand');
    setTimeout(() => {
      button.textContent = t('base.copy');
    }, COPIED_MS);
  });
  return button;
}

function drawer(marks) {
  const inlines = (tokens, depth) => (tokens ?? []).map(token => inline(token, depth));
  function inline(token, depth) {
    if (depth > MAX_DEPTH) return marks(token.raw ?? '');
    const inner = () => (token.tokens ? inlines(token.tokens, depth + 1) : marks(token.text ?? ''));
    switch (token.type) {
      case 'strong':
        return el('strong', null, inner());
      case 'em':
        return el('em', null, inner());
      case 'del':
        return el('s', null, inner());
      case 'codespan':
        return el('code', null, marks(token.text));
      case 'br':
        return el('br');
      case 'link':
        // What leads nowhere is shown as it was written.
        return SAFE.test(token.href) ? link(token.href, token.text ?? '', inner()) : marks(token.raw);
      // A picture is not fetched: that would tell a stranger's server who reads here.
      case 'image':
        return SAFE.test(token.href) ? link(token.href, token.text, marks(token.text || token.href)) : marks(token.raw);
      case 'checkbox':
        return token.checked ? '☑ ' : '☐ ';
      case 'escape':
      case 'text':
        return inner();
      default:
        return marks(token.raw ?? token.text ?? '');
    }
  }
  const blocks = (tokens, depth) => (tokens ?? []).map(token => block(token, depth));
  const item = ({ tokens }, depth) => el('li', null, blocks(tokens, depth + 1));
  function row(cells, tag, depth) {
    return el('tr', null, cells.map(cell => el(tag, null, inlines(cell.tokens, depth))));
  }
  function block(token, depth) {
    if (depth > MAX_DEPTH) return asWritten(token.raw ?? '', marks);
    switch (token.type) {
      case 'space':
        return null;
      case 'checkbox':
        return inline(token, depth);
      case 'hr':
        return el('hr');
      case 'code':
        return el('div', { class: 'code' }, copyButton(token.text), el('pre', { tabindex: '0' }, el('code', null, marks(token.text))));
      case 'heading':
        return el('p', { class: 'heading' }, inlines(token.tokens, depth + 1));
      case 'blockquote':
        return el('blockquote', null, blocks(token.tokens, depth + 1));
      case 'list':
        return el(token.ordered ? 'ol' : 'ul', { start: token.ordered && token.start !== 1 ? token.start : null }, token.items.map(one => item(one, depth)));
      case 'table':
        return el('div', { class: 'table' }, el('table', null, el('thead', null, row(token.header, 'th', depth + 1)), el('tbody', null, token.rows.map(cells => row(cells, 'td', depth + 1)))));
      case 'text':
        return token.tokens ? inlines(token.tokens, depth + 1) : marks(token.text);
      case 'paragraph':
        return el('p', null, inlines(token.tokens, depth + 1));
      default:
        return asWritten(token.raw ?? '', marks);
    }
  }
  return blocks;
}

// What is drawn in an element: the text of each part, and its node.
const drawn = new WeakMap();

// Draws a text in an element. When the text has grown since, what stays the same keeps its nodes.
export function draw(body, text, marks) {
  const parts = partsOf(text);
  const before = drawn.get(body) ?? [];
  const firstNew = parts.findIndex((part, i) => part.raw !== before[i]?.raw);
  const kept = firstNew < 0 ? parts.length : firstNew;
  const blocks = drawer(marks);
  const nodes = parts.slice(kept).map(part => ({ raw: part.raw, node: part.type ? blocks([part], 0).flat(Infinity).find(Boolean) : asWritten(part.raw, marks) }));
  for (const { node } of before.slice(kept)) node?.remove();
  body.append(...nodes.map(({ node }) => node).filter(Boolean));
  drawn.set(body, [...before.slice(0, kept), ...nodes]);
  return body;
}

function partsOf(text) {
  try {
    if (text.length <= MAX_CHARS) return read(text);
  } catch {
    // It takes too long to read.
  }
  return [{ raw: text }];
}
