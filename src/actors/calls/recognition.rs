//! Sends the speech of one person to a recogniser, and the results to the channel. Finals are journaled before they have any other effect.
//!
//! Audio since the last final is kept in the state of the call ([`SpeechBuffer`]), so that a new stream receives it again. Segments have ids, so that
//! none counts twice. If more people talk than there are streams, the audio waits. Audio that no service has recognised for half a minute is dropped.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::call::SharedCall;
use super::call_handle::{CallHandle, Journaling};
use super::providers::Permit;
use super::services::Work;
use crate::actors::messages::voice_call::RecognitionMessage;
use crate::actors::runtime::actor_keys::RecognitionKey;
use crate::actors::runtime::context::Registered;
use crate::domain::call::{Faults, SpeechBuffer};
use crate::domain::id::PersonId;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::domain::voice::pump::{FINALIZE_TIMEOUT, Pump};
use crate::ports::call_room::Trouble;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::settings::speech::BUILT_IN;
use crate::telemetry::plain::Plain;

/// The maximum number of queued inputs of a stream.
const MOST_WAITING: usize = 512;
/// The maximum number of results that wait to be journaled.
const MOST_RESULTS: usize = 64;
/// The shortest average interval at which a stream's results are processed. It equals the interval of a person's packets, because all pages of the
/// call show the results.
const RESULTS_EVERY: Duration = Duration::from_millis(20);
/// How far the results of a stream may be ahead of that interval: 64 results at once.
const RESULTS_AHEAD: Duration = Duration::from_millis(64 * 20);
/// The pause before a failed or refused stream is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// The timeout that is reported if a recogniser does not take its inputs.
const BEHIND: Duration = Duration::from_secs(5);
/// How long a stream stays open for a silent person. Providers limit the number of streams, and close idle ones.
const IDLE: Duration = Duration::from_secs(30);
/// The age at which unrecognised audio is dropped.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(30);
/// How much audio is counted at a time. If an utterance is longer than this, reaching the daily limit ends its stream in the middle.
const COUNTED_EVERY: Duration = Duration::from_secs(10);

pub struct Recognition;

#[derive(Clone)]
pub struct Arguments {
    pub user: PersonId,
    pub hearing: CallHandle,
}

pub struct State {
    arguments: Arguments,
    myself: ActorRef<RecognitionMessage>,
    stream: Option<Stream>,
    streams: u64,
    has_failed: bool,
    /// Whether the person has no stream, and was shown that.
    waits: bool,
    /// Whether [`RecognitionMessage::Again`] is scheduled.
    will_retry: bool,
    faults: Faults,
    /// The task that journals the newest final.
    recording: Option<JoinHandle<()>>,
    _registration: Registered,
}

/// An open stream. Dropping it ends the stream.
struct Stream {
    /// `None` once the guild has used up its allowance. The stream then ends as soon as it has returned the rest.
    sounds: Option<mpsc::Sender<Sound>>,
    task: AbortHandle,
    permit: Permit<dyn SpeechRecognition>,
    work: Option<Work>,
    quiet_since: Instant,
    pump: Pump,
    /// Whether [`RecognitionMessage::Pump`] is scheduled.
    is_pump_armed: bool,
    call: Arc<SharedCall>,
    user: PersonId,
}

impl Stream {
    /// Records the work on an utterance. The audio is not counted until the provider has returned a first result.
    fn end_work(&mut self) {
        if let Some(mut work) = self.work.take()
            && !self.permit.has_worked()
        {
            work.take_back();
        }
    }

    fn is_open(&self) -> bool {
        self.call.has_stream(&self.user, &self.task)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end_work();
        self.call.close_stream(&self.user, &self.task);
    }
}

impl Actor for Recognition {
    type Msg = RecognitionMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<RecognitionMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { user, hearing, .. } = &arguments;
        let (call, context) = (&hearing.call, hearing.context());
        let registration = context.register(&RecognitionKey(call.channel().clone(), user.clone()), &myself);
        let mut state = State {
            arguments,
            myself,
            stream: None,
            streams: 0,
            has_failed: false,
            waits: false,
            will_retry: false,
            faults: Faults::default(),
            recording: None,
            _registration: registration,
        };
        // Audio that a predecessor sent is sent again if it has no final yet.
        state.send();
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<RecognitionMessage>,
        message: RecognitionMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RecognitionMessage::Sounds if state.has_failed => {}
            RecognitionMessage::Sounds => state.send(),
            RecognitionMessage::Finalize if state.stream.is_none() => {}
            RecognitionMessage::Finalize => state.offer(Sound::Finalize),
            RecognitionMessage::Pump(stream) if stream == state.streams => state.pump(),
            RecognitionMessage::Pump(_) => {}
            RecognitionMessage::Result(stream, result, place) if stream == state.streams => state.handle_result(result, place),
            RecognitionMessage::Ended(stream, outcome) if stream == state.streams => state.stream_ended(outcome),
            RecognitionMessage::Result(..) | RecognitionMessage::Ended(..) => {}
            RecognitionMessage::Again => {
                (state.has_failed, state.will_retry) = (false, false);
                state.give_up_old_sound();
                state.send();
            }
            RecognitionMessage::Idle(stream) if stream == state.streams => state.close_if_idle(),
            RecognitionMessage::Idle(_) => {}
            RecognitionMessage::Displaced if state.stream.as_ref().is_some_and(Stream::is_open) => {}
            RecognitionMessage::Displaced => state.displaced(),
            RecognitionMessage::Forget => state.close(),
        }
        Ok(())
    }
}

impl State {
    /// Sends the waiting audio to the recogniser. A new stream also receives the audio that its predecessor received since its last final.
    fn send(&mut self) {
        if self.arguments.hearing.is_opted_out(&self.arguments.user) {
            self.buffer(SpeechBuffer::forget);
            return;
        }
        if self.is_silent() {
            self.waits = false;
            return;
        }
        let is_new = self.stream.is_none();
        if is_new && let Err(trouble) = self.open() {
            return self.wait(trouble);
        }
        let sounds = self.buffer(|buffer| buffer.next_sounds(is_new));
        sounds.into_iter().flatten().for_each(|sound| self.offer(sound));
    }

    fn offer(&mut self, sound: Sound) {
        let Some(stream) = &mut self.stream else { return };
        let Some(sounds) = &stream.sounds else { return };
        let audio = match &sound {
            Sound::Audio { from, samples } => Some((*from, samples.len())),
            Sound::Ended(_) | Sound::Cut(_) | Sound::Finalize => None,
        };
        match sounds.try_send(sound) {
            Ok(()) => match audio {
                Some((from, samples)) => self.forwarded(from, samples),
                None => stream.pump.finalized(),
            },
            Err(_) if !stream.is_open() => self.displaced(),
            // The recogniser does not keep up. A new stream receives the audio since the last final.
            Err(TrySendError::Full(_)) => self.stream_ended(Err(NoAnswer::TimedOut { after: BEHIND })),
            Err(TrySendError::Closed(_)) if stream.task.is_finished() => {
                // The results and the end of the stream are already in the mailbox, ahead of this message. This message has an effect only if the
                // stream's task panicked.
                let _ = self.myself.cast(RecognitionMessage::Ended(self.streams, Err(NoAnswer::TimedOut { after: BEHIND })));
            }
            Err(TrySendError::Closed(_)) => {}
        }
    }

    fn forwarded(&mut self, from: Moment, samples: usize) {
        let hearing = &self.arguments.hearing;
        let Some(stream) = &mut self.stream else { return };
        let by = stream.permit.provider();
        let is_long = stream.permit.has_worked() && stream.work.as_ref().is_some_and(|work| work.audio() >= COUNTED_EVERY);
        if is_long {
            // Dropping it counts the usage.
            stream.work = None;
        }
        stream
            .work
            .get_or_insert_with(|| Work::recognition(hearing.context(), hearing.call.channel_ref(), by, from))
            .add(samples);
        stream.pump.forwarded(hearing.context().clock.now());
        if is_long && by.service().provider() != BUILT_IN && self.is_used_up() {
            self.stream.iter_mut().for_each(|stream| stream.sounds = None);
        }
        self.arm_pump();
    }

    fn arm_pump(&mut self) {
        let context = self.arguments.hearing.context();
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.is_pump_armed) else { return };
        if let Some(deadline) = stream.pump.deadline(context.settings.voice.idle_finalize()) {
            stream.is_pump_armed = true;
            let number = self.streams;
            self.myself.send_after(deadline.since(context.clock.now()), move || RecognitionMessage::Pump(number));
        }
    }

    /// Requests the last segment after a time without audio, because a recogniser holds it back (docs/design/voice.md A-13).
    fn pump(&mut self) {
        let context = self.arguments.hearing.context();
        let Some(stream) = &mut self.stream else { return };
        stream.is_pump_armed = false;
        if stream.pump.wake(context.clock.now(), context.settings.voice.idle_finalize()) {
            self.offer(Sound::Finalize);
        }
        self.arm_pump();
    }

    /// Ends the stream. Its later results are ignored.
    fn close(&mut self) {
        self.stream = None;
        self.streams += 1;
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// Returns an error if other people need all streams more, if the guild has used up its allowance, or if no working service has capacity.
    fn open(&mut self) -> Result<(), Trouble> {
        let number = self.streams + 1;
        let Arguments { user, hearing, .. } = &self.arguments;
        let context = hearing.context();
        let is_used_up = self.is_used_up();
        let (recognisers, now) = (context.speech.recognition(), context.clock.now());
        let permit = recognisers.begin(now, !is_used_up).ok_or_else(|| match is_used_up {
            true => Trouble::RecognitionUsedUp,
            false if recognisers.works(now) => Trouble::RecognitionFull,
            false => Trouble::RecognitionFailed,
        })?;
        let expectation = Expectation { language: hearing.language(), names: hearing.names() };
        let (sounds, taken) = mpsc::channel(MOST_WAITING);
        let (results, mut returned) = mpsc::channel(1);
        let (recogniser, myself) = (permit.provider().service().clone(), self.myself.clone());
        let places = Arc::new(Semaphore::new(MOST_RESULTS));
        let listen = async move {
            let listening = recogniser.listen(expectation, taken, results);
            let reporting = async {
                let mut paid_until = Instant::now();
                while let (Ok(place), Some(result)) = (places.clone().acquire_owned().await, returned.recv().await) {
                    paid_until = paid_until.max(Instant::now()) + RESULTS_EVERY;
                    tokio::time::sleep_until(paid_until - RESULTS_AHEAD).await;
                    if myself.cast(RecognitionMessage::Result(number, result, place)).is_err() {
                        return;
                    }
                }
            };
            let (outcome, ()) = tokio::join!(listening, reporting);
            // If the actor has ended, the outcome is not needed.
            let _ = myself.cast(RecognitionMessage::Ended(number, outcome));
        };
        let (call, most) = (&hearing.call, hearing.context().settings.voice.max_streams);
        let opened = call.open_stream(user, most, || tokio::spawn(listen).abort_handle());
        let (task, displaced) = opened.ok_or(Trouble::RecognitionFull)?;
        let key = displaced.map(|displaced| RecognitionKey(call.channel().clone(), displaced));
        if let Some(actor) = key.and_then(|key| hearing.context().directory.find(&key)) {
            // An actor that is being restarted opens another stream by itself.
            let _ = actor.cast(RecognitionMessage::Displaced);
        }
        self.stream = Some(Stream {
            sounds: Some(sounds),
            task,
            permit,
            work: None,
            quiet_since: Instant::now(),
            pump: Pump::default(),
            is_pump_armed: false,
            call: call.clone(),
            user: user.clone(),
        });
        (self.streams, self.waits) = (number, false);
        Ok(())
    }

    /// Handles the loss of the stream to a person who began to talk later. If this person still talks, the audio waits for another stream.
    fn displaced(&mut self) {
        let Arguments { user, hearing, .. } = &self.arguments;
        let is_active = hearing.call.read(|call| call.need_of_stream(user, hearing.call.now())).0;
        self.close();
        if is_active {
            self.wait(Trouble::RecognitionFull);
        }
    }

    /// Keeps the audio until a stream is available.
    fn wait(&mut self, trouble: Trouble) {
        if !std::mem::replace(&mut self.waits, true) {
            let Arguments { user, hearing, .. } = &self.arguments;
            hearing.call.show_trouble(user, trouble);
            let (most, trouble) = (hearing.context().settings.voice.max_streams, trouble.as_str());
            let channel = Plain(hearing.call.channel().as_str());
            tracing::info!(%channel, trouble, most, "words of somebody in a call are not recognised now: no service works, or voice.max_streams, speech.max_concurrent or speech.guild_minutes_per_day limits it");
        }
        self.retry();
    }

    fn retry(&mut self) {
        if !std::mem::replace(&mut self.will_retry, true) {
            self.myself.send_after(PAUSE, || RecognitionMessage::Again);
        }
    }

    fn stream_ended(&mut self, outcome: Result<(), NoAnswer>) {
        let Some(stream) = self.stream.take() else { return };
        self.streams += 1;
        if stream.sounds.is_none() {
            return self.wait(Trouble::RecognitionUsedUp);
        }
        self.report_end(stream, outcome);
        if !std::mem::replace(&mut self.has_failed, true) {
            let Arguments { user, hearing, .. } = &self.arguments;
            hearing.call.show_trouble(user, Trouble::RecognitionFailed);
            self.waits = true;
            self.retry();
        }
    }

    /// Reports the end of a stream to the provider's circuit breaker. When this stops work for the provider, one warning is logged.
    fn report_end(&mut self, mut stream: Stream, outcome: Result<(), NoAnswer>) {
        if let Some(work) = &mut stream.work {
            work.fail(Trouble::RecognitionFailed.as_str());
        }
        // `distrust` changes the count, so the work ends first.
        stream.end_work();
        let provider = stream.permit.provider();
        let error = outcome
            .err()
            .unwrap_or_else(|| NoAnswer::Unreachable { endpoint: provider.endpoint(), detail: "it ended by itself".to_owned() });
        let provider = provider.service().provider();
        if self.faults.add_cut(stream.permit.has_worked()) {
            stream.permit.distrust();
        }
        if stream.permit.failed(self.arguments.hearing.context().clock.now(), &error) {
            tracing::warn!(provider, error = error.in_our_words(), "speech recognition failed and is tried again");
        }
    }

    fn buffer<T>(&self, change: impl FnOnce(&mut SpeechBuffer) -> T) -> Option<T> {
        self.arguments.hearing.call.buffer(&self.arguments.user, change)
    }

    fn is_silent(&self) -> bool {
        self.buffer(|buffer| buffer.is_silent()).unwrap_or(true)
    }

    /// Whether the guild has used up today's allowance for paid services.
    fn is_used_up(&self) -> bool {
        let hearing = &self.arguments.hearing;
        let (context, guild) = (hearing.context(), &hearing.call.channel_ref().guild);
        let now = context.clock.now();
        context.calls.allowances().is_used_up(&context.in_force().speech, guild, Service::SpeechRecognition, now)
    }

    /// Leaves the current provider between utterances, if a preferred provider works again, or if the guild may no longer use the current one.
    fn leave_provider(&mut self) {
        let context = self.arguments.hearing.context();
        let leaves = |stream: &Stream| {
            let provider = stream.permit.provider();
            let prefers_another = context.speech.recognition().prefers_another(provider, context.clock.now());
            prefers_another || self.is_used_up() && provider.service().provider() != BUILT_IN
        };
        if self.is_silent() && self.stream.as_ref().is_some_and(leaves) {
            self.close();
        }
    }

    /// Drops old audio, because a service may refuse the same audio again and again.
    fn give_up_old_sound(&self) {
        let now = self.arguments.hearing.context().clock.now();
        self.buffer(|buffer| buffer.forget_before(now - GIVEN_UP_AFTER));
    }

    fn close_if_idle(&mut self) {
        self.give_up_old_sound();
        if self.is_silent() && self.stream.as_ref().is_some_and(|stream| stream.quiet_since.elapsed() >= IDLE) {
            self.close();
        }
    }

    fn handle_result(&mut self, result: Recognised, place: OwnedSemaphorePermit) {
        let Arguments { user, hearing } = &self.arguments;
        let Some(stream) = self.stream.as_mut().filter(|_| !hearing.is_opted_out(user)) else { return };
        let (context, provider) = (hearing.context(), stream.permit.provider().service().provider());
        let (is_answer, is_last, has_words) = match &result {
            Recognised::Partial { .. } => (true, false, true),
            Recognised::Final(segment) => (segment.is_answer, segment.is_last, !segment.text.trim().is_empty()),
        };
        if is_answer && stream.permit.works(context.clock.now()) {
            tracing::info!(provider, "speech is recognised again");
        }
        let has_failed = self.faults.add_result(is_answer, is_last, has_words);
        match result {
            Recognised::Partial { text, started } => hearing.partial(user, &text, started),
            Recognised::Final(segment) => {
                hearing.call.buffer(user, |buffer| buffer.finalised(segment.ended, segment.is_last));
                // The audio is no longer kept for a repetition, so the words must be journaled even if this actor dies meanwhile.
                let (hearing, user, guards) =
                    (hearing.clone(), user.clone(), (Journaling::new(hearing.call.clone(), user.clone()), place));
                let before = self.recording.take();
                self.recording = Some(tokio::spawn(async move {
                    let _guards = guards;
                    if let Some(before) = before {
                        // A panic has been logged already.
                        let _ = before.await;
                    }
                    if let Err(error) = hearing.recognised(&user, provider, &segment).await {
                        tracing::error!(%error, "what a person said could not be put on record");
                    }
                }));
                if is_last {
                    stream.end_work();
                    stream.quiet_since = Instant::now();
                    let number = self.streams;
                    self.myself.send_after(IDLE, move || RecognitionMessage::Idle(number));
                    if has_failed {
                        return self.stream_ended(Err(NoAnswer::TimedOut { after: FINALIZE_TIMEOUT }));
                    }
                    self.leave_provider();
                }
            }
        }
    }
}
