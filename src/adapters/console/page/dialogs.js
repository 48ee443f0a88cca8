// Dialogs, and the question before something is done for good.

import { opened } from './back.js';
import { el, glyph, onPhone } from './dom.js';
import { t } from './texts.js';

// The second click of a double click on what opened a dialog does nothing in it.
const DOUBLE_CLICK_MS = 500;

let dialogs = 0; // how many were opened

// With `box.mayClose`, which resolves to whether it may, it does not close before.
export function dialog(title, ...content) {
  const leave = async () => (await (box.mayClose?.() ?? true)) && box.close();
  const close = el('button', { class: 'quiet-button', type: 'button', onclick: leave }, t(onPhone() ? 'base.close' : 'base.close_esc'));
  const box = el('dialog', { tabindex: '-1' }, el('header', null, el('h2', null, title), close), content);
  dialogs += 1;
  const ids = [...box.querySelectorAll('header h2, :scope > :is(p:not(.actions), .consent)')].map((node, i) => (node.id ||= `dialog-${dialogs}-${i}`));
  box.setAttribute('aria-labelledby', ids[0]);
  if (ids.length > 1) box.setAttribute('aria-describedby', ids.slice(1).join(' '));
  const began = performance.now();
  box.addEventListener('click', event => event.target === box && performance.now() - began > DOUBLE_CLICK_MS && leave());
  // Of two closing requests of the browser only the first one can be refused, so the key is.
  box.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !box.mayClose || event.defaultPrevented) return;
    event.preventDefault();
    leave();
  });
  box.addEventListener('cancel', event => {
    if (!box.mayClose || event.target !== box) return;
    event.preventDefault();
    leave();
  });
  const closed = opened(leave);
  box.addEventListener('close', () => (closed(), box.remove()));
  document.body.append(box);
  box.showModal();
  // With the focus on the whole of it, a screen reader reads its title and its text.
  box.focus();
  return box;
}

let isAsking = false;

// Asks one thing at a time, also while what is asked is not known yet: the second click of a double click asks nothing.
export async function once(ask) {
  if (isAsking) return false;
  isAsking = true;
  try {
    return await ask();
  } finally {
    isAsking = false;
  }
}

// Asks before something is done that cannot be undone. Resolves to whether it shall be done.
export function confirmed(title, question, label, otherwise = t('base.keep')) {
  return new Promise(resolve => {
    let isSure = false;
    const yes = el('button', { class: 'quiet-button danger', disabled: true, onclick: () => ((isSure = true), box.close()) }, label);
    const no = el('button', { class: 'solid', onclick: () => box.close() }, otherwise);
    // Two buttons are clear; a third one that closes would be another way to say no.
    const box = dialog(title, [question].flat().map(part => el('p', { dir: 'auto' }, part)), el('p', { class: 'actions' }, no, yes));
    box.querySelector('header button').remove();
    // A screen reader reads the question before the button.
    box.setAttribute('role', 'alertdialog');
    box.addEventListener('close', () => resolve(isSure));
    no.focus();
    setTimeout(() => (yes.disabled = false), DOUBLE_CLICK_MS);
  });
}

// A sign stays with its words.
const sign = (kind, text) => [el('span', { class: 'sign' }, glyph(kind), ` ${text}`), '  '];

export const legend = () => [el('span', null, t('votes.legend_circle')), el('span', null, t('votes.legend_bar')), el('span', null, sign('yes', t('votes.wants')), sign('no', t('votes.listens')), sign('error', t('votes.legend_error')))];
