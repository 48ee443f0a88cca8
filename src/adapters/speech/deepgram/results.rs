//! The protocol of Deepgram's streaming recognition, version 1.
//!
//! Documentation: <https://developers.deepgram.com/docs/live-streaming-audio> and the pages on `Finalize`, `KeepAlive` and endpointing.

use serde_json::Value;
use tokio::time::Instant;

use super::stream::{Output, Protocol};
use super::utterances::{self, Cause, MAX_TEXT_BYTES, Utterances, Word};
use crate::adapters::endpoint::failure::Broken;
use crate::domain::text::first_bytes;
use crate::ports::audio::HEARD_RATE;
use crate::ports::speech_recognition::Sound;

pub(in crate::adapters::speech) const KEEP_ALIVE: &str = r#"{"type":"KeepAlive"}"#;
const FINALIZE: &str = r#"{"type":"Finalize"}"#;
pub(in crate::adapters::speech) const CLOSE_STREAM: &str = r#"{"type":"CloseStream"}"#;
/// The maximum number of words that are read from one result.
const MOST_WORDS: usize = 2_000;
/// The error code for audio that cannot be read.
const DATA_ERROR: &str = "DATA-0000";

/// One connection.
#[derive(Default)]
pub(super) struct Listening {
    utterances: Utterances,
    is_over: bool,
}

impl Protocol for Listening {
    fn sound(&mut self, sound: &Sound, now: Instant, out: &mut Output) {
        match sound {
            Sound::Audio { from, samples } => {
                self.utterances.table.push(*from, samples.len() as u64);
                out.audio(samples);
            }
            Sound::Ended(stretch) => {
                if self.utterances.ended(*stretch, now, &mut out.results) {
                    out.text(FINALIZE);
                }
            }
            // The service returns finals of its own within a stretch.
            Sound::Cut(_) => {}
            Sound::Finalize => {
                if self.utterances.is_uncovered() {
                    self.utterances.asked(now);
                    out.text(FINALIZE);
                }
            }
        }
    }

    fn message(&mut self, text: &str, _: Instant, out: &mut Output) -> Result<(), Broken> {
        let message: Value = serde_json::from_str(text).map_err(|error| Broken::garbled(error.to_string(), text.as_bytes()))?;
        match message["type"].as_str() {
            Some("Results") if message["channel_index"][0].as_u64().unwrap_or(0) == 0 => {
                let heard = heard(&message);
                if message["is_final"] != true {
                    self.utterances.hear_interim(heard, &mut out.results);
                    return Ok(());
                }
                let cause = match (&message["from_finalize"], &message["speech_final"]) {
                    (Value::Bool(true), _) => Cause::Asked,
                    (_, Value::Bool(true)) => Cause::Endpoint,
                    _ => Cause::Certain,
                };
                self.utterances.hear_final(heard, cause, &mut out.results);
            }
            Some("Metadata") => self.is_over = true,
            Some("Error") => return Err(error(&message)),
            // `SpeechStarted` and `UtteranceEnd` are ignored: our own detector is more accurate.
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.utterances.deadline()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) {
        if self.utterances.wake(now, &mut out.results) {
            out.text(FINALIZE);
        }
    }

    fn keep_alive(&mut self, out: &mut Output) {
        out.text(KEEP_ALIVE);
    }

    fn close(&mut self, out: &mut Output) {
        self.is_over = false;
        out.text(CLOSE_STREAM);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn finish(&mut self, out: &mut Output) {
        self.utterances.finish(&mut out.results);
    }

    fn cut(&mut self, out: &mut Output) {
        self.utterances.cut(&mut out.results);
    }
}

fn heard(message: &Value) -> utterances::Result {
    let from = offset(&message["start"]).unwrap_or_default();
    let upto = offset(&message["duration"]).map_or(from, |duration| from.saturating_add(duration));
    let best = &message["channel"]["alternatives"][0];
    let text = first_bytes(best["transcript"].as_str().unwrap_or_default().trim(), MAX_TEXT_BYTES).to_owned();
    let mut words: Vec<_> = words(&best["words"], "punctuated_word")
        .map(|(text, times)| {
            let (start, end) = times.unwrap_or((from, upto));
            // The words of the next result may begin where the audio of this result ends.
            let end = if start < upto { end.min(upto) } else { end };
            Word { text: text.to_owned(), start, end }
        })
        .collect();
    if words.is_empty() && !text.is_empty() {
        words = vec![Word { text: text.clone(), start: from, end: upto }];
    }
    let confidence = best["confidence"].as_f64().filter(|_| !words.is_empty());
    utterances::Result {
        upto,
        words,
        text,
        confidence: confidence.map(|confidence| (confidence.clamp(0.0, 1.0) * 1_000.0).round() as u16),
    }
}

/// The words of a result, with their times if present. The text comes from the field `best`, or else from `word`.
pub(in crate::adapters::speech) fn words<'a>(
    words: &'a Value,
    best: &'a str,
) -> impl Iterator<Item = (&'a str, Option<(u64, u64)>)> {
    words.as_array().into_iter().flatten().take(MOST_WORDS).filter_map(move |word| {
        let text = word[best].as_str().or_else(|| word["word"].as_str())?.trim();
        let times = offset(&word["start"]).zip(offset(&word["end"])).filter(|(start, end)| start <= end);
        (!text.is_empty()).then_some((text, times))
    })
}

/// The sample position of a time in seconds.
pub(in crate::adapters::speech) fn offset(seconds: &Value) -> Option<u64> {
    // JSON has no NaN, and the conversion saturates.
    seconds.as_f64().map(|seconds| (seconds.max(0.0) * f64::from(HEARD_RATE)).round() as u64)
}

/// Converts an error message.
pub(in crate::adapters::speech) fn error(message: &Value) -> Broken {
    let said: Vec<_> = ["code", "variant", "description", "message"].iter().filter_map(|key| message[key].as_str()).collect();
    let said = said.join(": ");
    Broken::failed(said.contains(DATA_ERROR).then_some(400), first_bytes(&said, MAX_TEXT_BYTES).to_owned())
}
