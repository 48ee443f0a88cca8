// Somebody was called by name in a message that is not seen: says so by a notification of the browser, or offers to do that from now on.

import { byId, el } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';
import { startWorker } from './worker.js';

// One line with two buttons. The browser may only be asked for the permission when something was pressed.
function offer(steady) {
  if (byId('offer')) return;
  const close = () => steady(() => line.remove());
  const answer = (label, act) => el('button', { type: 'button', class: 'quiet-button', onclick: () => (close(), byId('message').focus(), act()) }, label);
  const line = el('p', { class: 'no-companions offer', id: 'offer' }, `${t('mentioned.offer')} `, answer(t('mentioned.yes'), () => Notification.requestPermission().then(given => given === 'granted' && startWorker())), ' ', answer(t('mentioned.no'), () => storeForAll('notify', 'no')));
  steady(() => byId('presence').before(line));
}

// `who` called the person in the room with this id and title, in the message with the number `seq`.
export async function mentioned({ who, id, title, seq }, steady) {
  if (!('Notification' in window) || !navigator.serviceWorker) return;
  if (Notification.permission === 'default' && loadForAll('notify') !== 'no') return offer(steady);
  if (Notification.permission !== 'granted' || document.visibilityState !== 'hidden') return;
  await startWorker();
  const { active } = await navigator.serviceWorker.ready;
  active.postMessage({ title: t('mentioned.title', { who, room: title }), tag: id, hash: `#/${encodeURIComponent(id)}/${seq}` });
}
