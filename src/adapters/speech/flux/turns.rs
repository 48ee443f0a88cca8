//! The protocol of Deepgram's recognition by turns, version 2.
//!
//! There is no `Finalize`. At the end of a stretch the server is asked to end the turn. If the server does not support that, its newest update counts
//! as final one second later. When the turn ends after that, only its new words count.
//!
//! Documentation: <https://developers.deepgram.com/docs/flux/state> and `…/flux/force-end-turn`.

use serde_json::Value;
use tokio::time::Instant;

use crate::adapters::endpoint::failure::Broken;
use crate::adapters::speech::deepgram::results::{self, CLOSE_STREAM, offset};
use crate::adapters::speech::deepgram::stream::{Output, Protocol};
use crate::adapters::speech::deepgram::utterances::{self, Cause, Utterances, Word, joined};
use crate::ports::speech_recognition::{Recognised, Sound};

/// The audio of one message, in samples: 80 ms, as the service recommends.
const CHUNK: usize = 1_280;
/// Times that differ by fewer samples count as equal: 100 ms.
const NEAR: u64 = 1_600;
const END_TURN: &str = r#"{"type":"ForceEndTurn"}"#;
/// The error code of a server that does not support [`END_TURN`]. The server then closes the connection.
const UNKNOWN: &str = "UNPARSABLE_CLIENT_MESSAGE";

/// One connection.
pub(in crate::adapters::speech) struct Listening {
    utterances: Utterances,
    /// Audio that does not fill a message yet.
    waiting: Vec<i16>,
    /// The index of the turn, and its first position.
    turn: Option<(u64, u64)>,
    /// The number of words of the turn that are final.
    given: usize,
    ends_turns: bool,
    cannot_end_turns: bool,
    partial_results: bool,
    is_over: bool,
}

impl Listening {
    pub fn new(ends_turns: bool, partial_results: bool) -> Self {
        Self {
            utterances: Utterances::default(),
            waiting: Vec::new(),
            turn: None,
            given: 0,
            ends_turns,
            cannot_end_turns: false,
            partial_results,
            is_over: false,
        }
    }

    /// Whether the server has refused to end a turn.
    pub const fn cannot_end_turns(&self) -> bool {
        self.cannot_end_turns
    }

    fn send_waiting(&mut self, out: &mut Output) {
        out.audio(&std::mem::take(&mut self.waiting));
    }

    fn end_turn(&mut self, out: &mut Output) {
        self.send_waiting(out);
        if self.ends_turns {
            out.text(END_TURN);
        }
    }

    /// Parses a message about a turn. Words without times are distributed over the audio that is not final.
    fn heard(&mut self, message: &Value) -> utterances::Result {
        let index = message["turn_index"].as_u64().unwrap_or_default();
        let from = offset(&message["audio_window_start"]).unwrap_or_default();
        let upto = offset(&message["audio_window_end"]).unwrap_or(from).min(self.utterances.table.sent());
        if self.turn.is_none_or(|(turn, _)| turn != index) {
            (self.turn, self.given) = (Some((index, from)), 0);
        }
        // Late words belong to a stretch that is over.
        let settled = Some(self.utterances.settled()).filter(|settled| *settled < upto).unwrap_or(self.utterances.covered());
        let begin = self.turn.map_or(from, |(_, begin)| begin).max(settled).min(upto);
        let words: Vec<_> = results::words(&message["words"], "word").collect();
        let new = words.len().saturating_sub(self.given).max(1) as u64;
        // The documentation does not define the origin of the times. Words of the turn cannot lie before its audio.
        let first = words.iter().find_map(|(_, times)| *times).map_or(from, |(start, _)| start);
        let since = if first.saturating_add(NEAR) < from { from } else { 0 };
        let words: Vec<_> = words
            .into_iter()
            .enumerate()
            .filter(|(number, (_, times))| times.is_some() || *number >= self.given)
            .map(|(number, (text, times))| {
                let place = |number: usize| begin + (upto - begin) * number.saturating_sub(self.given) as u64 / new;
                let times = times.map(|(start, end)| (start.saturating_add(since), end.saturating_add(since)));
                let (start, end) = times.unwrap_or_else(|| (place(number), place(number + 1)));
                Word { text: text.to_owned(), start, end }
            })
            .collect();
        utterances::Result { upto, text: joined(&words), words, confidence: confidence(&message["words"]) }
    }
}

impl Protocol for Listening {
    fn sound(&mut self, sound: &Sound, now: Instant, out: &mut Output) {
        match sound {
            Sound::Audio { from, samples } => {
                self.utterances.table.push(*from, samples.len() as u64);
                self.waiting.extend_from_slice(samples);
                let whole = self.waiting.len() / CHUNK * CHUNK;
                for chunk in self.waiting.drain(..whole).collect::<Vec<_>>().chunks(CHUNK) {
                    out.audio(chunk);
                }
            }
            Sound::Ended(stretch) => {
                if self.utterances.ended(*stretch, now, &mut out.results) {
                    self.end_turn(out);
                }
            }
            // With partial results the caller does not need stretches to be cut at a maximum length.
            Sound::Cut(_) if self.partial_results => {}
            Sound::Cut(_) | Sound::Finalize => {
                if self.utterances.is_uncovered() {
                    self.utterances.asked(now);
                    self.end_turn(out);
                }
            }
        }
    }

    fn message(&mut self, text: &str, _: Instant, out: &mut Output) -> Result<(), Broken> {
        let message: Value = serde_json::from_str(text).map_err(|error| Broken::garbled(error.to_string(), text.as_bytes()))?;
        match message["type"].as_str() {
            Some("TurnInfo") => {
                let heard = self.heard(&message);
                if message["event"] == "EndOfTurn" {
                    // A turn that was ended on request contains only the audio that was transcribed until then.
                    let cause = if message["trigger"] == "manual" { Cause::Certain } else { Cause::Endpoint };
                    self.given += self.utterances.hear_final(heard, cause, &mut out.results);
                } else {
                    self.utterances.hear_interim(heard, &mut out.results);
                    // The estimated positions of words without times are not exact enough.
                    if results::words(&message["words"], "word").all(|(_, times)| times.is_some()) {
                        self.given += self.utterances.finalise_old(&mut out.results);
                    }
                    if !self.partial_results {
                        out.results.retain(|result| matches!(result, Recognised::Final(_)));
                    }
                }
            }
            Some("Error") => {
                self.cannot_end_turns = self.ends_turns && message["code"] == UNKNOWN;
                return Err(results::error(&message));
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.utterances.deadline()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) {
        if self.utterances.has_due(now)
            && let Some(interim) = self.utterances.take_interim()
        {
            self.given += self.utterances.hear_final(interim, Cause::Asked, &mut out.results);
        }
        // One request is enough: the newest update contains the words.
        self.utterances.wake(now, &mut out.results);
    }

    fn keep_alive(&mut self, out: &mut Output) {
        // There is no keep-alive message.
        self.send_waiting(out);
        self.utterances.table.push_silence(CHUNK as u64);
        out.audio(&[0; CHUNK]);
    }

    fn close(&mut self, out: &mut Output) {
        self.send_waiting(out);
        out.text(CLOSE_STREAM);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn finish(&mut self, out: &mut Output) {
        if let Some(interim) = self.utterances.take_interim() {
            self.utterances.hear_final(interim, Cause::Asked, &mut out.results);
        }
        self.utterances.finish(&mut out.results);
    }

    fn cut(&mut self, out: &mut Output) {
        self.utterances.cut(&mut out.results);
    }
}

/// The mean of the words' confidence, in thousandths.
fn confidence(words: &Value) -> Option<u16> {
    let all: Vec<f64> = words.as_array()?.iter().filter_map(|word| word["confidence"].as_f64()).collect();
    let mean = all.iter().map(|confidence| confidence.clamp(0.0, 1.0)).sum::<f64>() / all.len() as f64;
    (!all.is_empty()).then_some((mean * 1_000.0).round() as u16)
}
