// Files for the next message: pictures, which are made smaller if they are too large, and text files. Loaded when somebody attaches the first one.

import { el } from './dom.js';
import { asPicture, contents } from './pictures.js';
import { t } from './texts.js';

const MOST_FILES = 4;
const LIMITS = { bytes: 4 << 20, side: 2048, types: /^image\/(png|jpeg|webp|gif)$/u };

// A tray with the files, in `box`. `changed()` is called when it has other files.
export function tray(box, changed) {
  let files = [];

  function draw() {
    box.hidden = !files.length;
    box.replaceChildren(
      ...files.map(file =>
        el(
          'div',
          { class: 'attachment' },
          file.url ? el('img', { src: file.url, alt: '' }) : null,
          el('span', { class: 'attachment-name', dir: 'auto' }, file.name),
          file.url ? el('input', { value: file.description, maxLength: 300, placeholder: t('compose.describe'), 'aria-label': `${t('compose.describe')}: ${file.name}`, dir: 'auto', oninput: event => (file.description = event.target.value) }) : null,
          file.url ? el('label', null, el('input', { type: 'checkbox', checked: file.spoiler, onchange: event => (file.spoiler = event.target.checked) }), ` ${t('compose.hide')}`) : null,
          el('button', { type: 'button', class: 'quiet-button', 'aria-label': `${t('base.delete')}: ${file.name}`, onclick: () => put(files.filter(other => other !== file)) }, '✕'),
        ),
      ),
    );
    changed();
  }

  function put(all) {
    files = all;
    draw();
  }

  async function add(file) {
    // What the browser cannot show is sent as it is, and the server says what it is.
    const read = await asPicture(file, LIMITS).catch(() => contents(file).then(({ base64 }) => ({ base64, url: null })));
    if (files.length < MOST_FILES) put([...files, { name: file.name, description: '', spoiler: false, ...read }]);
  }

  return {
    add: async chosen => {
      for (const file of chosen) await add(file);
    },
    put,
    // Returns the files and forgets them.
    take() {
      const taken = files;
      put([]);
      return taken;
    },
    isEmpty: () => !files.length,
  };
}
