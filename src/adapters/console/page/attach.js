// Files of messages: those for the next one, pictures of which are made smaller if they are too large, and those that were sent. Loaded with the first one.

import { el, plain } from './dom.js';
import { asPicture, contents } from './pictures.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';

const MOST_FILES = 4;
const LIMITS = { bytes: 4 << 20, side: 2048, types: /^image\/(png|jpeg|webp|gif)$/u };

const isText = base64 => {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))).includes('\0');
  } catch {
    return false;
  }
};

// A tray with the files, in `box`. `changed()` is called when it has other files. `pictures.seen()` tells whether companions get pictures, and
// `pictures.unseen()` says that they do not, once in a room, to who has sent one.
export function tray(box, pictures, changed) {
  let files = [];
  let refused = [];

  function draw() {
    box.hidden = !files.length && !refused.length;
    box.replaceChildren(
      ...files.map(file =>
        el(
          'div',
          { class: 'attachment' },
          file.url ? el('img', { src: file.url, alt: '' }) : null,
          el('span', { class: 'attachment-name', dir: 'auto' }, file.name),
          file.url ? el('input', { value: file.description, maxLength: 300, placeholder: t('attaching.describe'), title: t('attaching.describe_about'), 'aria-label': `${t('attaching.describe')}: ${file.name}`, dir: 'auto', oninput: event => (file.description = event.target.value) }) : null,
          file.url ? el('label', { title: t('attaching.hide_about') }, el('input', { type: 'checkbox', checked: file.spoiler, onchange: event => (file.spoiler = event.target.checked) }), ` ${t('attaching.hide')}`) : null,
          el('button', { type: 'button', class: 'quiet-button', 'aria-label': `${t('base.delete')}: ${file.name}`, onclick: () => put(files.filter(other => other !== file)) }, '✕'),
        ),
      ),
      files.some(({ url }) => url) && !pictures.seen() ? el('p', { class: 'muted' }, t('compose.unseen')) : '',
      ...refused.map(name => el('p', { class: 'form-problem', role: 'alert', dir: 'auto' }, t('attaching.not_taken', { name }))),
    );
    changed();
  }

  function put(all) {
    files = all;
    refused = [];
    draw();
  }

  async function add(file) {
    const read = await asPicture(file, LIMITS).catch(() => contents(file).then(({ base64 }) => ({ base64, url: null })));
    if (!read.url && !isText(read.base64)) {
      refused.push(plain(file.name));
      return draw();
    }
    if (files.length < MOST_FILES) return put([...files, { name: file.name, description: '', spoiler: false, ...read }]);
    return undefined;
  }

  const addAll = async chosen => {
    for (const file of chosen) await add(file);
  };
  const chooser = el('input', { type: 'file', multiple: true, accept: 'image/*,text/*,.md,.csv,.json,.log', onchange: () => (addAll([...chooser.files]), (chooser.value = '')) });

  return {
    // Without files, somebody chooses them.
    add: async chosen => (chosen ? addAll(chosen) : chooser.click()),
    put,
    // Returns the files for a message in a room, and forgets them.
    take(room) {
      const taken = files;
      put([]);
      if (taken.some(({ url }) => url) && !pictures.seen() && !loadForAll(`unseen.${room}`)) {
        storeForAll(`unseen.${room}`, true);
        pictures.unseen();
      }
      return taken;
    },
    isEmpty: () => !files.length,
  };
}

// Draws the files of a message: pictures, small, with a click to the full size, and the names of others. A pending message has no number yet.
export function drawFiles(box, room, { seq, files }) {
  const draw = file => {
    const href = file.url ?? `/api/rooms/${encodeURIComponent(room.id)}/messages/${seq}/files/${Number(file.id)}`;
    if (!seq && !file.url) return file.name;
    if (file.kind === 'voice') return el('audio', { src: href, controls: true, preload: 'none' });
    if (!file.url && file.kind !== 'image') return el('a', { href, download: file.name, dir: 'auto' }, file.name);
    const link = el('a', { href, target: '_blank', rel: 'noopener', class: file.spoiler ? 'spoiler' : null, title: file.spoiler ? t('messages.hidden') : null, onclick: show }, el('img', { src: href, alt: file.description || file.name, width: file.width, height: file.height, loading: 'lazy', decoding: 'async' }));
    function show(event) {
      if (!link.classList.contains('spoiler')) return;
      event.preventDefault();
      link.classList.remove('spoiler');
      link.title = '';
    }
    return link;
  };
  box.replaceChildren(...files.map(draw));
}
