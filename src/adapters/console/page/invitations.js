// “Invite”: makes links for friends to the room shown, lists its invitations with their guests, and revokes them.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { elsewhere, qrNode } from './elsewhere.js';
import { byId, el, name, plain } from './dom.js';
import { copyButton } from './markdown.js';
import { titleOf } from './platforms.js';
import { listed, pieces, t } from './texts.js';
import * as words from './words.js';

const ENDS = ['day', 'week', 'never'];
const USUAL_END = 'week';
const MOST_GUESTS = 20;
const USUAL_GUESTS = 5;

const paragraph = (text, kind = null) => el('p', { class: kind, dir: 'auto' }, text);

// `room()` is the room shown as the server lists it; `showProblem(problem)` shows a refusal.
export function invitations({ room, showProblem }) {
  let open = null; // the dialog, while it is open: its room and the node of the list

  const isOver = ({ revoked_at: revoked, ends_at: ends }) => Boolean(revoked) || (ends && Date.parse(ends) <= Date.now());

  async function revoke(invitation) {
    const guests = invitation.guests.filter(guest => !guest.left_at).map(guest => guest.name);
    const question = [guests.length ? t('invite.revoke_out', { who: listed(guests).join(''), count: guests.length }) : t('invite.revoke_none'), guests.length ? t('invite.revoke_stays') : ''].filter(Boolean);
    const { id } = open.room;
    if (!(await confirmed(t('invite.revoke_title'), question, t('invite.revoke')))) return;
    // 404: it is gone already.
    await api.revoke(id, invitation.id).catch(problem => problem.status === 404 || showProblem(problem));
    refresh();
  }

  async function remove(invitation, guest) {
    const { id } = open.room;
    if (!(await confirmed(t('invite.remove_title', { who: plain(guest.name) }), [t('invite.remove_question'), t('invite.revoke_stays')], t('invite.remove')))) return;
    await api.removeGuest(id, invitation.id, guest.name).catch(problem => problem.status === 404 || showProblem(problem));
    refresh();
  }

  function guestNode(invitation, guest) {
    const state = guest.removed ? 'invite.was_removed' : guest.left_at ? 'invite.has_left' : guest.is_here ? 'invite.is_here' : null;
    const button = guest.removed || isOver(invitation) ? null : el('button', { type: 'button', class: 'quiet-button danger', 'aria-label': t('invite.remove_title', { who: plain(guest.name) }), onclick: () => remove(invitation, guest) }, t('invite.remove'));
    return el('p', null, name(guest.name), state ? el('span', { class: 'muted' }, ` (${t(state)})`) : null, ' ', button);
  }

  function entry(invitation) {
    const { made_at: made, ends_at: ends, revoked_at: revoked, most_guests: most, knows_before: knows, guests, messages } = invitation;
    const end = revoked ? t('invite.revoked', { at: words.minute(revoked) }) : !ends ? t('invite.ends_never') : t(isOver(invitation) ? 'invite.ended' : 'invite.ends', { at: words.minute(ends) });
    return el(
      'li',
      { class: isOver(invitation) ? 'muted' : null },
      el('p', null, t('invite.made', { at: words.minute(made) }), ' · ', end, knows ? '' : ` · ${t('invite.hides_before')}`),
      el('p', null, t('invite.guests', { guests: guests.filter(guest => !guest.removed).length, count: most }), messages ? ` · ${t('invite.messages', { count: messages })}` : ''),
      ...guests.map(guest => guestNode(invitation, guest)),
      isOver(invitation) ? null : el('p', { class: 'actions' }, el('button', { type: 'button', class: 'quiet-button danger', onclick: () => revoke(invitation) }, t('invite.revoke'))),
    );
  }

  function drawList({ invitations: all = [] }) {
    const newest = [...all].sort((one, other) => Date.parse(other.made_at) - Date.parse(one.made_at));
    const entries = some => el('ul', { class: 'entries' }, some.map(entry));
    const works = newest.filter(one => !isOver(one));
    const over = newest.filter(isOver);
    const isUnfolded = open.list.querySelector('details')?.open;
    open.list.replaceChildren(
      ...(works.length ? [el('h3', null, t('invite.list')), entries(works)] : []),
      ...(over.length ? [el('details', { open: isUnfolded }, el('summary', null, t('invite.over', { count: over.length })), entries(over))] : []),
    );
  }

  // Reads the list again, if it is shown.
  async function refresh() {
    if (!open) return;
    const mine = open;
    const answer = await api.invitations(mine.room.id).catch(showProblem);
    if (answer && open === mine) drawList(answer);
  }

  // The link is shown once: the server keeps no more of it than what recognises it.
  const linkNode = ({ links, token_file: tokenFile }) => [
    el('p', null, el('strong', null, t('invite.ready'))),
    links.map(({ url, qr }) => [el('p', { class: 'link' }, el('input', { class: 'lines', readonly: true, value: url, 'aria-label': t('invite.link'), onfocus: event => event.target.select() }), copyButton(url, 'solid')), qr ? qrNode(qr) : null]),
    paragraph(t('invite.once'), 'muted'),
    tokenFile ? el('p', null, pieces('invite.token', { file: el('code', { dir: 'ltr' }, plain(tokenFile)) })) : null,
  ];

  function form(answer) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const ends = el('select', { id: 'invite-ends' }, ENDS.map(end => el('option', { value: end, selected: end === USUAL_END }, t(`invite_ends.${end}`))));
    const most = el('input', { id: 'invite-most', type: 'number', min: 1, max: MOST_GUESTS, required: true, value: String(USUAL_GUESTS) });
    const before = el('select', { id: 'invite-before', 'aria-describedby': 'invite-before-about' }, ['no', 'yes'].map(answer => el('option', { value: answer }, t(`invite.before_${answer}`))));
    const make = el('button', { class: 'solid', 'aria-describedby': 'invite-notes' }, t('invite.make'));
    const made = el('div', { class: 'made', role: 'status' });
    const notes = [answer.reach.only_here ? paragraph(pieces('invite.only_here', { address: el('code', { dir: 'ltr' }, plain(answer.reach.url)) }), 'muted') : '', answer.needs_sign_in ? '' : paragraph(t('invite.makes_token'), 'muted')];
    const node = el('form', { class: 'small-form invite' }, el('label', { for: 'invite-ends' }, t('invite.works')), ends, el('label', { for: 'invite-most' }, t('invite.most')), most, el('label', { for: 'invite-before' }, t('invite.before')), before, el('p', { class: 'hint', id: 'invite-before-about' }, t('invite.before_about')), el('div', { id: 'invite-notes' }, notes), problem, el('div', { class: 'row' }, make));
    node.addEventListener('submit', async event => {
      event.preventDefault();
      make.disabled = true;
      problem.textContent = '';
      try {
        const invited = await api.invite(open.room.id, ends.value, Number(most.value), before.value === 'yes');
        notes[1]?.remove?.();
        made.replaceChildren(...linkNode(invited).flat(2).filter(Boolean));
        const field = made.querySelector('input');
        field.focus();
        // Its beginning says to where it leads.
        field.scrollLeft = 0;
        await refresh();
      } catch (refusal) {
        problem.textContent = words.upper(refusal.message);
      }
      make.disabled = false;
    });
    return [node, made];
  }

  async function show() {
    const target = room();
    if (!target || open) return;
    const top = el('div', null, el('p', { class: 'muted' }, t('base.loading')));
    const ways = el('div');
    const box = dialog(t('invite.title', { room: plain(titleOf(target)) }), paragraph(t('invite.what')), top, ways, el('div', { class: 'invitations' }));
    open = { room: target, list: box.querySelector('.invitations') };
    box.addEventListener('close', () => (open = null));
    const draw = answer => top.replaceChildren(...(answer.reach.problem ? [paragraph(t('invite.nowhere'), 'form-problem')] : form(answer)));
    // Links begin with another address now. Who has opened one wants a link for it.
    async function changed(isNew) {
      const chosen = [...top.querySelectorAll('select, input[type=number]')].map(({ id, value }) => [id, value]);
      const answer = await api.invitations(target.id).catch(showProblem);
      if (!answer || !box.open) return;
      draw(answer);
      for (const [id, value] of chosen) if (byId(id)) byId(id).value = value;
      if (isNew) top.querySelector('form')?.requestSubmit();
    }
    const here = () => api.invitations(target.id).then(({ invitations: all = [] }) => all.flatMap(one => one.guests).filter(guest => guest.is_here).map(guest => plain(guest.name)), () => []);
    elsewhere({ isOpen: () => box.open, changed, here }).then(node => ways.replaceChildren(node), showProblem);
    try {
      const answer = await api.invitations(target.id);
      if (!box.open) return;
      draw(answer);
      // The focus stays where the user has put it meanwhile.
      if (box === document.activeElement) box.querySelector('select')?.focus();
      drawList(answer);
    } catch (problem) {
      top.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: problem.message })));
    }
  }

  return { show, refresh };
}
