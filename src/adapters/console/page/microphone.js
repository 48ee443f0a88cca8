// The microphone: its sound as Opus packets of 20 ms, each with its number on the capture clock. The clock goes on while the microphone is muted.

import { t } from './texts.js';
import { LIMITS } from './voice-protocol.js';

const US_PER_FRAME = LIMITS.frame_ms * 1000;

export const ENCODER = { codec: 'opus', sampleRate: LIMITS.sample_rate, numberOfChannels: 1, bitrate: 32_000, opus: { frameDuration: US_PER_FRAME, application: 'voip' } };

// What went wrong with `getUserMedia`, and what to do.
function problemOf(error) {
  const key = { NotAllowedError: 'devices.mic_denied', NotFoundError: 'devices.mic_missing', NotReadableError: 'devices.mic_in_use', OverconstrainedError: 'devices.mic_unplugged' }[error.name];
  return new Error(t(key ?? 'devices.mic_failed', { problem: error.message }));
}

// Opens the microphone `device` (null: the browser's choice). Its first packet has the number `first`. `onPacket(number, packet)` gets each packet (null while muted), `onLevel(level)` the level of each frame (0 to
// 1), and `onEnded()` is called when it stops by itself.
export async function openMicrophone(context, device, first, { onPacket, onLevel, onEnded }) {
  const wanted = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
  if (device) wanted.deviceId = { exact: device };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted }).catch(error => {
    throw problemOf(error);
  });
  const [track] = stream.getAudioTracks();
  let muted = false;
  let closed = false;
  let captured = 0;

  function close() {
    if (closed) return;
    closed = true;
    track.stop();
    source.disconnect();
    node.disconnect();
    own?.close();
    node.port.onmessage = null;
    if (encoder.state !== 'closed') encoder.close();
  }
  function end() {
    if (closed) return;
    close();
    onEnded();
  }

  const encoder = new AudioEncoder({
    output(chunk) {
      const number = first + Math.round(chunk.timestamp / US_PER_FRAME);
      if (closed) return;
      if (muted) return onPacket(number, null);
      const packet = new Uint8Array(chunk.byteLength);
      chunk.copyTo(packet);
      onPacket(number, packet);
    },
    error: end,
  });
  const sourceIn = async place => {
    await Promise.all([place.audioWorklet.addModule('/page/microphone-worklet.js'), place.resume()]);
    return place.createMediaStreamSource(stream);
  };
  let own = null; // Firefox connects a microphone only where its own rate is used
  let source;
  let node;
  try {
    source = await sourceIn(context).catch(error => {
      if (error.name !== 'NotSupportedError') throw error;
      own = new AudioContext();
      return sourceIn(own);
    });
    if (track.readyState === 'ended') throw new DOMException('', 'NotFoundError');
    encoder.configure(ENCODER);
    node = new AudioWorkletNode(source.context, 'microphone', { numberOfInputs: 1, numberOfOutputs: 0, channelCount: 1, channelCountMode: 'explicit' });
  } catch (error) {
    track.stop();
    own?.close();
    throw problemOf(error);
  }
  node.port.onmessage = ({ data: { samples, level } }) => {
    const data = new AudioData({ format: 'f32-planar', sampleRate: LIMITS.sample_rate, numberOfFrames: samples.length, numberOfChannels: 1, timestamp: captured * US_PER_FRAME, data: samples });
    captured += 1;
    // What is captured while muted is silence. It is encoded and dropped, so that the encoder's clock goes on.
    if (encoder.state === 'configured') encoder.encode(data);
    data.close();
    onLevel(muted ? 0 : level);
  };
  track.addEventListener('ended', end);
  source.connect(node);

  return {
    mute(on) {
      muted = on;
      track.enabled = !on;
    },
    close,
  };
}
