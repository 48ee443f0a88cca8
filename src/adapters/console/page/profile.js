// The profile of a companion: what it is like, where it is and is kept, what it decided last, and what can be done with it.

import { ai } from './ai.js';
import * as api from './api.js';
import { placeOf } from './companion-editor.js';
import { span } from './companion-form.js';
import { confirmed, dialog } from './dialogs.js';
import { el, glyph, name, plain } from './dom.js';
import { face } from './pictures.js';
import { inWords, listed, loadLater, t } from './texts.js';
import { sentences } from './story.js';
import * as words from './words.js';

const BEGINNING = 320; // of the persona, in characters
const MOST_DECISIONS = 5;

const fact = (term, ...detail) => (detail.some(Boolean) ? [el('dt', null, term), el('dd', { dir: 'auto' }, detail)] : null);

function personaNode(text) {
  const shown = plain(text ?? '');
  if (shown.length <= BEGINNING) return el('p', { class: 'words', dir: 'auto' }, shown);
  const begin = el('p', { class: 'words', dir: 'auto' }, `${shown.slice(0, BEGINNING).replace(/\s+\S*$/u, '')}…`);
  const all = el('button', { type: 'button', class: 'quiet-button', onclick: () => (begin.replaceChildren(shown), all.remove()) }, t('profile.all'));
  return [begin, all];
}

// A decision in a line, which opens into its story.
function decisionNode(decision, roomName) {
  const yes = decision.decision === 'YES';
  const story = el('div', { class: 'explanation', hidden: true });
  const why = el('button', { type: 'button', class: 'quiet-button', 'aria-expanded': 'false', onclick: open }, t('base.why'));
  async function open() {
    story.hidden = !story.hidden;
    why.setAttribute('aria-expanded', String(!story.hidden));
    if (story.hidden || story.firstChild) return;
    story.replaceChildren(el('p', { class: 'muted' }, t('base.loading')));
    const answer = await api.why(decision.room, decision.companion, decision.seq).catch(problem => ({ problem: problem.message }));
    story.replaceChildren(answer.problem ? el('p', { class: 'muted', dir: 'auto' }, t('base.not_loaded', { problem: answer.problem })) : (sentences(answer.story) ?? el('p', { class: 'muted' }, t('cards.nothing_yet'))));
  }
  return el('li', null, el('div', { class: 'decided-row' }, glyph(yes ? 'yes' : 'no'), el('span', { dir: 'auto' }, el('strong', null, t(yes ? 'votes.wanted' : 'votes.listened')), ' · ', decision.why ? el('q', null, plain(decision.why)) : words.reason(decision.reason), ' ', el('span', { class: 'muted' }, name(roomName), ` · ${words.moment(decision.at)}`)), why), story);
}

function discordWords({ code, url }) {
  if (code === 'none') return '';
  return code === 'shown' ? t('profile.discord_shown', { url }) : t('profile.discord_no_public_url');
}

// `desk` has what is done with a companion, `who` is how it is called, and `told` is what is said first.
export async function profileDialog(desk, id, who, told = '') {
  let profile;
  try {
    profile = await api.companion(id);
    if (profile.warnings.length) await loadLater();
  } catch (problem) {
    return desk.tell(problem.status === 404 ? t('profile.gone', { who }) : problem.message, 'problem');
  }
  const { companion, kept, rooms } = profile;
  const { voice = {} } = companion;
  const tone = desk.tone(id);
  const again = text => (box.close(), profileDialog(desk, id, companion.name, text));
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const attempt = act => async event => {
    const button = event.currentTarget;
    button.disabled = true;
    problem.textContent = '';
    try {
      await act();
      button.disabled = false;
    } catch (refusal) {
      problem.textContent = plain(words.sentence(refusal.message));
      button.disabled = false;
    }
  };
  const button = (label, onclick, kind = 'outlined') => el('button', { type: 'button', class: kind, onclick }, label);
  const room = desk.room();
  const isHere = room && rooms.some(one => one.id === room.id);
  const changeRoom = room && (!profile.guild || profile.guild === room.guild) && button(t(isHere ? 'profile.remove' : 'profile.add', { room: room.title ?? room.id }), attempt(() => desk[isHere ? 'part' : 'join'](room, id).then(() => again())));

  const member = isHere && !room.paused && room.companions?.find(one => one.id === id);
  const pause = member && button(t(member.paused ? 'cards.resume' : 'cards.pause'), attempt(() => desk.pause(room, id, !member.paused).then(() => again())));

  const leads = (label, about, act) => el('button', { type: 'button', class: 'outlined', title: about, onclick: attempt(() => act(id).then(() => box.close())) }, label);

  async function remove() {
    if (!(await confirmed(t('profile.delete_title', { who: companion.name }), profile.kept.instead_of ? t('profile.delete_stored', { who: companion.name }) : t('profile.delete_question', { who: companion.name }), t('base.delete')))) return;
    box.close();
    desk.remove(profile);
  }

  const decisions = el('ul', { class: 'decided-list' }, el('li', { class: 'muted' }, t('base.loading')));
  api.decisionsOf(id, MOST_DECISIONS).then(
    ({ decisions: found = [] }) => decisions.replaceChildren(...(found.length ? found.toReversed().map(one => decisionNode(one, desk.titleOf(one.room))) : [el('li', { class: 'muted' }, t('cards.nothing_yet'))])),
    refusal => decisions.replaceChildren(el('li', { class: 'muted' }, t('base.not_loaded', { problem: refusal.message }))),
  );

  // Only a picture that is a PNG can have the card in it.
  async function savePng() {
    const href = URL.createObjectURL(await api.cardFile(id, 'png'));
    el('a', { href, download: `${companion.name}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }

  const box = dialog(
    companion.name,
    el('p', { class: 'told', role: 'status' }, told),
    el(
      'div',
      { class: 'profile-head', 'data-tone': tone },
      face(companion.name, { path: profile.picture, size: 80 }),
      el('p', null, ai(), ' ', companion.aliases?.length ? [el('span', { class: 'muted' }, `${t('profile.aliases')}: `, listed(companion.aliases.map(one => name(one)))), el('br')] : null, `${t('cards.speaks')} `, el('strong', null, words.interjectionLevel(words.levelOf(companion.interjection ?? desk.usualLevel(id), companion.quiet_hours)), words.hasHours(companion.quiet_hours) ? `. ${t('cards.quiet_hours', { hours: companion.quiet_hours })}` : null)),
    ),
    el('p', { class: 'actions' }, button(t('base.edit'), () => (box.close(), desk.edit(profile)), 'solid'), button(t('base.copy'), () => (box.close(), desk.copy(profile))), el('a', { class: 'outlined', href: api.cardUrl(id, 'json'), download: '' }, t('profile.export_json')), profile.picture ? button(t('profile.export_png'), attempt(savePng)) : null, button(t('base.delete'), attempt(remove), 'outlined danger')),
    member && !member.paused ? el('p', { class: 'actions' }, leads(t('cards.next'), null, desk.next), leads(t('cards.draft'), t('cards.draft_about'), desk.draft)) : null,
    problem,
    profile.warnings.length ? el('ul', { class: 'danger' }, profile.warnings.map((text, i) => el('li', { dir: 'auto' }, plain(words.sentence(inWords(profile.warning_codes[i], text)))))) : null,
    el('h3', null, t('profile.persona', { who: companion.name })),
    personaNode(companion.persona),
    el(
      'dl',
      { class: 'facts' },
      fact(t('maker.about'), companion.about),
      fact(t('maker.chattiness', { who: companion.name }), companion.chattiness),
      fact(t('maker.tone'), companion.tone),
      fact(t('maker.silence'), companion.starts_after ? t('maker.after', { time: span(companion.starts_after) }) : ''),
      fact(t('maker.adult'), companion.adult ? '✓' : ''),
      fact(t('maker.greetings'), companion.greetings?.length ? words.number(companion.greetings.length) : ''),
      fact(t('maker.voice'), [voice.provider, voice.voice, voice.speed ? t('profile.voice_speed', { speed: words.number(voice.speed, 2) }) : ''].filter(Boolean).join(' · ')),
      fact(t('maker.model'), companion.model && words.modelThatWrites(companion.model)),
      fact(t('profile.only_in'), profile.guild),
      fact(t('profile.kept'), placeOf(kept), kept.why ? el('span', { class: 'muted' }, ` (${plain(kept.why)})`) : null, kept.instead_of ? el('span', { class: 'danger' }, ` ${t('profile.kept_instead', { path: kept.instead_of })}`) : null),
      fact(t('profile.discord'), discordWords(profile.discord_picture)),
    ),
    el('h3', null, t('profile.rooms')),
    el('p', { class: 'actions' }, rooms.length ? rooms.map(one => el('a', { class: 'outlined', href: `#/${encodeURIComponent(one.id)}`, onclick: () => box.close() }, name(one.title ?? one.id))) : el('span', { class: 'muted' }, t('profile.no_rooms')), changeRoom, pause),
    el('h3', null, t('profile.thinks')),
    decisions,
  );
  box.classList.add('wide');
  return box;
}
