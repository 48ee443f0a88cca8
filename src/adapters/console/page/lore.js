// Lorebooks: the list, and the editor of one. Loaded on use.

import * as api from './api.js';
import { confirmed, dialog } from './dialogs.js';
import { el, name, plain } from './dom.js';
import { fileButton, takesFiles } from './pictures.js';
import { inWords, listed, t } from './texts.js';
import { asksBeforeLoss } from './unsaved.js';
import * as words from './words.js';

const FILES = '.json,.lorebook,.png';
const FORMS = ['card', 'sillytavern', 'novelai', 'agnai', 'risu'];
const LOGICS = ['any', 'all', 'not_any', 'not_all'];

let ids = 0;
// An input below or beside its label.
function field(label, input, hint = null) {
  input.id = `lore-${(ids += 1)}`;
  return el('div', { class: 'field' }, el('label', { for: input.id }, label), input, hint && el('small', { class: 'muted' }, hint));
}
const box = (label, checked, attributes = {}) => el('label', { class: 'box' }, el('input', { type: 'checkbox', checked, ...attributes }), ' ', label);
const isOn = label => label.firstChild.checked;
const number = (value, attributes = {}) => el('input', { type: 'number', step: '1', value: value ?? '', ...attributes });
const whole = input => (input.value.trim() === '' ? undefined : Number(input.value));
const lines = (texts = []) => texts.join('\n');
// Line by line, and in a line by commas, but for those in a regular expression (/…/i) and in a key that was there before.
const keysOf = (input, before, isRegex) =>
  input.value.split('\n').flatMap(line => (isRegex || before.includes(line.trim()) ? [line] : (line.match(/\s*\/.+?\/[a-z]*(?=\s*(?:[,，]|$))|[^,，]+/gu) ?? []))).map(key => key.trim()).filter(Boolean);
const button = (label, onclick, kind = 'outlined') => el('button', { type: 'button', class: kind, onclick }, label);
const unusableNode = unusable => (unusable.length ? [el('p', { class: 'danger' }, t('lore.unusable')), el('ul', { class: 'unused' }, unusable.map(({ entry, key, why }) => el('li', { dir: 'auto' }, el('strong', null, plain(entry)), key ? [': ', el('code', null, plain(key))] : null, ` – ${words.coded('lore.why.', why)}`)))] : null);

// The form of an entry. Its fields are made when it is opened, because a book may have thousands.
function entryForm(entry, remove) {
  let fields = null;
  const title = el('summary', { dir: 'auto' });
  const node = el('details', { class: 'lore-entry' }, title);
  const value = () => (fields ? { ...entry, ...fields() } : entry);
  function draw() {
    const { name: called, keys, constant, enabled } = value();
    title.replaceChildren(plain(called || keys[0] || t('lore.entry_new')), el('span', { class: 'muted' }, ` ${[enabled ? '' : t('lore.off'), constant ? t('lore.constant_short') : listed(keys.slice(0, 3).map(plain)).join('')].filter(Boolean).join(' · ')}`));
  }
  function open() {
    if (fields) return;
    const called = el('input', { value: entry.name, maxlength: 100, dir: 'auto', autocomplete: 'off' });
    const keys = el('textarea', { rows: 2, dir: 'auto', value: lines(entry.keys) });
    const content = el('textarea', { rows: 5, dir: 'auto', value: entry.content });
    const order = number(entry.insertion_order);
    const priority = number(entry.priority);
    const depth = number(entry.scan_depth, { min: 1, max: 100 });
    const secondary = el('textarea', { rows: 2, dir: 'auto', value: lines(entry.secondary_keys) });
    const logic = el('select', null, LOGICS.map(one => el('option', { value: one, selected: one === entry.logic }, t(`lore.logic.${one}`))));
    const flags = Object.fromEntries(['constant', 'enabled', 'selective', 'use_regex', 'case_sensitive', 'whole_words'].map(key => [key, box(t(`lore.${key}`), entry[key])]));
    fields = () => ({
      name: called.value.trim(),
      keys: keysOf(keys, entry.keys, isOn(flags.use_regex)),
      secondary_keys: keysOf(secondary, entry.secondary_keys ?? [], isOn(flags.use_regex)),
      logic: logic.value,
      insertion_order: whole(order) ?? 100,
      priority: whole(priority),
      scan_depth: whole(depth),
      content: content.value.trim(),
      ...Object.fromEntries(Object.entries(flags).map(([key, label]) => [key, isOn(label)])),
    });
    node.append(
      field(t('lore.entry_name'), called),
      field(t('lore.keys'), keys, t('lore.keys_about')),
      field(t('lore.content'), content),
      el('p', null, flags.constant, ' ', flags.enabled),
      field(t('lore.order'), order, t('lore.order_about')),
      el('details', null, el('summary', null, t('lore.more')), field(t('lore.priority'), priority, t('lore.priority_about')), field(t('lore.depth'), depth), el('p', null, flags.whole_words, ' ', flags.case_sensitive, ' ', flags.use_regex), el('p', null, flags.selective), field(t('lore.secondary_keys'), secondary), field(t('lore.logic_label'), logic)),
      el('p', { class: 'actions' }, button(t('lore.entry_remove'), remove, 'quiet-button danger')),
    );
    node.addEventListener('input', draw);
  }
  node.addEventListener('toggle', () => node.open && open());
  draw();
  return { node, value, open: () => (open(), (node.open = true)) };
}

// `view` is a book as the server has it, `made` one that was read from a file; `around` has the rooms and companions that there are.
function bookEditor({ view = null, made = null, around, saved }) {
  const { entries, ...rest } = view?.book ?? made?.book ?? { name: '', entries: [], companions: [], rooms: around.room ? [around.room.id] : [] };
  const path = view?.kept.path;
  const problem = el('div', { class: 'form-problem', role: 'alert' });
  const called = el('input', { value: rest.name, maxlength: 100, required: true, dir: 'auto', autocomplete: 'off' });
  const depth = number(rest.scan_depth, { min: 1, max: 100, placeholder: '4' });
  const budget = number(rest.token_budget, { min: 1 });
  const recursive = box(t('lore.recursive'), rest.recursive_scanning);
  const owners = (all, chosen = []) => all.map(one => [one.id, box(name(one.name ?? one.title ?? one.id), chosen.includes(one.id))]);
  const companions = owners(around.companions, rest.companions);
  const rooms = owners(around.rooms, rest.rooms);
  const chosen = all => all.filter(([, label]) => isOn(label)).map(([id]) => id);
  let forms = [];
  const list = el('div', { class: 'lore-entries' });
  function add(entry) {
    const form = entryForm(entry, () => ((forms = forms.filter(one => one !== form)), form.node.remove(), more.focus()));
    forms.push(form);
    list.append(form.node);
    return form;
  }
  const empty = { name: '', keys: [], secondary_keys: [], selective: false, logic: 'any', constant: false, use_regex: false, case_sensitive: false, whole_words: true, insertion_order: 100, enabled: true, content: '' };
  const more = button(t('lore.entry_add'), () => add({ ...empty }).open());
  entries.forEach(add);
  const book = () => ({ name: called.value.trim(), scan_depth: whole(depth), token_budget: whole(budget), recursive_scanning: isOn(recursive), entries: forms.map(form => form.value()), companions: chosen(companions), rooms: chosen(rooms) });
  const before = JSON.stringify(book());
  const refused = refusal => problem.replaceChildren(plain(words.sentence(refusal.message)));
  async function save(event) {
    event.preventDefault();
    if (!called.value.trim()) return called.focus();
    problem.replaceChildren();
    try {
      const kept = await (view ? api.changeBook(view.id, { revision: view.revision, book: book() }) : api.createBook(book()));
      shown.mayClose = null;
      shown.close();
      saved(kept);
    } catch (refusal) {
      refused(refusal);
    }
    return undefined;
  }
  async function remove() {
    if (!(await confirmed(t('lore.delete_title'), t('lore.delete', { name: view.book.name }), t('base.delete')))) return;
    await api.deleteBook(view.id, view.revision).then(() => ((shown.mayClose = null), shown.close(), saved(null)), refused);
  }
  const lost = Object.entries(made?.lost ?? {}).map(([what, count]) => t(`lore.lost.${what}`, { count }));
  const belongs = (legend, all) => (all.length ? el('div', { role: 'group', 'aria-label': legend }, el('h3', null, legend), el('p', null, all.flatMap(([, label]) => [label, ' ']))) : null);
  const node = el(
    'form',
    { class: 'connect editor', novalidate: true },
    made ? el('p', { class: 'muted' }, t('lore.read_from', { form: t(`lore.forms.${made.form}`) }), lost.length ? ` ${lost.join(' ')}` : null) : null,
    path ? el('p', { class: 'muted', dir: 'auto' }, inWords({ code: 'book_in_file', path })) : null,
    unusableNode(view?.unusable ?? made?.unusable ?? []),
    field(t('lore.name'), called),
    belongs(t('lore.of_companions'), companions),
    belongs(t('lore.of_rooms'), rooms),
    el('h3', null, t('lore.entries')),
    list,
    el('p', null, more),
    el('details', null, el('summary', null, t('lore.settings')), field(t('lore.depth'), depth, t('lore.depth_about')), field(t('lore.budget'), budget), el('p', null, recursive)),
    view ? el('p', { class: 'actions' }, el('span', { class: 'muted' }, t('lore.export')), FORMS.map(form => el('a', { href: api.bookUrl(view.id, form), download: '' }, t(`lore.forms.${form}`)))) : null,
    problem,
    path ? null : el('p', { class: 'actions last' }, el('button', { class: 'solid' }, t('base.save')), view?.kept.in === 'store' ? button(t('base.delete'), remove, 'outlined danger') : null, button(t('base.cancel'), () => leave(), 'quiet-button')),
  );
  node.addEventListener('submit', save);
  const shown = dialog(view ? view.book.name : t('lore.title_new'), node);
  shown.classList.add('wide');
  const leave = asksBeforeLoss(shown, () => !path && (made || JSON.stringify(book()) !== before));
  if (!path) called.focus();
}

// `room` is the one shown, or null.
export async function showLore(room) {
  const problem = el('p', { class: 'form-problem', role: 'alert' });
  const told = el('p', { class: 'muted', role: 'status' });
  const list = el('ul', { class: 'entries' }, el('li', { class: 'muted' }, t('base.loading')));
  const refused = refusal => (problem.textContent = plain(words.sentence(refusal.message)));
  const [{ companions }, { rooms }] = await Promise.all([api.companions(), api.listRooms()]);
  const around = { room, companions, rooms };
  const named = (all, chosen) => all.filter(one => chosen.includes(one.id)).map(one => name(one.name ?? one.title ?? one.id));
  const saved = kept => {
    problem.textContent = '';
    told.textContent = kept ? t('room_words.saved') : '';
    refresh();
    if (kept?.unusable.length) open(kept.id);
  };
  const edit = more => bookEditor({ around, saved, ...more });
  const open = id => api.book(id).then(view => edit({ view }), refused);
  async function read(file) {
    problem.textContent = '';
    try {
      const made = await api.readBook(file);
      edit({ made: { ...made, book: { ...made.book, name: made.book.name || file.name.replace(/\.\w+$/u, ''), rooms: room ? [room.id] : [], companions: [] } } });
    } catch (refusal) {
      refused(refusal);
    }
  }
  async function refresh() {
    const { books } = await api.books().catch(refusal => (refused(refusal), { books: [] }));
    const row = book => {
      const owners = [...named(companions, book.companions), ...named(rooms, book.rooms)];
      return el('li', null, el('p', null, button(plain(book.name), () => open(book.id), 'quiet-button'), ' ', el('span', { class: 'muted' }, t('lore.count', { count: book.entries }), book.kept.in === 'store' ? null : ` · ${t(`lore.kept.${book.kept.in}`)}`)), el('p', { class: 'muted' }, owners.length ? [t('lore.belongs'), ' ', listed(owners)] : t('lore.belongs_nowhere')));
    };
    list.replaceChildren(...(books.length ? books.map(row) : [el('li', { class: 'muted' }, t('lore.none'))]));
  }
  const shown = dialog(t('rooms.lore'), el('p', null, t('lore.about')), el('p', { class: 'actions' }, button(t('lore.title_new'), () => edit({}), 'solid'), fileButton(t('lore.import'), FILES, read)), problem, told, list);
  takesFiles(shown, ([file]) => read(file));
  refresh();
}
