// Creates elements. Text is only ever set as text, never as HTML, and without characters that reverse the direction of the words after them.

const SVG = 'http://www.w3.org/2000/svg';

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(typeof child === 'string' ? plain(child) : child);
  }
  return node;
}

export const el = (name, attributes, ...children) => made(document.createElement(name), attributes, children);

export const svg = (name, attributes, ...children) => made(document.createElementNS(SVG, name), attributes, children);

// Whether fingers are used, and there is probably no keyboard with keys such as Esc.
export const onPhone = () => matchMedia('(pointer: coarse)').matches;

// Calls `close()`, which returns whether something was open, when something other than these nodes is pressed. A finger then presses nothing else, but for the
// buttons in the head.
export function pressedBeside(nodes, close) {
  const onClick = event => {
    if (event.target.closest('dialog') || nodes.some(node => node.contains(event.target)) || !close() || !onPhone() || event.target.closest('.top')) return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener('click', onClick, true);
}

export const byId = id => document.getElementById(id);

const OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/gu;

// A text without the characters that would reverse the direction of the words after it.
export const plain = text => String(text).replace(OVERRIDES, '');

// Names may contain direction marks. They are isolated from the words around them, and characters that could make one name look like another
// are removed.
export const name = (text, attributes) => el('bdi', attributes, plain(text));

// Changes a text only when it differs, so that nothing flickers and no selection is lost.
export function say(node, text) {
  const shown = plain(text);
  if (node.textContent === shown) return;
  if (node.childNodes.length === 1 && node.firstChild.nodeType === Node.TEXT_NODE) node.firstChild.data = shown;
  else node.textContent = shown;
}

// Replaces the content of a node if it would look different.
export function fill(node, nodes) {
  const after = [...el('div', null, nodes).childNodes];
  const before = [...node.childNodes];
  if (before.length === after.length && before.every((child, at) => child.isEqualNode(after[at]))) return;
  node.replaceChildren(...after);
}

// The symbols of the page: filled for yes, hollow for no, a cross for no answer.
export function glyph(kind) {
  const shape = {
    yes: () => svg('circle', { cx: 5, cy: 5, r: 4, class: 'full' }),
    no: () => svg('circle', { cx: 5, cy: 5, r: 3.4, class: 'stroke' }),
    error: () => svg('path', { d: 'M2 2 8 8M8 2 2 8', class: 'stroke' }),
    round: () => svg('path', { d: 'M2 9V5M5 9V1M8 9V6.5', class: 'stroke' }),
    note: () => svg('path', { d: 'M2 5H8', class: 'stroke' }),
  }[kind];
  return svg('svg', { class: `glyph ${kind}`, viewBox: '0 0 10 10', 'aria-hidden': 'true' }, shape());
}
