//! Tests speech services: recognises a moment of silence, synthesises one word, or has a sentence said and recognises it. Errors show problems with the address, the key or the model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::audio::{HEARD_RATE, SPOKEN_RATE};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis, most_samples};

/// The duration of the silence that a recogniser receives.
const SILENCE: Duration = Duration::from_millis(300);
/// The samples that are sent to a recogniser at a time (100 ms).
const CHUNK: usize = HEARD_RATE as usize / 10;

/// A sentence that was said and recognised.
pub struct Heard {
    pub sentence: Arc<str>,
    /// The audio of the sentence.
    pub spoken: Result<Vec<i16>, NoAnswer>,
    /// The recognised words. `None`: the recogniser returns no words.
    pub understood: Option<Result<String, NoAnswer>>,
}

/// Recognises a moment of silence.
///
/// # Errors
/// Returns an error if the service does not work.
pub async fn try_recognition(recogniser: &dyn SpeechRecognition) -> Result<(), NoAnswer> {
    let silence = vec![0; HEARD_RATE as usize * SILENCE.as_millis() as usize / 1_000];
    recognise(recogniser, "en".into(), &silence).await.map(drop)
}

/// Has a sentence said, and has the recogniser listen to it. Without audio it listens to silence.
pub async fn say_and_hear(synthesis: &dyn SpeechSynthesis, recogniser: &dyn SpeechRecognition, sentence: Sentence) -> Heard {
    let (text, language) = (sentence.text.clone(), sentence.language.clone());
    let spoken = say(synthesis, sentence).await;
    let understood = match (&spoken, recogniser.recognises_words()) {
        (_, false) => None,
        (Ok(spoken), true) => Some(recognise(recogniser, language, &at_heard_rate(spoken)).await),
        (Err(_), true) => Some(try_recognition(recogniser).await.map(|()| String::new())),
    };
    Heard { sentence: text, spoken, understood }
}

async fn say(synthesis: &dyn SpeechSynthesis, sentence: Sentence) -> Result<Vec<i16>, NoAnswer> {
    let most = most_samples(&sentence.text, sentence.speed);
    let (mut pieces, mut samples) = (synthesis.say(sentence), Vec::new());
    while let Some(piece) = pieces.next().await {
        if let Piece::Audio(audio) = piece? {
            samples.extend(audio);
        }
        if samples.len() > most {
            break;
        }
    }
    if samples.is_empty() { Err(no_audio(synthesis)) } else { Ok(samples) }
}

/// The words of some audio, mono at [`HEARD_RATE`].
async fn recognise(recogniser: &dyn SpeechRecognition, language: Arc<str>, audio: &[i16]) -> Result<String, NoAnswer> {
    let expectation = Expectation { language, names: Vec::new() };
    let (sounds, taken) = mpsc::channel(16);
    let (results, mut returned) = mpsc::channel(16);
    let from = Moment::ZERO + Duration::from_secs(1);
    let at = |samples: usize| from + Duration::from_micros(samples as u64 * 1_000_000 / u64::from(HEARD_RATE));
    let speaking = async move {
        for (index, chunk) in audio.chunks(CHUNK).enumerate() {
            // A recogniser that failed takes no more.
            let _ = sounds.send(Sound::Audio { from: at(index * CHUNK), samples: chunk.into() }).await;
        }
        let ended = at(audio.len());
        let _ = sounds.send(Sound::Ended(Stretch { started: from, ended, voiced: ended.since(from) })).await;
    };
    let listening = async {
        let mut words = Vec::new();
        while let Some(result) = returned.recv().await {
            if let Recognised::Final(segment) = result {
                words.push(segment.text.trim().to_owned());
            }
        }
        words.retain(|words| !words.is_empty());
        words.join(" ")
    };
    let (outcome, (), words) = tokio::join!(recogniser.listen(expectation, taken, results), speaking, listening);
    outcome.map(|()| words)
}

/// Audio of synthesis as a recogniser hears it: two samples for each three.
fn at_heard_rate(spoken: &[i16]) -> Vec<i16> {
    let between = |a: i16, b: i16| ((i32::from(a) + i32::from(b)) / 2) as i16;
    spoken.chunks_exact(3).flat_map(|three| [three[0], between(three[1], three[2])]).collect()
}

/// The audio of a sentence as a WAV file.
pub fn wav(samples: &[i16]) -> Vec<u8> {
    let bytes = u32::try_from(samples.len() * 2).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(44 + samples.len() * 2);
    file.extend(b"RIFF");
    file.extend((36_u32.saturating_add(bytes)).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(SPOKEN_RATE.to_le_bytes());
    file.extend((2 * SPOKEN_RATE).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
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
    Err(no_audio(synthesis))
}

fn no_audio(synthesis: &dyn SpeechSynthesis) -> NoAnswer {
    let endpoint = synthesis.host().unwrap_or_else(|| synthesis.provider().into());
    NoAnswer::Refused { endpoint, detail: "it sent no audio for a word".to_owned() }
}
