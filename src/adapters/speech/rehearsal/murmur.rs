//! Makes the sound of the built-in voice: pulses of the vocal folds through the resonances of a vocal tract (after Klatt, Software for a
//! cascade/parallel formant synthesizer, 1980). All parameters change gradually, to avoid clicks.

use std::f64::consts::TAU;

use super::{SAMPLE_RATE, Voice};

/// The three lowest formants of a, e, i, o and u, in hertz (Peterson and Barney 1952, men, slightly centralised).
pub(super) static VOWELS: [[f64; 3]; 5] = [
    [700.0, 1_150.0, 2_440.0],
    [520.0, 1_750.0, 2_450.0],
    [330.0, 2_050.0, 2_700.0],
    [520.0, 920.0, 2_400.0],
    [350.0, 980.0, 2_300.0],
];
/// The formants of the hum that begins a syllable, and of a pause.
pub(super) static HUM: [f64; 3] = [300.0, 1_300.0, 2_300.0];
/// The decay of the resonances for each sample, for bandwidths of 75, 110 and 150 Hz.
const RADII: [f64; 3] = [0.990_2, 0.985_7, 0.980_6];
/// The part of a period in which the vocal folds are open.
const OPEN: f64 = 0.62;
/// The overall level at a pitch of 1 Hz, chosen so that speech has about −20 dBFS (RMS). More pulses per second are louder.
const LEVEL: f64 = 112_000.0;
/// The limit of the samples: −3.3 dBFS.
const LIMIT: f64 = 22_400.0;

/// One sound of a word, or the pause after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sound {
    /// In hertz, for a long vocal tract.
    pub(super) formants: &'static [f64; 3],
    pub(super) samples: u32,
    /// The pitch, as a multiple of the voice's pitch.
    pub(super) pitch: f64,
    /// The loudness, from 0 to 1.
    pub(super) level: f64,
}

pub(super) struct Murmur {
    voice: Voice,
    /// The position in the current period, from 0 to 1.
    phase: f64,
    pitch: f64,
    loudness: f64,
    formants: [f64; 3],
    /// The last two outputs of each resonance.
    resonances: [[f64; 2]; 3],
    /// The last input and output of the DC-blocking filter.
    block: (f64, f64),
}

impl Murmur {
    pub(super) fn new(voice: Voice) -> Self {
        Self { voice, phase: 0.0, pitch: 1.0, loudness: 0.0, formants: HUM, resonances: Default::default(), block: (0.0, 0.0) }
    }

    /// The next sample of a sound.
    pub(super) fn sample(&mut self, sound: Sound) -> i16 {
        let rate = f64::from(SAMPLE_RATE);
        // Time constants of 11, 45 and 20 ms.
        self.loudness += (sound.level - self.loudness) * 0.003_8;
        self.pitch += (sound.pitch - self.pitch) * 0.000_93;
        for (formant, target) in self.formants.iter_mut().zip(sound.formants) {
            *formant += (target * self.voice.formants - *formant) * 0.002_1;
        }
        self.phase = (self.phase + self.voice.pitch * self.pitch / rate).fract();
        // The flow of air while the folds are open (KLGLOTT88).
        let open = self.phase / OPEN;
        let mut flow = if open < 1.0 { (2.0 * open - 3.0 * open * open) * self.loudness } else { 0.0 };
        for ((last, formant), radius) in self.resonances.iter_mut().zip(self.formants).zip(RADII) {
            let feedback = [2.0 * radius * (TAU * formant / rate).cos(), -radius * radius];
            flow = (1.0 - feedback[0] - feedback[1]) * flow + feedback[0] * last[0] + feedback[1] * last[1];
            *last = [flow, last[0]];
        }
        let sound = flow * LEVEL / self.voice.pitch.sqrt();
        self.block = (sound, sound - self.block.0 + 0.985 * self.block.1);
        (LIMIT * (self.block.1 / LIMIT).tanh()).round() as i16
    }
}
