// Chooses the companions of a room: a checkbox for each configured companion, and for each external one.

import { ai } from './ai.js';
import { el, name } from './dom.js';
import { face, pictureOf } from './pictures.js';
import { loadLater, pieces, t } from './texts.js';

const TYPING_MS = 400;
const COMPANION_ID = /^[A-Za-z0-9_-]{1,64}$/u;

// An external companion keeps the name and aliases that it was given.
const externalMember = ({ id, name: ownName, aliases }) => ({ id, external: true, ...(ownName ? { name: ownName } : {}), ...(aliases?.length ? { aliases } : {}) });

// The members of a room as they are sent to the server.
export const membersOf = room => (room.companions ?? []).map(c => (c.external ? externalMember(c) : c.id));

// `configured` are the server's companions, `members` those in the room. Without `allowsExternal` no external companion can be added.
// `chosen()` returns the members to send to the server, or throws an error whose message is shown.
export function companionPicker(configured, members, { allowsExternal = true, desk }) {
  const boxes = el('div', { class: 'boxes' });
  const externalId = el('input', { class: 'external-id', maxlength: '64', autocomplete: 'off', spellcheck: 'false', 'aria-label': t('picker.id'), placeholder: t('picker.id') });
  const taken = el('p', { class: 'form-problem', role: 'alert' });
  let typing = null;
  externalId.addEventListener('input', () => {
    clearTimeout(typing);
    taken.textContent = '';
    typing = setTimeout(async () => {
      await loadLater();
      const id = externalId.value.trim();
      if (configuredIds.has(id)) taken.textContent = t('refusals.not_external', { id });
    }, TYPING_MS);
  });
  const addExternal = el('details', { class: 'external-more' }, el('summary', null, t('maker.developers')), el('p', null, pieces('maker.developers_about', { document: el('code', null, 'docs/external-companions.md') })), el('p', null, t('picker.add')), externalId, taken);
  const make = el('p', { class: 'actions' }, el('button', { type: 'button', class: 'quiet-button', onclick: () => desk.create(added) }, t('maker.new')), desk.importButton('quiet-button', added));
  const memberById = new Map(members.map(c => [c.id, c]));

  function box(c, isExternal) {
    const input = el('input', { type: 'checkbox', value: c.id, 'data-external': isExternal });
    input.checked = memberById.has(c.id);
    const label = el('label', { class: 'box' }, input, ' ', isExternal ? null : face(c.name ?? c.id, { path: pictureOf(c.id), tone: desk.tone(c.id) }), ' ', name(c.name ?? c.id), ' ', ai(), memberById.get(c.id)?.kept_out ? [' ', el('small', { class: 'muted' }, t('doings.excluded'))] : null, isExternal ? [' ', el('span', { class: 'external' }, t('picker.external'))] : null);
    return isExternal ? label : el('div', { class: 'box-row' }, label, el('button', { type: 'button', class: 'quiet-button', onclick: () => desk.open(c.id) }, t('profile.open'), el('span', { class: 'visually-hidden' }, ` ${c.name ?? c.id}`)));
  }

  // One that was just made.
  function added({ id, companion }) {
    memberById.set(id, { id });
    boxes.append(box({ id, name: companion.name }, false));
  }

  const configuredIds = new Set(configured.map(c => c.id));
  boxes.append(...configured.map(c => box(c, Boolean(memberById.get(c.id)?.external))), ...members.filter(c => !configuredIds.has(c.id)).map(c => box(c, true)));
  return {
    node: el('fieldset', { class: 'companion-picker' }, el('legend', null, t('picker.title')), boxes, make, allowsExternal ? addExternal : null),
    focus: () => (boxes.querySelector('input:checked') ?? boxes.querySelector('input'))?.focus(),
    chosen() {
      const chosen = [...boxes.querySelectorAll('input:checked')].map(input => (input.dataset.external === undefined ? input.value : externalMember(memberById.get(input.value) ?? { id: input.value })));
      const id = externalId.value.trim();
      if (id && !COMPANION_ID.test(id)) throw new Error(t('picker.id_problem'));
      if (id) chosen.push({ id, external: true });
      return chosen;
    },
  };
}
