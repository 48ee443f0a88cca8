// The page that an invitation leads to: which room it is for, who is there, what is kept, and the name under which a guest joins.

import { notice } from './ai.js';
import * as api from './api.js';
import { byId, el, name, plain } from './dom.js';
import { face } from './pictures.js';
import { titleOf } from './platforms.js';
import { listed, pieces, t } from './texts.js';
import { tonesOf } from './tones.js';
import * as words from './words.js';

const LONGEST_NAME = 64;
const RETRY_MS = 3000;

// Nobody is signed in here yet.
api.enterAt(null);

// Why there is nothing to join, by the status of an answer.
const NONE = { 404: 'unknown', 409: 'full' };
const wasRemoved = ({ why }) => why?.code === 'guest_removed';
const noneOf = problem => (wasRemoved(problem) ? 'removed' : NONE[problem.status]);

const root = byId('join');
const show = (title, ...content) => root.replaceChildren(el('h2', null, title), ...content.flat().filter(Boolean));
const paragraph = (...text) => el('p', null, text);
const linkTo = (room, label) => el('p', null, el('a', { class: 'go', href: room ? `/#/${encodeURIComponent(room.id)}` : '/' }, label));

// The rooms in which this browser is a guest already.
const visits = () => api.visits().then(({ rooms }) => rooms, () => []);

// Nothing to join: the visit has ended, the person has left, the link is full, or there is no such invitation.
async function none(why) {
  show(t(`no_join.${why}`), paragraph(t(`no_join_about.${why}`)), (await visits()).length ? linkTo(null, t('join.back')) : null);
}

// While the server starts again, nobody knows whether the visit has ended.
async function ended() {
  try {
    const { rooms } = await api.visits();
    if (rooms.length) return location.replace('/');
  } catch (problem) {
    if (wasRemoved(problem)) return none('removed');
    if (problem.isTransient) {
      show(words.upper(t('online.lost')));
      return setTimeout(ended, RETRY_MS);
    }
  }
  return none('ended');
}

function companionsOf({ companions = [] }) {
  const tone = tonesOf({ companions: new Map(companions.map(one => [one.id, one])) });
  const who = one => el('span', { class: 'with-face', 'data-tone': tone(one.id) }, face(one.name, { path: one.picture }), ' ', name(one.name, { class: 'who' }));
  return companions.length ? paragraph(pieces('join.companions', { who: listed(companions.map(who)), count: companions.length })) : null;
}

// `before` is the name that this browser had before. If it is fixed, the person comes back under it.
function form(secret, room, before = '', isFixed = false) {
  const problem = el('p', { id: 'join-problem', role: 'alert' });
  const field = el('input', { id: 'join-name', value: before, readonly: isFixed, maxlength: LONGEST_NAME, required: true, autocomplete: 'nickname', spellcheck: 'false', dir: 'auto', 'aria-describedby': 'join-name-about join-problem' });
  const button = el('button', null, t('join.join'));
  const node = el('form', null, el('label', { for: 'join-name' }, t('join.name')), field, el('p', { class: 'hint', id: 'join-name-about' }, t(isFixed ? 'join.name_again' : 'join.name_about')), problem, button);
  node.addEventListener('submit', async event => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = '';
    try {
      await api.join(secret, field.value.trim());
      // Without a way back to this page, which knows its secret no more.
      location.replace(`/#/${encodeURIComponent(room.id)}`);
    } catch (refusal) {
      button.disabled = false;
      if (noneOf(refusal)) return none(noneOf(refusal));
      const isName = refusal.field === 'name';
      problem.textContent = words.sentence(plain(isName && refusal.about ? `${t('fields.name')} ${refusal.about}` : refusal.message));
      if (isName) field.select();
    }
    return undefined;
  });
  return [node, field];
}

async function look(secret) {
  show(t('base.loading'));
  let invitation;
  try {
    invitation = await api.lookAtInvitation(secret);
  } catch (problem) {
    if (noneOf(problem)) return none(noneOf(problem));
    return show(t('join.not_now'), paragraph(words.upper(plain(problem.message))), el('form', { onsubmit: event => (event.preventDefault(), look(secret)) }, el('button', null, t('base.try_again'))));
  }
  const { room, ends_at: ends, operator, name: before, name_is_fixed: isFixed, demo, run_by: runBy, takes_notes: takesNotes } = invitation;
  const title = pieces('join.invited', { room: name(titleOf(room)) });
  if (operator) return show(title, paragraph(t('join.operator')), linkTo(room, t('join.open')));
  const visiting = (await visits()).find(({ id }) => id === room.id);
  if (visiting) return show(title, paragraph(pieces('join.already', { name: name(visiting.name) })), linkTo(room, t('join.open')));
  const [node, field] = form(secret, room, before, isFixed);
  const there = companionsOf(room);
  // That companions are AI is said once.
  const about = notice(runBy).slice(there ? 1 : 0).filter(Boolean);
  show(title, there, about.length ? paragraph(about) : null, demo ? paragraph(t('consent.demo')) : null, paragraph(t(demo ? 'join.stored' : 'join.sent'), ' ', takesNotes ? `${t('join.noted')} ` : '', t('join.kept')), ends ? paragraph(t('join.ends', { at: words.minute(ends) })) : null, node);
  return field.focus();
}

function begin() {
  const secret = location.hash.slice(1);
  const why = ['ended', 'left'].find(one => new URLSearchParams(location.search).has(one));
  if (!secret) return why === 'ended' ? ended() : none(why ?? 'unknown');
  // The secret stays out of the address bar, the history and bookmarks.
  history.replaceState(null, '', '/join');
  return look(secret);
}
// Another link may be opened in the same window.
addEventListener('hashchange', () => location.hash.length > 1 && begin());
begin();
