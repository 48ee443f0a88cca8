// What companions did with what was said last, in one sentence for people: who answered, who stayed out, and why. The rest is behind “Details”.

import { el, name } from './dom.js';
import { nameOf } from './state.js';
import * as words from './words.js';

// Why a companion answered, by the trigger of its decision.
const ANSWERED = {
  direct_address: ['it was spoken to', 'they were spoken to'],
  turn: ['it had something to add', 'they had something to add'],
  interjection: ['it had something to say', 'they had something to say'],
  lull: ['it was quiet for a while', 'it was quiet for a while'],
  silence: ['nobody had said anything for long', 'nobody had said anything for long'],
  event: ['something happened', 'something happened'],
};

// Why a companion stayed out, by the reason of its decision.
const STAYED_OUT = {
  model_no: ['it had nothing to add', 'they had nothing to add'],
  external: ['it had nothing to add', 'they had nothing to add'],
  unreadable: ['its model cannot be used to decide when to speak', 'their model cannot be used to decide when to speak'],
  other_addressed: ['that was meant for somebody else', 'that was meant for somebody else'],
  budget: ['its limit for now is used up', 'their limit for now is used up'],
  unpostable: ['it cannot write here', 'they cannot write here'],
  loop_guard: ['companions wait for a person now', 'companions wait for a person now'],
  closed: ['it has said goodbye', 'they have said goodbye'],
  paused: ['it is paused', 'they are paused'],
  cancelled: ['somebody asked to stop', 'somebody asked to stop'],
  overflow: ['there was too much to read', 'there was too much to read'],
  stale: ['that was too long ago', 'that was too long ago'],
};

// The sentences by what they say, each with its companions, in the order in which they were decided. `all` are the decisions and rounds behind one line,
// `next` what follows them. Who wanted to answer and did not is not said to have answered.
export function happened(all, next = null) {
  const last = new Map();
  const spoke = new Set(next?.kind === 'message' && next.role === 'companion' ? [next.from] : []);
  for (const entry of all) {
    if (entry.kind === 'decision') last.set(entry.companion, entry);
    else if (entry.kind === 'error') last.set(entry.companion, entry);
    else if (entry.kind === 'round') {
      for (const [companion, ballot] of entry.ballots) if (ballot.entry) last.set(companion, ballot.entry);
      if (entry.speaker && (entry.outcome === 'posted' || entry.phase === 'speaking')) spoke.add(entry.speaker);
    }
  }
  const found = new Map();
  const add = (companion, verb, causes) => {
    const key = `${verb} ${causes}`;
    found.set(key, { verb, causes, companions: [...(found.get(key)?.companions ?? []), companion] });
  };
  for (const [companion, entry] of last) {
    if (entry.kind === 'error') add(companion, 'could not decide', [words.error(entry.error), words.error(entry.error)]);
    else if (!entry.yes) {
      if (STAYED_OUT[entry.reason]) add(companion, 'stayed out', STAYED_OUT[entry.reason]);
    } else if (spoke.has(companion)) add(companion, 'answered', ANSWERED[entry.record?.trigger] ?? ANSWERED.turn);
  }
  return [...found.values()].sort((one, other) => (other.verb === 'answered') - (one.verb === 'answered'));
}

export function drawHappened(view, { all, next }) {
  const sentences = happened(all, next).map(({ verb, causes, companions }) => {
    const who = words.listed(companions.map(companion => name(nameOf(view.room, companion), { class: 'who', 'data-tone': view.tone(companion) })));
    return [who, ` ${verb}, because ${causes[companions.length > 1 ? 1 : 0]}. `];
  });
  return el('p', { class: 'happened' }, sentences);
}
