//! Decodes the packets of one person, and detects voice activity.
//!
//! The results are kept in the state of the call ([`SpeechBuffer`]). An actor that dies loses only the state of its decoder.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::call_handle::CallHandle;
use crate::actors::messages::voice_call::{RecognitionMessage, VoiceUserMessage};
use crate::actors::runtime::actor_keys::{RecognitionKey, VoiceUserKey};
use crate::actors::runtime::context::Registered;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::call::{Input, SpeechBuffer};
use crate::domain::id::PersonId;
use crate::domain::voice::speech::{HANGOVER, Pulse};
use crate::ports::audio::{Ear, PacketRefused};

pub struct VoiceUser;

#[derive(Clone)]
pub struct Arguments {
    pub user: PersonId,
    pub hearing: CallHandle,
}

pub struct State {
    arguments: Arguments,
    ear: Box<dyn Ear>,
    /// The connection whose packets are decoded.
    line: Option<u64>,
    myself: ActorRef<VoiceUserMessage>,
    alarm: Option<OwnedTask>,
    _registration: Registered,
}

impl Actor for VoiceUser {
    type Msg = VoiceUserMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<VoiceUserMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { user, hearing, .. } = &arguments;
        let (call, context) = (&hearing.call, hearing.context());
        let registration = context.register(&VoiceUserKey(call.channel().clone(), user.clone()), &myself);
        let ear = context.speech.audio.ear()?;
        // Handles packets that arrived while no actor ran, and speech that has ended since.
        myself.cast(VoiceUserMessage::Packets)?;
        myself.cast(VoiceUserMessage::Wake)?;
        Ok(State { ear, line: None, myself, alarm: None, arguments, _registration: registration })
    }

    async fn handle(
        &self,
        _: ActorRef<VoiceUserMessage>,
        message: VoiceUserMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let Arguments { user, hearing, .. } = &state.arguments;
        let _at_work = at_work(Address::VoiceUser(hearing.call.channel().clone(), user.clone()));
        match message {
            VoiceUserMessage::Packets => state.decode_packets()?,
            VoiceUserMessage::Stop => state.change_speech(SpeechBuffer::stop),
            VoiceUserMessage::Wake => {
                let now = state.arguments.hearing.context().clock.now();
                state.change_speech(|buffer| buffer.wake(now));
            }
        }
        Ok(())
    }
}

impl State {
    /// Decodes the waiting packets. Packets of a muted or opted-out person are dropped.
    fn decode_packets(&mut self) -> Result<(), ActorProcessingErr> {
        let Arguments { user, hearing } = &self.arguments;
        let packets = hearing.call.buffer(user, SpeechBuffer::take_packets).unwrap_or_default();
        if hearing.is_deaf_to(user) {
            return Ok(());
        }
        for waiting in packets {
            if self.line.replace(waiting.line).is_some_and(|before| before != waiting.line) {
                self.ear = self.arguments.hearing.context().speech.audio.ear()?;
                self.change_speech(SpeechBuffer::change_microphone);
            }
            self.decode(waiting.number, &waiting.packet);
        }
        self.arm();
        Ok(())
    }

    fn decode(&mut self, number: u32, packet: &[u8]) {
        let Arguments { user, hearing } = &self.arguments;
        let context = hearing.context();
        let instruments = context.recorder.instruments();
        let (has_sound, pulses) = match self.ear.decode_packet(number, packet) {
            Ok(decoded) => {
                let hops = decoded.hops.iter().map(|hop| (hop.from, hop.score));
                let (now, has_partials) = (context.clock.now(), context.speech.recognition().first().has_partials());
                hearing
                    .call
                    .buffer(user, |buffer| buffer.add((decoded.from, decoded.samples), hops, now, has_partials))
                    .unwrap_or_default()
            }
            Err(PacketRefused::Late(_)) => return instruments.voice_packets.add(1, ["late"]),
            Err(PacketRefused::Malformed(error)) => {
                tracing::debug!(error, "a packet could not be decoded");
                return instruments.voice_packets.add(1, ["undecodable"]);
            }
        };
        if has_sound {
            self.wake_recognition();
        }
        self.report(pulses);
    }

    fn change_speech(&mut self, change: impl FnOnce(&mut SpeechBuffer) -> Option<Pulse>) {
        let Arguments { user, hearing } = &self.arguments;
        if let Some(pulse) = hearing.call.buffer(user, change).flatten() {
            self.wake_recognition();
            self.report(vec![pulse]);
        }
        self.arm();
    }

    fn wake_recognition(&self) {
        let Arguments { user, hearing } = &self.arguments;
        hearing.cast(&RecognitionKey(hearing.call.channel().clone(), user.clone()), RecognitionMessage::Sounds);
    }

    /// Reports onsets, voice and offsets to the channel.
    fn report(&self, pulses: Vec<Pulse>) {
        for pulse in pulses {
            self.arguments.hearing.report(Input::Pulse { user: self.arguments.user.clone(), pulse });
        }
    }

    /// Schedules the check for the end of the speech.
    fn arm(&mut self) {
        let Arguments { user, hearing } = &self.arguments;
        let deadline = hearing.call.buffer(user, |buffer| buffer.deadline()).flatten();
        self.alarm = deadline.map(|deadline| {
            // Packets that are older than now may still be on their way.
            let after = deadline.since(hearing.context().clock.now()) + HANGOVER;
            self.myself.send_after(after, || VoiceUserMessage::Wake).into()
        });
    }
}
