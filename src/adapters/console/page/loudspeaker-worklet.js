// Runs on the audio thread: plays what is sent from a ring of 60 to 120 ms, and tells how far it was played.

const RING = 2880; // 60 ms: what is there before playback begins
const LONG_RING = 5760; // 120 ms: the same after the ring ran empty
const MOST = 48_000; // 1 s: beyond it the oldest is dropped
const FADE = 240; // 5 ms: the end of what a flush stops
const TOLD_EVERY = 4800; // 100 ms
const AUDIBLE = 10 ** (-50 / 20);

class Loudspeaker extends AudioWorkletProcessor {
  constructor() {
    super();
    this.begin(0);
    this.port.onmessage = ({ data }) => {
      if (data.type === 'begin') this.begin(data.stretch);
      else if (data.stretch !== this.stretch) return;
      else if (data.type === 'audio') this.take(data);
      else if (data.type === 'flush') this.flush();
    };
  }

  // A stretch is a reply from its beginning, or from a resume.
  begin(stretch) {
    this.stretch = stretch;
    this.queue = [];
    this.buffered = 0;
    this.waited = 0;
    this.playing = false;
    this.ring = RING;
    this.position = null; // until something is played
    this.told = null;
    this.sinceTold = 0;
    this.isAudible = false;
    this.dropped = 0;
    this.fade = null;
  }

  take({ position, samples }) {
    this.queue.push({ position, samples, at: 0 });
    this.buffered += samples.length;
    while (this.buffered > MOST) {
      const { samples: oldest, at } = this.queue.shift();
      this.buffered -= oldest.length - at;
      this.dropped += oldest.length - at;
    }
  }

  flush() {
    const tail = new Float32Array(FADE);
    if (this.playing) this.fill(tail);
    this.fade = { samples: tail.map((sample, at) => sample * (1 - at / FADE)), at: 0 };
    this.queue = [];
    this.buffered = 0;
    this.playing = false;
    this.tell('flushed');
  }

  // Takes samples from the queue. Returns how many there were.
  fill(output) {
    let filled = 0;
    while (filled < output.length && this.queue.length) {
      const head = this.queue[0];
      const count = Math.min(output.length - filled, head.samples.length - head.at);
      output.set(head.samples.subarray(head.at, head.at + count), filled);
      head.at += count;
      filled += count;
      this.position = head.position + head.at;
      if (head.at === head.samples.length) this.queue.shift();
    }
    this.buffered -= filled;
    return filled;
  }

  tell(type) {
    this.told = this.position;
    this.sinceTold = 0;
    this.port.postMessage({ type, stretch: this.stretch, position: this.position, dropped: this.dropped });
  }

  process(_, [[output]]) {
    if (this.fade) {
      const { samples, at } = this.fade;
      output.set(samples.subarray(at, at + output.length));
      this.fade.at += output.length;
      if (this.fade.at >= FADE) this.fade = null;
    }
    if (!this.playing && this.buffered > 0) {
      // The end of a reply may be shorter than the ring.
      this.waited += output.length;
      this.playing = this.buffered >= this.ring || this.waited > this.ring;
    }
    if (this.playing) {
      if (this.fill(output) < output.length) {
        this.playing = false;
        this.waited = 0;
        this.ring = LONG_RING;
        this.tell('played');
      }
      if (!this.isAudible) {
        const power = output.reduce((sum, sample) => sum + sample * sample, 0) / output.length;
        this.isAudible = Math.sqrt(power) > AUDIBLE;
        if (this.isAudible) this.tell('audible');
      }
    }
    this.sinceTold += output.length;
    if (this.sinceTold >= TOLD_EVERY && this.position !== this.told) this.tell('played');
    return true;
  }
}

registerProcessor('loudspeaker', Loudspeaker);
