// A voice call of this window: connects and reconnects, sends the microphone, plays what companions say, mutes and leaves.

import * as api from './api.js';
import { openLoudspeaker } from './loudspeaker.js';
import { ENCODER, openMicrophone } from './microphone.js';
import { loadForAll, storeForAll } from './storage.js';
import { inWords, loadLater, t } from './texts.js';
import * as state from './voice-call.js';
import * as protocol from './voice-protocol.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;
// How long the microphone stays open after Space is released, so that the last syllable is heard.
const RELEASE_MS = 200;
// Heartbeats without a word of the server after which the connection is given up.
const MOST_BEATS = 3;
// How long the first message of the server is waited for.
const HELLO_MS = 10_000;
// Frames that are sent at once after a pause, and in each second. The server accepts 60 of each.
const AT_ONCE = 50;
const EACH_SECOND = 57;
// Bytes that may wait in the socket before audio waits here.
const SOCKET_BYTES = 4 * protocol.LIMITS.frame_bytes;

// Why this browser cannot take part, or null: `insecure` or `codec`.
export async function obstacle() {
  if (!isSecureContext || !navigator.mediaDevices) return 'insecure';
  if (typeof AudioEncoder !== 'function' || typeof AudioDecoder !== 'function' || typeof AudioWorkletNode !== 'function') return 'codec';
  const answer = await AudioEncoder.isConfigSupported(ENCODER).catch(() => null);
  return answer?.supported ? null : 'codec';
}

export const REHEARSAL = 'rehearsal';
export const hasVoices = description => Boolean(description?.synthesis.some(({ provider }) => provider !== REHEARSAL));

export const hostsOf = services => [...new Set(services.map(service => service.host).filter(Boolean))].sort();
// What was agreed to before the first call. Something else asks again.
export const agreement = ({ recognition, fallbacks, synthesis }) => JSON.stringify([recognition.host, hostsOf(fallbacks), hostsOf(synthesis)]);

export const volumeOf = companion => loadForAll(`volume.${companion}`, 1);

// Audio that waits to be sent. Of too much, the oldest is dropped. After the page has been busy for a while, everything that was captured meanwhile comes
// at once, and the server would refuse it.
function sendQueue(socket) {
  const frames = [];
  let allowed = AT_ONCE;
  let at = performance.now();
  return frame => {
    frames.push(frame);
    if (frames.length > protocol.LIMITS.unsent_frames) frames.shift();
    const now = performance.now();
    allowed = Math.min(AT_ONCE, allowed + ((now - at) / 1000) * EACH_SECOND);
    at = now;
    while (frames.length && allowed >= 1 && socket.bufferedAmount < SOCKET_BYTES) {
      socket.send(frames.shift());
      allowed -= 1;
    }
  };
}

// `changed()` is called when something of `view` has changed; `told(text)` announces a change politely; `warn(text)` shows a problem.
export function voice({ changed, told, warn }) {
  // `phase`: out, opening, connecting, live, lost (with `nextAttempt`), over (with `ending` and `reason`).
  const view = { phase: 'out', room: null, from: '', listening: false, muted: false, held: false, ignored: false, level: 0, nextAttempt: null, ending: null, reason: '', call: state.newCall(), hasMicrophone: false, canChooseLoudspeaker: false };
  let visit = 0; // changes whenever a call begins or ends, so that what was started for another one is given up
  let socket = null;
  let queue = null;
  let timer = null;
  let watchdog = null;
  let heartbeatMs = 0;
  let failures = 0;
  let microphone = null;
  let microphones = 0; // how many were asked for: only the newest stays open
  let loudspeaker = null;
  let releasing = null;
  // The capture clock, which goes on when another microphone is chosen.
  let captured = { next: 0, at: 0 };

  const isOpen = () => socket?.readyState === WebSocket.OPEN;
  const send = message => isOpen() && view.phase === 'live' && socket.send(JSON.stringify(message));
  const isMuted = () => view.muted && !view.held;
  const query = () => ({ room: view.room.id, from: view.from, v: protocol.LIMITS.version, listen: view.listening ? 'true' : null });

  function releaseDevices() {
    microphones += 1;
    microphone?.close();
    loudspeaker?.close();
    microphone = null;
    loudspeaker = null;
    view.hasMicrophone = false;
    view.level = 0;
  }

  function disconnect() {
    clearTimeout(timer);
    clearTimeout(watchdog);
    const old = socket;
    socket = null;
    queue = null;
    old?.close();
  }

  // Connects again if nothing comes from the server for too long.
  function watch() {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => retryLater(), MOST_BEATS * heartbeatMs);
  }

  // Ends the call here. `ending`: why, or null when the person left.
  function end(ending, reason = '') {
    visit += 1;
    disconnect();
    releaseDevices();
    Object.assign(view, { phase: ending ? 'over' : 'out', ending, reason, held: false, call: state.newCall() });
    changed();
  }

  function retryLater(reason = '') {
    disconnect();
    loudspeaker?.silence();
    state.fold(view.call, { type: 'hello', you: view.call.you, people: [...view.call.people.values()] }, Date.now());
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    failures += 1;
    const pause = longest * (0.5 + Math.random() / 2);
    if (view.phase === 'live') told(t('call.lost_said'));
    Object.assign(view, { phase: 'lost', nextAttempt: Date.now() + pause, reason });
    timer = setTimeout(connect, pause);
    changed();
  }

  function closed({ code, reason }, opened) {
    const { CLOSE } = protocol;
    const endings = new Map([[CLOSE.moved, 'moved'], [CLOSE.ended, 'ended'], [CLOSE.refused, 'refused'], [CLOSE.unknown_version, 'version']]);
    if (code === CLOSE.left) return end(null);
    // Why a call has ended was told before.
    const why = code === CLOSE.ended ? (view.call.trouble?.code === 'call_too_long' ? inWords(view.call.trouble.why, view.call.trouble.fix) : '') : reason;
    if (endings.has(code)) return end(endings.get(code), why);
    if (opened) return retryLater();
    const mine = visit;
    retryLater();
    // A request that will never be accepted is not repeated.
    api.voiceRefusal(query()).then(problem => {
      if (mine !== visit || view.phase !== 'lost' || !problem) return;
      if (!problem.isTransient) return end('denied', problem.message);
      view.reason = problem.message;
      changed();
    });
  }

  function connect() {
    disconnect();
    const current = new WebSocket(api.voiceUrl(query()));
    let opened = false;
    heartbeatMs = 0;
    current.binaryType = 'arraybuffer';
    socket = current;
    queue = sendQueue(current);
    watchdog = setTimeout(() => retryLater(t('call.no_answer')), HELLO_MS);
    if (view.phase !== 'lost') view.phase = 'connecting';
    current.onopen = () => {
      opened = true;
    };
    current.onmessage = ({ data }) => current === socket && receive(data);
    current.onclose = event => current === socket && closed(event, opened);
    changed();
  }

  function receive(data) {
    if (heartbeatMs) watch();
    try {
      if (data instanceof ArrayBuffer) loudspeaker?.packet(protocol.readFrame(data));
      else handle(protocol.readMessage(data));
    } catch (refused) {
      if (!(refused instanceof protocol.Refused)) throw refused;
      console.warn(`voice: ${refused.message}`);
    }
  }

  function handle(message) {
    const { call } = view;
    state.fold(call, message, Date.now());
    switch (message.type) {
      case 'hello':
        // Words for what may fail in the call.
        loadLater();
        failures = 0;
        heartbeatMs = message.heartbeat_secs * 1000;
        watch();
        if (view.phase !== 'live') told(t(view.phase === 'lost' ? 'call.now_again' : view.listening ? 'call.now_listening' : isMuted() ? 'call.now_muted' : 'call.now_in'));
        Object.assign(view, { phase: 'live', reason: '' });
        loudspeaker.silence();
        if (isMuted() && !view.listening) send(protocol.mute(true));
        // The server still knows it after a reconnection, and of another window.
        if (view.ignored) send(protocol.ignore(true));
        else view.ignored = message.people.find(person => person.user === message.you)?.ignored ?? false;
        break;
      case 'changed':
        if (message.user === call.you) view.ignored = message.ignored;
        break;
      case 'speaking':
        loudspeaker.begin(message.reply, message.from, volumeOf(message.companion));
        break;
      case 'duck':
        loudspeaker.duck(message.reply, message.on);
        break;
      case 'flush':
        loudspeaker.flush(message.reply);
        break;
      case 'resume':
        loudspeaker.resume(message.reply, message.from);
        break;
      case 'cut':
        loudspeaker.flush(message.reply);
        break;
      case 'done':
        loudspeaker.end(message.reply);
        break;
      default:
    }
    changed(message);
  }

  async function openDevices() {
    const mine = visit;
    const opened = await openLoudspeaker({
      onPlayed(reply, samples) {
        if (view.call.reply?.id === reply) view.call.reply.position = samples;
        send(protocol.played(reply, samples));
        changed();
      },
      onAudible(reply) {
        state.audible(view.call, reply);
        changed({ type: 'audible', reply });
      },
    });
    // The call may have ended meanwhile.
    if (mine !== visit) return opened.close();
    loudspeaker = opened;
    view.canChooseLoudspeaker = loudspeaker.canChooseDevice;
    const device = loadForAll('loudspeaker');
    // A device that is not there any more is forgotten.
    if (device) await loudspeaker.setDevice(device)?.catch(() => storeForAll('loudspeaker', null));
    if (!view.listening) await openOwnMicrophone();
  }

  async function openOwnMicrophone() {
    const { context } = loudspeaker;
    microphones += 1;
    const mine = microphones;
    const first = captured.next + (captured.next && Math.round((Date.now() - captured.at) / protocol.LIMITS.frame_ms));
    const on = {
      onPacket(number, packet) {
        captured = { next: number + 1, at: Date.now() };
        if (packet && view.phase === 'live' && isOpen()) queue(protocol.microphoneFrame(number, packet));
      },
      onLevel(level) {
        view.level = level;
      },
      onEnded() {
        clearTimeout(releasing);
        microphone = null;
        Object.assign(view, { hasMicrophone: false, muted: true, held: false, level: 0 });
        send(protocol.mute(true));
        warn(t('devices.mic_gone'));
        changed();
      },
    };
    const device = loadForAll('microphone');
    const opened = await openMicrophone(context, device, first, on)
      .catch(problem => {
        if (!device || mine !== microphones) throw problem;
        return openMicrophone(context, null, first, on);
      })
      .catch(problem => {
        if (mine === microphones) throw problem;
      });
    // Another one was chosen, or the call has ended meanwhile.
    if (mine !== microphones) return opened?.close();
    microphone = opened;
    view.hasMicrophone = true;
    microphone.mute(isMuted());
  }

  function updateMute() {
    microphone?.mute(isMuted());
    send(protocol.mute(isMuted()));
    changed();
  }

  function reconnect() {
    if (view.phase !== 'lost') return;
    failures = 0;
    connect();
  }
  addEventListener('online', reconnect);
  addEventListener('offline', () => view.phase === 'live' && retryLater());
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && reconnect());
  // Who closes the page leaves at once, and is not waited for.
  addEventListener('pagehide', () => view.phase !== 'out' && leave());

  function leave() {
    told(t('call.left', { who: view.call.you || view.from }));
    send(protocol.leave());
    end(null);
  }

  return {
    view,
    isIn: () => !['out', 'over'].includes(view.phase),
    isMuted,
    reconnect,
    leave,
    // Joins the call of a room. Must be called in a click, or browsers play nothing.
    async join({ room, from, listening }) {
      end(null);
      const mine = visit;
      Object.assign(view, { phase: 'opening', room, from, listening, ignored: false, ending: null, reason: '' });
      failures = 0;
      captured = { next: 0, at: 0 };
      changed();
      try {
        await openDevices();
      } catch (problem) {
        if (mine === visit) end('denied', problem.message);
        return;
      }
      if (mine === visit) connect();
    },
    mute(on) {
      if (view.listening || (!on && !microphone)) return;
      clearTimeout(releasing);
      Object.assign(view, { muted: on, held: false });
      updateMute();
      told(t(on ? 'call.muted_said' : 'call.mic_on'));
    },
    // Push to talk: the microphone is on while this is held.
    hold(on) {
      if (!view.muted || (on && !microphone)) return;
      clearTimeout(releasing);
      if (on === view.held) return;
      if (on) {
        view.held = true;
        return updateMute();
      }
      releasing = setTimeout(() => {
        view.held = false;
        updateMute();
      }, RELEASE_MS);
    },
    ignore(on) {
      view.ignored = on;
      send(protocol.ignore(on));
      changed();
    },
    // Stops the companion that speaks. Returns false if none does.
    stop() {
      const { reply } = view.call;
      if (!reply || view.phase !== 'live') return false;
      loudspeaker.flush(reply.id);
      send(protocol.stop(reply.id));
      return true;
    },
    // Returns whether it was sent.
    say(text) {
      const isLive = view.phase === 'live' && isOpen();
      if (isLive) send(protocol.say(text));
      return isLive;
    },
    setVolume(companion, volume) {
      storeForAll(`volume.${companion}`, volume);
      if (view.call.reply?.companion === companion) loudspeaker?.setVolume(volume);
    },
    async setMicrophone(device) {
      storeForAll('microphone', device);
      if (!loudspeaker || view.listening) return;
      microphone?.close();
      microphone = null;
      view.hasMicrophone = false;
      await openOwnMicrophone().catch(problem => warn(problem.message));
      changed();
    },
    async setLoudspeaker(device) {
      storeForAll('loudspeaker', device);
      await loudspeaker?.setDevice(device)?.catch(() => warn(t('devices.loudspeaker_refused')));
    },
    posted(message) {
      state.posted(view.call, message);
      changed();
    },
  };
}
