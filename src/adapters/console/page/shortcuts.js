// The keys that work on the page, and what its symbols mean. Loaded on use.

import { dialog } from './dialogs.js';
import { el, glyph } from './dom.js';
import { t } from './texts.js';

const KEYS = [
  ['Enter', 'keys.send'],
  [`${t('keys.shift')} Enter`, 'keys.new_line'],
  ['↑', 'keys.edit'],
  [`${t('keys.control')} Z`, 'keys.undo'],
  ['Esc', 'keys.cancel'],
  ['@', 'keys.at'],
  ['/', 'keys.find'],
  [`Enter, ${t('keys.shift')} Enter`, 'keys.find_next'],
  [`${t('keys.alt')} ↑`, 'keys.to_log'],
  ['↑ ↓', 'keys.log'],
  ['← →', 'keys.timeline'],
  ['M', 'keys.mute'],
  [t('keys.space'), 'keys.hold'],
  ['Esc', 'keys.stop'],
  ['?', 'keys.help'],
];

// `reopenAfter`: after how many messages by people a companion that has ended the conversation rejoins.
export function showKeys(reopenAfter) {
  const means = (sign, text) => el('li', null, sign, ` ${text}`);
  const named = (term, text) => el('li', null, el('strong', null, term), `: ${text}`);
  dialog(
    t('keys.title'),
    el('dl', { class: 'keys' }, KEYS.map(([key, action]) => [el('dt', null, key.split(', ').map((one, i) => [i ? ', ' : null, one.split(' ').map((part, j) => [j ? ' ' : null, el('kbd', null, part)])].flat(2))), el('dd', null, t(action))])),
    el('h3', null, t('keys.symbols')),
    el(
      'ul',
      { class: 'symbols' },
      named(t('keys.circle'), t('keys.circle_about')),
      named(t('keys.bar'), t('keys.bar_about')),
      means(glyph('round'), t('keys.round')),
      named(t('keys.meters'), t('keys.meters_about')),
      means(el('strong', null, '●○○'), t('keys.closing', { count: reopenAfter })),
      means(glyph('yes'), t('keys.yes')),
      means(glyph('no'), t('keys.no')),
      means(glyph('error'), t('keys.no_answer')),
      means(el('strong', null, t('keys.name')), t('keys.name_about')),
    ),
  );
}
