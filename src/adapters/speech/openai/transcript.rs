//! Parses the answer to a recording, in one piece or as events.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::adapters::endpoint::failure::{Broken, text_in};
use crate::adapters::endpoint::told::Told;
use crate::domain::text::{first_bytes, spaced};

/// The probability of no speech above which a text of only prompt names counts as echo of the prompt. Measured with Whisper (base) and two names in
/// the prompt: 0.08 to 0.22 when the names are said, and 0.53 to 0.68 in silence and noise, where Whisper returns them as well.
const MAX_NO_SPEECH: f64 = 0.4;
/// The maximum length of a text. A few seconds of speech are never longer.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A transcript, with the server's figures.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Transcript {
    pub text: String,
    pub no_speech: Option<f64>,
    pub confidence: Option<u16>,
}

/// An answer, or an event of one. A value of any type stays unparsed until it is needed.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    segments: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The figures of a segment.
#[derive(Deserialize)]
struct SentSegment<'a> {
    #[serde(borrow)]
    start: Option<&'a RawValue>,
    #[serde(borrow)]
    end: Option<&'a RawValue>,
    #[serde(borrow)]
    avg_logprob: Option<&'a RawValue>,
    #[serde(borrow)]
    no_speech_prob: Option<&'a RawValue>,
}

impl Transcript {
    /// Parses an answer in one piece.
    pub fn read(json: &[u8]) -> Result<Self, Broken> {
        let sent = read(json)?;
        let text = sent.text.and_then(text_in).ok_or_else(|| Broken::Unreadable("it holds no text".to_owned()))?;
        let segments: Vec<SentSegment<'_>> =
            sent.segments.and_then(|segments| serde_json::from_str(segments.get()).ok()).unwrap_or_default();
        let mean = |figure: for<'a> fn(&SentSegment<'a>) -> Option<&'a RawValue>| mean(&segments, figure);
        Ok(Self {
            text: cleaned(&text),
            no_speech: mean(|segment| segment.no_speech_prob).map(|no_speech| no_speech.clamp(0.0, 1.0)),
            confidence: mean(|segment| segment.avg_logprob).map(|log| (log.exp().clamp(0.0, 1.0) * 1_000.0).round() as u16),
        })
    }
}

impl Transcript {
    /// Clears the text if it is an echo of the prompt, which models return for silence and noise. Without a figure, only the whole prompt counts as
    /// echo, because a person may say a single name.
    pub fn without_echo(self, prompt: Option<&str>) -> Self {
        let (text, prompt) = (words(&self.text), prompt.map(words).unwrap_or_default());
        let is_echo = match self.no_speech {
            Some(no_speech) => no_speech > MAX_NO_SPEECH && text.iter().all(|word| prompt.contains(word)),
            None => prompt.len() > 1 && !text.is_empty() && text.chunks(prompt.len()).all(|part| part == prompt),
        };
        if is_echo { Self { text: String::new(), ..self } } else { self }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// An answer that arrives in events.
#[derive(Debug, Default)]
pub(super) struct Partial(String);

/// The content of an event.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// All words so far.
    Partial(String),
    Done(Transcript),
    Nothing,
}

impl Partial {
    pub fn push_event(&mut self, event: &[u8]) -> Result<Event, Broken> {
        if event == b"[DONE]" {
            return Ok(Event::Nothing);
        }
        let sent = read(event)?;
        match sent.r#type.and_then(text_in).as_deref() {
            Some("transcript.text.delta") => {
                self.0.push_str(&sent.delta.and_then(text_in).unwrap_or_default());
                if self.0.len() > MAX_TEXT_BYTES {
                    return Err(Broken::TooLong);
                }
                let text = cleaned(&self.0);
                Ok(if text.is_empty() { Event::Nothing } else { Event::Partial(text) })
            }
            Some("transcript.text.done") => Transcript::read(event).map(Event::Done),
            _ => Ok(Event::Nothing),
        }
    }
}

fn read(json: &[u8]) -> Result<Sent<'_>, Broken> {
    let sent: Sent<'_> = serde_json::from_slice(json).map_err(|error| Broken::garbled(error.to_string(), json))?;
    match sent.error {
        Some(error) => Err(Broken::Told(Box::new(Told::in_json(error)))),
        None => Ok(sent),
    }
}

/// Normalises a text to one line without surrounding spaces. Whisper's texts begin with a space.
fn cleaned(text: &str) -> String {
    spaced(first_bytes(text.trim(), MAX_TEXT_BYTES)).trim().to_owned()
}

/// The mean of a figure, weighted by the durations of the segments.
fn mean<'a>(segments: &[SentSegment<'a>], figure: fn(&SentSegment<'a>) -> Option<&'a RawValue>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for segment in segments {
        let Some(value) = number(figure(segment)) else { continue };
        let duration = number(segment.end).unwrap_or_default() - number(segment.start).unwrap_or_default();
        let weight = duration.clamp(0.01, 60.0);
        sum += value * weight;
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights).filter(|mean| mean.is_finite())
}

fn number(value: Option<&RawValue>) -> Option<f64> {
    value?.get().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: &serde_json::Value) -> Result<Transcript, Broken> {
        Transcript::read(answer.to_string().as_bytes())
    }

    #[test]
    fn figures_are_means_by_duration() {
        let segments = json!([
            { "start": 0.0, "end": 3.0, "avg_logprob": -0.1, "no_speech_prob": 0.1 },
            { "start": 3.0, "end": 4.0, "avg_logprob": -0.5, "no_speech_prob": 0.9 },
        ]);

        let transcript = read(&json!({ "text": " Hello\nthere. ", "segments": segments })).unwrap();

        assert_eq!((transcript.text.as_str(), transcript.confidence), ("Hello there.", Some(819)));
        assert!((transcript.no_speech.unwrap() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn figures_of_foreign_types_are_none() {
        for segments in [json!(null), json!(7), json!([]), json!(["a"]), json!([{ "no_speech_prob": "0.5", "avg_logprob": [1] }])]
        {
            let transcript = read(&json!({ "text": "Hi", "segments": segments })).unwrap();

            assert_eq!(transcript, Transcript { text: "Hi".to_owned(), ..Transcript::default() }, "{segments}");
        }
        let far =
            read(&json!({ "text": "Hi", "segments": [{ "start": 9, "end": -1e300, "no_speech_prob": 7, "avg_logprob": 3 }] }));
        assert_eq!(far.map(|far| (far.no_speech, far.confidence)), Ok((Some(1.0), Some(1_000))));
    }

    #[test]
    fn an_answer_without_text_is_none() {
        for answer in [json!({}), json!({ "text": null }), json!({ "text": 7 })] {
            assert!(matches!(read(&answer), Err(Broken::Unreadable(_))), "{answer}");
        }
        assert!(matches!(read(&json!([1])), Err(Broken::Garbled(..))));
        let Err(Broken::Told(told)) = read(&json!({ "error": { "message": "no", "code": 503 } })) else { panic!("an error") };
        assert_eq!((told.status, &*told.message), (Some(503), "no"));
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_words() {
        let text = |text: &str, no_speech, prompt: &str| {
            Transcript { text: text.to_owned(), no_speech, confidence: None }.without_echo(Some(prompt)).text
        };

        let echoes =
            [("Aria, Ben.", Some(0.58)), ("aria ben", None), ("Aria. Aria. Aria.", Some(0.53)), ("Ben, Aria", Some(0.9))];
        let said = [("Aria, Ben.", Some(0.08)), ("Ben?", Some(0.22)), ("Aria, Ben, come here.", Some(0.5)), ("Ben.", None)];
        assert!(echoes.into_iter().all(|(said, no_speech)| text(said, no_speech, "Aria, Ben.").is_empty()));
        assert!(said.into_iter().all(|(said, no_speech)| text(said, no_speech, "Aria, Ben.") == said));
        assert_eq!(text("Aria!", None, "Aria."), "Aria!");
        assert_eq!(Transcript::default().without_echo(None), Transcript::default());
    }

    #[test]
    fn deltas_add_up() {
        let mut partial = Partial::default();
        let mut take = |event: serde_json::Value| partial.push_event(event.to_string().as_bytes());

        let events = [
            take(json!({ "type": "transcript.text.delta", "delta": " Hel" })),
            take(json!({ "type": "transcript.text.delta", "delta": "lo" })),
            take(json!({ "type": "transcript.text.delta", "delta": 7 })),
            take(json!({ "type": "something.new" })),
            take(json!({ "type": "transcript.text.done", "text": " Hello." })),
        ];

        let words = |text: &str| Ok(Event::Partial(text.to_owned()));
        let done = Transcript { text: "Hello.".to_owned(), ..Transcript::default() };
        assert_eq!(events, [words("Hel"), words("Hello"), words("Hello"), Ok(Event::Nothing), Ok(Event::Done(done))]);
        assert_eq!(take(json!({ "type": "transcript.text.delta", "delta": "x".repeat(9_000) })), Err(Broken::TooLong));
    }
}
