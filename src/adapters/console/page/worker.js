// The service worker: it says that the server cannot be reached, when the page is opened then, and shows notifications.

import { loadForAll } from './storage.js';
import { LANGUAGE } from './texts.js';

// On plain HTTP, in private windows and with a certificate that is not trusted, browsers have none.
export const startWorker = () => navigator.serviceWorker?.register(`/page/service-worker.${LANGUAGE}.js`, { scope: '/' }).catch(() => {});

export const canNotify = () => 'Notification' in window && Boolean(navigator.serviceWorker);
// Whether this browser shows notifications. People can turn them off here although the browser allows them.
export const notifies = () => canNotify() && Notification.permission === 'granted' && loadForAll('notify') !== 'no';

// A notification was pressed.
navigator.serviceWorker?.addEventListener('message', ({ data }) => (location.hash = data.hash));
