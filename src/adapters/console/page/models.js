// Which models answer: the button in the head of the page, and what is said in the room when they fail.

import * as api from './api.js';
import { once } from './dialogs.js';
import { byId, el, plain, say } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { listed, loadLater, t } from './texts.js';
import * as words from './words.js';

const POLL_MS = 30_000;
// A failure that no model has any more is shown no longer than this.
const SHOWN_MS = 60_000;

// Shorter where there is little room.
const canned = () => [el('span', { class: 'where-wide' }, t('ai.demo')), el('span', { class: 'where-narrow' }, t('ai.demo_short'))];

const WAS_READ = new Set(['model_yes', 'model_no']);

// `nameOf(id)` is a companion's name in the room shown, `announce(text)` tells screen readers, `tell(text)` shows a notice, and `checked(ready)` is called with the readiness of the server.
export function models({ nameOf, announce, tell, showProblem, checked }) {
  const button = byId('model');
  const trouble = byId('model-trouble');
  const label = trouble.ariaLabel;
  let ready = null;
  let current = null;
  let failures = new Map(); // by companion: the error code, and when it was noted
  let unreadable = null; // the companion whose vote could not be read
  let polling = null;
  let said = '';

  const open = () =>
    once(async () => {
      if (ready?.parts?.some(({ why }) => why)) await loadLater();
      const { modelDialog } = await api.loaded(import('./model-dialog.js'));
      return document.querySelector('dialog[open]') ?? modelDialog({ ready, current, changed: shown, tell });
    }).catch(showProblem);
  button.addEventListener('click', () => poll().then(open));

  // What companions of this room cannot do, in one sentence. Null: nothing is wrong.
  function sentence() {
    const { troubles = [] } = current ?? {};
    const failed = [...failures].filter(([, { error }]) => troubles.some(one => one.error === error));
    if (failed.length) return t('ai.cannot_answer', { who: listed(failed.map(([id]) => nameOf(id))).join(''), count: failed.length, why: words.error(failed[0][1].error) });
    if (troubles.length) return t('ai.cannot_answer_all', { why: words.error(troubles[0].error) });
    if (unreadable) return t('ai.cannot_decide', { who: nameOf(unreadable), model: current?.side?.model ?? '' });
    return null;
  }

  function draw() {
    if (!ready) return;
    const first = current?.troubles?.[0];
    const isRehearsal = current ? current.source === 'rehearsal' : ready.models?.main?.provider === 'rehearsal';
    const isConnected = Boolean(current) && !isRehearsal;
    button.hidden = false;
    button.classList.toggle('loud', ready.ready === false);
    button.classList.toggle('failing', Boolean(first));
    if (first) say(button, t('ai.fix', { what: words.upper(words.error(first.error)) }));
    else if (ready.ready === false) say(button, t('ai.not_ready_button'));
    else if (isRehearsal) say(button, t('ai.demo_button'));
    else {
      const model = current?.main?.model ?? ready.models?.main?.model;
      say(button, model ? t('ai.button', { model }) : t('ai.models'));
    }
    const failure = sentence();
    const text = failure ?? (isRehearsal && loadForAll('rehearsal') !== 'known' ? 'rehearsal' : '');
    trouble.hidden = !text;
    trouble.classList.toggle('quiet', !failure);
    trouble.ariaLabel = failure ? label : t('ai.models');
    const key = `${text} ${first?.detail ?? ''}`;
    if (key === said) return;
    said = key;
    const connect = el('button', { class: failure ? 'solid' : 'outlined', onclick: () => poll().then(open) }, t(failure && isConnected ? 'ai.change' : 'ai.connect_ai'));
    if (!failure) return trouble.replaceChildren(el('p', null, canned()), connect, el('button', { class: 'quiet-button', 'aria-label': t('base.dismiss'), onclick: dismiss }, '✕'));
    announce(text);
    trouble.replaceChildren(
      el('p', null, el('strong', { dir: 'auto' }, plain(text)), first ? ` ${t('ai.stored')}` : ''),
      first ? el('p', { class: 'detail', dir: 'auto' }, plain(words.ofModel(first.detail))) : '',
      el('p', { class: 'actions' }, connect),
    );
  }

  function dismiss() {
    storeForAll('rehearsal', 'known');
    draw();
  }

  // Other models are in force.
  function shown(models) {
    current = models;
    entered();
    poll();
  }

  // Another room is shown.
  function entered() {
    failures = new Map();
    unreadable = null;
    draw();
  }

  // Several events at a time lead to one request.
  function poll() {
    polling ??= Promise.all([api.readiness().catch(() => null), api.models().catch(() => null)]).then(([readiness, models]) => {
      polling = null;
      ready = readiness ?? ready;
      current = models ?? current;
      for (const [id, { at }] of failures) if (Date.now() - at > SHOWN_MS && !current?.troubles?.length) failures.delete(id);
      draw();
      checked(ready);
    });
    return polling;
  }

  poll();
  setInterval(poll, POLL_MS);
  return {
    poll,
    open: () => poll().then(open),
    current: () => current,
    // In demo mode nothing is said of it.
    seesPictures: () => (!current || current.source === 'rehearsal' ? null : current.main.sees_pictures),
    entered,
    // An event of the room shown, as it happens.
    note(e) {
      if (e.event === 'error' || e.event === 'failed') {
        failures.set(e.companion, { error: e.error, at: Date.now() });
        poll();
      } else if (e.event === 'decision' && e.reason === 'unreadable') {
        unreadable = e.companion;
        draw();
      } else if (e.event === 'decision' || e.event === 'statement') {
        if (e.event === 'decision' && e.companion === unreadable && WAS_READ.has(e.reason)) {
          unreadable = null;
          draw();
        }
        const hadFailed = failures.delete(e.companion) || current?.troubles?.length > 0;
        if (hadFailed) poll();
      }
    },
  };
}
