//! The messages of the API.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::language_code;
use crate::adapters::endpoint::failure::text_in;
use crate::adapters::endpoint::told::Told;
use crate::ports::audio::SPOKEN_RATE;
use crate::ports::speech_synthesis::Sentence;

/// The speeds that the API allows.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.6..=1.5;

/// The message that requests the audio of a sentence.
pub(super) fn asking(context: &str, model: &str, voice: &str, sentence: &Sentence) -> String {
    let mut request = json!({
        "context_id": context,
        "model_id": model,
        "voice": { "mode": "id", "id": voice },
        "transcript": sentence.text.trim(),
        "continue": false,
        "add_timestamps": true,
        "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": SPOKEN_RATE },
    });
    if let Some(language) = language_code(&sentence.language) {
        request["language"] = language.into();
    }
    if sentence.speed.is_finite() && sentence.speed != 1.0 {
        request["generation_config"] = json!({ "speed": sentence.speed.clamp(*SPEEDS.start(), *SPEEDS.end()) });
    }
    request.to_string()
}

/// The message that cancels a context.
pub(super) fn cancelling(context: &str) -> String {
    json!({ "context_id": context, "cancel": true }).to_string()
}

/// A message of the service.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub context_id: Option<Cow<'a, str>>,
    done: Option<bool>,
    /// Audio in base64.
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    word_timestamps: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status_code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error_code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    /// The only description of an error before version 2026-03-01.
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// An error of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// As an HTTP status.
    pub status: Option<u16>,
    pub code: String,
    pub message: String,
}

impl<'a> Message<'a> {
    /// The audio in base64, if there is any.
    pub fn audio(&self) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        match self.data {
            Some(data) if self.is("chunk") => serde_json::from_str::<Text<'_>>(data.get()).map(|Text(text)| Some(text)),
            _ => Ok(None),
        }
    }

    /// Words, each with its start and end in seconds. Empty if there are none, or if they are oversized.
    pub fn words(&self, may_be_read: impl Fn(usize) -> bool) -> Vec<(String, f64, f64)> {
        #[derive(Deserialize)]
        struct Words {
            words: Vec<String>,
            start: Vec<f64>,
            end: Vec<f64>,
        }

        let sent = self.word_timestamps.filter(|sent| may_be_read(sent.get().len()));
        let words = sent.and_then(|sent| serde_json::from_str::<Words>(sent.get()).ok());
        let fits = |words: &Words| words.words.len() == words.start.len() && words.start.len() == words.end.len();
        let timed = |words: Words| words.words.into_iter().zip(words.start).zip(words.end);
        let flat = |((word, start), end): ((String, f64), f64)| (word, start, end);
        words.filter(fits).map(timed).into_iter().flatten().map(flat).collect()
    }

    /// Whether this is the last message of the context.
    pub fn is_last(&self) -> bool {
        self.is("done") || self.done == Some(true)
    }

    pub fn error(&self) -> Option<Failed> {
        let is_error = self.is("error") || self.error.is_some();
        let text = |value: Option<&RawValue>| value.and_then(text_in).unwrap_or_default();
        let message =
            match (text(self.title), self.message.or(self.error).map(|error| Told::in_json(error).message).unwrap_or_default()) {
                (title, message) if title.is_empty() => message,
                (title, message) if message.is_empty() => title,
                (title, message) => format!("{title}: {message}"),
            };
        let status = self.status_code.and_then(|status| status.get().parse().ok());
        is_error.then(|| Failed { status, code: text(self.error_code), message })
    }

    fn is(&self, kind: &str) -> bool {
        self.r#type.as_deref() == Some(kind)
    }
}
