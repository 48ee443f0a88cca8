// Runs on the audio thread: cuts the microphone's sound into frames of 20 ms, and measures their level.

const FRAME = 960;
// How many samples of the microphone one of a frame takes: 1, or more or less where the browser takes the microphone only at its own rate.
const STEP = sampleRate / 48_000;

class Microphone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.frame = new Float32Array(FRAME);
    this.filled = 0;
    this.at = 0; // of the next sample, from the last one of the microphone (0) to the newest (1)
    this.last = 0;
  }

  process([[input]]) {
    // Without input the capture clock goes on.
    for (const sample of input ?? new Float32Array(128)) {
      // Of a higher rate, what a frame cannot hold is weakened.
      const newest = STEP > 1 ? this.last + (sample - this.last) / STEP : sample;
      for (; this.at < 1; this.at += STEP) this.put(this.last + (newest - this.last) * this.at);
      this.at -= 1;
      this.last = newest;
    }
    return true;
  }

  put(sample) {
    this.frame[this.filled] = sample;
    this.filled += 1;
    if (this.filled === FRAME) this.send();
  }

  send() {
    const { frame } = this;
    const power = frame.reduce((sum, sample) => sum + sample * sample, 0) / FRAME;
    this.port.postMessage({ samples: frame, level: Math.sqrt(power) }, [frame.buffer]);
    this.frame = new Float32Array(FRAME);
    this.filled = 0;
  }
}

registerProcessor('microphone', Microphone);
