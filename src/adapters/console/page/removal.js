// A message or a companion that is deleted here can be brought back for a minute, until the next message or deletion, or until the room or the page is left.
// Then it is deleted for everybody. It is stored, so that another visit deletes what a page that crashed has left behind.

import * as api from './api.js';
import { loadForAll, storeForAll } from './storage.js';
import { t } from './texts.js';

const MS = 60_000;
// A page that is still there deletes it itself.
const LATE_MS = 5000;
const isSame = one => other => other.path === one.path && other.until === one.until;

// `notice` shows what was done, `changed` draws the talk again, and `deleted` is called when a companion was deleted. Deletions are stored at `place`. Returns `message(room, seq)` and
// `companion(profile)`, which delete, `finish()`, which deletes what can still be brought back, and `keep(profile)`.
export function removal({ notice, changed, showProblem, deleted, place = 'removing' }) {
  const stored = () => loadForAll(place, []);
  const forget = one => storeForAll(place, stored().filter(other => !isSame(one)(other)));
  let last = null;

  for (const one of stored()) {
    setTimeout(async () => {
      if (!stored().some(isSame(one))) return;
      const problem = await api.remove(one.path).catch(refusal => refusal);
      if (!problem.isTransient) forget(one);
    }, Math.max(0, one.until + LATE_MS - Date.now()));
  }

  function end(isUndone) {
    if (!last) return;
    const { one, timer, close, back, done } = last;
    last = null;
    clearTimeout(timer);
    close();
    if (isUndone) {
      forget(one);
      return void back();
    }
    const deleted = () => {
      forget(one);
      done();
    };
    api.remove(one.path).then(deleted, problem => {
      // Another visit tries again if the server could not be reached.
      if (!problem.isTransient) forget(one);
      back();
      showProblem(problem);
    });
  }
  const finish = () => end(false);
  addEventListener('pagehide', finish);
  // A phone may end a page in the background without another sign.
  document.addEventListener('visibilitychange', () => document.hidden && finish());

  // Sends a DELETE to this path of the API after a minute. `back` shows the message again.
  function begin(path, text, back, done = () => {}) {
    if (last?.one.path === path) return;
    finish();
    const one = { path, until: Date.now() + MS };
    storeForAll(place, [...stored(), one]);
    const close = notice.show(text, 'plain', { label: t('rooms.undo'), ms: MS, act: () => end(true), dismissed: finish });
    last = { one, close, back, done, timer: setTimeout(finish, MS) };
  }

  return {
    finish,
    // Before a companion is edited or copied: it stays, and what else could be brought back is deleted.
    keep: profile => end(profile && last?.one.path === api.companionPath(profile.id, profile.revision)),
    message(room, seq) {
      begin(api.messagePath(room.id, seq), t('messages.removed'), () => {
        room.hidden.delete(seq);
        notice.announce(t('messages.is_back'));
        changed();
      });
      room.hidden.add(seq);
      changed();
    },
    companion: ({ id, revision, companion, kept }) => begin(api.companionPath(id, revision), t(kept.instead_of ? 'profile.removed_stored' : 'profile.removed', { who: companion.name }), () => {}, deleted),
  };
}
