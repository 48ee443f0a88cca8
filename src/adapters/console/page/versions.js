// The versions of an answer. Arrows, and on a phone a swipe, go back and forth among those of the newest one; those of an earlier one can be read.

import { el } from './dom.js';
import { t } from './texts.js';

const SWIPE_PX = 60;

// `place` is filled in `node`, the message; `stand(version, said)` makes another version stand and has that announced. Without it they can only be read.
export function versions(place, node, { versions: { texts, standing } }, stand) {
  const drawn = () => place.dispatchEvent(new Event('drawn', { bubbles: true }));
  const which = at => t('versions.which', { number: at + 1, count: texts.length });
  if (!stand) {
    const others = texts.map((text, at) => at !== standing && el('li', { dir: 'auto' }, el('strong', null, which(at)), ` ${text}`));
    place.replaceChildren(el('details', { ontoggle: drawn }, el('summary', { class: 'tool shown', 'data-focus': 'versions' }, t('versions.all', { count: texts.length })), el('p', null, t('versions.only_newest')), el('ul', null, others)));
    return drawn();
  }
  const go = by => texts[standing + by] !== undefined && stand(standing + by, `${which(standing + by)}. ${texts[standing + by]}`);
  const arrow = (by, sign, label) => el('button', { class: 'tool shown', 'data-focus': `version-${by}`, 'aria-label': label, title: label, disabled: texts[standing + by] === undefined, onclick: () => go(by) }, sign);
  place.replaceChildren(arrow(-1, '◀', t('versions.back')), ' ', which(standing), ' ', arrow(1, '▶', t('versions.forth')));
  let from = null;
  // Wide code scrolls sideways itself.
  const scrolls = part => part !== node && ((part.scrollWidth > part.clientWidth && /auto|scroll/u.test(getComputedStyle(part).overflowX)) || scrolls(part.parentElement));
  node.addEventListener('touchstart', ({ touches, target }) => (from = touches.length === 1 && !scrolls(target) ? touches[0] : null), { passive: true });
  node.addEventListener('touchend', ({ changedTouches: [to] }) => {
    const [x, y] = from ? [to.clientX - from.clientX, to.clientY - from.clientY] : [0, 0];
    if (Math.abs(x) > SWIPE_PX && Math.abs(x) > 2 * Math.abs(y)) go(x < 0 ? 1 : -1);
  });
}
