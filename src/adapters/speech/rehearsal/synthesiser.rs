//! Makes the sound: pulses of the vocal folds and noise, through the resonances of a vocal tract (after Klatt, Software for a cascade/parallel formant
//! synthesizer, 1980). Everything that changes glides, so that nothing clicks.

use std::f64::consts::TAU;

use super::plan::Phone;
use super::{SAMPLE_RATE, Voice, mix};

/// The resonances are computed anew after this many samples (2 ms).
const CONTROL: u32 = 48;
/// The part of a period in which the vocal folds are open.
const OPEN: f64 = 0.62;
/// The level of the whole at a pitch of 1 Hz. Speech has about −20 dBFS (RMS). More pulses in a second are louder.
const LEVEL: f64 = 101_000.0;
/// No sample is beyond this: −3.3 dBFS.
const LIMIT: f64 = 22_400.0;
/// The formants above the three of a sound, and the bandwidths of all, in hertz.
const UPPER: [f64; 2] = [3_400.0, 4_300.0];
const BANDWIDTHS: [f64; 5] = [75.0, 110.0, 150.0, 260.0, 320.0];

pub(super) struct Synthesiser {
    voice: Voice,
    formants: [f64; 3],
    resonators: [Resonator; 5],
    fricative: Resonator,
    /// Where in its period the voice is, from 0 to 1.
    phase: f64,
    /// Where the slow tremor is, from 0 to 1.
    tremor: f64,
    pitch: Glide,
    loudness: Glide,
    noise: Glide,
    /// The pulses and the noise without the sharpest of them.
    tilt: f64,
    hiss: f64,
    /// The last input and output of the filter that takes away what is constant.
    block: (f64, f64),
    random: u64,
    /// The samples so far, modulo the control period.
    count: u32,
}

/// A value that follows its target with a delay.
struct Glide {
    value: f64,
    /// The part of the way that it goes in one sample.
    rate: f64,
}

impl Glide {
    fn new(value: f64, millis: f64) -> Self {
        Self { value, rate: rate(millis, 1) }
    }

    fn towards(&mut self, target: f64) -> f64 {
        self.value += (target - self.value) * self.rate;
        self.value
    }
}

/// The part of the way to a target that is gone in some samples, at this time constant.
fn rate(millis: f64, samples: u32) -> f64 {
    1.0 - (-f64::from(samples) * 1_000.0 / (millis * f64::from(SAMPLE_RATE))).exp()
}

/// A resonance: a filter with two poles, which leaves what is constant as it is.
#[derive(Default)]
struct Resonator {
    gain: f64,
    feedback: [f64; 2],
    last: [f64; 2],
}

impl Resonator {
    fn tune(&mut self, hertz: f64, bandwidth: f64) {
        let rate = f64::from(SAMPLE_RATE);
        let radius = (-TAU / 2.0 * bandwidth / rate).exp();
        self.feedback = [2.0 * radius * (TAU * hertz / rate).cos(), -radius * radius];
        self.gain = 1.0 - self.feedback[0] - self.feedback[1];
    }

    fn filter(&mut self, input: f64) -> f64 {
        let output = self.gain * input + self.feedback[0] * self.last[0] + self.feedback[1] * self.last[1];
        self.last = [output, self.last[0]];
        output
    }
}

impl Synthesiser {
    pub(super) fn new(voice: Voice) -> Self {
        Self {
            voice,
            formants: [500.0, 1_500.0, 2_500.0],
            resonators: Default::default(),
            fricative: Resonator::default(),
            phase: 0.0,
            tremor: 0.0,
            pitch: Glide::new(1.0, 45.0),
            loudness: Glide::new(0.0, 11.0),
            noise: Glide::new(0.0, 8.0),
            tilt: 0.0,
            hiss: 0.0,
            block: (0.0, 0.0),
            random: 1,
            count: 0,
        }
    }

    /// The next sample of a sound, or of a pause.
    pub(super) fn sample(&mut self, phone: Option<&Phone>) -> i16 {
        if self.count == 0 {
            self.tune(phone);
        }
        self.count = (self.count + 1) % CONTROL;
        let rate = f64::from(SAMPLE_RATE);
        let pitch = match phone {
            Some(phone) => self.pitch.towards(phone.pitch),
            None => self.pitch.value,
        };
        self.tremor = (self.tremor + 4.7 / rate).fract();
        self.phase += self.voice.pitch * pitch * (1.0 + 0.006 * (TAU * self.tremor).sin()) / rate;
        self.phase -= self.phase.floor();
        let white = self.white();
        // The flow of air while the folds are open (KLGLOTT88), and the breath that comes with it.
        let open = self.phase / OPEN;
        let (flow, breath) = if open < 1.0 { (2.0 * open - 3.0 * open * open, 1.0) } else { (0.0, 0.3) };
        let source = flow + (0.015 + 0.03 * self.voice.breath) * breath * white;
        self.tilt += (source - self.tilt) * 0.42;
        let loudness = self.loudness.towards(phone.map_or(0.0, |phone| phone.shape.voice * phone.stress));
        let noise = self.noise.towards(phone.map_or(0.0, |phone| phone.shape.noise * phone.stress));
        self.hiss += (white * noise - self.hiss) * 0.5;
        let voiced = self.resonators.iter_mut().fold(self.tilt * loudness, |sound, resonator| resonator.filter(sound));
        let sound = (voiced + self.fricative.filter(self.hiss)) * LEVEL / self.voice.pitch.sqrt();
        self.block = (sound, sound - self.block.0 + 0.985 * self.block.1);
        (LIMIT * (self.block.1 / LIMIT).tanh()).round() as i16
    }

    /// Moves the resonances towards those of a sound. In a pause they stay.
    fn tune(&mut self, phone: Option<&Phone>) {
        let rate = rate(20.0, CONTROL);
        if let Some(Phone { shape, .. }) = phone {
            for (formant, target) in self.formants.iter_mut().zip(shape.formants) {
                *formant += (target * self.voice.formants - *formant) * rate;
            }
            self.fricative.tune(shape.noise_at, 1_100.0);
        }
        let upper = UPPER.map(|hertz| hertz * self.voice.formants);
        let formants = self.formants.iter().chain(&upper).zip(BANDWIDTHS);
        for (resonator, (hertz, bandwidth)) in self.resonators.iter_mut().zip(formants) {
            resonator.tune(*hertz, bandwidth);
        }
    }

    /// White noise from −1 to 1.
    fn white(&mut self) -> f64 {
        self.random = mix(self.random);
        self.random as i64 as f64 / (1_u64 << 63) as f64
    }
}
