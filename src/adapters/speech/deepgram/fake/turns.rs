//! Version 2: turns, with updates, and an end after silence or when the client says so.

use serde_json::{Value, json};

use super::{Frame, Session, Version, seconds, text};

/// The silence that ends a turn: 600 ms.
const END: u64 = 30;
/// The frames between two updates: 240 ms.
const UPDATE: u64 = 12;

#[derive(Default)]
pub(super) struct Turns {
    frames: u64,
    sequence: u64,
    turn: u64,
    /// Where the turn began, if one is on.
    begin: Option<u64>,
    /// The recognised words with their beginnings and ends.
    words: Vec<(i16, u64, u64)>,
    /// The word that is being heard.
    newest: Option<(i16, u64)>,
    quiet: u64,
    since_update: u64,
}

impl Turns {
    fn info(&mut self, event: &str, trigger: Option<&str>, session: &mut Session) {
        self.sequence += 1;
        let numbers: Vec<_> = self.words.iter().map(|(number, ..)| *number).collect();
        let transcript: Vec<_> = numbers.iter().map(|number| text(*number)).collect();
        let words: Vec<_> = self
            .words
            .iter()
            .map(|&(number, start, end)| {
                let mut word = json!({"word": text(number), "confidence": 0.9});
                if session.habits.has_word_times {
                    let start = session.shifted(start);
                    word["start"] = json!(start);
                    word["end"] = json!(session.shifted(end).max(start));
                }
                word
            })
            .collect();
        let mut info = json!({
            "type": "TurnInfo", "request_id": "r", "sequence_id": self.sequence, "event": event, "turn_index": self.turn,
            "audio_window_start": seconds(self.begin.unwrap_or_default()), "audio_window_end": seconds(self.frames),
            "transcript": transcript.join(" "), "words": words, "end_of_turn_confidence": 0.5,
        });
        if let Some(trigger) = trigger {
            info["trigger"] = json!(trigger);
        }
        self.since_update = 0;
        let is_end = trigger.is_some();
        session.send(&info, if is_end { numbers } else { Vec::new() });
        if is_end {
            self.turn += 1;
            (self.begin, self.newest) = (None, None);
            self.words.clear();
        }
    }
}

impl Version for Turns {
    fn receive_audio(&mut self, frame: &Frame, session: &mut Session) {
        let place = self.frames;
        self.frames += 1;
        self.since_update += 1;
        self.quiet = if matches!(frame, Frame::Silence) { self.quiet + 1 } else { 0 };
        if let Frame::Word { number, is_middle } = *frame {
            if self.newest.is_none_or(|(newest, _)| newest != number) {
                self.newest = Some((number, place));
            }
            let start = self.newest.map_or(place, |(_, start)| start);
            match self.words.last_mut().filter(|(known, ..)| *known == number) {
                Some((_, _, end)) => *end = place + 1,
                None if is_middle => self.words.push((number, start, place + 1)),
                None => {}
            }
        }
        if self.begin.is_none() && !self.words.is_empty() {
            self.begin = Some(self.words[0].1);
            return self.info("StartOfTurn", None, session);
        }
        if self.begin.is_some() && self.quiet >= END {
            self.info("EndOfTurn", Some("model"), session);
        } else if self.since_update >= UPDATE {
            self.info("Update", None, session);
        }
    }

    fn receive_message(&mut self, message: &str, session: &mut Session) {
        let kind = serde_json::from_str::<Value>(message).ok().and_then(|message| message["type"].as_str().map(str::to_owned));
        match kind.as_deref() {
            Some("ForceEndTurn") if session.habits.ends_turns => {
                if self.begin.is_some() {
                    self.info("EndOfTurn", Some("manual"), session);
                }
            }
            _ => {
                let error = json!({
                    "type": "Error", "sequence_id": self.sequence + 1, "code": "UNPARSABLE_CLIENT_MESSAGE",
                    "description": "The client sent a message that cannot be parsed.",
                });
                session.send(&error, Vec::new());
                session.close(1008, "UNPARSABLE_CLIENT_MESSAGE");
            }
        }
    }

    fn finish(&mut self, session: &mut Session) {
        if self.begin.is_some() {
            self.info("EndOfTurn", Some("model"), session);
        }
        session.close(1000, "");
    }
}
