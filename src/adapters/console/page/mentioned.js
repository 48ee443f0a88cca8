// Somebody was called by name in a message that is not seen: says so by a notification of the browser, or offers to do that from now on. The menu turns it on and off.

import { byId, el } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';
import { canNotify, startWorker } from './worker.js';

// Turns notifications on or off for this browser. `tell(text)` shows what came of it.
export async function notify(isOn, tell) {
  storeForAll('notify', isOn ? null : 'no');
  if (!isOn) return;
  const isGranted = canNotify() && (await Notification.requestPermission()) === 'granted';
  if (isGranted) await startWorker();
  tell(t(isGranted ? 'mentioned.on' : 'mentioned.blocked'));
}

// One line with two buttons. The browser may only be asked for the permission when something was pressed.
function offer(steady, tell) {
  if (byId('offer')) return;
  const close = () => steady(() => line.remove());
  const answer = (label, act) => el('button', { type: 'button', class: 'quiet-button', onclick: () => (close(), byId('message').focus(), act()) }, label);
  const line = el('p', { class: 'no-companions offer', id: 'offer' }, `${t('mentioned.offer')} `, answer(t('mentioned.yes'), () => notify(true, tell)), ' ', answer(t('mentioned.no'), () => notify(false)));
  steady(() => byId('presence').before(line));
}

// `who` called the person in the room with this id and title, in the message with the number `seq`.
export async function mentioned({ who, id, title, seq }, steady, tell) {
  if (!canNotify() || loadForAll('notify') === 'no') return;
  if (Notification.permission === 'default') return offer(steady, tell);
  if (Notification.permission !== 'granted' || document.visibilityState !== 'hidden') return;
  await startWorker();
  const { active } = await navigator.serviceWorker.ready;
  active.postMessage({ title: t('mentioned.title', { who, room: title }), tag: id, hash: `#/${encodeURIComponent(id)}/${seq}` });
}
