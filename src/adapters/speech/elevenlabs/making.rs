//! Builds the audio of one sentence from the messages of the service.

use super::super::spoken_audio::SpokenAudio;
use super::wire::{Alignment, Message};
use crate::adapters::endpoint::failure::Broken;
use crate::ports::speech_synthesis::Piece;

/// The largest difference between times that count as equal, in seconds.
const TOLERANCE: f64 = 0.06;

/// A sentence whose audio arrives.
pub(super) struct Making {
    audio: SpokenAudio,
    /// The end of the last character, in seconds.
    aligned: f64,
    /// Whether times count from the beginning of the sentence.
    from_sentence: bool,
}

/// The content of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Made {
    /// Pieces. There may be none.
    Pieces(Vec<Piece>),
    /// The audio is complete.
    All(Vec<Piece>),
    /// An error: its code and message.
    Failed(String, String),
}

impl Making {
    pub fn of(text: &str, speed: f64) -> Self {
        Self { audio: SpokenAudio::of(text, speed), aligned: 0.0, from_sentence: false }
    }

    /// Processes the next message.
    ///
    /// # Errors
    /// Returns an error if the message cannot be parsed, if there is too much audio, or if there is no audio at the end.
    pub fn process_message(&mut self, text: &str) -> Result<Made, Broken> {
        let message: Message<'_> =
            serde_json::from_str(text).map_err(|error| Broken::garbled(error.to_string(), text.as_bytes()))?;
        if let Some((code, message)) = message.error() {
            return Ok(Made::Failed(code, message));
        }
        let begin = self.audio.length().as_secs_f64();
        let samples = self.audio.add_base64(message.audio.as_deref().unwrap_or_default())?;
        if let Some(alignment) = message.alignment(|bytes| self.audio.may_be_times(bytes)) {
            let own = self.audio.length().as_secs_f64() - begin;
            self.align(&alignment, begin, own);
        }
        let pieces = self.audio.pieces(samples);
        if !message.is_final() {
            return Ok(Made::Pieces(pieces));
        }
        self.audio.check_whole()?;
        Ok(Made::All(pieces))
    }

    /// Adds the times of a message. According to the documentation they count from the beginning of the message's audio, according to some clients
    /// from the beginning of the sentence. The second case is recognised if the times follow those before, and exceed the length of the message's
    /// `own` audio.
    fn align(&mut self, Alignment(chars): &Alignment, begin: f64, own: f64) {
        let first = chars.first().map_or(0.0, |(_, start, _)| start / 1_000.0);
        let last = chars.last().map_or(0.0, |(_, start, duration)| (start + duration) / 1_000.0);
        let follows = self.aligned > 2.0 * TOLERANCE && first + TOLERANCE >= self.aligned;
        self.from_sentence |= follows && last > own + TOLERANCE;
        let since = if self.from_sentence { 0.0 } else { begin };
        for (char, start, duration) in chars {
            let start = since + start / 1_000.0;
            let end = start + duration.max(0.0) / 1_000.0;
            self.aligned = self.aligned.max(end);
            self.audio.add_times(char, start, end, self.audio.length());
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::voice::heard::WordTime;

    /// A message with so many milliseconds of audio.
    fn message(audio_ms: usize, alignment: &Value) -> String {
        json!({ "audio": STANDARD.encode(vec![1; audio_ms * 48]), "isFinal": null, "alignment": alignment }).to_string()
    }

    /// The characters of a text, each of 100 ms from a moment on.
    fn aligned(text: &str, from: i64) -> Value {
        let chars: Vec<String> = text.chars().map(String::from).collect();
        let starts: Vec<i64> = (0..).take(chars.len()).map(|char| from + 100 * char).collect();
        json!({ "chars": chars, "charStartTimesMs": starts, "charDurationsMs": vec![100; chars.len()] })
    }

    fn taken(making: &mut Making, message: &str) -> (Vec<(usize, u128, u128)>, usize) {
        let Ok(Made::Pieces(pieces)) = making.process_message(message) else { panic!("pieces of {message}") };
        let (mut words, mut samples) = (Vec::new(), 0);
        for piece in pieces {
            match piece {
                Piece::Words(times) => {
                    assert_eq!(samples, 0, "words come before their audio");
                    let times =
                        times.into_iter().map(|WordTime { text_end, start, end }| (text_end, start.as_millis(), end.as_millis()));
                    words.extend(times);
                }
                Piece::Audio(audio) => samples += audio.len(),
            }
        }
        (words, samples / 24)
    }

    #[test]
    fn times_count_from_the_beginning_of_their_message_or_of_the_sentence() {
        for second in [aligned("wo three ", 0), aligned("wo three ", 500)] {
            let mut making = Making::of("One two three", 1.0);

            let first = taken(&mut making, &message(500, &aligned("One t", 0)));
            let second = taken(&mut making, &message(1_000, &second));

            assert_eq!(first, (vec![(3, 0, 300)], 500));
            assert_eq!(second, (vec![(7, 400, 700), (13, 800, 1_300)], 1_000));
        }
    }

    #[test]
    fn a_message_that_begins_with_silence_is_no_sentence_so_far() {
        let mut making = Making::of("One two", 1.0);
        taken(&mut making, &message(500, &aligned("One ", 0)));

        let second = taken(&mut making, &message(1_000, &aligned("two", 600)));

        assert_eq!(second, (vec![(7, 1_100, 1_400)], 1_000));
    }

    #[test]
    fn times_lie_within_the_audio_whatever_is_told() {
        let mut making = Making::of("a b c d", 1.0);
        let times = json!({
            "chars": ["a", " b", " c", " d"], "charStartTimesMs": [-1e300, 1e300, 5, 0], "charDurationsMs": [1e300, -5, 1e18, 0],
        });

        let (words, audio) = taken(&mut making, &message(100, &times));

        assert_eq!((words, audio), (vec![(1, 0, 0), (3, 100, 100), (5, 100, 100), (7, 100, 100)], 100));
    }

    #[test]
    fn a_message_may_lack_times_or_audio() {
        let mut making = Making::of("One two", 1.0);

        assert_eq!(taken(&mut making, &message(300, &Value::Null)), (vec![], 300));
        assert_eq!(taken(&mut making, &message(400, &aligned("One ", 0))), (vec![(3, 300, 600)], 400));
        let times = json!({ "alignment": aligned("two", 400) }).to_string();
        assert_eq!(taken(&mut making, &times), (vec![(7, 700, 700)], 0), "within the audio");
        assert_eq!(making.process_message(r#"{"isFinal":true}"#), Ok(Made::All(vec![])));
        assert!(matches!(Making::of("One", 1.0).process_message(r#"{"isFinal":true}"#), Err(Broken::Audio(_))));
    }

    #[test]
    fn errors_and_foreign_messages_are_told_apart() {
        let take = |message: &str| Making::of("One", 1.0).process_message(message);
        let failed = |code: &str, message: &str| Ok(Made::Failed(code.to_owned(), message.to_owned()));

        assert_eq!(
            take(r#"{"message":"Out of credits.","error":"quota_exceeded","code":1008}"#),
            failed("quota_exceeded", "Out of credits.")
        );
        assert_eq!(take(r#"{"error":{"message":"No."}}"#), failed("", "No."));
        assert_eq!(take("{}"), Ok(Made::Pieces(vec![])));
        for foreign in ["", "[7]", "7", r#"{"audio":7}"#, r#"{"audio":"!"}"#, r#"{"audio":"AAA"#] {
            assert!(take(foreign).is_err(), "{foreign}");
        }
    }

    const KEYS: [&str; 7] = ["audio", "alignment", "normalizedAlignment", "isFinal", "error", "message", "code"];
    const VALUES: [&str; 12] = [
        "null",
        "7",
        "-1e300",
        "true",
        r#""""#,
        r#""AAAA""#,
        r#""AAA=""#,
        r#""\u0000""#,
        "[]",
        "{}",
        r#"{"chars":["O","n e"],"charStartTimesMs":[1e300,-1e300],"charDurationsMs":[-1e300,1e300]}"#,
        r#"{"chars":["\ud83e\udd80"],"charStartTimesMs":[18446744073709551616],"charDurationsMs":[0]}"#,
    ];

    proptest! {
        #[test]
        fn nothing_that_is_sent_panics(fields in prop::collection::vec((0..KEYS.len(), 0..VALUES.len()), 0..6)) {
            let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{:?}:{}", KEYS[key], VALUES[value])).collect();
            let message = format!("{{{}}}", fields.join(","));
            let mut making = Making::of("One", 1.0);
            let _ = making.process_message(&message);
            let _ = making.process_message(&message);
        }
    }
}
