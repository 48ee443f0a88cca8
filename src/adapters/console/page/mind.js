// What is known of one companion in a room. Pure, like `state.js`.

const number = value => (Number.isFinite(value) ? value : null);

// A stage is told apart from what a companion does: one that is closing may be asked or speak.
const STAGE_OF = { closing: 'closing', closed: 'terminal' };
export const STAGES = ['none', 'pre-closing', 'closing', 'terminal'];

export function mindFrom(c) {
  const closing = STAGES.includes(c.closing) ? c.closing : 'none';
  const stage = STAGE_OF[c.doing];
  return {
    id: c.id,
    name: c.name ?? c.id,
    isExternal: Boolean(c.external),
    interjection: c.interjection ?? 'average',
    messageCount: number(c.message_count) ?? 0,
    checkCount: number(c.check_count) ?? 0,
    threshold: number(c.next_interjection_at),
    lullAt: c.lull_at ?? null,
    lullFrom: null,
    lullSecs: number(c.lull_secs),
    doing: stage ? 'listening' : (c.doing ?? 'listening'),
    trigger: c.trigger ?? null,
    since: c.since ?? null,
    retryAt: c.retry_at ?? null,
    speakAt: c.speak_at ?? null,
    paused: Boolean(c.paused),
    closing: stage && closing === 'none' ? stage : closing,
    // Messages by people until it is open again, if it is closed.
    opensIn: Number.isFinite(c.reopen_after) ? Math.max(0, c.reopen_after - (c.heard_closed ?? 0)) : null,
  };
}

export function doing(m, what, e) {
  m.doing = m.paused ? 'paused' : what;
  m.trigger = e?.trigger ?? null;
  m.since = e?.at ?? null;
  m.retryAt = e?.retry_at ?? null;
  m.speakAt = e?.speak_at ?? null;
}

export const isClosed = m => m.closing === 'terminal';
