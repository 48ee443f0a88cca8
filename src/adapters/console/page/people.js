// The person who speaks in this window. Several windows can speak as several people.

import * as api from './api.js';
import { confirmed, once } from './dialogs.js';
import { byId, el, name, say } from './dom.js';
import { store, storeForAll, load, loadForAll } from './storage.js';
import { pieces, t } from './texts.js';

const FIRST_NAME = 'Ana';
const MOST_NAMES = 6;
const LONGEST_NAME = 64;

// The server compares more: characters of other scripts that look alike.
export const folded = text => text.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '').toLowerCase().trim().replace(/\s+/gu, ' ');
// All that a companion answers to.
export const namesOf = ({ id, name, aliases = [] }) => [id, name, ...aliases].filter(Boolean).map(folded);

// Why a person cannot have this name: a guest or a companion here has it. Otherwise null. `rooms` is the list of all rooms, and `guests` are the names of those
// who are here.
export function nameProblem(person, rooms, roomId, guests) {
  const guest = guests.find(taken => folded(taken) === folded(person));
  if (guest) return t('people.guest', { name: guest });
  const guild = rooms.find(room => room.id === roomId)?.guild;
  const companions = rooms.filter(room => room.guild === guild).flatMap(room => room.companions ?? []);
  const namesake = companions.find(companion => namesOf(companion).includes(folded(person)));
  return namesake ? t('people.namesake', { name: namesake.name }) : null;
}

let isPressed = false;
const afterPress = [];
addEventListener('pointerdown', () => (isPressed = true), true);
for (const end of ['pointerup', 'pointercancel']) {
  addEventListener(end, () => {
    isPressed = false;
    // The click comes first.
    setTimeout(() => afterPress.splice(0).forEach(run => run()));
  }, true);
}
// Runs this at once, or after the press that is going on: what is pressed stays where it is until then.
const whenReleased = run => (isPressed ? afterPress.push(run) : run());

// `changed(isOther)` is called when a name was chosen, also the same one again. `problemWith(name)` returns why a name is refused, or null; `guests()` are the names of the guests who are here; `guild()` is the guild of the room shown; `forgotten(count)` is called when so many messages
// of the person were deleted.
export function people({ changed, problemWith, showProblem, guests, guild, forgotten }) {
  const root = byId('people');
  const list = el('ul', { class: 'others' });
  const toTry = el('p', { class: 'muted' }, t('people.to_try'));
  let me = load('me') ?? loadForAll('people', [])[0] ?? FIRST_NAME;
  // Another window can change the shared list of names; this window keeps its own name.
  store('me', me);

  // The name that was chosen first in this browser. The list of names begins with the newest one.
  const ownName = () => loadForAll('own-name') ?? loadForAll('people', []).at(-1);

  // Returns whether the name was not refused.
  function speakAs(wanted) {
    const person = wanted.trim().slice(0, LONGEST_NAME);
    const problem = person && problemWith(person);
    if (problem) showProblem(new Error(problem));
    if (!person || problem) {
      whenReleased(draw);
      return !problem;
    }
    // The first name counts as a change, too, because no name was sent to the server before.
    const isOther = person !== me || !loadForAll('people', []).length;
    me = person;
    store('me', me);
    storeForAll('own-name', ownName() ?? me);
    storeForAll('people', [me, ...loadForAll('people', []).filter(other => other !== me)].slice(0, MOST_NAMES));
    whenReleased(() => {
      draw();
      changed(isOther);
    });
    return true;
  }

  async function forget() {
    const where = guild();
    // A person may have used several names in this browser.
    const names = [...new Set([me, ...loadForAll('people', [])])];
    const person = el('select', { id: 'forget-who' }, names.map(one => el('option', { value: one }, one)));
    const answers = el('input', { type: 'checkbox', id: 'forget-answers' });
    const counted = el('span');
    const unknown = problem => (problem.status === 404 ? new Error(t('people.nothing', { name: person.value })) : problem);
    let asked = 0;
    async function count() {
      asked += 1;
      const mine = asked;
      say(counted, t('base.loading'));
      const key = answers.checked ? 'people.forget_question_all' : 'people.forget_question';
      const text = await api.forgettable(where, person.value, answers.checked).then(({ messages }) => t(key, { name: person.value, count: messages }), problem => unknown(problem).message);
      if (mine === asked) say(counted, text);
    }
    for (const field of [person, answers]) field.addEventListener('change', count);
    try {
      if (names.length === 1) await api.forgettable(where, me);
      await count();
      const who = names.length > 1 ? [el('label', { for: 'forget-who' }, t('compose.your_name')), ' ', person] : null;
      if (!(await confirmed(t('people.forget'), [counted, ...(who ? [who] : []), el('label', { for: 'forget-answers' }, answers, ' ', t('people.forget_answers'))], t('base.delete')))) return;
      forgotten((await api.forget(where, person.value, answers.checked)).messages);
    } catch (problem) {
      showProblem(unknown(problem));
    }
  }

  // Names to try out. Nobody can write under that of a guest.
  function drawOthers() {
    const taken = guests().map(folded);
    const others = [...new Set([...loadForAll('people', []), FIRST_NAME, 'Ben'])].filter(other => other !== me && !taken.includes(folded(other))).slice(0, MOST_NAMES);
    if (list.dataset.key === others.join()) return;
    list.dataset.key = others.join();
    toTry.hidden = !others.length;
    list.replaceChildren(...others.map(other => el('li', null, el('button', { class: 'quiet-button', onclick: () => speakAs(other) }, pieces(other === ownName() ? 'people.be_again' : 'people.speak_as', { name: name(other) })))));
  }

  function draw() {
    const input = el('input', { id: 'me', value: me, maxlength: LONGEST_NAME, autocomplete: 'off', spellcheck: 'false', dir: 'auto' });
    input.addEventListener('change', () => speakAs(input.value));
    input.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        input.blur();
        byId('message').focus();
      }
    });
    root.replaceChildren(
      el('div', { class: 'me' }, el('label', { for: 'me' }, t('people.you')), input),
      toTry,
      list,
      el('button', { class: 'quiet-button deletes', title: t('people.forget_about'), onclick: () => once(forget) }, t('people.forget')),
    );
    drawOthers();
  }

  draw();
  return {
    me: () => me,
    // Whether the person has never chosen a name in this browser.
    isNew: () => !loadForAll('people', []).length,
    speakAs,
    drawOthers,
    // Whether this person can write in the room. If not, says why.
    mayWrite() {
      const problem = problemWith(me);
      if (problem) showProblem(new Error(problem));
      return !problem;
    },
  };
}
