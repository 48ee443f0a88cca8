// The state of one companion in a room. Pure, like `state.js`.

const number = value => (Number.isFinite(value) ? value : null);

// The closing stage is separate from what a companion is doing: one that is closing may still be asked, or speak.
const STAGE_OF = { closing: 'closing', closed: 'terminal' };
export const STAGES = ['none', 'pre-closing', 'closing', 'terminal'];

export function companionFrom(c) {
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
    ...ownSettings(c),
    // How many messages by people bring it back, if it has ended the conversation.
    opensIn: Number.isFinite(c.reopen_after) ? Math.max(0, c.reopen_after - (c.heard_closed ?? 0)) : null,
  };
}

// The settings of its own: when it speaks only when spoken to, its number of statements, whether it may repeat itself, and its models.
export const ownSettings = c => ({ quietHours: c.quiet_hours ?? 'never', maxTurns: number(c.max_turns), mayRepeat: c.repetition === false, models: { main: c.model?.main ?? 'main', side: c.model?.side ?? 'side' } });

export function setDoing(companion, doing, e) {
  companion.doing = companion.paused ? 'paused' : doing;
  companion.trigger = e?.trigger ?? null;
  companion.since = e?.at ?? null;
  companion.retryAt = e?.retry_at ?? null;
  companion.speakAt = e?.speak_at ?? null;
}

export const isClosed = companion => companion.closing === 'terminal';
