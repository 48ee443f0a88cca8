// Explains why the room shown is not being processed, and offers to release it: its guild is quarantined, the room is suspended, or its record
// cannot be read.

import * as api from './api.js';
import { byId, el, plain, say } from './dom.js';
import { t } from './texts.js';
import * as words from './words.js';

// `room()` is the room shown; `released()` is called after a release was tried; `showProblem(problem)` shows a refusal.
export function unavailable({ room, released, showProblem, announce }) {
  const root = byId('unavailable');
  const detail = el('p', { class: 'detail', dir: 'auto' });
  const retry = el('span');
  const releaseButton = el('button', { class: 'solid', onclick: release }, t('base.try_again'));
  root.replaceChildren(el('p', null, el('strong', null, t('unavailable.title')), ` ${t('unavailable.stored')}`), detail, el('p', { class: 'actions' }, retry, releaseButton));
  let shown = '';

  async function release() {
    const { id } = room().unavailable ?? {};
    if (!id) return;
    releaseButton.disabled = true;
    try {
      await api.release(id);
    } catch (problem) {
      // 404: it has been released already.
      if (problem.status !== 404) showProblem(problem);
    }
    releaseButton.disabled = false;
    released();
  }

  return {
    draw(now) {
      const { id, unavailable: reason } = room();
      root.hidden = !reason;
      const key = reason ? `${id} ${reason.id} ${reason.detail}` : '';
      if (key && key !== shown) announce(t('unavailable.announced', { why: reason.detail }));
      shown = key;
      if (!reason) return;
      say(detail, plain(words.sentence(reason.detail)));
      say(retry, reason.until ? t('attention.retry', { when: words.until(reason.until, now), time: words.time(reason.until) }) : '');
      releaseButton.hidden = !reason.id;
    },
  };
}
