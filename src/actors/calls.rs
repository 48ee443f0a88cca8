//! Voice calls of platforms that carry audio: participants, speech recognition, and the companions' speech.
//!
//! * `call`: the state of a call (`domain/call.rs`). The actors of the call share it, and it outlives them. `call_handle`: sends inputs and messages
//!   to a call's state, its actors and its channel.
//! * `voice_call`: the actor of a call. `synthesis`: makes the audio of replies.
//! * `voice_user`, `recognition`: the two actors of one person. If one dies, the other continues.
//! * `joined`: entering a call. `link`: the connection that carries a whole call, on platforms that have one.
//! * `allowances`: the daily speech allowance of a guild. `providers`: selects a provider of speech recognition or synthesis, with failover.
//!   `services`: records usage.
//! * `recordings`: recognises the words of a recording outside of a call. `places`: how many at a time.
//! * `presence`: journals who is in a call. `rehearsed`: typed texts that count as speech.

pub mod allowances;
pub mod call;
pub mod call_handle;
pub mod joined;
pub mod link;
mod places;
pub mod presence;
pub mod providers;
mod recognition;
pub mod recordings;
mod rehearsed;
mod services;
pub mod shutdown;
mod synthesis;
pub mod voice_call;
mod voice_user;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::actors::calls::allowances::Allowances;
use crate::actors::calls::call::SharedCall;
use crate::actors::calls::places::Places;
use crate::actors::calls::providers::{Recognisers, Voices};
use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::messages::voice_call::CallMessage;
use crate::actors::runtime::actor_keys::{ChannelActorKey, VoiceCallKey};
use crate::actors::runtime::directory::Directory;
use crate::domain::call::Input;
use crate::domain::conversation::Notice;
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::voice::utterance;
use crate::ports::audio::Audio;
use crate::ports::call_room::End;
use crate::ports::voice_call::{CallEffect, VoiceCalls};

#[derive(Clone)]
pub struct Speech {
    pub audio: Arc<dyn Audio>,
    /// All clones share the providers, which may be replaced while the server runs.
    providers: Arc<RwLock<(Recognisers, Voices)>>,
}

impl Speech {
    pub fn new(audio: Arc<dyn Audio>, recognition: Recognisers, synthesis: Voices) -> Self {
        Self { audio, providers: Arc::new(RwLock::new((recognition, synthesis))) }
    }

    pub fn recognition(&self) -> Recognisers {
        self.providers.read().0.clone()
    }

    pub fn synthesis(&self) -> Voices {
        self.providers.read().1.clone()
    }

    /// Uses the providers of `other` from now on. Streams and sentences that have begun end at theirs.
    pub fn replace(&self, other: &Self) {
        let providers = other.providers.read().clone();
        *self.providers.write() = providers;
    }
}

/// All calls. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls {
    calls: Arc<Mutex<HashMap<ChannelId, Arc<SharedCall>>>>,
    allowances: Arc<Allowances>,
    recordings: Arc<Places>,
    directory: Directory,
}

impl Calls {
    pub fn new(directory: Directory) -> Self {
        Self { calls: Arc::default(), allowances: Arc::default(), recordings: Arc::default(), directory }
    }

    pub fn allowances(&self) -> &Allowances {
        &self.allowances
    }

    pub fn recordings(&self) -> &Places {
        &self.recordings
    }

    pub fn get(&self, channel: &ChannelId) -> Option<Arc<SharedCall>> {
        self.calls.lock().get(channel).cloned()
    }

    /// Returns the call of a channel, and creates it with `begin` if there is none. Returns `None` if there are already `most` calls.
    pub fn get_or_begin(&self, channel: &ChannelId, most: usize, begin: impl FnOnce() -> SharedCall) -> Option<Arc<SharedCall>> {
        let mut calls = self.calls.lock();
        if !calls.contains_key(channel) && calls.len() >= most {
            return None;
        }
        Some(calls.entry(channel.clone()).or_insert_with(|| Arc::new(begin())).clone())
    }

    pub fn all(&self) -> Vec<Arc<SharedCall>> {
        self.calls.lock().values().cloned().collect()
    }

    pub fn close(&self, channel: &ChannelId) {
        let Some(call) = self.calls.lock().remove(channel) else { return };
        call.link().into_iter().for_each(|link| link.end());
        let (people, listeners) = call.clear();
        listeners.iter().for_each(|listener| listener.end(End::Ended));
        self.report_lost(channel, people);
    }

    /// Handles a person's changed opt-out in the call of this channel, if there is one. After an opt-out, speech that is not journaled is deleted at once.
    pub fn change_opt_out(&self, channel: &ChannelId, user: &PersonId, is_ignored: bool) {
        let Some(call) = self.get(channel) else { return };
        call.buffer(user, |buffer| {
            if is_ignored {
                buffer.forget()
            }
        });
        self.cast(channel, CallMessage::Handle(Input::OptOutChanged { user: user.clone() }));
    }

    /// Removes a call if it has no people and no connection any more.
    pub fn end(&self, channel: &ChannelId) {
        let mut calls = self.calls.lock();
        if calls.get(channel).is_some_and(|call| call.is_empty()) {
            calls.remove(channel);
        }
    }

    /// Reports to a channel that these people have lost their connection. They have the usual time to come back.
    fn report_lost(&self, channel: &ChannelId, people: impl IntoIterator<Item = PersonId>) {
        for user in people {
            let lost = Notice::Call(utterance::Input::SocketLost { user });
            self.directory.hand_over(&ChannelActorKey(channel.clone()), ChannelMessage::Received(Received::Voice(lost)));
        }
    }

    fn cast(&self, channel: &ChannelId, message: CallMessage) {
        if let Some(actor) = self.directory.find(&VoiceCallKey(channel.clone())) {
            // A call actor that is not running yet asks the channel for the current reply when it starts.
            let _ = actor.cast(message);
        }
    }
}

impl VoiceCalls for Calls {
    fn carry_out(&self, channel: &ChannelId, effect: CallEffect) {
        let call = self.get(channel);
        let is_here = |user: &PersonId| call.as_ref().is_some_and(|call| call.read(|call| call.is_connected(user)));
        let people = if let CallEffect::Restarted { people } = &effect { people.clone() } else { Vec::new() };
        self.cast(channel, CallMessage::Handle(Input::Conversation(effect)));
        // A restart of the server may have disconnected them.
        self.report_lost(channel, people.into_iter().filter(|user| !is_here(user)));
    }
}
