//! Collects the audio of one person, and cuts it into recordings at the boundaries that the detector finds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::audio::HEARD_RATE;
use crate::ports::speech_recognition::{Segment, Sound};

/// Longer recordings are cut. Without partial results the detector cuts earlier.
const MOST_SAMPLES: usize = 16 * HEARD_RATE as usize;
/// The audio from before the speech.
const PRE_ROLL: Duration = Duration::from_millis(400);

#[derive(Default)]
pub(super) struct Recorder {
    pieces: VecDeque<(Moment, Arc<[i16]>)>,
    samples: usize,
    /// Whether the current speech continues after a cut.
    is_continued: bool,
}

/// The audio of one request.
#[derive(Debug, PartialEq)]
pub(super) struct Recording {
    /// Empty if there is nothing to recognise.
    pub samples: Vec<i16>,
    /// The segment without its words.
    pub segment: Segment,
}

impl Recorder {
    /// Adds a sound. Returns the recording that the sound completes.
    pub fn push_sound(&mut self, sound: Sound) -> Option<Recording> {
        match sound {
            Sound::Audio { from, samples } => {
                self.samples += samples.len();
                self.pieces.push_back((from, samples));
                (self.samples >= MOST_SAMPLES).then(|| self.cut_long())
            }
            Sound::Ended(stretch) => Some(self.end(stretch, true)),
            Sound::Cut(stretch) => Some(self.end(stretch, false)),
            Sound::Finalize => None,
        }
    }

    fn cut_long(&mut self) -> Recording {
        let (first, last) = self.bounds().unwrap_or_default();
        let started = if self.is_continued { first } else { (first + PRE_ROLL).min(last) };
        self.is_continued = true;
        Recording { samples: self.drain(None), segment: segment(started, last, None, false) }
    }

    /// The recording of a stretch, limited to audio that is available and was not cut off already.
    fn end(&mut self, stretch: Stretch, is_last: bool) -> Recording {
        let (first, last) = self.bounds().unwrap_or((stretch.started, stretch.ended));
        let ended = stretch.ended.min(last);
        let started = stretch.started.max(first).min(ended);
        let samples = self.drain((!is_last).then_some(stretch.ended));
        self.is_continued = !is_last;
        let samples = if started < ended { samples } else { Vec::new() };
        Recording { samples, segment: segment(started, ended, Some(stretch.voiced.min(ended.since(started))), is_last) }
    }

    /// The beginning and the end of the audio.
    fn bounds(&self) -> Option<(Moment, Moment)> {
        let ((first, _), (last, samples)) = (self.pieces.front()?, self.pieces.back()?);
        Some((*first, *last + duration(samples.len())))
    }

    /// Removes and returns the audio up to this moment, or all audio.
    fn drain(&mut self, upto: Option<Moment>) -> Vec<i16> {
        let mut taken = Vec::new();
        while let Some((from, samples)) = self.pieces.pop_front() {
            let length = upto.map_or(samples.len(), |upto| length(upto.since(from)).min(samples.len()));
            taken.extend_from_slice(&samples[..length]);
            if length < samples.len() {
                self.pieces.push_front((from + duration(length), samples[length..].into()));
                break;
            }
        }
        self.samples = self.pieces.iter().map(|(_, samples)| samples.len()).sum();
        taken
    }
}

fn segment(started: Moment, ended: Moment, voiced: Option<Duration>, is_last: bool) -> Segment {
    Segment {
        id: started.as_micros().to_string().into(),
        text: "".into(),
        is_verbatim: true,
        started,
        ended,
        voiced,
        no_speech: None,
        confidence: None,
        is_last,
        is_answer: false,
    }
}

fn duration(samples: usize) -> Duration {
    Duration::from_micros(samples as u64 * 1_000_000 / u64::from(HEARD_RATE))
}

fn length(duration: Duration) -> usize {
    usize::try_from(duration.as_micros() * u128::from(HEARD_RATE) / 1_000_000).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_micros(ms * 1_000)
    }

    fn stretch(started: u64, ended: u64) -> Stretch {
        Stretch { started: at(started), ended: at(ended), voiced: at(ended).since(at(started)) }
    }

    /// Packets of 20 ms between two moments. Returns the recordings that they end.
    fn record(recorder: &mut Recorder, from: u64, to: u64) -> Vec<Recording> {
        let audio = |ms| Sound::Audio { from: at(ms), samples: vec![ms as i16; 320].into() };
        (from..to).step_by(20).filter_map(|ms| recorder.push_sound(audio(ms))).collect()
    }

    fn times(recording: &Recording) -> (usize, Moment, Moment, bool) {
        (recording.samples.len(), recording.segment.started, recording.segment.ended, recording.segment.is_last)
    }

    #[test]
    fn a_stretch_is_recorded_with_the_audio_around_it() {
        let mut recorder = Recorder::default();
        let before = record(&mut recorder, 600, 2_300);

        let recording = recorder.push_sound(Sound::Ended(stretch(1_000, 2_000))).expect("a recording");
        let next = recorder.push_sound(Sound::Ended(stretch(5_000, 6_000))).expect("a recording");

        assert_eq!((before, times(&recording)), (vec![], (27_200, at(1_000), at(2_000), true)));
        assert_eq!(recording.segment.voiced, Some(Duration::from_secs(1)));
        assert_eq!(times(&next), (0, at(5_000), at(6_000), true), "without audio nothing is recognised");
    }

    #[test]
    fn a_cut_keeps_the_audio_behind_it() {
        let mut recorder = Recorder::default();
        record(&mut recorder, 600, 4_030);

        let cut = recorder.push_sound(Sound::Cut(stretch(1_000, 4_010))).expect("a recording");
        record(&mut recorder, 4_040, 5_300);
        let rest = recorder.push_sound(Sound::Ended(stretch(4_010, 5_000))).expect("a recording");

        assert_eq!(times(&cut), (54_560, at(1_000), at(4_010), false));
        assert_eq!(times(&rest), (480 + 63 * 320, at(4_010), at(5_000), true));
        assert_ne!(cut.segment.id, rest.segment.id);
    }

    #[test]
    fn long_speech_is_cut_also_if_the_detector_does_not() {
        let mut recorder = Recorder::default();

        let cut = record(&mut recorder, 600, 40_300);
        let rest = recorder.push_sound(Sound::Ended(stretch(1_000, 40_000))).expect("a recording");

        let parts = [(256_000, at(1_000), at(16_600), false), (256_000, at(16_600), at(32_600), false)];
        assert_eq!(cut.iter().map(times).collect::<Vec<_>>(), parts);
        assert_eq!(times(&rest), (7_700 * 16, at(32_600), at(40_000), true));
        assert_eq!(rest.segment.voiced, Some(Duration::from_millis(7_400)));
    }

    #[test]
    fn silence_behind_a_cut_is_not_recognised() {
        let mut recorder = Recorder::default();
        let cut = record(&mut recorder, 600, 16_700);

        let rest = recorder.push_sound(Sound::Ended(stretch(1_000, 16_500))).expect("a recording");

        assert_eq!(cut.len(), 1);
        assert_eq!((rest.samples.len(), rest.segment.started, rest.segment.is_last), (0, at(16_500), true));
    }

    #[test]
    fn a_stretch_whose_beginning_is_missing_starts_with_its_audio() {
        let mut recorder = Recorder::default();
        record(&mut recorder, 8_000, 10_300);

        let recording = recorder.push_sound(Sound::Ended(stretch(1_000, 10_000))).expect("a recording");

        assert_eq!(times(&recording), (36_800, at(8_000), at(10_000), true));
    }
}
