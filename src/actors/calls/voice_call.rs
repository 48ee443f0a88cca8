//! The actor of a voice call: supervises the actors of each person, makes the audio of replies, and carries out the effects of the call's state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use super::call::SharedCall;
use super::call_handle::CallHandle;
use super::joined::Joined;
use super::presence;
use super::recognition::{self, Recognition};
use super::rehearsed;
use super::synthesis::Synthesis;
use super::voice_user::{self, VoiceUser};
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::messages::voice_call::{CallChild, CallMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, VoiceCallKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::supervision::backoff::Backoff;
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::reports_children;
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::call::playback::{FRAME, Next, SPOKEN_FRAME};
use crate::domain::call::{Effect, Input};
use crate::domain::conversation::Notice;
use crate::domain::id::PersonId;
use crate::ports::audio::{CodecFailed, Encoder};
use crate::ports::call_room::{Packet, Trouble};
use crate::ports::platform_call::Ended;
use crate::ports::voice_call::CallEffect;
use crate::telemetry::instruments::NONE;
use crate::telemetry::plain::Plain;
use crate::telemetry::trace::TurnTrace;

const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(50),
    longest_delay: Duration::from_secs(5),
    child_limit: 1_200,
    total_limit: 4_800,
    window: Duration::from_secs(60),
};
/// After a connection has run for this long, the backoff starts from its shortest pause again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

pub struct VoiceCall;

#[derive(Clone)]
pub struct Arguments {
    pub call: Arc<SharedCall>,
    pub context: Arc<ActorContext>,
}

pub struct State {
    call: Arc<SharedCall>,
    context: Arc<ActorContext>,
    hearing: CallHandle,
    myself: ActorRef<CallMessage>,
    children: Children<CallChild, CallMessage>,
    synthesis: Synthesis,
    encoder: Option<Box<dyn Encoder>>,
    tick: Option<OwnedTask>,
    /// The tasks that say typed texts, by the person who typed.
    saying: BTreeMap<PersonId, OwnedTask>,
    backoff: Backoff,
    /// Until when the platform refuses another connection.
    unwanted_until: Option<Instant>,
    _registration: Registered,
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
        let hearing = CallHandle::new(call.clone(), Inbound::new((*context).clone()));
        let mut state = State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            synthesis: Synthesis::new(hearing.clone(), myself.clone()),
            hearing,
            call,
            context,
            myself,
            encoder: None,
            tick: None,
            saying: BTreeMap::new(),
            backoff: Backoff::default(),
            unwanted_until: None,
            _registration: registration,
        };
        // Asks the channel for the current reply, even if its queue is full. A channel that is not running yet sends the reply by itself.
        let key = ChannelActorKey(state.call.channel().clone());
        state.context.directory.hand_over(&key, ChannelMessage::Received(Received::Voice(Notice::PlayerRestarted)));
        state.handle(Input::Started);
        if let Some(limit) = state.context.settings.voice.max_call() {
            state.handle(Input::Limit { limit });
        }
        state.disconnected();
        state.connect();
        state.stop_if_empty();
        Ok(state)
    }

    async fn handle(&self, _: ActorRef<CallMessage>, message: CallMessage, state: &mut State) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::VoiceCall(state.call.channel().clone()));
        match message {
            CallMessage::Handle(input) => state.handle(input),
            CallMessage::CarryOut(effects) => state.carry_out_all(effects),
            CallMessage::Connect => state.connect(),
            CallMessage::TryAgain if state.unwanted_until.is_some_and(|until| Instant::now() < until) => {}
            CallMessage::TryAgain => state.connect(),
            CallMessage::Disconnected => state.disconnected(),
            CallMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    reports_children!(CallMessage);
}

impl State {
    fn handle(&mut self, input: Input) {
        match &input {
            Input::Conversation(CallEffect::Reply { ticket, turn: Some(turn), .. }) => {
                self.synthesis.trace(*ticket, TurnTrace::of_turn(*turn).of(*ticket));
            }
            Input::Audio { reply, sentence, piece: None } => self.synthesis.remove(*reply, *sentence),
            _ => {}
        }
        let effects = self.hearing.handle(input);
        self.carry_out_all(effects);
    }

    fn carry_out_all(&mut self, effects: Vec<Effect>) {
        effects.into_iter().for_each(|effect| self.carry_out(effect));
        self.synthesis.report_played();
    }

    fn carry_out(&mut self, effect: Effect) {
        let (hearing, instruments) = (self.hearing.clone(), self.context.recorder.instruments());
        match effect {
            Effect::Hear(user) => self.start_actors(&user),
            Effect::Remove(user) => {
                for child in [CallChild::VoiceUser(user.clone()), CallChild::Recognition(user)] {
                    self.children.dismiss(&child).into_iter().for_each(|actor| actor.stop(None));
                }
                self.stop_if_empty();
            }
            Effect::Record(Some(user)) => drop(tokio::spawn(presence::settle(hearing, user))),
            Effect::Record(None) => drop(tokio::spawn(presence::settle_all(hearing))),
            Effect::ForgetRecord(user) => drop(tokio::spawn(presence::forget(hearing, user))),
            Effect::Greet(user) => drop(tokio::spawn(presence::welcome(hearing, user))),
            Effect::Say(user, said) => {
                self.saying.insert(user.clone(), rehearsed::say_typed_text(hearing, user, said));
            }
            Effect::StopSaying(user) => drop(self.saying.remove(&user)),
            Effect::After(after, input) => {
                let is_tick = matches!(input, Input::Tick);
                let timer = self.myself.send_after(after, move || CallMessage::Handle(input));
                if is_tick {
                    self.tick = Some(timer.into());
                }
            }
            Effect::Synthesise { reply, ticket, companion, sentence, text } => {
                self.synthesis.begin(reply, ticket, companion, sentence, &text);
            }
            Effect::GiveUpAudio { reply, sentence } => self.synthesis.give_up(reply, sentence),
            Effect::DropAudio => self.synthesis.clear(),
            Effect::Play(reply, next) => self.play(reply, next),
            Effect::Ducked(after) => instruments.voice_duck_delay.record(after.as_secs_f64(), NONE),
            Effect::Answered(after) => instruments.voice_answer_time.record(after.as_secs_f64(), NONE),
            // These are carried out where the input was handled (`CallHandle::handle`).
            Effect::Show(..) | Effect::Disconnect(..) | Effect::Notice(_) => {}
            Effect::StopSpeech(_) | Effect::Finalize(_) | Effect::ForgetWords(_) => {}
        }
    }

    fn start_actors(&mut self, user: &PersonId) {
        let arguments = voice_user::Arguments { user: user.clone(), hearing: self.hearing.clone() };
        let spec = ChildSpec::of(RestartType::Transient, move || (VoiceUser, arguments.clone()));
        self.children.start(CallChild::VoiceUser(user.clone()), spec);
        let arguments = recognition::Arguments { user: user.clone(), hearing: self.hearing.clone() };
        let spec = ChildSpec::of(RestartType::Transient, move || (Recognition, arguments.clone()));
        self.children.start(CallChild::Recognition(user.clone()), spec);
    }

    /// Starts the connection that carries the whole call, if there is one and it does not run.
    fn connect(&mut self) {
        let Some(link) = self.call.link() else { return };
        let (directory, channel) = (self.context.directory.clone(), self.call.channel().clone());
        link.run(Arc::new(Joined::new(self.hearing.clone())), move || {
            if let Some(actor) = directory.find(&VoiceCallKey(channel)) {
                // An actor that is being restarted checks the connection by itself.
                let _ = actor.cast(CallMessage::Disconnected);
            }
        });
    }

    /// Schedules a new connection if the last one has ended, unless the call is over.
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

    fn stop_if_empty(&self) {
        if self.call.is_empty() {
            self.myself.stop(None);
        }
    }

    fn play(&mut self, reply: u32, Next { number, frame, .. }: Next) {
        self.context.recorder.instruments().voice_spoken.add(FRAME.as_secs_f64(), NONE);
        match self.encode(&frame) {
            Ok(bytes) => self.call.play(&Packet { reply, number, samples: frame, bytes: bytes.into() }),
            Err(error) => tracing::error!(%error, "a packet could not be encoded"),
        }
    }

    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed> {
        if self.encoder.is_none() {
            self.encoder = Some(self.context.speech.audio.encoder()?);
        }
        self.encoder.as_mut().map_or(Ok(Vec::new()), |encoder| encoder.encode(frame))
    }

    /// Handles a report about a person's actor. An actor that dies too often is not restarted. The other actors of the call continue.
    fn handle_report(&mut self, report: Option<Report<CallChild>>) -> Result<(), ActorProcessingErr> {
        match report {
            Some(Report::Restarting { child, ending, after }) => {
                // Names of people must not appear in spans.
                self.context.restarting(child.sort(), self.call.channel().as_str(), &ending, after);
            }
            Some(Report::Escalate { child, escalation }) => {
                // The child's name would be that of a person.
                let ending = Escalation { child: child.sort().to_string(), ..escalation }.to_string();
                self.context.escalated(child.sort(), self.call.channel().as_str(), &ending);
                let (CallChild::VoiceUser(user) | CallChild::Recognition(user)) = &child;
                self.call.show_trouble(user, Trouble::NotHeard);
            }
            Some(Report::Ended { child: CallChild::VoiceUser(user) | CallChild::Recognition(user), .. }) => {
                // The person may have left and come back.
                if self.call.read(|call| call.is_connected(&user)) {
                    self.start_actors(&user);
                }
            }
            None | Some(Report::Started { .. }) => {}
        }
        Ok(())
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
