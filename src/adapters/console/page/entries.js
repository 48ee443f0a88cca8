// The entries of the conversation, made from events. Pure, like `state.js`.

const number = value => (Number.isFinite(value) ? value : null);
const text = value => (typeof value === 'string' ? value : '');

// The words of a message. Each of its files has a line at the end of the text.
export const wordsOf = (whole, files) => (files.length ? text(whole).split('\n').slice(0, -files.length).join('\n') : text(whole));

// What the server told people below a statement: who runs it, and where its privacy text is.
export const noticeOf = notice => (notice ? { operator: text(notice.operator), privacy: text(notice.privacy) } : null);

export function messageEntry(m) {
  const files = Array.isArray(m.files) ? m.files : [];
  return {
    key: `m${m.seq}`,
    kind: 'message',
    seq: number(m.seq),
    id: m.id ?? null,
    at: m.said_at ?? m.at,
    from: text(m.from) || '?',
    role: m.kind ? 'event' : (m.role ?? 'user'),
    eventKind: text(m.kind),
    text: wordsOf(m.text, files),
    files,
    calls: Array.isArray(m.calls) ? m.calls : [],
    modality: m.modality ?? 'text',
    replyTo: number(m.reply_to),
    quoted: m.quoted && typeof m.quoted === 'object' ? { from: text(m.quoted.from), text: text(m.quoted.text) } : null,
    cut: m.cut && typeof m.cut === 'object' ? { full: text(m.cut.full), by: text(m.cut.by) } : null,
    truncated: m.truncated === true,
    isReply: number(m.reply) !== null, // a companion's answer, and no greeting and nothing imported
    // The texts of its place, if there are several, and which one stands.
    versions: m.versions && Array.isArray(m.versions.texts) ? { texts: m.versions.texts, standing: number(m.versions.standing) ?? 0 } : null,
    // A voice note, or what takes its place: `note` is then the number of the note.
    voiceNote: m.voice_note && typeof m.voice_note === 'object' ? { secs: number(m.voice_note.secs) ?? 0, state: text(m.voice_note.words?.state), note: number(m.voice_note.words?.note) } : null,
    notice: noticeOf(m.notice),
    edited: Boolean(m.edited),
    whilePaused: false, // whether a person wrote it while the room was paused
    version: 0,
  };
}

export function decisionEntry(d) {
  return {
    key: `d${d.seq}:${d.companion}:${d.trigger}:${d.reason}`,
    kind: 'decision',
    seq: number(d.seq),
    at: d.at,
    companion: d.companion ?? '',
    trigger: d.trigger ?? '',
    yes: d.decision === 'YES',
    reason: d.reason ?? '',
    why: text(d.why),
    record: d,
    version: 0,
  };
}

export const noteEntry = (e, what) => ({ key: `n${e.seq}:${e.event}:${e.companion ?? ''}`, kind: 'note', seq: number(e.seq), at: e.at, companion: e.companion ?? null, what, version: 0 });

// In place of a deleted message. `companion` writes another one.
export const tombstoneEntry = (seq, companion = null) => ({ key: `x${seq}`, kind: 'tombstone', seq, at: '', companion, version: 0 });

export const stageEntry = e => ({ key: `s${e.seq}:${e.companion}`, kind: 'stage', seq: number(e.seq), at: e.at, companion: e.companion, from: e.from ?? 'none', to: e.to ?? 'none', cause: e.cause ?? '', version: 0 });

export const repetitionEntry = (e, score) => ({ key: `c${e.seq}`, kind: 'repetition', seq: number(e.seq), at: e.at, companion: null, score, detections: number(e.detections) ?? 1, version: 0 });

export const errorEntry = e => ({ key: `e${e.seq}:${e.companion}`, kind: 'error', seq: number(e.seq), at: e.at, companion: e.companion ?? '', trigger: e.trigger ?? '', error: e.error ?? '', retryAt: e.retry_at ?? null, record: e, version: 0 });

export const failedEntry = (e, draft) => ({ key: `f${e.seq}:${e.companion}`, kind: 'failed', seq: number(e.seq), at: e.at, companion: e.companion ?? '', trigger: e.trigger ?? '', error: e.error ?? '', text: draft ?? '', stopMessage: number(e.message), record: e, version: 0 });

// A statement that is begun again. `messages` are the numbers of the events that led to it.
export const replanEntry = (e, ticket) => ({ key: `b${ticket}:${e.companion}`, kind: 'replan', seq: number(e.seq), at: e.at, companion: e.companion, messages: [], hasBegun: false, version: 0 });

export const caughtUpEntry = e => ({ key: `u${e.seq}`, kind: 'caught_up', seq: number(e.seq), at: e.at, companion: null, read: number(e.read) ?? 0, missed: e.missed && typeof e.missed === 'object' ? { after: text(e.missed.after), before: text(e.missed.before), why: text(e.missed.why) } : null, version: 0 });
