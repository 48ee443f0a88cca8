//! Makes the audio of replies, sentence by sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use ractor::ActorRef;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::call_handle::CallHandle;
use super::providers::VoiceProvider;
use super::services::Work;
use crate::actors::messages::voice_call::CallMessage;
use crate::domain::call::Input;
use crate::domain::call::playback::READ_AHEAD;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::voice::pronounced::Pronounced;
use crate::ports::call_room::Trouble;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence};
use crate::telemetry::trace::SpanRef;

pub struct Synthesis {
    hearing: CallHandle,
    call: ActorRef<CallMessage>,
    /// The sentences whose audio is being made, by reply number and sentence index.
    making: BTreeMap<(u64, usize), Making>,
    span: Option<(Ticket, SpanRef)>,
}

struct Making {
    task: AbortHandle,
    is_overdue: oneshot::Sender<()>,
    /// The number of samples of the sentence that were played.
    played: watch::Sender<usize>,
}

/// Signals to the task that makes the audio of a sentence.
struct Signals {
    overdue: oneshot::Receiver<()>,
    played: watch::Receiver<usize>,
}

impl Drop for Synthesis {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Synthesis {
    pub const fn new(hearing: CallHandle, call: ActorRef<CallMessage>) -> Self {
        Self { hearing, call, making: BTreeMap::new(), span: None }
    }

    /// Sets the span under which the work for this reply is recorded.
    pub fn trace(&mut self, ticket: Ticket, span: SpanRef) {
        self.span = Some((ticket, span));
    }

    pub fn begin(&mut self, reply: u64, ticket: Ticket, companion: CompanionId, sentence: usize, text: &Arc<str>) {
        let context = self.hearing.context();
        let settings = context.memberships.companion(self.hearing.call.channel(), &companion);
        let settings = settings.map(|companion| companion.voice).unwrap_or_default();
        let provider = context.speech.synthesis().of(settings.provider.as_deref());
        let mut pronounced = Pronounced::new(text, &settings.pronounce);
        let request = Sentence {
            companion,
            text: pronounced.text.as_str().into(),
            language: self.hearing.language(),
            voice: settings.voice.or_else(|| provider.voice().cloned()),
            speed: settings.speed.unwrap_or(1.0),
        };
        let call = self.call.clone();
        // The result is false if the call has ended, and needs no audio.
        let hand_on = move |piece| {
            let input = match piece {
                Some(Ok(Piece::Words(words))) => {
                    let piece = Some(Piece::Words(pronounced.shown(words)));
                    Input::Audio { reply, sentence, piece }
                }
                Some(Ok(piece)) => Input::Audio { reply, sentence, piece: Some(piece) },
                Some(Err(_)) => Input::AudioFailed { reply, sentence },
                None => Input::Audio { reply, sentence, piece: None },
            };
            call.cast(CallMessage::Handle(input)).is_ok()
        };
        let ((is_overdue, overdue), (played, watched)) = (oneshot::channel(), watch::channel(0));
        let signals = Signals { overdue, played: watched };
        let span = self.span.as_ref().filter(|(of, _)| *of == ticket).map(|(_, span)| *span);
        let task = tokio::spawn(synthesise(provider, request, self.hearing.clone(), span, signals, hand_on));
        self.making.insert((reply, sentence), Making { task: task.abort_handle(), is_overdue, played });
    }

    /// Removes a sentence whose audio is complete.
    pub fn remove(&mut self, reply: u64, sentence: usize) {
        self.making.remove(&(reply, sentence));
    }

    /// Stops waiting for the audio of a sentence.
    pub fn give_up(&mut self, reply: u64, sentence: usize) {
        if let Some(making) = self.making.remove(&(reply, sentence)) {
            // A task that has just ended needs no signal.
            let _ = making.is_overdue.send(());
        }
    }

    pub fn clear(&mut self) {
        std::mem::take(&mut self.making).into_values().for_each(|making| making.task.abort());
    }

    /// Reports playback progress to the tasks, so that they may read more audio.
    pub fn report_played(&self) {
        for ((reply, sentence), making) in &self.making {
            let played = self.hearing.call.read(|call| call.played_of(*reply, *sentence));
            making.played.send_if_modified(|before| std::mem::replace(before, played) != played);
        }
    }
}

/// Synthesises a sentence and forwards its pieces. After the last piece it forwards `None`.
async fn synthesise(
    provider: VoiceProvider,
    sentence: Sentence,
    hearing: CallHandle,
    under: Option<SpanRef>,
    Signals { mut overdue, mut played }: Signals,
    mut hand_on: impl FnMut(Option<Result<Piece, NoAnswer>>) -> bool,
) {
    let (clock, patience) = (hearing.context().clock.clone(), hearing.context().settings.voice.first_audio_timeout());
    let begun = tokio::select! {
        begun = provider.begin_when_free(|| clock.now()) => begun,
        // The time was spent waiting for capacity, so it does not count against the service.
        Ok(()) = &mut overdue => Err(NoAnswer::Cancelled),
    };
    let mut permit = match begun {
        Ok(permit) => permit,
        Err(error) => {
            hand_on(Some(Err(error)));
            return;
        }
    };
    let mut work = Work::synthesis(
        hearing.context(),
        hearing.call.channel_ref(),
        &provider,
        sentence.companion.clone(),
        &sentence.text,
        under,
    );
    let (name, asked) = (provider.service().provider(), Instant::now());
    let (mut pieces, mut made) = (provider.service().say(sentence), 0);
    loop {
        let next = async {
            // If the sender is dropped, the call has ended and this task is aborted.
            let _ = played.wait_for(|played| made < played + READ_AHEAD).await;
            pieces.next().await
        };
        let piece = tokio::select! {
            biased;
            piece = next => piece,
            // Most of the time may have been spent waiting for capacity.
            Ok(()) = &mut overdue => Some(Err(match asked.elapsed() {
                after if after >= patience || permit.has_worked() => NoAnswer::TimedOut { after },
                _ => NoAnswer::Cancelled,
            })),
        };
        let Some(piece) = piece else { break };
        let now = clock.now();
        match &piece {
            Ok(Piece::Audio(samples)) => {
                made += samples.len();
                work.add(samples.len());
                if permit.works(now) {
                    tracing::info!(provider = name, "voices can be made again");
                }
            }
            Ok(Piece::Words(_)) => {}
            Err(error) => {
                work.fail(Trouble::SynthesisFailed.as_str());
                if permit.sentence_failed(now, error) {
                    tracing::warn!(
                        provider = name,
                        error = error.in_our_words(),
                        "a sentence could not be spoken; if nothing after it can be, the rest is posted as text"
                    );
                }
            }
        }
        let has_failed = piece.is_err();
        if !hand_on(Some(piece)) || has_failed {
            return;
        }
    }
    drop(work);
    hand_on(None);
}
