// Pictures of companions: where each is, the circle that shows one, and files that become one.

import { el } from './dom.js';
import { initial } from './tones.js';

// The files that may be cards.
export const CARDS = '.json,.png,application/json,image/png';

const MOST_BYTES = 1 << 20;
const LONGEST_SIDE = 1024;

const paths = new Map(); // by companion

// Takes the pictures that companions have now. Returns whether one of them is another.
export function learnPictures(companions) {
  const before = [...paths].join();
  for (const { id, external, picture } of companions) {
    if (external || !picture) paths.delete(id);
    else paths.set(id, picture);
  }
  return before !== [...paths].join();
}

export const pictureOf = id => paths.get(id) ?? null;

// A circle with a picture, or with the first letter of the name. The name stands beside it. `size` is how wide it is at most, in pixels of the layout.
export function face(who, { path = null, tone = null, onclick = null, size = 28 } = {}) {
  const letter = () => initial(who);
  const src = path?.startsWith('/') ? `${path}?size=${Math.ceil(size * devicePixelRatio)}` : path;
  const image = path && el('img', { src, alt: '', loading: 'lazy', decoding: 'async', onerror: () => image.replaceWith(letter()) });
  return el('span', { class: 'face', 'data-tone': tone, 'aria-hidden': 'true', onclick }, image || letter());
}

const asDataUrl = blob =>
  new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(blob);
  });

// The address of a file for an image, and its bytes in base64.
export async function contents(file) {
  const data = await asDataUrl(file);
  return { url: URL.createObjectURL(file), base64: data.slice(data.indexOf(',') + 1) };
}

// A file as a picture that the server takes: a large one is made smaller. It fails if the browser cannot show it.
export async function asPicture(file, { bytes = MOST_BYTES, side = LONGEST_SIDE, types = /^image\/(png|jpeg|webp)$/u } = {}) {
  const bitmap = await createImageBitmap(file);
  if (file.size <= bytes && Math.max(bitmap.width, bitmap.height) <= 2 * side && types.test(file.type)) return contents(file);
  const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
  const canvas = el('canvas', { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
  canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return contents(await new Promise(done => canvas.toBlob(done, 'image/webp', 0.9)));
}

// A button that chooses a file.
export function fileButton(label, accept, chosen, kind = 'outlined') {
  const input = el('input', { type: 'file', accept, hidden: true, onchange: () => (input.files[0] && chosen(input.files[0]), (input.value = '')) });
  return el('span', null, el('button', { type: 'button', class: kind, onclick: () => input.click() }, label), input);
}

// Takes files that are dropped on a node, or pasted into it if they are pictures.
export function takesFiles(node, taken) {
  const take = (event, data) => {
    if (!data?.files.length) return;
    event.preventDefault();
    taken([...data.files]);
  };
  node.addEventListener('dragover', event => event.dataTransfer.types.includes('Files') && event.preventDefault());
  node.addEventListener('drop', event => take(event, event.dataTransfer));
  node.addEventListener('paste', event => event.clipboardData?.types.includes('text/plain') || take(event, event.clipboardData));
}
