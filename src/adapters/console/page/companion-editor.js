// The dialog in which a companion is made, changed or copied, with a trial before anything is kept.

import * as api from './api.js';
import { notAPicture } from './card-preview.js';
import { companionForm, span } from './companion-form.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { CARDS, asPicture, face, fileButton, takesFiles } from './pictures.js';
import { pieces, t } from './texts.js';
import { asksBeforeLoss } from './unsaved.js';
import * as words from './words.js';

const PICTURES = 'image/*';
const REHEARSAL = 'rehearsal';
// How a trial says a decision.
const DECIDED = /^(yes|no): /iu;

const isCard = file => /\.json$/iu.test(file.name) || file.type === 'application/json';

// Where a companion is kept, in words.
export function placeOf(kept) {
  if (kept.in === 'file') return kept.writable ? kept.path : t('profile.kept_read_only', { path: kept.path });
  return kept.in === 'built_in' ? t('profile.kept_built_in', { path: kept.path }) : t('profile.kept_store');
}

// What two versions of the fields say differently: each with its label and what `theirs` says.
function differences(mine, theirs) {
  const labels = { name: 'maker.name', persona: 'maker.persona', interjection: 'maker.often', chattiness: 'maker.chattiness', tone: 'maker.tone', aliases: 'maker.aliases', greetings: 'maker.greetings', quiet_hours: 'maker.quiet_hours', starts_after: 'maker.silence', adult: 'maker.adult', model: 'maker.model', voice: 'maker.voice', picture_url: 'maker.picture_url' };
  const shown = { interjection: words.interjectionLevel, quiet_hours: hours => (hours === 'always' ? words.interjectionLevel('spoken_to') : hours), starts_after: span, adult: () => '✓', aliases: all => all.join(', '), greetings: all => all.join('\n\n'), voice: voice => Object.values(voice).join(', ') };
  const same = key => JSON.stringify(mine[key] ?? null) === JSON.stringify(theirs[key] ?? null);
  return Object.keys(labels)
    .filter(key => !same(key))
    .map(key => [el('dt', null, t(labels[key], { who: theirs.name })), el('dd', { dir: 'auto' }, plain(theirs[key] === undefined ? '' : (shown[key] ?? String)(theirs[key])) || t('maker.theirs_empty'))]);
}

// `desk` has `room()`, `taken(name, id)`, `importCard(file)` and `saved(profile, isNew)`. `profile` is the companion that is changed, or copied with `isCopy`.
// `made` is what a card becomes: the fields, the file, and the address of its picture. `picked(profile)` is called with one that was made, which is then in no room.
export async function companionEditor(desk, { profile = null, isCopy = false, made = null, picked = null }) {
  const options = await api.companionOptions();
  let changed = isCopy ? null : profile;
  const base = made?.companion ?? profile?.companion ?? { name: '' };
  const fields = isCopy ? { ...base, name: t('maker.title_copy', { who: base.name }).slice(0, 64) } : base;
  const before = made?.picture ?? profile?.picture ?? null;
  let picture = before; // an address, or null
  let { bytes } = made ?? {}; // of another picture than before or in the card, in base64

  const problem = el('div', { class: 'form-problem', role: 'alert' });
  const pictureNode = el('div', { class: 'picture' });
  const pictureProblem = el('p', { class: 'danger', role: 'alert' });
  const form = companionForm({ options, fields, elsewhere: changed?.persona_elsewhere, named: drawPicture, taken: name => desk.taken(name, changed?.id) });

  function drawPicture() {
    pictureNode.replaceChildren(face(form.fields().name, { path: picture, size: 80 }));
    remove.hidden = !picture;
  }
  async function take(file) {
    problem.replaceChildren();
    pictureProblem.textContent = '';
    if (isCard(file)) return !changed && importCard(file);
    try {
      ({ url: picture, base64: bytes } = await asPicture(file));
      drawPicture();
    } catch {
      pictureProblem.textContent = t('maker.no_picture');
    }
    return undefined;
  }
  async function importCard(file) {
    // It takes the place of what was typed.
    if (await box.mayClose()) desk.importCard(file, { chosen: () => box.close(), picked });
  }
  // A PNG may be a picture or a card.
  async function dropped(file) {
    const mayBeCard = !changed && !made && file.type === 'image/png';
    return mayBeCard && (await api.previewCard(file).then(() => true, () => false)) ? importCard(file) : take(file);
  }
  const remove = el('button', { type: 'button', class: 'quiet-button', onclick: () => ((picture = null), (bytes = undefined), drawPicture(), choose.firstChild.focus()) }, t('maker.remove_picture'));
  const choose = fileButton(t('maker.choose_picture'), PICTURES, take);

  const room = changed || picked ? null : desk.room();
  const joins = el('input', { type: 'checkbox', checked: true });
  const joinsNode = room && el('label', { class: 'box' }, joins, ' ', t('maker.joins', { room: room.title ?? room.id }));

  // Trial.
  const said = el('input', { id: 'companion-message', maxlength: 4000, dir: 'auto', autocomplete: 'off', placeholder: t('maker.try_say_example') });
  const result = el('div', { class: 'result', role: 'status' });
  const tryButton = el('button', { type: 'button', class: 'outlined', onclick: tryOut }, t('maker.try'));
  said.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    tryButton.click();
  });
  const failure = ({ error, detail }) => el('p', { class: 'danger', dir: 'auto' }, t('maker.try_no_answer', { why: plain(error ? words.error(error) : detail) }));
  async function tryOut() {
    if (!form.isComplete()) return;
    tryButton.disabled = true;
    result.replaceChildren(el('p', { class: 'muted' }, t('base.loading')));
    try {
      const { decision, statement } = await api.tryCompanion({ companion: form.fields(), of: profile?.id, message: said.value.trim() || t('maker.try_say_example') });
      const answer = decision.detail.match(DECIDED)?.[1].toLowerCase();
      result.replaceChildren(
        decision.works ? el('p', { dir: 'auto' }, pieces('maker.would', { who: form.who(), answer: answer ? el('strong', null, t(`base.${answer}`)) : '' }), answer ? [': ', el('q', null, plain(decision.detail.replace(DECIDED, '')))] : ` ${plain(decision.detail)}`) : failure(decision),
        statement.works ? el('p', { class: 'said', dir: 'auto' }, pieces('maker.says', { who: el('strong', null, form.who()), text: plain(statement.detail) })) : failure(statement),
        statement.model === REHEARSAL ? el('p', { class: 'muted' }, t('maker.demo')) : '',
      );
    } catch (refusal) {
      result.replaceChildren(form.refuse(refusal) ? '' : el('p', { class: 'danger', dir: 'auto' }, plain(words.sentence(refusal.message))));
    }
    tryButton.disabled = false;
    result.scrollIntoView({ block: 'nearest' });
  }

  // Saving.
  const save = el('button', { class: 'solid' }, t('base.save'));
  async function create() {
    let answer = await api.createCompanion({ companion: form.fields(), copy_of: isCopy ? profile.id : undefined, picture: bytes, card: made?.card, room: room && joins.checked ? room.id : undefined });
    // From now on, saving again changes it.
    changed = answer;
    // A copy and a card bring theirs.
    if (!picture && answer.picture) changed = answer = await api.changeCompanion(answer.id, { revision: answer.revision, companion: answer.companion, picture: null });
    if (room && joins.checked && !answer.rooms.some(({ id }) => id === room.id)) desk.tell(t('maker.not_joined', { who: answer.companion.name }), 'problem');
    return answer;
  }
  const change = () => api.changeCompanion(changed.id, { revision: changed.revision, companion: form.fields(), picture: picture === before ? undefined : (bytes ?? null) });
  async function saveIt() {
    if (!form.isComplete()) return;
    problem.replaceChildren();
    save.disabled = true;
    try {
      const isNew = !changed;
      const saved = await (isNew ? create() : change());
      box.mayClose = null;
      box.close();
      picked?.(saved);
      desk.saved(saved, isNew);
    } catch (refusal) {
      await explain(refusal);
    }
    save.disabled = false;
  }
  async function explain(refusal) {
    const current = changed && (refusal.status === 409 || refusal.status === 404) ? await api.companion(changed.id).catch(({ status }) => (status === 404 ? 'gone' : null)) : null;
    if (current === 'gone') return conflict(t('maker.gone', { who: changed.companion.name }), el('button', { type: 'button', class: 'outlined', onclick: () => ((changed = null), saveIt()) }, t('maker.save_new')));
    if (current && current.revision !== changed.revision) return showConflict(current);
    if (refusal.field && form.refuse(refusal)) return undefined;
    return conflict(refusal.field === 'picture' && refusal.why ? notAPicture(refusal.why) : words.sentence(refusal.message));
  }
  function conflict(text, ...more) {
    problem.replaceChildren(el('p', { dir: 'auto' }, plain(text)), ...more);
    problem.scrollIntoView({ block: 'nearest' });
  }
  function showConflict(theirs) {
    const shown = el('dl', { class: 'theirs', hidden: true }, differences(form.fields(), theirs.companion), (theirs.picture ?? null) === before ? null : el('dd', null, t('maker.theirs_picture')));
    if (!shown.firstChild) shown.append(el('dd', null, t('maker.theirs_same')));
    const show = el('button', { type: 'button', class: 'outlined', 'aria-expanded': 'false', onclick: () => ((shown.hidden = !shown.hidden), show.setAttribute('aria-expanded', String(!shown.hidden))) }, t('maker.theirs'));
    const over = el('button', { type: 'button', class: 'outlined danger', onclick: () => ((changed = { ...changed, revision: theirs.revision }), saveIt()) }, t('maker.overwrite'));
    conflict(t('maker.conflict', { who: theirs.companion.name }), el('p', { class: 'actions' }, show, over), shown);
    show.focus();
  }

  const now = () => JSON.stringify([form.fields(), picture]);
  const node = el(
    'form',
    { class: 'connect editor', novalidate: true },
    changed || made || isCopy ? null : el('p', { class: 'import' }, fileButton(t('maker.import'), CARDS, importCard), el('small', { class: 'muted' }, t('maker.import_about'))),
    el('div', { class: 'picture-row', role: 'group', 'aria-label': t('maker.picture') }, pictureNode, el('div', null, el('p', { class: 'actions' }, choose, remove), el('small', { class: 'muted' }, t('maker.drop')), pictureProblem)),
    form.nodes,
    el('fieldset', { class: 'field try' }, el('legend', null, t('maker.try')), el('small', { class: 'muted' }, t('maker.try_about')), el('div', { class: 'with-button' }, el('div', { class: 'field' }, el('label', { for: said.id }, t('maker.try_say')), said), tryButton), result),
    joinsNode,
    problem,
    el('p', { class: 'actions last' }, save, el('button', { type: 'button', class: 'quiet-button', onclick: () => leave() }, t('base.cancel'))),
  );
  node.addEventListener('submit', event => {
    event.preventDefault();
    saveIt();
  });
  const box = dialog(t(changed ? 'maker.title_edit' : isCopy ? 'maker.title_copy' : 'maker.title', { who: base.name }), node);
  box.classList.add('wide');
  takesFiles(box, ([file]) => dropped(file));
  drawPicture();
  // What a card became is not saved yet.
  const saved = made ? null : now();
  const leave = asksBeforeLoss(box, () => now() !== saved);
  form.focus();
  return box;
}
