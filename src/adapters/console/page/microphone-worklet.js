// Runs on the audio thread: cuts the microphone's sound into frames of 20 ms, and measures their level.

const FRAME = 960;

class Microphone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.frame = new Float32Array(FRAME);
    this.filled = 0;
  }

  process([[input]]) {
    // Without input the capture clock goes on.
    const block = input ?? new Float32Array(128);
    for (let at = 0; at < block.length; ) {
      const count = Math.min(block.length - at, FRAME - this.filled);
      this.frame.set(block.subarray(at, at + count), this.filled);
      at += count;
      this.filled += count;
      if (this.filled === FRAME) this.send();
    }
    return true;
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
