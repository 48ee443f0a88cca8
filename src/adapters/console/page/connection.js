// The sign in the page's head that says whether the page is live.

import { byId, say } from './dom.js';
import { t } from './texts.js';

const LOST_AFTER_MS = 1000;

// `announce(text)` tells screen readers, `reconnect()` tries again at once, `live(wasLost)` is called once the page is live, and `lacking()` is what is missing
// although it is, or null.
export function connectionSign({ announce, reconnect, live, lacking = () => null }) {
  const sign = byId('connection');
  const words = byId('connection-words');
  let state = 'connecting';
  let nextAttempt = null;

  function draw() {
    const missing = state === 'live' ? lacking() : state === 'asking' ? t('online.asking') : null;
    sign.dataset.state = missing === null ? state : 'partly';
    if (missing !== null) return say(words, t('online.partly', { missing }));
    if (state !== 'lost') return say(words, t(`online.${state}`));
    const left = Math.ceil((nextAttempt - Date.now()) / 1000);
    say(words, left > 0 ? t('online.lost_for', { secs: `${left} s` }) : t('online.lost'));
  }
  sign.addEventListener('click', reconnect);

  return {
    draw,
    show(now, at) {
      const before = state;
      state = now;
      nextAttempt = at;
      document.body.classList.toggle('disconnected', state === 'lost');
      draw();
      // A connection that ends because the room is deleted is not lost.
      const [is, was] = [state, before].map(one => one === 'live' || one === 'asking');
      if (state === 'lost' && was) setTimeout(() => state === 'lost' && announce(t('online.lost_said')), LOST_AFTER_MS);
      if (is && before === 'lost') announce(t('online.restored'));
      if (is && !was) live(before === 'lost');
    },
  };
}
