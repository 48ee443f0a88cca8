//! Voice activity detection: scores how much each hop of 16 ms sounds like speech. `domain/voice/speech.rs` decides where speech begins and ends.

/// The number of samples in one hop: 16 ms at 16 kHz.
pub const HOP_SAMPLES: usize = 256;

/// Scores the audio of one person, mono at 16 kHz.
pub struct Detector {
    network: Box<earshot::Detector>,
    /// The samples of an incomplete hop.
    pending: Vec<i16>,
    /// The number of hops that were scored.
    hops: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The number of samples before the hop, since the detector was created or reset.
    pub from: u64,
    /// From 0 (no speech) to 1.
    pub score: f32,
}

impl Default for Detector {
    fn default() -> Self {
        Self { network: earshot::Detector::default_boxed(), pending: Vec::with_capacity(HOP_SAMPLES), hops: 0 }
    }
}

impl Detector {
    /// Scores the hops that these samples complete. Samples that do not fill a hop are kept.
    pub fn score(&mut self, samples: &[i16], mut each: impl FnMut(Score)) {
        let mut rest = samples;
        while self.pending.len() + rest.len() >= HOP_SAMPLES {
            let (taken, left) = rest.split_at(HOP_SAMPLES - self.pending.len());
            self.pending.extend_from_slice(taken);
            each(Score { from: self.hops * HOP_SAMPLES as u64, score: self.network.predict_i16(&self.pending) });
            self.pending.clear();
            (self.hops, rest) = (self.hops + 1, left);
        }
        self.pending.extend_from_slice(rest);
    }

    /// Resets the detector, because frames are missing. The next audio begins a new hop at sample 0.
    pub fn reset(&mut self) {
        self.network.reset();
        self.pending.clear();
        self.hops = 0;
    }
}

#[cfg(test)]
mod tests;
