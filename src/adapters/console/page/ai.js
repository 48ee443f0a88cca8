// What the page says of AI: the mark beside the name of every companion, and the server's notice.

import { el, name } from './dom.js';
import { pieces, t } from './texts.js';

export const ai = () => el('span', { class: 'ai' }, t('notice.mark'));

// That people talk with AI, who runs it, and where the privacy text is.
export const notice = ({ operator, privacy }) => [
  t('notice.ai'),
  operator ? [' ', pieces('notice.operator', { operator: name(operator) })] : null,
  privacy ? [' ', pieces('notice.privacy', { privacy: el('a', { href: privacy, target: '_blank', rel: 'noopener' }, privacy) })] : null,
];
