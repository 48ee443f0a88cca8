//! A voice call: knows who takes part, starts an actor for each voice, and plays what companions say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::call::{Call, Gone, LINGERS_FOR, Parted};
use super::hearing::Hearing;
use super::joined::Joined;
use super::playback::{Patience, Playback, Progress, READ_AHEAD};
use super::presence;
use super::providers::VoiceProvider;
use super::recognition::{self, Recognition};
use super::rehearsed;
use super::services::Work;
use super::voice_user::{self, VoiceUser};
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::voice_call::{CallChild, CallMessage, RecognitionMessage, VoiceUserMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, RecognitionKey, VoiceCallKey, VoiceUserKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::supervision::backoff::Backoff;
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::conversation::{Aloud, Notice};
use crate::domain::id::{CompanionId, PersonId, Ticket, TurnId};
use crate::domain::service::Service;
use crate::domain::voice::interruption::{self, Outcome};
use crate::domain::voice::pronounced::Pronounced;
use crate::domain::voice::said::Said;
use crate::domain::voice::utterance;
use crate::ports::audio::{CodecFailed, Encoder, SPOKEN_FRAME};
use crate::ports::call_room::{End, Packet, PersonAction, Trouble, View};
use crate::ports::language_model::NoAnswer;
use crate::ports::platform_call::Ended;
use crate::ports::speech_synthesis::{Piece, Sentence};
use crate::settings::speech::BUILT_IN;
use crate::telemetry::instruments::NONE;
use crate::telemetry::plain::Plain;
use crate::telemetry::trace::{SpanRef, TurnTrace};

/// How a call restarts its actors.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(50),
    longest_delay: Duration::from_secs(5),
    child_limit: 1_200,
    total_limit: 4_800,
    window: Duration::from_secs(60),
};
/// How long somebody whose connection was lost keeps the place in the call.
pub const KEPT_FOR: Duration = Duration::from_secs(10);
/// The duration of a packet, and how often late audio is looked for while a reply plays.
const PACKETS_EVERY: Duration = Duration::from_millis(20);
/// After a connection has run for this long, the next pause is the first one again.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// How often late audio is looked for while nothing plays.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub struct VoiceCall;

#[derive(Clone)]
pub struct Arguments {
    pub call: Arc<Call>,
    pub context: Arc<ActorContext>,
}

pub struct State {
    call: Arc<Call>,
    context: Arc<ActorContext>,
    hearing: Hearing,
    myself: ActorRef<CallMessage>,
    children: Children<CallChild, CallMessage>,
    /// The channel knows that this call has started. What it had done for a reply before does not count.
    is_known: bool,
    reply: Option<Reply>,
    encoder: Option<Box<dyn Encoder>>,
    tick: Option<AbortHandle>,
    /// Typed texts that are being spoken, by the person who typed them.
    saying: BTreeMap<PersonId, Saying>,
    backoff: Backoff,
    /// Until when the platform wants no other connection.
    unwanted_until: Option<Instant>,
    _registration: Registered,
}

/// Words that are being said. Dropping it ends them.
struct Saying(AbortHandle);

impl Drop for Saying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A reply that is prepared or played.
struct Reply {
    playback: Playback,
    span: Option<SpanRef>,
    /// Tells the audio of this reply from that of another.
    identity: Arc<()>,
    /// The tasks that make audio.
    making: BTreeMap<usize, Making>,
    /// Whether the guild may have no more spoken today. It is decided before a reply, so that none ends in the middle.
    is_used_up: bool,
    is_ducked: bool,
    /// How far the page at each connection has played it.
    positions: BTreeMap<u64, Duration>,
}

/// The audio of a sentence is being made.
struct Making {
    task: AbortHandle,
    /// It is not waited for any longer.
    is_overdue: oneshot::Sender<()>,
    /// How many samples of it were played.
    played: watch::Sender<usize>,
}

/// Signals to the task that makes the audio of a sentence.
struct Signals {
    overdue: oneshot::Receiver<()>,
    played: watch::Receiver<usize>,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.making.values().for_each(|making| making.task.abort());
    }
}

impl Actor for VoiceCall {
    type Msg = CallMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<CallMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { call, context } = arguments;
        let registration = context.register(&VoiceCallKey(call.channel().clone()), &myself);
        if let Err(error) = context.calls.allowances().load(&context, &call.channel_ref().guild).await {
            tracing::warn!(%error, "what a guild has used of speech today cannot be read, and does not count");
        }
        let mut state = State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            hearing: Hearing::new(call.clone(), Inbound::new((*context).clone())),
            call,
            context,
            myself,
            is_known: false,
            reply: None,
            encoder: None,
            tick: None,
            saying: BTreeMap::new(),
            backoff: Backoff::default(),
            unwanted_until: None,
            _registration: registration,
        };
        // What a predecessor played is lost.
        state.call.set_reply(None, state.context.clock.now());
        state.ask_for_reply();
        for user in state.call.known() {
            state.entered(&user);
            if state.call.gone(&user).is_some() {
                state.parted(&user, true);
            }
        }
        tokio::spawn(presence::settle_all(state.hearing.clone()));
        state.limit();
        state.disconnected();
        state.connect();
        if state.call.is_empty() {
            state.myself.stop(None);
        }
        Ok(state)
    }

    async fn handle(&self, _: ActorRef<CallMessage>, message: CallMessage, state: &mut State) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::VoiceCall(state.call.channel().clone()));
        match message {
            CallMessage::Entered(user) => state.entered(&user),
            CallMessage::Parted(user, had_microphone) => state.parted(&user, had_microphone),
            CallMessage::Away(user) => state.away(&user),
            CallMessage::Acted(line, told) => state.told(line, told),
            CallMessage::Restarted => {
                state.is_known = true;
                state.end_reply(&Outcome::Cancelled);
                state.call.known().iter().for_each(|user| state.report_opt_out(user));
                state.report_silence();
            }
            CallMessage::OptOutChanged(user) => state.opt_out_changed(&user),
            CallMessage::Finalize(user) => state.finalize(&user),
            CallMessage::Noise(user) => state.call.show(&View::Noise(user)),
            CallMessage::Reply(..) if !state.is_known => {}
            CallMessage::Reply(ticket, turn, aloud) => state.carry_out_for_reply(ticket, turn, aloud),
            CallMessage::Piece(identity, sentence, piece) => state.add_audio(&identity, sentence, piece),
            CallMessage::Tick => state.tick(),
            CallMessage::Connect => state.connect(),
            CallMessage::TryAgain if state.unwanted_until.is_some_and(|until| Instant::now() < until) => {}
            CallMessage::TryAgain => state.connect(),
            CallMessage::Disconnected => state.disconnected(),
            CallMessage::Limit => state.limit(),
            CallMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<CallMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.handle_report(report);
        Ok(())
    }
}

impl State {
    fn entered(&mut self, user: &PersonId) {
        self.start_actors(user);
        let is_new = self.call.greet(user, &self.going_on());
        if let Some(person) = self.call.person(user).filter(|_| is_new) {
            self.call.show_others(user, &View::Joined(person));
        }
        // Who was lost is back.
        self.hearing.notice(Notice::Call(utterance::Input::Joined { user: user.clone() }));
        self.report_opt_out(user);
        if self.context.settings.voice.greeting {
            tokio::spawn(presence::welcome(self.hearing.clone(), user.clone()));
        }
    }

    fn start_actors(&mut self, user: &PersonId) {
        let Some(voice) = self.call.voice(user) else { return };
        let arguments = voice_user::Arguments { user: user.clone(), voice: voice.clone(), hearing: self.hearing.clone() };
        let spec = ChildSpec::of(RestartType::Transient, move || (VoiceUser, arguments.clone()));
        self.children.start(CallChild::VoiceUser(user.clone()), spec);
        let arguments = recognition::Arguments { user: user.clone(), voice, hearing: self.hearing.clone() };
        let spec = ChildSpec::of(RestartType::Transient, move || (Recognition, arguments.clone()));
        self.children.start(CallChild::Recognition(user.clone()), spec);
    }

    /// Somebody wants to be ignored, or to be listened to again.
    fn opt_out_changed(&mut self, user: &PersonId) {
        if self.hearing.is_opted_out(user) {
            self.saying.remove(user);
            self.tell_voice(user, VoiceUserMessage::Stop);
            self.tell_recognition(user, RecognitionMessage::Forget);
        }
        self.report_opt_out(user);
    }

    /// Asks the channel for the reply in force. A channel that does not run yet tells it by itself. It is asked however much waits there.
    fn ask_for_reply(&self) {
        let key = ChannelActorKey(self.call.channel().clone());
        self.context.directory.hand_over(&key, ChannelMessage::Voice(Notice::PlayerRestarted));
    }

    /// Tells the channel whether the companions are heard. Only the call keeps that.
    fn report_silence(&self) {
        self.hearing.notice(Notice::Silenced(self.call.is_silenced()));
    }

    /// Tells the channel whether the person wants to be ignored. Only the call keeps that.
    fn report_opt_out(&self, user: &PersonId) {
        let user = user.clone();
        let is_ignored = self.hearing.is_opted_out(&user);
        self.hearing.notice(Notice::Call(if is_ignored {
            utterance::Input::OptedOut { user }
        } else {
            utterance::Input::OptedIn { user }
        }));
    }

    /// What somebody has to know who enters now.
    fn going_on(&self) -> Vec<View> {
        let Some(Reply { playback, is_ducked, .. }) = &self.reply else { return Vec::new() };
        let (companion, reply) = (playback.companion.clone(), number(playback.ticket));
        if !playback.has_begun() {
            return vec![View::Thinking(companion, true)];
        }
        let mut views = vec![View::Speaking { companion, reply, from: playback.position() }];
        views.extend(is_ducked.then_some(View::Duck(reply, true)));
        views.extend((!playback.is_playing()).then_some(View::Flush(reply)));
        views
    }

    /// A connection of a person has ended: ends their speech if it carried the microphone, and shows the others what is left.
    fn parted(&mut self, user: &PersonId, had_microphone: bool) {
        if had_microphone {
            self.end_speech(user);
            self.hearing.notice(Notice::Call(utterance::Input::Muted { user: user.clone() }));
        }
        let Some((_, gone)) = self.call.gone(user) else {
            return self.call.person(user).into_iter().for_each(|person| self.call.show(&View::Changed(person)));
        };
        let user = user.clone();
        match gone {
            Gone::Lost => {
                self.hearing.notice(Notice::Call(utterance::Input::SocketLost { user: user.clone() }));
                self.call.person(&user).into_iter().for_each(|person| self.call.show(&View::Changed(person)));
                self.myself.send_after(KEPT_FOR, move || CallMessage::Away(user));
            }
            Gone::Left => {
                self.call.show(&View::Left(user.clone()));
                tokio::spawn(presence::settle(self.hearing.clone(), user.clone()));
                self.myself.send_after(LINGERS_FOR, move || CallMessage::Away(user));
            }
        }
    }

    /// Runs the connection that carries the whole call, if there is one and it does not run.
    fn connect(&mut self) {
        let Some(link) = self.call.link() else { return };
        let (directory, channel) = (self.context.directory.clone(), self.call.channel().clone());
        link.run(Arc::new(Joined::new(self.hearing.clone())), move || {
            if let Some(actor) = directory.find(&VoiceCallKey(channel)) {
                // One that is being restarted looks by itself.
                let _ = actor.cast(CallMessage::Disconnected);
            }
        });
    }

    /// The connection may have ended: it is made again, unless the call is over.
    fn disconnected(&mut self) {
        let Some(link) = self.call.link() else { return };
        let Some(ended) = link.take_ended() else { return };
        let (after, has_worked, detail) = match ended {
            Some(Ended::Over) if link.finish() => return self.stop_if_empty(),
            Some(Ended::Over) => return self.connect(),
            Some(Ended::Lost { after, has_worked, detail }) => (after, has_worked, detail),
            None => (None, false, "it panicked".to_owned()),
        };
        if has_worked || link.lasted() >= STABLE_AFTER {
            self.backoff = Backoff::default();
        }
        let pause = match after {
            None if has_worked => Duration::ZERO,
            after => self.backoff.pause(after, self.context.rng.fraction()),
        };
        self.unwanted_until = after.map(|_| Instant::now() + pause);
        let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(channel = %Plain(self.call.channel().as_str()), after_ms, detail, "the connection of a call ended and is made again");
        self.myself.send_after(pause, || CallMessage::Connect);
    }

    fn stop_if_empty(&mut self) {
        if self.call.is_empty() {
            self.end_reply(&Outcome::Cancelled);
            self.myself.stop(None);
        }
    }

    /// Sends everybody out who takes part for too long, and looks again later.
    fn limit(&mut self) {
        let Some(limit) = self.context.settings.voice.max_call() else { return };
        if self.call.lasted() >= limit {
            self.call.show(&View::Trouble(Trouble::CallTooLong));
            for line in self.call.connections() {
                let listener = self.call.listener(line);
                if let Some(Parted { user, had_microphone }) = self.call.part(line, Gone::Left) {
                    self.parted(&user, had_microphone);
                }
                listener.into_iter().for_each(|listener| listener.end(End::Ended));
            }
            self.call.speaker().inspect(|speaker| speaker.end(End::Ended));
            self.call.limit_again();
        }
        self.myself.send_after(limit.saturating_sub(self.call.lasted()), || CallMessage::Limit);
    }

    /// The person has been gone for a while, or is back.
    fn away(&mut self, user: &PersonId) {
        match self.call.gone(user) {
            Some((since, Gone::Lost)) if since >= KEPT_FOR => {
                // The channel puts on record that the person has left.
                self.call.give_up(user);
                tokio::spawn(presence::forget(self.hearing.clone(), user.clone()));
                self.call.show(&View::Left(user.clone()));
            }
            Some((since, Gone::Left)) if since >= LINGERS_FOR => {}
            _ => return,
        }
        if self.call.voice(user).is_some_and(|voice| voice.is_recording()) {
            // The store does not take the last words yet.
            let user = user.clone();
            self.myself.send_after(LINGERS_FOR, move || CallMessage::Away(user));
            return;
        }
        for child in [CallChild::VoiceUser(user.clone()), CallChild::Recognition(user.clone())] {
            if let Some(actor) = self.children.dismiss(&child) {
                actor.stop(None);
            }
        }
        self.saying.remove(user);
        self.call.remove(user);
        self.stop_if_empty();
    }

    /// The speech ends here, and its words are wanted.
    fn end_speech(&self, user: &PersonId) {
        self.tell_voice(user, VoiceUserMessage::Stop);
        self.finalize(user);
    }

    fn told(&mut self, line: u64, told: PersonAction) {
        if let PersonAction::Played { reply, position } = told {
            return self.played(line, reply, position);
        }
        if let PersonAction::Silenced(_) = told {
            return self.report_silence();
        }
        let Some((user, _)) = self.call.at(line) else { return };
        match told {
            PersonAction::Muted(is_muted) => {
                if is_muted {
                    self.end_speech(&user);
                    self.hearing.notice(Notice::Call(utterance::Input::Muted { user }));
                }
            }
            PersonAction::Ignored(_) => self.opt_out_changed(&user),
            PersonAction::Stop { reply } => {
                if self.reply.as_ref().is_some_and(|of| number(of.playback.ticket) == reply) {
                    self.report_of_reply(vec![interruption::Input::StopPressed]);
                }
            }
            PersonAction::Say(text) => self.say_typed_text(user, &text),
            // `Leave` ends the connection, which reports that itself. Positions and silence were handled above.
            PersonAction::Leave | PersonAction::Played { .. } | PersonAction::Silenced(_) => {}
        }
    }

    /// A reply was played up to a position at a connection. Of several that of a person who talks counts, else the one that is furthest behind.
    fn played(&mut self, line: u64, number_of_reply: u32, position: Duration) {
        let Some(reply) = self.reply.as_mut().filter(|of| number(of.playback.ticket) == number_of_reply) else { return };
        reply.positions.insert(line, position);
        let talks =
            |line: &u64| self.call.at(*line).and_then(|(user, _)| self.call.person(&user)).is_some_and(|person| person.talks);
        reply.positions.retain(|line, _| self.call.plays(*line));
        let of_talker = reply.positions.iter().filter(|(line, _)| talks(line)).map(|(_, position)| *position).min();
        let Some(position) = of_talker.or_else(|| reply.positions.values().min().copied()) else { return };
        let (position, words) = reply.playback.heard_up_to(position);
        self.call.note_played(self.context.clock.now(), &words);
        self.report_of_reply(vec![interruption::Input::Played { position }]);
    }

    fn say_typed_text(&mut self, user: PersonId, text: &str) {
        if self.hearing.is_opted_out(&user) {
            return;
        }
        self.saying.retain(|_, saying| !saying.0.is_finished());
        match Said::new(text) {
            Ok(said) if !self.saying.contains_key(&user) => {
                let saying = Saying(rehearsed::say_typed_text(self.hearing.clone(), user.clone(), said));
                self.saying.insert(user, saying);
            }
            Ok(_) => self.call.show_to(&user, &View::Trouble(Trouble::SaysAlready)),
            Err(_) => self.call.show_to(&user, &View::Trouble(Trouble::SaysTooMuch)),
        }
    }

    fn tell_recognition(&self, user: &PersonId, message: RecognitionMessage) {
        if let Some(actor) = self.context.directory.find(&RecognitionKey(self.call.channel().clone(), user.clone())) {
            // One that is being restarted returns what it has anyway.
            let _ = actor.cast(message);
        }
    }

    fn tell_voice(&self, user: &PersonId, message: VoiceUserMessage) {
        if let Some(actor) = self.context.directory.find(&VoiceUserKey(self.call.channel().clone(), user.clone())) {
            // One that is being restarted looks by itself.
            let _ = actor.cast(message);
        }
    }

    /// Does something for a reply.
    fn carry_out_for_reply(&mut self, ticket: Ticket, turn: Option<TurnId>, aloud: Aloud) {
        if let Aloud::Prepare { companion } = aloud {
            return self.prepare(companion, ticket);
        }
        if let (Aloud::Say { .. }, Some(before)) = (&aloud, &self.reply)
            && before.playback.ticket != ticket
        {
            // It is made again with what people have said since.
            let companion = before.playback.companion.clone();
            self.prepare(companion, ticket);
        }
        let Some(reply) = self.reply.as_mut().filter(|reply| reply.playback.ticket == ticket) else {
            if let Aloud::Play(interruption::Effect::Ended(_)) = aloud {
                // A predecessor played it, and pages still show it.
                self.call.show(&View::Cut { reply: number(ticket), heard: "".into() });
            }
            return;
        };
        reply.span = turn.map(|turn| TurnTrace::of_turn(turn).of(ticket)).or(reply.span);
        let (playback, now) = (&mut reply.playback, Instant::now());
        match aloud {
            Aloud::Prepare { .. } => {}
            Aloud::Say { text, .. } => playback.add_sentence(text),
            Aloud::SaidAll => playback.end_text(),
            Aloud::Start { sentence } => playback.allow(sentence),
            Aloud::Play(effect) => match effect {
                interruption::Effect::Speak => {
                    playback.play(now);
                    let (companion, reply) = (playback.companion.clone(), number(ticket));
                    self.call.show(&View::Speaking { companion, reply, from: Duration::ZERO });
                    self.tick_after(Duration::ZERO);
                }
                interruption::Effect::Duck | interruption::Effect::Unduck => {
                    reply.is_ducked = effect == interruption::Effect::Duck;
                    if let Some(onset) = self.call.onset().filter(|_| reply.is_ducked) {
                        self.context.recorder.instruments().voice_duck_delay.record(onset.elapsed().as_secs_f64(), NONE);
                    }
                    self.call.show(&View::Duck(number(ticket), reply.is_ducked));
                }
                interruption::Effect::Pause => {
                    playback.pause();
                    self.call.show(&View::Flush(number(ticket)));
                }
                interruption::Effect::Resume { from } => {
                    let from = playback.resume(from, now);
                    reply.is_ducked = false;
                    self.call.show(&View::Resume(number(ticket), from));
                    self.tick_after(Duration::ZERO);
                }
                interruption::Effect::SentenceDropped { sentence } => {
                    playback.drop_rest(sentence);
                    if let Some(making) = reply.making.remove(&sentence) {
                        // One that has just ended is not told.
                        let _ = making.is_overdue.send(());
                    }
                }
                interruption::Effect::Ended(outcome) => return self.end_reply(&outcome),
                // The conversation follows these itself.
                interruption::Effect::Finalize { .. } | interruption::Effect::Extend | interruption::Effect::Interrupted(_) => {}
            },
        }
        self.work();
    }

    fn prepare(&mut self, companion: CompanionId, ticket: Ticket) {
        self.end_reply(&Outcome::Cancelled);
        let voice = &self.context.settings.voice;
        let patience = Patience { first_audio: voice.first_audio_timeout(), more: voice.stall_timeout() };
        let playback = Playback::new(companion.clone(), ticket, patience);
        let is_used_up = self.is_used_up(&companion);
        if is_used_up {
            self.call.show(&View::Trouble(Trouble::SynthesisUsedUp));
        }
        self.reply = Some(Reply {
            playback,
            span: None,
            identity: Arc::default(),
            making: BTreeMap::new(),
            is_used_up,
            is_ducked: false,
            positions: BTreeMap::new(),
        });
        self.call.set_reply(Some(ticket), self.context.clock.now());
        self.call.show(&View::Thinking(companion, true));
        self.tick_after(LOOK_EVERY);
    }

    /// Whether the guild may have no more spoken today by the service of a companion.
    fn is_used_up(&self, companion: &CompanionId) -> bool {
        let context = &self.context;
        let settings = context.memberships.companion(self.call.channel(), companion);
        let provider = context.speech.synthesis.of(settings.and_then(|companion| companion.voice.provider).as_deref());
        let (speech, guild, now) = (&context.settings.speech, &self.call.channel_ref().guild, context.clock.now());
        provider.service().provider() != BUILT_IN
            && context.calls.allowances().is_used_up(speech, guild, Service::SpeechSynthesis, now)
    }

    fn end_reply(&mut self, outcome: &Outcome) {
        let Some(reply) = self.reply.take() else { return };
        let (playback, number) = (&reply.playback, number(reply.playback.ticket));
        self.call.set_reply(None, self.context.clock.now());
        self.call.show(&match (outcome, playback.has_begun()) {
            (Outcome::Done, true) => View::Done(number),
            (_, true) => View::Cut { reply: number, heard: playback.heard().into() },
            (_, false) => View::Thinking(playback.companion.clone(), false),
        });
    }

    /// Takes audio of the reply.
    fn add_audio(&mut self, identity: &Arc<()>, sentence: usize, piece: Option<Result<Piece, NoAnswer>>) {
        let Some(reply) = self.reply.as_mut().filter(|reply| Arc::ptr_eq(&reply.identity, identity)) else { return };
        match piece {
            None => {
                reply.making.remove(&sentence);
                reply.playback.add_piece(sentence, None, Instant::now());
            }
            Some(Ok(piece)) => {
                if matches!(piece, Piece::Audio(_)) {
                    self.call.note_voices(false);
                }
                reply.playback.add_piece(sentence, Some(piece), Instant::now());
            }
            Some(Err(_)) => {
                reply.playback.fail_sentence(sentence);
                if !reply.is_used_up {
                    self.call.note_voices(true);
                    self.call.show(&View::Trouble(Trouble::SynthesisFailed));
                }
            }
        }
        self.work();
    }

    fn tick(&mut self) {
        self.work();
        let Some(reply) = &self.reply else { return };
        // Packets are sent by the clock, so that timers that are late do not add up.
        let due = reply.playback.due().map(|due| due.saturating_duration_since(Instant::now()));
        self.tick_after(match due {
            Some(Duration::ZERO) => PACKETS_EVERY,
            Some(wait) => wait,
            None => LOOK_EVERY,
        });
    }

    fn tick_after(&mut self, delay: Duration) {
        let tick = self.myself.send_after(delay, || CallMessage::Tick).abort_handle();
        if let Some(before) = self.tick.replace(tick) {
            before.abort();
        }
    }

    /// Requests the audio that is needed soon, reports the position to the channel, and sends the packets that are due.
    fn work(&mut self) {
        let Some(reply) = self.reply.as_mut() else { return };
        let now = Instant::now();
        let language = self.hearing.language();
        let settings = self.context.memberships.companion(self.call.channel(), &reply.playback.companion);
        let settings = settings.map(|companion| companion.voice.clone()).unwrap_or_default();
        let provider = self.context.speech.synthesis.of(settings.provider.as_deref()).clone();
        for (sentence, text) in reply.playback.next_sentences(now) {
            let mut pronounced = Pronounced::new(&text, &settings.pronounce);
            let request = Sentence {
                companion: reply.playback.companion.clone(),
                text: pronounced.text.as_str().into(),
                language: language.clone(),
                voice: settings.voice.clone().or_else(|| provider.voice().cloned()),
                speed: settings.speed.unwrap_or(1.0),
            };
            let (identity, myself) = (reply.identity.clone(), self.myself.clone());
            // A call that has ended needs no audio.
            let mut hand_on = move |piece| {
                let piece = match piece {
                    Some(Ok(Piece::Words(words))) => Some(Ok(Piece::Words(pronounced.shown(words)))),
                    piece => piece,
                };
                myself.cast(CallMessage::Piece(identity.clone(), sentence, piece)).is_ok()
            };
            if request.text.chars().all(|c| !c.is_alphanumeric()) {
                // Such as a stage direction at the end.
                hand_on(None);
                continue;
            }
            if reply.is_used_up {
                // It is posted as text.
                hand_on(Some(Err(NoAnswer::Cancelled)));
                continue;
            }
            let ((is_overdue, overdue), (played, watched)) = (oneshot::channel(), watch::channel(0));
            let signals = Signals { overdue, played: watched };
            let task = tokio::spawn(synthesise(provider.clone(), request, self.hearing.clone(), reply.span, signals, hand_on));
            reply.making.insert(sentence, Making { task: task.abort_handle(), is_overdue, played });
        }
        let ticket = reply.playback.ticket;
        let told = reply.playback.progress(now).into_iter().map(|progress| match progress {
            Progress::Sentence(text, words) => interruption::Input::Sentence { text, words },
            Progress::WordTimes(sentence, words) => interruption::Input::WordTimes { sentence, words },
            Progress::FirstAudio => interruption::Input::FirstAudio,
            Progress::Audio(sentence, length) => interruption::Input::Audio { sentence, length },
            Progress::Whole(sentence) => interruption::Input::Whole { sentence },
            Progress::Stall => interruption::Input::Stall,
            Progress::Finished => interruption::Input::Finished,
        });
        let told = told.collect();
        let packets = reply.playback.packets(now);
        for (sentence, making) in &reply.making {
            let played = reply.playback.played_of(*sentence);
            making.played.send_if_modified(|before| std::mem::replace(before, played) != played);
        }
        self.report_of_reply(told);
        let instruments = self.context.recorder.instruments();
        instruments.voice_spoken.add(PACKETS_EVERY.as_secs_f64() * packets.len() as f64, NONE);
        let is_first = packets.first().is_some_and(|next| next.number == 0);
        if let Some(offset) = is_first.then(|| self.call.take_offset()).flatten() {
            instruments.voice_answer_time.record(offset.elapsed().as_secs_f64(), NONE);
        }
        for next in packets {
            if let Some((from, text)) = next.begins {
                self.call.show(&View::Sentence { reply: number(ticket), from, text });
            }
            match self.encode(&next.frame) {
                Ok(bytes) => {
                    let (reply, samples) = (number(ticket), next.frame);
                    self.call.play(&Packet { reply, number: next.number, samples, bytes: bytes.into() });
                }
                Err(error) => tracing::error!(%error, "a packet could not be encoded"),
            }
        }
    }

    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed> {
        if self.encoder.is_none() {
            self.encoder = Some(self.context.speech.audio.encoder()?);
        }
        self.encoder.as_mut().map_or(Ok(Vec::new()), |encoder| encoder.encode(frame))
    }

    /// Tells the channel about the reply.
    fn report_of_reply(&self, told: Vec<interruption::Input>) {
        let Some(ticket) = self.reply.as_ref().map(|reply| reply.playback.ticket) else { return };
        for told in told {
            self.hearing.notice(Notice::Reply { ticket, told });
        }
    }

    /// An actor that dies too often is left alone. The others of the call go on.
    fn handle_report(&mut self, report: Option<Report<CallChild>>) {
        match report {
            Some(Report::Restarting { child, ending, after }) => {
                // No name of a person leaves the store in spans.
                self.context.restarting(child.sort(), self.call.channel().as_str(), &ending, after);
            }
            Some(Report::Escalate { child, escalation }) => {
                // Its name is that of a person.
                let ending = Escalation { child: child.sort().to_string(), ..escalation }.to_string();
                self.context.escalated(child.sort(), self.call.channel().as_str(), &ending);
                let (CallChild::VoiceUser(user) | CallChild::Recognition(user)) = &child;
                self.call.show_to(user, &View::Trouble(Trouble::NotHeard));
            }
            Some(Report::Ended { child: CallChild::VoiceUser(user) | CallChild::Recognition(user), .. }) => {
                // Somebody who had left may be back.
                if self.call.is_connected(&user) {
                    self.start_actors(&user);
                }
            }
            None | Some(Report::Started { .. }) => {}
        }
    }

    fn finalize(&self, user: &PersonId) {
        self.tell_recognition(user, RecognitionMessage::Finalize);
    }
}

impl CallChild {
    const fn sort(&self) -> Sort {
        match self {
            Self::VoiceUser(_) => Sort::VoiceUser,
            Self::Recognition(_) => Sort::Recognition,
        }
    }
}

/// Synthesises a sentence and passes on its pieces of audio. After the last piece it passes on none.
async fn synthesise(
    provider: VoiceProvider,
    sentence: Sentence,
    hearing: Hearing,
    under: Option<SpanRef>,
    Signals { mut overdue, mut played }: Signals,
    mut hand_on: impl FnMut(Option<Result<Piece, NoAnswer>>) -> bool,
) {
    let (clock, patience) = (hearing.context().clock.clone(), hearing.context().settings.voice.first_audio_timeout());
    let begun = tokio::select! {
        begun = provider.begin_when_free(|| clock.now()) => begun,
        // It waited for a place, which says nothing of the service.
        Ok(()) = &mut overdue => Err(NoAnswer::Cancelled),
    };
    let mut permit = match begun {
        Ok(permit) => permit,
        Err(error) => {
            hand_on(Some(Err(error)));
            return;
        }
    };
    let mut work = Work::synthesis(hearing, &provider, sentence.companion.clone(), &sentence.text, under);
    let (name, asked) = (provider.service().provider(), Instant::now());
    let (mut pieces, mut made) = (provider.service().say(sentence), 0);
    loop {
        let next = async {
            // A call that has ended has ended this task, too.
            let _ = played.wait_for(|played| made < played + READ_AHEAD).await;
            pieces.next().await
        };
        let piece = tokio::select! {
            biased;
            piece = next => piece,
            // It may have waited for a place for most of the time.
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

/// The number by which pages know a reply.
fn number(ticket: Ticket) -> u32 {
    ticket.0 as u32
}
