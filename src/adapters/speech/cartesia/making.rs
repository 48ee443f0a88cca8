//! Builds the audio of one sentence from the messages of its context.

use std::time::Duration;

use super::super::spoken_audio::SpokenAudio;
use super::wire::{Failed, Message};
use crate::adapters::endpoint::failure::Broken;
use crate::ports::speech_synthesis::Piece;

/// The latest accepted time of a word.
const LATEST: Duration = Duration::from_secs(300);

/// A sentence whose audio arrives.
pub(super) struct Making(SpokenAudio);

/// The content of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Made {
    /// Pieces. There may be none.
    Pieces(Vec<Piece>),
    /// The audio is complete.
    All(Vec<Piece>),
    Failed(Failed),
}

impl Making {
    pub fn of(text: &str, speed: f64) -> Self {
        Self(SpokenAudio::of(text, speed))
    }

    /// Processes the next message.
    ///
    /// # Errors
    /// Returns an error if the audio cannot be decoded, if there is too much of it, or if there is none at the end.
    pub fn process_message(&mut self, message: &Message<'_>) -> Result<Made, Broken> {
        if let Some(failed) = message.error() {
            return Ok(Made::Failed(failed));
        }
        // Word times may arrive before their audio.
        for (word, start, end) in message.words(|bytes| self.0.may_be_times(bytes)) {
            self.0.add_times(&word, start, end, LATEST);
        }
        let audio = message.audio().map_err(|error| Broken::Unreadable(format!("audio: {error}")))?;
        let samples = self.0.add_base64(&audio.unwrap_or_default())?;
        let pieces = self.0.pieces(samples);
        if !message.is_last() {
            return Ok(Made::Pieces(pieces));
        }
        self.0.check_whole()?;
        Ok(Made::All(pieces))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::voice::heard::WordTime;

    fn take(making: &mut Making, message: &Value) -> Result<Made, Broken> {
        making.process_message(&serde_json::from_str(&message.to_string()).unwrap())
    }

    fn word(text_end: usize, start: u64, end: u64) -> WordTime {
        WordTime { text_end, start: Duration::from_millis(start), end: Duration::from_millis(end) }
    }

    #[test]
    fn an_end_without_audio_is_an_error() {
        let done = json!({ "type": "done", "done": true });
        assert!(matches!(take(&mut Making::of("One.", 1.0), &done), Err(Broken::Audio(_))));
    }

    #[test]
    fn words_and_audio_become_pieces_in_the_order_in_which_they_come() {
        let mut making = Making::of("One two.", 1.0);
        let mut take = |message| take(&mut making, &message);
        let words = |words, start, end| json!({ "type": "timestamps", "done": false, "word_timestamps": { "words": words, "start": start, "end": end } });

        let made = [
            take(words(json!(["One"]), json!([0]), json!([0.25]))),
            take(json!({ "type": "chunk", "data": "AQACAA==", "done": false })),
            take(words(json!(["two"]), json!([0.3]), json!([0.55]))),
            take(json!({ "type": "flush_done", "done": false, "flush_done": true })),
            take(json!({ "type": "phoneme_timestamps", "done": false })),
            take(json!({ "type": "something", "data": 7 })),
            take(json!({ "type": "done", "done": true })),
        ];

        assert_eq!(
            made,
            [
                Ok(Made::Pieces(vec![Piece::Words(vec![word(3, 0, 250)])])),
                Ok(Made::Pieces(vec![Piece::Audio(vec![1, 2])])),
                Ok(Made::Pieces(vec![Piece::Words(vec![word(8, 300, 550)])])),
                Ok(Made::Pieces(vec![])),
                Ok(Made::Pieces(vec![])),
                Ok(Made::Pieces(vec![])),
                Ok(Made::All(vec![])),
            ]
        );
    }

    #[test]
    fn times_that_do_not_fit_are_not_used() {
        for words in [
            json!(7),
            json!({ "words": ["One"], "start": [], "end": [] }),
            json!({ "words": ["One"], "start": ["0"], "end": [1] }),
            json!({ "words": [7], "start": [0], "end": [1] }),
        ] {
            let made = take(&mut Making::of("One", 1.0), &json!({ "type": "timestamps", "word_timestamps": words }));
            assert_eq!(made, Ok(Made::Pieces(vec![])));
        }
        let wild = json!({ "words": ["One"], "start": [-1e300], "end": [1e300] });
        let made = take(&mut Making::of("One", 1.0), &json!({ "type": "timestamps", "word_timestamps": wild }));
        assert_eq!(made, Ok(Made::Pieces(vec![Piece::Words(vec![word(3, 0, 300_000)])])));
    }

    #[test]
    fn errors_are_read_in_the_forms_of_all_versions() {
        let failed = |status, code: &str, message: &str| {
            Ok(Made::Failed(Failed { status, code: code.to_owned(), message: message.to_owned() }))
        };
        let take = |message| take(&mut Making::of("One", 1.0), &message);

        let new = json!({
            "type": "error", "done": true, "status_code": 429, "error_code": "concurrency_limited", "title": "Too many", "message": "Wait.",
        });
        assert_eq!(take(new), failed(Some(429), "concurrency_limited", "Too many: Wait."));
        assert_eq!(
            take(json!({ "type": "error", "error": "Invalid model", "status_code": 400 })),
            failed(Some(400), "", "Invalid model")
        );
        assert_eq!(take(json!({ "type": "error", "status_code": "x", "title": 7 })), failed(None, "", ""));
        for data in [json!(7), json!("!")] {
            assert!(take(json!({ "type": "chunk", "data": data })).is_err());
        }
    }

    const KEYS: [&str; 8] = ["type", "context_id", "data", "done", "word_timestamps", "error", "status_code", "title"];
    const VALUES: [&str; 12] = [
        "null",
        "7",
        "-1e300",
        "true",
        r#""chunk""#,
        r#""error""#,
        r#""AAA=""#,
        r#""\u0000""#,
        "[]",
        "{}",
        r#"{"words":["O","n e"],"start":[1e300,-1e300],"end":[-1e300,1e300]}"#,
        r#"{"words":["\ud83e\udd80"],"start":[18446744073709551616],"end":[0]}"#,
    ];

    proptest! {
        #[test]
        fn nothing_that_is_sent_panics(fields in prop::collection::vec((0..KEYS.len(), 0..VALUES.len()), 0..6)) {
            let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{:?}:{}", KEYS[key], VALUES[value])).collect();
            let message = format!("{{{}}}", fields.join(","));
            if let Ok(message) = serde_json::from_str(&message) {
                let mut making = Making::of("One", 1.0);
                let _ = making.process_message(&message);
                let _ = making.process_message(&message);
            }
        }
    }
}
