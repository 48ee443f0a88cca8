//! Makes the sound: pulses of the vocal folds through the resonances of a vocal tract (after Klatt, Software for a cascade/parallel formant
//! synthesizer, 1980). Everything that changes glides, so that nothing clicks.

use std::f64::consts::TAU;

use super::plan::Phone;
use super::{SAMPLE_RATE, Voice};

/// The resonances are computed anew after this many samples (2 ms).
const CONTROL: u32 = 48;
/// The part of a period in which the vocal folds are open.
const OPEN: f64 = 0.62;
/// The level of the whole at a pitch of 1 Hz. Speech has about −20 dBFS (RMS). More pulses in a second are louder.
const LEVEL: f64 = 112_000.0;
/// No sample is beyond this: −3.3 dBFS.
const LIMIT: f64 = 22_400.0;
/// The formants above the three of a sound, and the bandwidths of all, in hertz.
const UPPER: [f64; 2] = [3_400.0, 4_300.0];
const BANDWIDTHS: [f64; 5] = [75.0, 110.0, 150.0, 260.0, 320.0];

pub(super) struct Synthesiser {
    voice: Voice,
    formants: [f64; 3],
    resonators: [Resonator; 5],
    /// Where in its period the voice is, from 0 to 1.
    phase: f64,
    pitch: f64,
    loudness: f64,
    /// The part of the way to its loudness that a sound goes in a sample.
    attack: f64,
    /// The pulses without the sharpest of them.
    tilt: f64,
    /// The last input and output of the filter that takes away what is constant.
    block: (f64, f64),
    /// The samples so far, modulo the control period.
    count: u32,
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
            phase: 0.0,
            pitch: 1.0,
            loudness: 0.0,
            attack: rate(11.0, 1),
            tilt: 0.0,
            block: (0.0, 0.0),
            count: 0,
        }
    }

    /// The next sample of a sound, or of a pause.
    pub(super) fn sample(&mut self, phone: Option<&Phone>) -> i16 {
        if self.count == 0 {
            self.tune(phone);
        }
        self.count = (self.count + 1) % CONTROL;
        self.phase = (self.phase + self.voice.pitch * self.pitch / f64::from(SAMPLE_RATE)).fract();
        // The flow of air while the folds are open (KLGLOTT88).
        let open = self.phase / OPEN;
        let flow = if open < 1.0 { 2.0 * open - 3.0 * open * open } else { 0.0 };
        self.tilt += (flow - self.tilt) * 0.42;
        self.loudness += (phone.map_or(0.0, |phone| phone.level) - self.loudness) * self.attack;
        let voiced = self.resonators.iter_mut().fold(self.tilt * self.loudness, |sound, resonator| resonator.filter(sound));
        let sound = voiced * LEVEL / self.voice.pitch.sqrt();
        self.block = (sound, sound - self.block.0 + 0.985 * self.block.1);
        (LIMIT * (self.block.1 / LIMIT).tanh()).round() as i16
    }

    /// Moves the melody and the resonances towards those of a sound. In a pause they stay.
    fn tune(&mut self, phone: Option<&Phone>) {
        if let Some(Phone { formants, pitch, .. }) = phone {
            self.pitch += (pitch - self.pitch) * rate(45.0, CONTROL);
            for (formant, target) in self.formants.iter_mut().zip(*formants) {
                *formant += (target * self.voice.formants - *formant) * rate(20.0, CONTROL);
            }
        }
        let upper = UPPER.map(|hertz| hertz * self.voice.formants);
        let formants = self.formants.iter().chain(&upper).zip(BANDWIDTHS);
        for (resonator, (hertz, bandwidth)) in self.resonators.iter_mut().zip(formants) {
            resonator.tune(*hertz, bandwidth);
        }
    }
}
