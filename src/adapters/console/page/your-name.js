// The name before the message field, and the field that asks for one: before the first message of a visitor, and when the name is pressed.

import { byId, name, say } from './dom.js';
import { t } from './texts.js';

// `me()` is the speaker, `isNew()` whether that person has never chosen a name, `speakAs(name)` changes it, and `mayWrite()` is whether that person can write
// in the room shown. `steady(act)` keeps the conversation in its place while the field appears. `draw()` draws the message field, and `focus()` goes there.
export function yourName({ me, isNew, speakAs, mayWrite, steady, draw, focus }) {
  const speaker = byId('compose-as');
  const row = byId('your-name');
  const field = byId('your-name-field');
  let asks = isNew();

  // Takes the name from its field.
  function take() {
    const isTaken = speakAs(field.value);
    if (isTaken) field.value = me();
    else field.focus();
    return isTaken;
  }
  field.addEventListener('change', take);
  field.addEventListener('keydown', event => {
    if ((event.key !== 'Enter' && event.key !== 'Escape') || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === 'Escape') field.value = me();
    else if (!take()) return;
    asks = isNew();
    draw();
    focus();
  });
  function ask() {
    asks = true;
    draw();
    field.focus();
    field.select();
  }
  speaker.addEventListener('click', ask);

  return {
    me,
    ask,
    // Whether this person can write under the name that stands there.
    takes() {
      if (asks && !take()) return false;
      if (!mayWrite()) return void ask();
      asks = false;
      return true;
    },
    draw(isGiven) {
      const isAsked = asks && !isGiven;
      say(row.querySelector('label'), t(isNew() ? 'compose.your_name_example' : 'compose.your_name'));
      speaker.replaceChildren(name(me()), ':');
      if (row.hidden === isAsked) steady(() => (row.hidden = !isAsked));
      // In the call people are known by the name with which they joined, and an edited message keeps its author.
      speaker.hidden = asks || isGiven;
      speaker.setAttribute('aria-label', t('compose.name_is', { name: me() }));
      if (document.activeElement !== field) field.value = me();
    },
  };
}
