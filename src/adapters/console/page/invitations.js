// “Invite”: makes links for friends to the room shown, lists its invitations with their guests, and revokes them.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { el, name, plain } from './dom.js';
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

  const guestNode = guest => el('span', null, name(guest.name), guest.left_at || guest.is_here ? el('span', { class: 'muted' }, ` (${t(guest.left_at ? 'invite.has_left' : 'invite.is_here')})`) : null);

  function entry(invitation) {
    const { made_at: made, ends_at: ends, revoked_at: revoked, most_guests: most, knows_before: knows, guests, messages } = invitation;
    const end = revoked ? t('invite.revoked', { at: words.minute(revoked) }) : !ends ? t('invite.ends_never') : t(isOver(invitation) ? 'invite.ended' : 'invite.ends', { at: words.minute(ends) });
    return el(
      'li',
      { class: isOver(invitation) ? 'muted' : null },
      el('p', null, t('invite.made', { at: words.minute(made) }), ' · ', end, knows ? '' : ` · ${t('invite.hides_before')}`),
      el('p', null, t('invite.guests', { guests: guests.length, count: most }), guests.length ? [': ', listed(guests.map(guestNode))] : '', messages ? ` · ${t('invite.messages', { count: messages })}` : ''),
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
  const linkNode = ({ link, token_file: tokenFile }) => [
    el('p', null, el('strong', null, t('invite.ready'))),
    el('p', { class: 'link' }, el('input', { class: 'lines', readonly: true, value: link, 'aria-label': t('invite.link'), onfocus: event => event.target.select() }), copyButton(link, 'solid')),
    paragraph(t('invite.once'), 'muted'),
    tokenFile ? el('p', null, pieces('invite.token', { file: el('code', { dir: 'ltr' }, plain(tokenFile)) })) : null,
  ];

  function form(answer) {
    const problem = el('p', { class: 'form-problem', role: 'alert' });
    const ends = el('select', { id: 'invite-ends' }, ENDS.map(end => el('option', { value: end, selected: end === USUAL_END }, t(`invite_ends.${end}`))));
    const most = el('input', { id: 'invite-most', type: 'number', min: 1, max: MOST_GUESTS, required: true, value: String(USUAL_GUESTS) });
    const before = el('select', { id: 'invite-before', 'aria-describedby': 'invite-before-about' }, ['no', 'yes'].map(answer => el('option', { value: answer }, t(`invite.before_${answer}`))));
    const make = el('button', { class: 'solid' }, t('invite.make'));
    const made = el('div', { class: 'made', role: 'status' });
    const notes = [answer.reach.only_here ? paragraph(pieces('invite.only_here', { address: el('code', { dir: 'ltr' }, plain(answer.reach.url)) }), 'muted') : '', answer.needs_sign_in ? '' : paragraph(t('invite.makes_token'), 'muted')];
    const node = el('form', { class: 'small-form invite' }, el('label', { for: 'invite-ends' }, t('invite.works')), ends, el('label', { for: 'invite-most' }, t('invite.most')), most, el('label', { for: 'invite-before' }, t('invite.before')), before, el('p', { class: 'hint', id: 'invite-before-about' }, t('invite.before_about')), notes, problem, el('div', { class: 'row' }, make));
    node.addEventListener('submit', async event => {
      event.preventDefault();
      make.disabled = true;
      problem.textContent = '';
      try {
        const invited = await api.invite(open.room.id, ends.value, Number(most.value), before.value === 'yes');
        notes[1]?.remove?.();
        made.replaceChildren(...linkNode(invited).filter(Boolean));
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
    const box = dialog(t('invite.title', { room: plain(titleOf(target)) }), paragraph(t('invite.what')), top, el('div', { class: 'invitations' }));
    open = { room: target, list: box.querySelector('.invitations') };
    box.addEventListener('close', () => (open = null));
    try {
      const answer = await api.invitations(target.id);
      if (!box.open) return;
      top.replaceChildren(...(answer.reach.problem ? [paragraph(t('invite.nowhere'), 'form-problem')] : form(answer)));
      // The focus stays where the user has put it meanwhile.
      if (box.querySelector('header button') === document.activeElement) box.querySelector('select')?.focus();
      drawList(answer);
    } catch (problem) {
      top.replaceChildren(el('p', { class: 'form-problem', role: 'alert' }, t('base.not_loaded', { problem: problem.message })));
    }
  }

  return { show, refresh };
}
