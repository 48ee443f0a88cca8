// The loudspeaker: decodes and plays what companions say, more quietly while somebody talks, and tells how much of it was played.

import { t } from './texts.js';
import { LIMITS } from './voice-protocol.js';

const US_PER_FRAME = LIMITS.frame_ms * 1000;
const DUCKED = 10 ** (-12 / 20);
const DUCK_SECS = 0.015; // time constants of the change of level
const UNDUCK_SECS = 0.04;
const QUEUED = 50; // packets that wait for the decoder

export const DECODER = { codec: 'opus', sampleRate: LIMITS.sample_rate, numberOfChannels: 1 };

// Marks for measurements, each the newest of its name.
function mark(name, detail) {
  performance.clearMarks(`voice.${name}`);
  performance.mark(`voice.${name}`, { detail });
}

// Opens the loudspeaker. `onPlayed(reply, samples)` gets the furthest position, and `onAudible(reply)` is called when a reply is first heard.
export async function openLoudspeaker({ onPlayed, onAudible }) {
  const context = new AudioContext({ sampleRate: LIMITS.sample_rate, latencyHint: 'interactive' });
  let node;
  try {
    await Promise.all([context.audioWorklet.addModule('/page/loudspeaker-worklet.js'), context.resume()]);
    node = new AudioWorkletNode(context, 'loudspeaker', { numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1] });
  } catch (error) {
    context.close();
    throw new Error(t('devices.no_sound', { problem: error.message }));
  }
  const duckGain = new GainNode(context);
  const volumeGain = new GainNode(context);
  node.connect(duckGain).connect(volumeGain).connect(context.destination);

  let stretch = 0;
  let playing = null; // the reply: its id, the next packet's number and position, and the furthest position that was played here, or null
  let decoder = null;

  const setLevel = (on, secs) => duckGain.gain.setTargetAtTime(on ? DUCKED : 1, context.currentTime, secs);

  node.port.onmessage = ({ data }) => {
    if (!playing || data.stretch !== stretch) return;
    if (data.position !== null) playing.furthest = Math.max(playing.furthest ?? 0, data.position);
    playing.dropped = data.dropped;
    if (data.type === 'audible' && !playing.isAudible) {
      playing.isAudible = true;
      mark('audible', { reply: playing.id, position: data.position });
      onAudible(playing.id);
    }
    if (data.type === 'flushed') mark('flushed', { reply: playing.id, position: data.position });
    if (playing.furthest !== null) onPlayed(playing.id, playing.furthest);
  };

  function closeDecoder() {
    if (decoder && decoder.state !== 'closed') decoder.close();
    decoder = null;
  }

  // Each stretch has a decoder of its own, so that nothing decoded late is played.
  function begin(from) {
    closeDecoder();
    stretch += 1;
    const mine = stretch;
    const positions = [];
    node.port.postMessage({ type: 'begin', stretch });
    decoder = new AudioDecoder({
      output(data) {
        if (mine === stretch) {
          const samples = new Float32Array(data.numberOfFrames);
          data.copyTo(samples, { planeIndex: 0, format: 'f32-planar' });
          const position = positions.shift() ?? from;
          node.port.postMessage({ type: 'audio', stretch, position, samples }, [samples.buffer]);
        }
        data.close();
      },
      error() {
        // A packet that cannot be decoded ends the decoder. The next packet gets another one.
        if (mine === stretch && playing) begin(playing.position);
      },
    });
    decoder.configure(DECODER);
    decoder.positions = positions;
  }

  function silence() {
    closeDecoder();
    node.port.postMessage({ type: 'flush', stretch });
  }

  return {
    context,
    begin(reply, from, volume) {
      mark('speaking', { reply });
      playing = { id: reply, next: null, position: from, furthest: null, isAudible: false, dropped: 0 };
      volumeGain.gain.setValueAtTime(volume, context.currentTime);
      duckGain.gain.cancelScheduledValues(context.currentTime);
      duckGain.gain.setValueAtTime(1, context.currentTime);
      begin(from);
    },
    // A packet of another reply than the current one, or of one that pauses, is dropped.
    packet({ reply, number, packet }) {
      if (playing?.id !== reply || !decoder || decoder.state !== 'configured' || decoder.decodeQueueSize > QUEUED) return;
      const skipped = playing.next === null ? 0 : number - playing.next;
      if (skipped < 0) return;
      const position = playing.position + skipped * LIMITS.samples_per_frame;
      playing.next = number + 1;
      playing.position = position + LIMITS.samples_per_frame;
      decoder.positions.push(position);
      decoder.decode(new EncodedAudioChunk({ type: 'key', timestamp: number * US_PER_FRAME, data: packet }));
    },
    duck(reply, on) {
      if (playing?.id !== reply) return;
      setLevel(on, on ? DUCK_SECS : UNDUCK_SECS);
      mark(on ? 'ducked' : 'unducked', { reply });
    },
    // Plays nothing more of the reply. Its position is told.
    flush(reply) {
      if (playing?.id === reply) silence();
    },
    resume(reply, from) {
      if (playing?.id !== reply) return;
      Object.assign(playing, { next: null, position: from });
      setLevel(false, UNDUCK_SECS);
      begin(from);
      mark('resumed', { reply, from });
    },
    // The reply has ended. What is still in the ring is played, unless it was flushed.
    end(reply) {
      if (playing?.id === reply) closeDecoder();
    },
    silence,
    setVolume(volume) {
      volumeGain.gain.setTargetAtTime(volume, context.currentTime, DUCK_SECS);
    },
    canChooseDevice: typeof context.setSinkId === 'function',
    // The output device ('': the browser's choice).
    setDevice: device => context.setSinkId?.(device),
    close() {
      closeDecoder();
      playing = null;
      context.close();
    },
  };
}
