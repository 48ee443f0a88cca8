// Draws the Markdown of companions. `marked.js` (MIT, see its head) reads it; nothing is ever set as HTML: what the reader finds becomes elements
// with texts, and HTML in a message is shown as the text that it is.

import { el, plain } from './dom.js';
import { read } from './markdown-reader.js';

// A longer text is shown as it is.
const MAX_CHARS = 20_000;
const MAX_DEPTH = 12;
// In more of a link's text nobody looks for an address.
const MOST_LINK_CHARS = 2000;
const COPIED_MS = 2000;
const SAFE = /^(https?:\/\/|mailto:)/iu;
const URL_IN_TEXT = /\bhttps?:\/\/[^\s<>"'“”]*[^\s<>"'“”.,;:!?)\]}]/giu;

// An address in a text, with its host. The dots of its path are no other hosts.
const ADDRESS = /(?<![\p{L}\p{N}/._@-])(?:[a-z][a-z+.-]*:\/\/)?(?:[^\s/@]*@)?(?<host>(?:[\p{L}\p{N}-]+\.)+\p{L}[\p{L}\p{N}-]+|(?:\d{1,3}\.){3}\d{1,3})(?![\p{L}\p{N}@-])(?::\d+)?(?:[/?#]\S*)?/giu;

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
  for (const { 0: url, index } of text.matchAll(URL_IN_TEXT)) {
    parts.push(marks(text.slice(from, index)), link(url, url, marks(url)));
    from = index + url.length;
  }
  return [...parts, marks(text.slice(from))];
}

function copyButton(text) {
  const button = el('button', { class: 'copy', type: 'button' }, 'Copy');
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard?.writeText(plain(text)).then(() => true, () => false);
    button.textContent = isCopied ? 'Copied' : 'Select and copy it';
    setTimeout(() => {
      button.textContent = 'Copy';
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

export function markdown(text, marks) {
  if (text.length > MAX_CHARS) return asWritten(text, marks);
  try {
    return drawer(marks)(read(text), 0);
  } catch {
    // It takes too long to read.
    return asWritten(text, marks);
  }
}
