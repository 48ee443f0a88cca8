//! The messages of the API.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::adapters::endpoint::failure::text_in;
use crate::adapters::endpoint::told::Told;

/// The speeds that the API allows.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.7..=1.2;

/// The messages that request the audio of a text. A speed of 1 is omitted: the voice then uses its own pace.
pub(super) fn asking(text: &str, speed: f64) -> [String; 3] {
    let mut begin = json!({ "text": " " });
    if speed.is_finite() && speed != 1.0 {
        begin["voice_settings"] = json!({ "speed": speed.clamp(*SPEEDS.start(), *SPEEDS.end()) });
    }
    [begin, json!({ "text": format!("{} ", text.trim()), "flush": true }), json!({ "text": "" })]
        .map(|message: Value| message.to_string())
}

/// A message of the service.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    /// In base64.
    #[serde(borrow, default)]
    pub audio: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    alignment: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "normalizedAlignment", alias = "normalized_alignment")]
    normalized_alignment: Option<&'a RawValue>,
    #[serde(default, rename = "isFinal", alias = "is_final")]
    is_final: Option<bool>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

impl Message<'_> {
    pub fn is_final(&self) -> bool {
        self.is_final == Some(true)
    }

    /// The times of characters: of the text that was sent, or else of the normalised text. Oversized ones are not parsed.
    pub fn alignment(&self, may_be_read: impl Fn(usize) -> bool) -> Option<Alignment> {
        let sent = [self.alignment, self.normalized_alignment].into_iter().flatten();
        sent.filter(|sent| may_be_read(sent.get().len())).find_map(Alignment::read)
    }

    /// The code and the message, if it is an error.
    pub fn error(&self) -> Option<(String, String)> {
        let code = self.error.map(|error| text_in(error).unwrap_or_default());
        let message = self.message.or(self.error).map(|error| Told::in_json(error).message);
        (self.audio.is_none() && !self.is_final() && message.is_some())
            .then(|| (code.unwrap_or_default(), message.unwrap_or_default()))
    }
}

/// Characters, each with its start and its duration in milliseconds.
#[derive(Debug, PartialEq)]
pub(super) struct Alignment(pub Vec<(String, f64, f64)>);

#[derive(Deserialize)]
struct AlignmentSent {
    chars: Vec<String>,
    // The documentation, its examples and the actual messages use different names, and a message may contain more than one of them.
    #[serde(default, rename = "charStartTimesMs")]
    starts: Option<Vec<f64>>,
    #[serde(default, rename = "charsStartTimesMs")]
    chars_starts: Option<Vec<f64>>,
    char_start_times_ms: Option<Vec<f64>>,
    #[serde(default, rename = "charDurationsMs")]
    durations: Option<Vec<f64>>,
    #[serde(default, rename = "charsDurationsMs")]
    chars_durations: Option<Vec<f64>>,
    char_durations_ms: Option<Vec<f64>>,
    chars_durations_ms: Option<Vec<f64>>,
}

impl Alignment {
    fn read(sent: &RawValue) -> Option<Self> {
        let sent: AlignmentSent = serde_json::from_str(sent.get()).ok()?;
        let starts = sent.starts.or(sent.chars_starts).or(sent.char_start_times_ms)?;
        let durations = sent.durations.or(sent.chars_durations).or(sent.char_durations_ms).or(sent.chars_durations_ms)?;
        let fits = sent.chars.len() == starts.len() && starts.len() == durations.len() && !starts.is_empty();
        let timed = || sent.chars.into_iter().zip(starts).zip(durations).map(|((char, start), duration)| (char, start, duration));
        fits.then(|| Self(timed().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alignment(message: &str) -> Option<Alignment> {
        serde_json::from_str::<Message<'_>>(message).unwrap().alignment(|bytes| bytes < 1_000)
    }

    #[test]
    fn a_changed_pace_is_sent_within_the_bounds_of_the_api() {
        let speeds = [0.5, 1.0, 1.1, 2.0, f64::NAN].map(|speed| asking(" Hello. ", speed)[0].clone());

        let set = |speed: &str| format!(r#"{{"text":" ","voice_settings":{{"speed":{speed}}}}}"#);
        let unset = r#"{"text":" "}"#.to_owned();
        assert_eq!(speeds, [set("0.7"), unset.clone(), set("1.1"), set("1.2"), unset]);
        assert_eq!(asking(" Hello. ", 1.0)[1..], [r#"{"flush":true,"text":"Hello. "}"#, r#"{"text":""}"#]);
    }

    #[test]
    fn alignments_are_read_in_all_their_spellings() {
        let expected = Some(Alignment(vec![("a".to_owned(), 0.0, 10.0), ("b".to_owned(), 10.0, 5.0)]));

        for (starts, durations) in [
            ("charStartTimesMs", "charDurationsMs"),
            ("charsStartTimesMs", "charsDurationsMs"),
            ("char_start_times_ms", "char_durations_ms"),
            ("char_start_times_ms", "chars_durations_ms"),
        ] {
            for name in ["alignment", "normalizedAlignment", "normalized_alignment"] {
                let message =
                    format!(r#"{{"audio":"","{name}":{{"chars":["a","b"],"{starts}":[0,10],"{durations}":[10,5.0]}}}}"#);
                assert_eq!(alignment(&message), expected, "{message}");
            }
        }
    }

    #[test]
    fn alignments_that_do_not_fit_are_not_used_and_do_not_spoil_the_audio() {
        for alignment_sent in [
            "null",
            "7",
            r#""abc""#,
            r#"{"chars":["a"]}"#,
            r#"{"chars":["a"],"charStartTimesMs":[0,1],"charDurationsMs":[1]}"#,
            r#"{"chars":["a"],"charStartTimesMs":["0"],"charDurationsMs":[1]}"#,
            r#"{"chars":[],"charStartTimesMs":[],"charDurationsMs":[]}"#,
        ] {
            let message = format!(r#"{{"audio":"AAAA","isFinal":null,"alignment":{alignment_sent}}}"#);
            assert_eq!(alignment(&message), None, "{message}");
        }
    }
}
