// A message that is deleted here is hidden at once, and can be brought back for a minute, until the next message or deletion, or until the room or the page is
// left. Then it is deleted for everybody.

import * as api from './api.js';
import { t } from './texts.js';

const MS = 60_000;

// `notice` shows what was done, `changed` draws the talk again. Returns `remove(room, seq)`, and `finish()`, which deletes what is hidden.
export function removal({ notice, changed, showProblem }) {
  let last = null;

  function end(isUndone) {
    if (!last) return;
    const { room, seq, timer, close } = last;
    last = null;
    clearTimeout(timer);
    close();
    const show = () => {
      room.hidden.delete(seq);
      changed();
    };
    if (isUndone) return void show();
    api.deleteMessage(room.id, seq).catch(problem => {
      show();
      showProblem(problem);
    });
  }
  const finish = () => end(false);
  addEventListener('pagehide', finish);
  // A phone may end a page in the background without another sign.
  document.addEventListener('visibilitychange', () => document.hidden && finish());

  return {
    finish,
    remove(room, seq) {
      finish();
      room.hidden.add(seq);
      const close = notice.show(t('messages.removed'), 'plain', { label: t('rooms.undo'), ms: MS, act: () => end(true), dismissed: finish });
      last = { room, seq, close, timer: setTimeout(finish, MS) };
      changed();
    },
  };
}
