//! Voice calls of platforms that carry audio: who takes part, what they say, and what companions say there.
//!
//! * `call`, `voice`: what the actors of a call share, and what outlives them. `hearing`: the way to the channel.
//! * `voice_call`: the actor of a call. It plays what companions say (`playback`).
//! * `voice_user`, `recognition`: the actors of one person. Neither takes the other along when it dies.
//! * `joined`: entering a call. `link`: the connection that carries a whole call, where a platform has one.
//! * `allowances`: what a guild may use in a day. `providers`: who recognises speech and makes voices, and who takes over. `services`: counts what they do.
//! * `presence`: puts on record who is in a call. `rehearsed`: typed texts that are taken as speech.

pub mod allowances;
pub mod call;
pub mod hearing;
pub mod joined;
pub mod link;
mod playback;
pub mod presence;
pub mod providers;
mod recognition;
mod rehearsed;
mod services;
pub mod shutdown;
mod silent;
mod streams;
mod voice;
pub mod voice_call;
mod voice_user;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::actors::calls::allowances::Allowances;
use crate::actors::calls::call::{Call, Gone, Parted};
use crate::actors::calls::providers::{Provider, Recognisers, Voices};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::voice_call::{CallMessage, VoiceUserMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, VoiceCallKey, VoiceUserKey};
use crate::actors::runtime::directory::Directory;
use crate::domain::conversation::Notice;
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::voice::utterance;
use crate::ports::audio::Audio;
use crate::ports::call_room::{End, Line, PersonAction};
use crate::ports::voice_call::{CallEffect, VoiceCalls};
use crate::telemetry::instruments::Instruments;

/// Codec, ears and mouths.
#[derive(Clone)]
pub struct Speech {
    pub audio: Arc<dyn Audio>,
    pub recognition: Recognisers,
    pub synthesis: Voices,
}

impl Speech {
    /// Nothing is heard, and nothing said.
    pub fn silent() -> Self {
        let silent = Arc::new(silent::Silent);
        let recognition = Recognisers::new(Provider::unlimited(silent.clone()), []);
        Self { audio: silent.clone(), recognition, synthesis: Voices::new(Provider::unlimited(silent), []) }
    }
}

/// All calls. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls {
    calls: Arc<Mutex<HashMap<ChannelId, Arc<Call>>>>,
    allowances: Arc<Allowances>,
    directory: Directory,
}

impl Calls {
    pub fn new(directory: Directory) -> Self {
        Self { calls: Arc::default(), allowances: Arc::default(), directory }
    }

    /// What guilds may use of speech.
    pub fn allowances(&self) -> &Allowances {
        &self.allowances
    }

    /// The call of a channel.
    pub fn get(&self, channel: &ChannelId) -> Option<Arc<Call>> {
        self.calls.lock().get(channel).cloned()
    }

    /// The call of a channel, which `begin` makes if there is none. None: there are `most` calls already.
    pub fn get_or_begin(&self, channel: &ChannelId, most: usize, begin: impl FnOnce() -> Call) -> Option<Arc<Call>> {
        let mut calls = self.calls.lock();
        if !calls.contains_key(channel) && calls.len() >= most {
            return None;
        }
        Some(calls.entry(channel.clone()).or_insert_with(|| Arc::new(begin())).clone())
    }

    pub fn all(&self) -> Vec<Arc<Call>> {
        self.calls.lock().values().cloned().collect()
    }

    /// Sends everybody out of a call.
    pub fn close(&self, channel: &ChannelId) {
        let Some(call) = self.calls.lock().remove(channel) else { return };
        call.link().into_iter().for_each(|link| link.end());
        let (people, listeners) = call.clear();
        listeners.iter().for_each(|listener| listener.end(End::Ended));
        self.note_lost(channel, people);
    }

    /// Somebody wants to be ignored in a guild, or to be listened to again. What was heard and is not on record is forgotten at once.
    pub fn note_opt_out(&self, channel: &ChannelId, user: &PersonId, is_ignored: bool) {
        let Some(voice) = self.get(channel).and_then(|call| call.voice(user)) else { return };
        if is_ignored {
            voice.forget();
        }
        self.cast(channel, CallMessage::OptOutChanged(user.clone()));
    }

    /// Removes a call in which nobody is any more.
    pub fn end(&self, channel: &ChannelId) {
        let mut calls = self.calls.lock();
        if calls.get(channel).is_some_and(|call| call.is_empty()) {
            calls.remove(channel);
        }
    }

    /// Tells a channel that these people have no connection any more. They have the usual time to come back.
    fn note_lost(&self, channel: &ChannelId, people: impl IntoIterator<Item = PersonId>) {
        for user in people {
            let lost = Notice::Call(utterance::Input::SocketLost { user });
            self.directory.hand_over(&ChannelActorKey(channel.clone()), ChannelMessage::Voice(lost));
        }
    }

    fn cast(&self, channel: &ChannelId, message: CallMessage) {
        if let Some(actor) = self.directory.find(&VoiceCallKey(channel.clone())) {
            // One that does not run yet asks the channel for the reply in force when it starts.
            let _ = actor.cast(message);
        }
    }
}

impl VoiceCalls for Calls {
    fn carry_out(&self, channel: &ChannelId, effect: CallEffect) {
        match effect {
            CallEffect::Finalize { user } => self.cast(channel, CallMessage::Finalize(user)),
            CallEffect::CountsAsNoise { user } => self.cast(channel, CallMessage::Noise(user)),
            CallEffect::Reply { ticket, turn, aloud } => self.cast(channel, CallMessage::Reply(ticket, turn, aloud)),
            CallEffect::Restarted { people } => {
                self.cast(channel, CallMessage::Restarted);
                let call = self.get(channel);
                let is_here = |user: &PersonId| call.as_ref().is_some_and(|call| call.is_connected(user));
                // A restart of the server may have disconnected them.
                self.note_lost(channel, people.into_iter().filter(|user| !is_here(user)));
            }
        }
    }
}

/// What a connection that carries a whole call plays it with.
pub struct SpeakerLine {
    pub call: Arc<Call>,
    pub line: u64,
    pub directory: Directory,
}

impl Line for SpeakerLine {
    fn push_packet(&self, _: u32, _: &[u8]) {}

    fn report(&self, action: PersonAction) {
        if let PersonAction::Silenced(is_silenced) = action {
            self.call.set_silenced(self.line, is_silenced);
        }
        if let Some(actor) = self.directory.find(&VoiceCallKey(self.call.channel().clone())) {
            // One that is being restarted plays nothing, and looks by itself whether the companions are silenced.
            let _ = actor.cast(CallMessage::Acted(self.line, action));
        }
    }
}

impl Drop for SpeakerLine {
    fn drop(&mut self) {
        self.call.detach(self.line);
    }
}

/// A connection of a person to a call.
pub struct CallLine {
    pub call: Arc<Call>,
    pub user: PersonId,
    pub line: u64,
    pub directory: Directory,
    pub instruments: Instruments,
}

impl CallLine {
    fn part(&self, gone: Gone) {
        if let Some(Parted { user, had_microphone }) = self.call.part(self.line, gone) {
            self.cast(CallMessage::Parted(user, had_microphone));
        }
    }

    fn cast(&self, message: CallMessage) {
        if let Some(actor) = self.directory.find(&VoiceCallKey(self.call.channel().clone())) {
            // One that is being restarted looks by itself who is there.
            let _ = actor.cast(message);
        }
    }
}

impl Line for CallLine {
    fn push_packet(&self, number: u32, packet: &[u8]) {
        let Some((user, true)) = self.call.at(self.line) else { return };
        let Some(voice) = self.call.voice(&user) else { return };
        self.instruments.voice_packets.add(1, ["received"]);
        let (dropped, is_first) = voice.push(self.line, number, packet);
        if dropped > 0 {
            self.instruments.voice_packets.add(dropped as u64, ["dropped"]);
        }
        if is_first && let Some(actor) = self.directory.find(&VoiceUserKey(self.call.channel().clone(), user)) {
            // One that is being restarted looks by itself what waits.
            let _ = actor.cast(VoiceUserMessage::Packets);
        }
    }

    fn report(&self, action: PersonAction) {
        // What somebody wants holds at once, also while the call's actor is being restarted.
        match action {
            PersonAction::Muted(is_muted) => {
                let is_own = self.call.at(self.line).is_some_and(|(_, has_microphone)| has_microphone);
                if !is_own || !self.call.change(&self.user, |person| *person.is_muted = is_muted) {
                    return;
                }
            }
            PersonAction::Ignored(is_ignored) => {
                if !self.call.change(&self.user, |person| *person.is_ignored = is_ignored) {
                    return;
                }
                if let Some(voice) = self.call.voice(&self.user).filter(|_| is_ignored) {
                    voice.forget();
                }
            }
            PersonAction::Leave => {
                let listener = self.call.listener(self.line);
                self.part(Gone::Left);
                return listener.into_iter().for_each(|listener| listener.end(End::Left));
            }
            PersonAction::Silenced(_) => return,
            PersonAction::Played { .. } | PersonAction::Stop { .. } | PersonAction::Say(_) => {}
        }
        self.cast(CallMessage::Acted(self.line, action));
    }
}

impl Drop for CallLine {
    fn drop(&mut self) {
        self.part(Gone::Lost);
    }
}
