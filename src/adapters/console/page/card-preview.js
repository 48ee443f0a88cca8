// What a character card would become, before a stranger's text becomes a persona: what is used, what is not, and why.

import * as api from './api.js';
import { dialog } from './dialogs.js';
import { el, plain } from './dom.js';
import { CARDS, asPicture, contents, fileButton, takesFiles } from './pictures.js';
import { has, listed, t } from './texts.js';
import * as words from './words.js';

const TYPING_MS = 400;
const CHOICES = ['system_prompt', 'post_history_instructions'];

const inKb = bytes => words.number(bytes / 1024, 1);
const quoted = text => el('blockquote', { dir: 'auto', tabindex: '0' }, plain(text));
const times = count => (count > 1 ? ` (${words.number(count)})` : '');

// Why a file is no picture for a companion.
export const notAPicture = why => t('imported.picture_not', { why: words.coded('not_pictures.', why.code, why) });

// `smaller` is the picture that the page made of one that the server does not take.
function pictureWords(picture, smaller) {
  if (smaller) return t('imported.picture_smaller');
  if (picture.code !== 'not_used') return t(picture.code === 'used' ? 'imported.picture_used' : 'imported.picture_none');
  return notAPicture(picture.why);
}

// What of the parts is not in the persona, because it would be too long.
const shortened = parts => parts.filter(({ bytes, used }) => used < bytes && (used > 0 || bytes > 0)).map(({ part, bytes, used }) => el('li', { class: 'danger' }, t(used ? 'imported.shortened' : 'imported.left_out', { part: words.coded('card_parts.', part), used: inKb(used), bytes: inKb(bytes) })));

// `use({ companion, card, picture, bytes })` is called with what the card becomes. `bytes` are those of another picture than the card's.
export function cardPreview(file, use) {
  const choices = { name: undefined, system_prompt: false, post_history_instructions: false };
  let read = null; // { url, base64 } of the file
  let smaller = null; // the same of its picture, if the server does not take that
  let answer = null;
  let asked = 0;
  let waiting = null;

  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const name = el('input', { id: 'card-name', maxlength: 64, autocomplete: 'off', dir: 'auto' });
  const image = el('img', { class: 'card-picture', alt: '' });
  const pictureAbout = el('p', { class: 'muted' });
  const persona = el('textarea', { id: 'card-persona', rows: 9, readonly: true, dir: 'auto' });
  const personaLabel = el('label', { for: 'card-persona' });
  const parts = el('ul');
  const facts = el('div', { class: 'card-facts' });
  const useButton = el('button', { class: 'solid', disabled: true }, t('imported.use'));
  const body = el('form', { class: 'connect editor', novalidate: true });
  const box = dialog(t('imported.title'), body);
  box.classList.add('wide');
  const other = fileButton(t('imported.other_file'), CARDS, begin);

  function refused(refusal) {
    const { code, ...values } = refusal.why ?? {};
    const key = `not_cards.${code === 'other' ? `is_${values.what}` : code}`;
    const why = has(key) ? t(key, values) : words.sentence(refusal.message);
    body.replaceChildren(el('p', null, el('strong', null, t('imported.refused'))), el('p', { class: 'danger', dir: 'auto' }, plain(why)), el('p', { class: 'actions last' }, other, el('button', { type: 'button', class: 'quiet-button', onclick: () => box.close() }, t('base.cancel'))));
    other.firstChild.focus();
  }

  async function begin(chosen) {
    file = chosen;
    Object.assign(choices, { name: undefined, system_prompt: false, post_history_instructions: false });
    answer = null;
    body.replaceChildren(el('p', { class: 'muted', role: 'status' }, t('base.loading')));
    try {
      read = await contents(file);
      await ask();
    } catch (refusal) {
      return refused(refusal);
    }
    const { why } = answer.preview.picture;
    smaller = ['too_large', 'too_many_pixels'].includes(why?.code) ? await asPicture(file).catch(() => null) : null;
    name.value = answer.preview.name;
    draw();
    persona.setSelectionRange(0, 0);
    (answer.preview.name ? persona : name).focus();
    return undefined;
  }

  async function ask() {
    asked += 1;
    const mine = asked;
    const found = await api.previewCard(file, Object.fromEntries(Object.entries(choices).filter(([, value]) => value)));
    if (mine === asked) answer = found;
    return mine === asked;
  }

  // Asks again with other choices.
  async function again() {
    clearTimeout(waiting);
    choices.name = name.value.trim() || undefined;
    useButton.disabled = true;
    try {
      if (await ask()) update();
    } catch (refusal) {
      problem.textContent = plain(words.sentence(refusal.message));
    }
  }

  function update() {
    const { preview } = answer;
    const who = name.value.trim() || preview.name;
    useButton.disabled = false;
    problem.textContent = who ? '' : t('imported.name_missing');
    persona.value = preview.persona;
    personaLabel.textContent = t('imported.persona', { who: who || t('maker.it') });
    parts.replaceChildren(...shortened(preview.parts.filter(({ part }) => !CHOICES.includes(part) || choices[part])));
  }

  const section = (title, ...content) => el('section', null, el('h3', null, title), content);
  const more = (title, ...content) => el('details', null, el('summary', null, title), content);
  const instruction = (key, text) => el('div', { class: 'instruction' }, el('label', { class: 'box' }, el('input', { type: 'checkbox', onchange: event => ((choices[key] = event.target.checked), again()) }), ' ', t(`imported.${key}`)), quoted(text));

  function draw() {
    const { preview } = answer;
    const own = CHOICES.filter(key => preview[key]);
    image.hidden = !smaller && preview.picture.code !== 'used';
    if (!image.hidden) image.src = (smaller ?? read).url;
    pictureAbout.textContent = pictureWords(preview.picture, smaller);
    const who = name.value.trim() || preview.name || t('maker.it');
    facts.replaceChildren(
      ...[
        preview.chattiness ? section(t('maker.chattiness', { who }), quoted(preview.chattiness)) : '',
        preview.tone ? section(t('maker.tone'), quoted(preview.tone)) : '',
        preview.about ? section(t('maker.about'), quoted(preview.about)) : '',
        preview.aliases.length ? section(t('maker.aliases'), el('p', { dir: 'auto' }, listed(preview.aliases.map(plain)))) : '',
        preview.interjection ? section(t('maker.often', { who }), el('p', null, words.interjectionLevel(preview.interjection))) : '',
        own.length ? section(t('imported.instructions'), el('p', { class: 'muted' }, t('imported.instructions_about')), own.map(key => instruction(key, preview[key]))) : '',
        preview.creator_notes ? section(t('imported.notes'), el('p', { class: 'muted' }, t('imported.notes_about')), quoted(preview.creator_notes)) : '',
        preview.greetings.length ? more(t('imported.greetings', { count: preview.greetings.length }), preview.greetings.map(({ kind, text }) => [kind === 'group_only_greetings' ? el('p', { class: 'muted' }, t('imported.for_groups')) : null, quoted(text)])) : '',
        preview.lore ? section(t('imported.lore'), el('p', null, t('imported.lore_about', { who, count: preview.lore.entries })), preview.lore.unusable.length ? el('p', { class: 'muted', dir: 'auto' }, t('imported.lore_unusable'), ' ', listed(preview.lore.unusable.map(({ entry, key }) => plain(key ?? entry)))) : null) : '',
        preview.unused.length ? section(t('imported.unused'), el('ul', { class: 'unused' }, preview.unused.map(({ what, why, count, names = [] }) => el('li', null, el('strong', null, words.coded('card_unused.', what), times(count)), names.length && what !== 'extensions' ? [': ', el('span', { dir: 'auto' }, listed(names.map(plain)))] : null, ` – ${words.coded('card_why.', why)}`)))) : '',
        preview.salvaged.length ? more(t('imported.mended'), el('ul', { class: 'unused' }, preview.salvaged.map(({ kind, field, count }) => el('li', null, words.coded('card_mended.', kind), times(count), field ? [': ', el('code', null, field)] : null)))) : '',
      ].filter(Boolean),
    );
    body.replaceChildren(
      el('div', { class: 'picture-row' }, image, el('div', { class: 'field' }, el('label', { for: name.id }, t('maker.name')), name, problem, pictureAbout)),
      el('div', { class: 'field' }, personaLabel, persona, parts),
      facts,
      el('p', { class: 'actions last' }, useButton, other, el('button', { type: 'button', class: 'quiet-button', onclick: () => box.close() }, t('base.cancel'))),
    );
    update();
  }

  name.addEventListener('input', () => {
    clearTimeout(waiting);
    useButton.disabled = true;
    waiting = setTimeout(again, TYPING_MS);
  });
  body.addEventListener('submit', event => {
    event.preventDefault();
    const who = name.value.trim();
    problem.textContent = who ? '' : t('imported.name_missing');
    if (!who) return name.focus();
    // Enter in the field of the name.
    if (useButton.disabled) return again();
    box.close();
    return use({ companion: { ...answer.companion, name: who }, card: read.base64, picture: smaller?.url ?? (answer.has_picture ? read.url : null), bytes: smaller?.base64 });
  });
  takesFiles(box, ([file]) => begin(file));
  begin(file);
  return box;
}
