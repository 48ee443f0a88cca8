//! Tests speech services: recognises a moment of silence, or synthesises one word. Errors show problems with the address, the key or the model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::audio::HEARD_RATE;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};

/// The duration of the silence that a recogniser receives.
const SILENCE: Duration = Duration::from_millis(300);

/// Recognises a moment of silence.
///
/// # Errors
/// Returns an error if the service does not work.
pub async fn try_recognition(recogniser: &dyn SpeechRecognition) -> Result<(), NoAnswer> {
    let expectation = Expectation { language: "en".into(), names: Vec::new() };
    let (sounds, taken) = mpsc::channel(2);
    let (results, mut returned) = mpsc::channel(16);
    let from = Moment::ZERO + Duration::from_secs(1);
    let samples: Arc<[i16]> = vec![0; HEARD_RATE as usize * SILENCE.as_millis() as usize / 1_000].into();
    // The channel has capacity for both.
    let _ = sounds.try_send(Sound::Audio { from, samples });
    let _ = sounds.try_send(Sound::Ended(Stretch { started: from, ended: from + SILENCE, voiced: SILENCE }));
    drop(sounds);
    let ignoring = async { while returned.recv().await.is_some() {} };
    tokio::join!(recogniser.listen(expectation, taken, results), ignoring).0
}

/// Synthesises one word with this voice, until the first audio arrives.
///
/// # Errors
/// Returns an error if the service does not work, or makes no audio.
pub async fn try_voice(synthesis: &dyn SpeechSynthesis, voice: Option<Arc<str>>) -> Result<(), NoAnswer> {
    let sentence = Sentence { companion: "trial".into(), text: "Yes.".into(), language: "en".into(), voice, speed: 1.0 };
    let mut pieces = synthesis.say(sentence);
    while let Some(piece) = pieces.next().await {
        if let Piece::Audio(_) = piece? {
            return Ok(());
        }
    }
    let endpoint = synthesis.host().unwrap_or_else(|| synthesis.provider().into());
    Err(NoAnswer::Refused { endpoint, detail: "it sent no audio for a word".to_owned() })
}
