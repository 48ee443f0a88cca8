// Files of messages: those for the next one, pictures of which are made smaller if they are too large, and those that were sent. Loaded with the first one.

import { el, plain } from './dom.js';
import { asPicture, contents } from './pictures.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';

const MOST_FILES = 4;
const MOST_TEXT_BYTES = 64 << 10;
const LIMITS = { bytes: 4 << 20, side: 2048, types: /^image\/(png|jpeg|webp|gif)$/u };

const isText = base64 => {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))).includes('\0');
  } catch {
    return false;
  }
};

// A tray with the files, in `box`: each room that is shown (`room()`) has its own. `changed()` is called when it has other files. `pictures.seen()` tells whether companions get pictures (null: there is no AI), and
// `pictures.unseen()` says that they do not, once in a room, to who has sent one.
export function tray(box, pictures, room, changed) {
  const trays = new Map(); // by room: the files, and what was said of files that are not taken
  function of(id) {
    // Files that were attached before the first room was known belong to it.
    const early = trays.get(undefined);
    if (id && early) {
      trays.delete(undefined);
      if (!trays.has(id)) trays.set(id, early);
    }
    return trays.get(id) ?? trays.set(id, { files: [], refused: [] }).get(id);
  }
  const here = () => of(room()?.id);

  function draw() {
    const shown = here();
    const { files, refused } = shown;
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
          el('button', { type: 'button', class: 'quiet-button', 'aria-label': `${t('base.delete')}: ${file.name}`, onclick: () => ((shown.files = files.filter(other => other !== file)), draw()) }, '✕'),
        ),
      ),
      files.some(({ url }) => url) && pictures.seen() !== null ? el('p', { class: 'muted' }, t(pictures.seen() ? 'attaching.sent_to' : 'compose.unseen')) : '',
      ...refused.map(said => el('p', { class: 'form-problem', role: 'alert', dir: 'auto' }, said, ' ', el('button', { type: 'button', class: 'quiet-button', 'aria-label': t('base.dismiss'), onclick: () => ((shown.refused = refused.filter(other => other !== said)), draw()) }, '✕'))),
    );
    changed();
  }

  function put(files) {
    here().files = [...files];
    draw();
  }

  // Why a file is not taken, in words. Nothing if it is.
  async function add(file, there) {
    const name = plain(file.name);
    const picture = await asPicture(file, LIMITS).catch(() => null);
    const larger = () => t('attaching.larger', { name, most: MOST_TEXT_BYTES >> 10 });
    if (!picture && file.size > LIMITS.bytes) return larger();
    const read = picture ?? { ...(await contents(file)), url: null };
    if (!picture && !isText(read.base64)) return t('attaching.not_taken', { name });
    if (!picture && file.size > MOST_TEXT_BYTES) return larger();
    // A message may have taken the files meanwhile. Then this one is for the next.
    const { files } = there();
    if (files.length === MOST_FILES) return null;
    files.push({ name: file.name, description: '', spoiler: false, ...read });
    return '';
  }

  const addAll = async chosen => {
    const id = room()?.id;
    const there = () => of(id ?? room()?.id);
    let count = 0;
    for (const file of chosen) {
      const said = await add(file, there);
      if (said === null) count += 1;
      else if (said) there().refused.push(said);
      draw();
    }
    if (count) there().refused.push(t('attaching.left_out', { count, most: MOST_FILES }));
    draw();
  };
  const chooser = el('input', { type: 'file', multiple: true, accept: 'image/*,text/*,.md,.csv,.json,.log', onchange: () => (addAll([...chooser.files]), (chooser.value = '')) });

  return {
    // Without files, somebody chooses them.
    add: async chosen => (chosen ? addAll(chosen) : chooser.click()),
    put,
    // Another room is shown.
    draw,
    // Returns the files for a message in a room, and forgets them.
    take(id) {
      const taken = of(id).files;
      trays.delete(id);
      draw();
      if (taken.some(({ url }) => url) && pictures.seen() === false && !loadForAll(`unseen.${id}`)) {
        storeForAll(`unseen.${id}`, true);
        pictures.unseen();
      }
      return taken;
    },
    isEmpty: () => !here().files.length,
  };
}

// Draws the files of a message: pictures, small, with a click to the full size, and the names of others. A pending message has no number yet.
export function drawFiles(box, room, { seq, files }) {
  const draw = file => {
    const href = file.url ?? `/api/rooms/${encodeURIComponent(room.id)}/messages/${seq}/files/${Number(file.id)}`;
    if (!seq && !file.url) return el('span', { dir: 'auto' }, file.name);
    if (file.kind === 'voice') return el('audio', { src: href, controls: true, preload: 'none' });
    if (!file.url && file.kind !== 'image') return el('a', { href, download: file.name, dir: 'auto' }, file.name);
    const link = el('a', { href, target: '_blank', rel: 'noopener', class: file.spoiler ? 'spoiler' : null, title: file.spoiler ? t('messages.hidden') : null, onclick: show }, el('img', { src: href, alt: file.description || file.name, width: file.width, height: file.height, loading: 'lazy', decoding: 'async', onload: () => box.dispatchEvent(new Event('drawn', { bubbles: true })) }));
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
