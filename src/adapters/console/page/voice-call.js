// What is going on in a voice call, from the server's messages. Pure, like `state.js`.

const MOST_CAPTIONS = 6;
const SHORT_MS = 6000;
const LONG_MS = 30_000;
const HEARD_CHARS = 160;
const QUIET_LINGERS_MS = 1000;

// Echoes after which headphones are advised.
export const MOST_ECHOES = 3;

export function newCall() {
  return {
    you: '',
    people: new Map(), // by name
    noisy: new Set(), // who talks without words
    captions: [], // oldest first: `who`, `isCompanion`, `text`, `isFinal`, `kind`, `until`, and for companions `reply`, `from`, `cut`
    thinking: new Set(), // ids of companions
    reply: null, // the spoken reply: `id`, `companion`, `ducked`, `duckedAt` (the last change), `paused`, `isAudible`, `position`
    heardAt: null, // when one's own voice was last heard to begin
    echoes: 0,
    trouble: null, // the newest `error`, and `until`
  };
}

function keepNewest(call) {
  while (call.captions.length > MOST_CAPTIONS) call.captions.shift();
}

const isOpen = caption => !caption.isCompanion && !caption.isFinal;

function caption(call, { user, text, is_final: isFinal, kind }, now) {
  const isShort = isFinal && kind !== 'words';
  const line = { who: user, isCompanion: false, text, isFinal, kind, until: now + (isShort ? SHORT_MS : LONG_MS) };
  const at = call.captions.findIndex(other => isOpen(other) && other.who === user);
  if (at >= 0) call.captions.splice(at, 1);
  // Noise again and again pushes no words out.
  if (isFinal && kind === 'noise') call.captions = call.captions.filter(other => other.kind !== 'noise' || other.who !== user);
  if (text) call.captions.push(line);
  if (isFinal && kind === 'echo' && user === call.you) call.echoes += 1;
  // Recognition works again.
  if (isFinal && kind === 'words' && user === call.you) call.trouble = null;
  call.noisy.delete(user);
  keepNewest(call);
}

// The sentences of replies that have ended are shown for a short time.
function expireSentences(call, now) {
  for (const line of call.captions) if (line.isCompanion && line.reply !== call.reply?.id) line.until = Math.min(line.until, now + SHORT_MS);
}

const linesOf = (call, reply) => call.captions.filter(line => line.isCompanion && line.reply === reply);

function cut(call, { reply, heard }, now) {
  const lines = linesOf(call, reply);
  const companion = lines[0]?.who ?? (call.reply?.id === reply ? call.reply.companion : null);
  call.captions = call.captions.filter(line => !lines.includes(line));
  const text = heard.length > HEARD_CHARS ? `… ${heard.slice(-HEARD_CHARS)}` : heard;
  if (companion) call.captions.push({ who: companion, isCompanion: true, text, isFinal: true, kind: 'words', reply, from: 0, cut: true, until: now + LONG_MS / 2 });
  keepNewest(call);
}

// Folds a message into the call.
export function fold(call, message, now) {
  const ofReply = call.reply?.id === message.reply ? call.reply : null;
  switch (message.type) {
    case 'hello':
      Object.assign(call, { you: message.you, people: new Map(message.people.map(person => [person.user, person])), noisy: new Set(), thinking: new Set(), reply: null });
      call.captions = call.captions.filter(line => line.isFinal);
      expireSentences(call, now);
      break;
    case 'joined':
    case 'changed': {
      const { type, ...person } = message;
      call.people.set(person.user, person);
      break;
    }
    case 'left':
      call.people.delete(message.user);
      call.noisy.delete(message.user);
      call.captions = call.captions.filter(line => !(isOpen(line) && line.who === message.user));
      break;
    case 'talking': {
      const person = call.people.get(message.user);
      if (person) person.talking = message.on;
      if (message.user === call.you && message.on) call.heardAt = now;
      call.noisy.delete(message.user);
      break;
    }
    case 'noise':
      call.noisy.add(message.user);
      break;
    case 'caption':
      caption(call, message, now);
      break;
    case 'thinking':
      if (message.on) call.thinking.add(message.companion);
      else call.thinking.delete(message.companion);
      break;
    case 'speaking':
      call.reply = { id: message.reply, companion: message.companion, ducked: false, duckedAt: -Infinity, paused: false, isAudible: false, position: message.from };
      expireSentences(call, now);
      break;
    case 'sentence':
      if (ofReply) call.captions.push({ who: ofReply.companion, isCompanion: true, text: message.text.trim(), isFinal: true, kind: 'words', reply: message.reply, from: message.from, until: Infinity });
      keepNewest(call);
      break;
    case 'duck':
      if (ofReply) Object.assign(ofReply, { ducked: message.on, duckedAt: now });
      break;
    case 'flush':
      if (ofReply) ofReply.paused = true;
      break;
    case 'resume':
      if (ofReply) Object.assign(ofReply, { paused: false, ducked: false });
      break;
    case 'done':
    case 'cut':
      if (message.type === 'cut') cut(call, message, now);
      if (ofReply) {
        call.thinking.delete(ofReply.companion);
        call.reply = null;
      }
      expireSentences(call, now);
      break;
    case 'error':
      call.trouble = { ...message, until: now + LONG_MS };
      break;
    default:
  }
}

// A reply is heard for the first time. Until then its companion is shown as thinking.
export function audible(call, reply) {
  if (call.reply?.id !== reply) return;
  call.reply.isAudible = true;
  call.thinking.delete(call.reply.companion);
}

// A message by voice is in the conversation, so its captions are not needed any more.
export function posted(call, { from, role }) {
  const isCompanion = role === 'companion';
  const isOf = line => line.who === from && line.isCompanion === isCompanion && line.isFinal && (isCompanion ? line.reply !== call.reply?.id : line.kind === 'words' || line.kind === 'backchannel');
  call.captions = call.captions.filter(line => !isOf(line));
}

// A reply is shown as quiet for a moment longer than it is, so that the sign does not flicker.
export const isQuiet = (reply, now) => reply.ducked || now - reply.duckedAt < QUIET_LINGERS_MS;

// The trouble to show now, or null.
export const shownTrouble = (call, now) => (call.trouble && call.trouble.until > now ? call.trouble : null);

// The captions to show now.
export function shownCaptions(call, now) {
  const isHeard = line => !line.isCompanion || line.cut || line.reply !== call.reply?.id || (call.reply.isAudible && line.from <= call.reply.position);
  call.captions = call.captions.filter(line => line.until > now);
  return call.captions.filter(isHeard);
}
