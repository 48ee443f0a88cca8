// The service worker: it says that the server cannot be reached, when the page is opened then, and shows notifications.

import { LANGUAGE } from './texts.js';

// On plain HTTP, in private windows and with a certificate that is not trusted, browsers have none.
export const startWorker = () => navigator.serviceWorker?.register(`/page/service-worker.${LANGUAGE}.js`, { scope: '/' }).catch(() => {});

// A notification was pressed.
navigator.serviceWorker?.addEventListener('message', ({ data }) => (location.hash = data.hash));
