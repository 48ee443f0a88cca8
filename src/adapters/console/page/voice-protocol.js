// The wire protocol of a voice call: binary frames with Opus packets, and JSON messages. The server's side is `voice/protocol.rs`, and
// `tests/contracts/voice-protocol.json` has examples for both.

export const LIMITS = {
  version: 1,
  frame_ms: 20,
  sample_rate: 48_000,
  samples_per_frame: 960,
  packet_bytes: 1275,
  frame_bytes: 1300,
  unsent_frames: 25,
};

export const CLOSE = { left: 1000, stopping: 1001, refused: 1008, too_slow: 1013, unknown_version: 4000, moved: 4001, ended: 4002 };

const MICROPHONE = 1;
const COMPANION = 2;
const MICROPHONE_HEAD = 5;
const COMPANION_HEAD = 9;

// A frame or message that was not understood. `name` is one of the names of the examples.
export class Refused extends Error {
  constructor(name, text) {
    super(text);
    this.name = name;
  }
}

// The frame for a packet of the microphone. `number` counts frames of 20 ms since the capture began.
export function microphoneFrame(number, packet) {
  const frame = new Uint8Array(MICROPHONE_HEAD + packet.length);
  frame[0] = MICROPHONE;
  new DataView(frame.buffer).setUint32(1, number >>> 0);
  frame.set(packet, MICROPHONE_HEAD);
  return frame;
}

// The number, reply and packet of a frame with a companion's speech.
export function readFrame(buffer) {
  const length = buffer.byteLength;
  if (length > LIMITS.frame_bytes) throw new Refused('too_long', `a frame has ${length} bytes`);
  if (length === 0) throw new Refused('too_short', 'a frame is empty');
  const view = new DataView(buffer);
  if (view.getUint8(0) !== COMPANION) throw new Refused('unknown_kind', `a frame has the kind ${view.getUint8(0)}`);
  if (length <= COMPANION_HEAD) throw new Refused('too_short', `a frame has ${length} bytes`);
  if (length > COMPANION_HEAD + LIMITS.packet_bytes) throw new Refused('too_long', `a frame has ${length} bytes`);
  return { number: view.getUint32(1), reply: view.getUint32(5), packet: new Uint8Array(buffer, COMPANION_HEAD) };
}

const isText = value => typeof value === 'string';
const isFlag = value => typeof value === 'boolean';
const isPosition = value => Number.isSafeInteger(value) && value >= 0;
const isNumber = value => isPosition(value) && value <= 0xffff_ffff;
const isOneOf = (...names) => value => names.includes(value);
const isListOf = isItem => value => Array.isArray(value) && value.every(isItem);
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
const has = fields => value => isObject(value) && Object.keys(fields).length === Object.keys(value).length && Object.entries(fields).every(([field, isValid]) => Object.hasOwn(value, field) && isValid(value[field]));

const isWhy = value => isObject(value) && isText(value.code);

const PERSON = { user: isText, muted: isFlag, listening: isFlag, ignored: isFlag, talking: isFlag };
const SERVICE = { provider: isText, host: value => value === null || isText(value) };

const FROM_SERVER = new Map(
  Object.entries({
    hello: { version: isNumber, heartbeat_secs: isNumber, frame_ms: isNumber, sample_rates: has({ microphone: isNumber, companion: isNumber }), you: isText, people: isListOf(has(PERSON)) },
    joined: PERSON,
    changed: PERSON,
    left: { user: isText },
    talking: { user: isText, on: isFlag },
    noise: { user: isText },
    caption: { user: isText, text: isText, is_final: isFlag, kind: isOneOf('words', 'backchannel', 'noise', 'echo') },
    thinking: { companion: isText, on: isFlag },
    speaking: { companion: isText, reply: isNumber, from: isPosition },
    sentence: { reply: isNumber, from: isPosition, text: isText },
    duck: { reply: isNumber, on: isFlag },
    flush: { reply: isNumber },
    resume: { reply: isNumber, from: isPosition },
    done: { reply: isNumber },
    cut: { reply: isNumber, heard: isText },
    pulse: {},
    error: { code: isOneOf('recognition_failed', 'recognition_full', 'recognition_used_up', 'synthesis_failed', 'synthesis_used_up', 'say_refused', 'call_too_long'), fix: isText, why: isWhy },
  }).map(([type, fields]) => [type, has({ type: isText, ...fields })]),
);

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// A message from the server.
export function readMessage(text) {
  const message = parse(text);
  const isValid = isObject(message) ? FROM_SERVER.get(message.type) : null;
  if (!isValid) throw new Refused('message', `a message has the unknown type ${String(message?.type).slice(0, 32)}`);
  if (!isValid(message)) throw new Refused('message', `a message ${message.type} has unknown, missing or wrong fields`);
  return message;
}

// Whether this is the description of a room's voice.
export const isDescription = has({ recognition: has(SERVICE), fallbacks: isListOf(has(SERVICE)), recognises_words: isFlag, synthesis: isListOf(has(SERVICE)), people: isListOf(has(PERSON)) });

// The messages to the server.
export const mute = on => ({ type: 'mute', on });
export const ignore = on => ({ type: 'ignore', on });
export const played = (reply, samples) => ({ type: 'played', reply, samples });
export const stop = reply => ({ type: 'stop', reply });
export const say = text => ({ type: 'say', text });
export const leave = () => ({ type: 'leave' });
