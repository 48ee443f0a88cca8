// Goes back and forth among the versions of the newest answer: by arrows, and on a phone by a swipe.

import { el } from './dom.js';
import { t } from './texts.js';

const SWIPE_PX = 60;

// `place` is filled in `node`, the message; `stand(version)` makes another version stand.
export function versions(place, node, { versions: { texts, standing } }, stand) {
  const go = by => standing + by >= 0 && standing + by < texts.length && stand(standing + by);
  const arrow = (by, sign, label) => el('button', { class: 'tool shown', 'data-focus': `version${by}`, 'aria-label': label, title: label, disabled: standing + by < 0 || standing + by >= texts.length, onclick: () => go(by) }, sign);
  place.replaceChildren(arrow(-1, '◀', t('versions.back')), ' ', t('versions.which', { number: standing + 1, count: texts.length }), ' ', arrow(1, '▶', t('versions.forth')));
  let from = null;
  // Wide code scrolls sideways itself.
  const scrolls = part => part !== node && ((part.scrollWidth > part.clientWidth && /auto|scroll/u.test(getComputedStyle(part).overflowX)) || scrolls(part.parentElement));
  node.addEventListener('touchstart', ({ touches, target }) => (from = touches.length === 1 && !scrolls(target) ? touches[0] : null), { passive: true });
  node.addEventListener('touchend', ({ changedTouches: [to] }) => {
    const [x, y] = from ? [to.clientX - from.clientX, to.clientY - from.clientY] : [0, 0];
    if (Math.abs(x) > SWIPE_PX && Math.abs(x) > 2 * Math.abs(y)) go(x < 0 ? 1 : -1);
  });
}
