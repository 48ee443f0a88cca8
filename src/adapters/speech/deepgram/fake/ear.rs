//! Version 1: results by windows of audio, an endpoint after silence, `Finalize`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Frame, Session, Version, seconds, text};

/// The frames between two results that are not final.
const INTERIM: u64 = 25;
/// How late an answer to `Finalize` is.
const LATE: Duration = Duration::from_millis(1_600);
/// The shortest utterance without marks, in frames.
const SHORTEST: u64 = 25;
/// The maximum number of `Finalize` in a row without an answer.
const MOST_UNANSWERED: u32 = 2;

/// What it heard of a word.
struct Word {
    number: i16,
    start: u64,
    end: u64,
    is_recognised: bool,
}

#[derive(Default)]
pub(super) struct Ear {
    is_deaf: bool,
    frames: u64,
    /// The beginning of the window that is not final yet.
    begin: u64,
    words: Vec<Word>,
    quiet: u64,
    has_voice: bool,
    since_interim: u64,
    unanswered: u32,
}

impl Ear {
    pub fn new(is_deaf: bool) -> Self {
        Self { is_deaf, ..Self::default() }
    }

    fn result(&mut self, kind: (bool, bool, bool), session: &mut Session) -> (Value, Vec<i16>) {
        let (is_final, speech_final, from_finalize) = kind;
        let known: Vec<_> =
            self.words.iter().filter(|word| word.is_recognised).map(|word| (word.number, word.start, word.end)).collect();
        let numbers: Vec<_> = known.iter().map(|(number, ..)| *number).collect();
        let is_unmarked = is_final && self.has_voice && self.words.is_empty() && self.frames - self.begin >= SHORTEST;
        let unmarked = if is_unmarked { session.books.open().texts_to_hear.pop_front() } else { None };
        let known = unmarked.map_or_else(
            || known.into_iter().map(|(number, start, end)| (text(number), start, end)).collect(),
            |text| spread(text, self.begin, self.frames),
        );
        let transcript: Vec<_> = known.iter().map(|(text, ..)| text.clone()).collect();
        let words: Vec<_> = known
            .into_iter()
            .map(|(text, start, end)| {
                let (start, end) = (session.shifted(start), session.shifted(end));
                json!({"word": text, "start": start, "end": end.max(start), "confidence": 0.9})
            })
            .collect();
        let confidence = if words.is_empty() { 0.0 } else { 0.98 };
        let result = json!({
            "type": "Results", "channel_index": [0, 1], "start": seconds(self.begin), "duration": seconds(self.frames - self.begin),
            "is_final": is_final, "speech_final": speech_final, "from_finalize": from_finalize,
            "channel": {"alternatives": [{"transcript": transcript.join(" "), "confidence": confidence, "words": words}]},
            "metadata": {"request_id": "r", "model_uuid": "m", "model_info": {"name": "general-nova-3", "version": "1", "arch": "nova-3"}},
        });
        if is_final {
            (self.begin, self.has_voice, self.since_interim) = (self.frames, false, 0);
            self.words.clear();
        }
        (result, numbers)
    }

    fn send_final(&mut self, speech_final: bool, session: &mut Session) {
        let (result, words) = self.result((true, speech_final, false), session);
        session.send(&result, words);
    }
}

/// The words of a text, one after the other between two frames.
fn spread(text: &str, from: u64, to: u64) -> Vec<(String, u64, u64)> {
    let words: Vec<_> = text.split_whitespace().collect();
    let at = |word: usize| from + (to - from) * word as u64 / words.len() as u64;
    words.iter().enumerate().map(|(number, word)| ((*word).to_owned(), at(number), at(number + 1))).collect()
}

impl Version for Ear {
    fn receive_audio(&mut self, frame: &Frame, session: &mut Session) {
        if self.is_deaf {
            return;
        }
        let place = self.frames;
        self.frames += 1;
        self.since_interim += 1;
        if matches!(frame, Frame::Silence) {
            self.quiet += 1;
            if self.quiet >= session.habits.endpoint && self.has_voice {
                self.send_final(true, session);
            }
            return;
        }
        if !self.has_voice {
            session.send(&json!({"type": "SpeechStarted", "channel": [0], "timestamp": seconds(place)}), Vec::new());
        }
        (self.quiet, self.has_voice) = (0, true);
        if let Frame::Word { number, is_middle } = *frame {
            match self.words.last_mut().filter(|word| word.number == number && word.end == place) {
                Some(word) => (word.end, word.is_recognised) = (place + 1, word.is_recognised || is_middle),
                None => self.words.push(Word { number, start: place, end: place + 1, is_recognised: is_middle }),
            }
        }
        if self.frames - self.begin >= session.habits.longest {
            self.send_final(false, session);
        } else if self.since_interim >= INTERIM {
            self.since_interim = 0;
            let (result, _) = self.result((false, false, false), session);
            session.send(&result, Vec::new());
        }
    }

    fn receive_message(&mut self, message: &str, session: &mut Session) {
        if !message.contains("\"Finalize\"") || self.is_deaf {
            return;
        }
        if self.unanswered < MOST_UNANSWERED && session.dice.is(session.habits.unanswered) {
            self.unanswered += 1;
            return;
        }
        self.unanswered = 0;
        if !self.has_voice && !session.habits.answers_nothing {
            return;
        }
        let (result, words) = self.result((true, false, true), session);
        let late = if session.dice.is(session.habits.late) { LATE } else { Duration::ZERO };
        let message = Message::text(result.to_string());
        session.send_after(late, message.clone(), words);
        if session.dice.is(session.habits.doubled) {
            session.send_after(Duration::ZERO, message, Vec::new());
        }
    }

    fn finish(&mut self, session: &mut Session) {
        if self.has_voice {
            self.send_final(false, session);
        }
        let metadata = json!({
            "type": "Metadata", "transaction_key": "deprecated", "request_id": "r", "sha256": "0", "created": "2024-08-29T22:37:55.202Z",
            "duration": seconds(self.frames), "channels": 1,
        });
        session.send(&metadata, Vec::new());
        session.close(1000, "");
    }
}
