// “Tokens for programs”: makes tokens with a scope, lists them and ends them.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { copyButton } from './markdown.js';
import { t } from './texts.js';
import * as words from './words.js';

const SCOPES = ['metrics', 'read', 'admin'];

export function showTokens() {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const list = el('ul', { class: 'entries' });
  const made = el('div', { class: 'made', role: 'status' });
  const name = el('input', { id: 'token-name', maxlength: 64, required: true, autocomplete: 'off', value: 'prometheus' });
  const scope = el('select', { id: 'token-scope' }, SCOPES.map(code => el('option', { value: code }, t(`token_scopes.${code}`))));
  const form = el('form', { class: 'small-form invite' }, el('label', { for: name.id }, t('tokens.name')), name, el('label', { for: scope.id }, t('tokens.scope')), scope, problem, el('div', { class: 'row' }, el('button', { class: 'solid' }, t('tokens.make'))));

  const refused = refusal => (problem.textContent = plain(words.sentence(refusal.message)));

  async function end(token) {
    if (!(await confirmed(t('tokens.end_title'), t('tokens.end_question'), t('tokens.end')))) return;
    // 404: it has ended already.
    await api.endToken(token.name).catch(refusal => refusal.status === 404 || refused(refusal));
    refresh();
  }

  const entry = token => el('li', null, el('p', null, el('strong', null, plain(token.name)), `: ${t(`token_scopes.${token.scope}`)} · ${t('tokens.made', { at: words.minute(token.made_at) })}`), el('p', { class: 'actions' }, el('button', { type: 'button', class: 'quiet-button danger', onclick: () => end(token) }, t('tokens.end'))));

  async function refresh() {
    const answer = await api.tokens().catch(refused);
    if (answer?.tokens) list.replaceChildren(...(answer.tokens.length ? answer.tokens.map(entry) : [el('li', { class: 'muted' }, t('tokens.none'))]));
  }

  form.addEventListener('submit', async event => {
    event.preventDefault();
    problem.textContent = '';
    try {
      const { token } = await api.makeToken(name.value.trim(), scope.value);
      made.replaceChildren(
        el('p', null, el('strong', null, t('tokens.ready', { name: name.value.trim() }))),
        el('p', { class: 'link' }, el('input', { class: 'lines', readonly: true, value: token, 'aria-label': t('tokens.secret'), onfocus: event => event.target.select() }), copyButton(token, 'solid')),
        el('p', { class: 'muted' }, t('tokens.copy_now')),
      );
      made.querySelector('input').focus();
      refresh();
    } catch (refusal) {
      refused(refusal);
    }
  });

  dialog(t('tokens.title'), el('p', null, t('tokens.what')), form, made, list);
  refresh();
}
