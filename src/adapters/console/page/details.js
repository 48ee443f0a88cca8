// “Details”: with it the page shows what each companion decides and waits for. Without it: the talk, a sentence about who answered and who stayed out,
// and who is typing, thinking or paused.

import { byId } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';

// `changed()` is called when details are shown or hidden.
export function details({ changed }) {
  const button = byId('decisions');
  let shows = loadForAll('decisions') === 'shown';

  function apply() {
    document.body.classList.toggle('chat-only', !shows);
    button.textContent = t('presence.details');
    button.setAttribute('aria-pressed', String(shows));
    button.title = t(shows ? 'presence.hide' : 'presence.show');
  }
  button.addEventListener('click', () => {
    shows = !shows;
    storeForAll('decisions', shows ? 'shown' : 'hidden');
    apply();
    changed();
  });
  apply();
  return { shows: () => shows };
}
