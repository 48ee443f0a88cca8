// Who is here, people and companions, and who is typing, thinking, about to speak or paused.

import { ai } from './ai.js';
import { byId, el, name } from './dom.js';
import { pieces, t } from './texts.js';

const TYPING = new Set(['speaking']);
const THINKING = new Set(['asked', 'wants_to_speak']);

// Who speaks in the call does not type.
const doingOf = ({ doing, paused }, draft) => (doing === 'speaking' && draft?.isSpoken ? null : paused ? 'paused' : TYPING.has(doing) ? 'typing' : doing === 'waiting_its_turn' ? 'next' : THINKING.has(doing) ? 'thinking' : null);

// Fills a node anew if what it shows has changed.
function fill(node, shown, nodes) {
  const key = JSON.stringify(shown);
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(...nodes());
}

const isNarrow = () => matchMedia('(max-width: 48em)').matches;
// So many others stand in the head by name. Where it is narrow, their names are too small to be pressed.
const mostNames = () => (isNarrow() ? 1 : 3);

// `me()` is the person of this window, `tone(id)` the accent of a companion. With `isGuest` all are listed, and that companions are no people; otherwise the
// others, the first by name. `opens(companion)` shows the profile of one.
export function presence({ me, tone, isGuest = false, opens = null }) {
  const here = byId('here');
  const strip = byId('presence');
  const companionName = ({ id, name: who }) => name(who, { class: 'who', 'data-tone': tone(id) });
  const aside = text => el('span', { class: 'muted' }, ` (${text})`);

  return {
    draw({ people, companions, drafts }) {
      const others = people.filter(person => person.name !== me());
      const all = [...(isGuest ? people : others).map(person => ({ name: person.name, about: person.name === me() ? 'you' : person.isGuest && !isGuest ? 'guest' : null })), ...[...companions.values()].map(({ id, name: who, isExternal }) => ({ id, name: who, isExternal, about: null }))];
      const isButton = one => opens && (isGuest || (!isNarrow() && !one.isExternal));
      const shown = isGuest || all.length <= mostNames() + 1 ? all : all.slice(0, mostNames());
      here.hidden = !all.length;
      here.title = all.length > shown.length ? all.map(one => one.name).join(', ') : '';
      fill(here, [shown.map(one => [one.name, one.about, one.id && tone(one.id), isButton(one)]), all.length, isGuest], () => [
        isGuest ? el('li', { class: 'muted' }, t('presence.here')) : '',
        ...shown.map(one => el('li', { class: one.id ? null : 'person' }, one.id ? [isButton(one) ? el('button', { type: 'button', class: 'quiet-button', onclick: () => opens(one) }, companionName(one)) : companionName(one), ' ', ai()] : name(one.name), one.about ? aside(t(`presence.${one.about}`)) : null)),
        all.length > shown.length ? el('li', { class: 'muted', 'aria-label': here.title }, el('bdi', { dir: 'ltr' }, `+${all.length - shown.length}`)) : '',
      ].filter(Boolean));
      const typing = others.filter(person => person.isTyping);
      const busy = new Map(); // by what they do
      for (const companion of companions.values()) {
        const doing = doingOf(companion, drafts.get(companion.id));
        if (doing) busy.set(doing, [...(busy.get(doing) ?? []), companion]);
      }
      const words = (doing, all) => {
        if (doing === 'paused' && all.length > 1 && all.length === companions.size) return t('presence.all_paused');
        return pieces(`presence.${doing}`, { who: companionName(all[0]), count: all.length });
      };
      // Where others are, there is always room for what they do.
      strip.classList.toggle('shared', others.length > 0);
      fill(strip, [typing.map(person => person.name), [...busy].map(([doing, all]) => [doing, companions.size, all.map(({ id, name: who }) => [id, who, tone(id)])])], () => [
        ...typing.map(person => el('span', { class: 'person' }, pieces('presence.typing', { who: name(person.name, { class: 'who' }), count: 1 }))),
        ...[...busy].map(([doing, all]) => el('span', { 'data-doing': doing }, words(doing, all))),
      ]);
    },
  };
}
