//! Recognises the words of a recording, such as a voice note. Where nobody speaks in it, nothing is sent to a service.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::providers::Permit;
use super::services::Work;
use crate::actors::messages::channel::Transcript;
use crate::actors::runtime::context::ActorContext;
use crate::domain::call::SpeechBuffer;
use crate::domain::message::Untranscribed;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::domain::voice::invented::is_invented;
use crate::ports::audio::{HEARD_RATE, Recording, RecordingRefused};
use crate::ports::call_room::Trouble;
use crate::ports::inbound_events::ChannelRef;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};

/// The longest recording that is recognised.
pub const LONGEST: Duration = Duration::from_secs(600);
/// The most inputs and results that wait.
const MOST_WAITING: usize = 64;
/// How long recognition may take, beyond the length of the recording.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTranscript {
    /// Another attempt may succeed, after this time if the platform asked for it. The reason counts if no attempt succeeds.
    Now(Untranscribed, Option<Duration>),
    Ever(Untranscribed),
}

/// Recognition failed.
pub const FAILED: NoTranscript = NoTranscript::Now(Untranscribed::Failed, None);

impl From<RecordingRefused> for NoTranscript {
    fn from(refused: RecordingRefused) -> Self {
        match refused {
            RecordingRefused::TooLong => Self::Ever(Untranscribed::TooLong),
            RecordingRefused::Malformed(_) | RecordingRefused::Codec(_) => Self::Ever(Untranscribed::NotAudio),
        }
    }
}

/// Recognises the words of a file in a channel, said by a person of this name. It counts as speech of the guild.
///
/// # Errors
/// Returns an error if there are no words.
pub async fn transcribe(
    context: &ActorContext,
    channel_ref: &ChannelRef,
    speaker: &Arc<str>,
    file: &[u8],
) -> Result<Transcript, NoTranscript> {
    let recording =
        context.speech.audio.recording(file, LONGEST).inspect_err(|error| tracing::debug!(%error, "a recording is refused"))?;
    let in_force = context.in_force();
    let settings = &in_force.speech;
    let allowances = context.calls.allowances();
    allowances.load(context, &channel_ref.guild).await.map_err(|_| FAILED)?;
    let now = context.clock.now();
    if allowances.is_used_up(settings, &channel_ref.guild, Service::SpeechRecognition, now) {
        return Err(NoTranscript::Ever(Untranscribed::UsedUp));
    }
    if !context.speech.recognition().recognise_words() {
        return Err(NoTranscript::Ever(Untranscribed::NoRecogniser));
    }
    let mut permit = context.speech.recognition().begin_words(now).ok_or(FAILED)?;
    let mut work = Work::recognition(context, channel_ref, permit.provider(), now);
    let language = context.memberships.language(&channel_ref.channel).unwrap_or_else(|| settings.language.clone());
    let mut names = context.memberships.said_names(&channel_ref.channel);
    names.push(speaker.clone());
    let recognised = recognise(recording, Expectation { language, names }, &mut permit, &mut work, context).await;
    if !permit.has_worked() {
        work.take_back();
    }
    match recognised {
        Ok(parts) => joined(&parts, context, permit.provider().service().provider()),
        Err(Broken::Recording(refused)) => Err(refused.into()),
        Err(Broken::Service(error)) => {
            work.fail(Trouble::RecognitionFailed.as_str());
            let provider = permit.provider().service().provider();
            if permit.failed(context.clock.now(), &error) {
                tracing::warn!(provider, error = error.in_our_words(), "speech recognition failed and is tried again");
            }
            Err(FAILED)
        }
    }
}

enum Broken {
    Recording(RecordingRefused),
    Service(NoAnswer),
}

/// A final result: its text, its length, and its confidence.
type Part = (Arc<str>, Duration, Option<u16>);

async fn recognise(
    mut recording: Box<dyn Recording>,
    expectation: Expectation,
    permit: &mut Permit<dyn SpeechRecognition>,
    work: &mut Work,
    context: &ActorContext,
) -> Result<Vec<Part>, Broken> {
    let service = permit.provider().service().clone();
    let patience = recording.length() + PATIENCE;
    let (sounds, taken) = mpsc::channel(MOST_WAITING);
    let (results, returned) = mpsc::channel(MOST_WAITING);
    let exchange = async {
        tokio::join!(
            service.listen(expectation, taken, results),
            send(&mut *recording, sounds, service.has_partials(), work, context.clock.now()),
            collect(returned, permit, context),
        )
    };
    match timeout(patience, exchange).await {
        Err(_) => Err(Broken::Service(NoAnswer::TimedOut { after: patience })),
        Ok((Err(error), ..)) => Err(Broken::Service(error)),
        Ok((_, Err(refused), _)) => Err(Broken::Recording(refused)),
        Ok((Ok(()), Ok(()), parts)) => Ok(parts),
    }
}

/// Sends what is said in a recording, cut at its pauses. The recording ends at `now`.
async fn send(
    recording: &mut dyn Recording,
    sounds: Sender<Sound>,
    has_partials: bool,
    work: &mut Work,
    now: Moment,
) -> Result<(), RecordingRefused> {
    let begun = now - recording.length();
    let mut buffer = SpeechBuffer::default();
    loop {
        let is_over = match recording.decode_next() {
            Some(decoded) => {
                let decoded = decoded?;
                let end = begun + duration(decoded.from + decoded.samples.len() as u64);
                let hops = decoded.hops.iter().map(|hop| (hop.from, hop.score));
                buffer.add((decoded.from, decoded.samples), hops, end, has_partials);
                false
            }
            None => {
                buffer.stop();
                true
            }
        };
        for sound in buffer.next_sounds(false) {
            if let Sound::Audio { samples, .. } = &sound {
                work.add(samples.len());
            }
            if sounds.send(sound).await.is_err() {
                return Ok(());
            }
        }
        if is_over {
            return Ok(());
        }
        // Decoding a pause sends nothing, and would not let other tasks run.
        yield_now().await;
    }
}

async fn collect(
    mut returned: Receiver<Recognised>,
    permit: &mut Permit<dyn SpeechRecognition>,
    context: &ActorContext,
) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(result) = returned.recv().await {
        let Recognised::Final(segment) = result else { continue };
        if segment.is_answer && permit.works(context.clock.now()) {
            let provider = permit.provider().service().provider();
            tracing::info!(provider, "speech is recognised again");
        }
        if segment.is_verbatim {
            parts.push((segment.text, segment.ended.since(segment.started), segment.confidence));
        }
    }
    parts
}

/// The transcript of all parts, without words that the recogniser invented.
fn joined(parts: &[Part], context: &ActorContext, provider: &'static str) -> Result<Transcript, NoTranscript> {
    let noise = &context.in_force().speech.noise;
    let said = || parts.iter().filter(|(text, length, _)| !text.trim().is_empty() && !is_invented(text, *length, noise));
    let text = said().map(|(text, ..)| text.trim()).collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(NoTranscript::Ever(Untranscribed::NoSpeech));
    }
    Ok(Transcript {
        text: text.into(),
        provider: provider.into(),
        confidence: said().filter_map(|(.., confidence)| *confidence).min(),
    })
}

fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples.saturating_mul(1_000_000) / u64::from(HEARD_RATE))
}
