//! The built-in synthesis and recognition behind `ports/speech_synthesis` and `ports/speech_recognition`.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc::{Receiver, Sender};

use super::rehearsal::{Voice, unrecognised};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};

const REHEARSAL: &str = "rehearsal";
/// The number of frames in a piece: 200 ms.
const FRAMES: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
pub struct RehearsedSpeech;

impl SpeechSynthesis for RehearsedSpeech {
    fn provider(&self) -> &'static str {
        REHEARSAL
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        let voice = Voice::of(sentence.companion.as_str(), sentence.speed);
        let words = Piece::Words(voice.words(sentence.text.clone()).collect());
        let mut frames = voice.speak(sentence.text);
        let audio = std::iter::from_fn(move || {
            let samples: Vec<i16> = frames.by_ref().take(FRAMES).flatten().collect();
            (!samples.is_empty()).then_some(Piece::Audio(samples))
        });
        stream::iter(std::iter::once(words).chain(audio).map(Ok)).boxed()
    }
}

#[async_trait]
impl SpeechRecognition for RehearsedSpeech {
    fn provider(&self) -> &'static str {
        REHEARSAL
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn recognises_words(&self) -> bool {
        false
    }

    fn has_partials(&self) -> bool {
        false
    }

    async fn listen(&self, _: Expectation, mut sounds: Receiver<Sound>, results: Sender<Recognised>) -> Result<(), NoAnswer> {
        while let Some(sound) = sounds.recv().await {
            let (stretch, is_last) = match sound {
                Sound::Ended(stretch) => (stretch, true),
                Sound::Cut(stretch) => (stretch, false),
                Sound::Audio { .. } | Sound::Finalize => continue,
            };
            let segment = Segment {
                id: stretch.started.as_micros().to_string().into(),
                text: unrecognised(stretch.ended.since(stretch.started)).into(),
                is_verbatim: false,
                started: stretch.started,
                ended: stretch.ended,
                voiced: Some(stretch.voiced),
                no_speech: None,
                confidence: None,
                is_last,
                is_answer: true,
            };
            if results.send(Recognised::Final(segment)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::RehearsedSpeech;
    use crate::adapters::speech::conformance::conformance;

    conformance!(synthesis: RehearsedSpeech);
    conformance!(recognition: RehearsedSpeech);
}
