//! The voice calls of rooms, for platforms that carry audio.

use std::sync::Arc;

use async_trait::async_trait;

use super::ActorBackend;
use crate::actors::calls::call::SharedCall;
use crate::actors::calls::call_handle::CallHandle;
use crate::actors::calls::joined::{Joined, too_many_calls, too_many_people, wake};
use crate::actors::calls::providers::VoiceProvider;
use crate::actors::messages::voice_call::CallMessage;
use crate::actors::runtime::actor_keys::VoiceCallKey;
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::service::Service;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::call_room::{CallRooms, Description, Entrance, Line, SpeechService, Trouble};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::platform_call::{CallConnection, PlatformCalls};
use crate::settings::speech::BUILT_IN;

fn each_once(services: impl Iterator<Item = SpeechService>) -> Vec<SpeechService> {
    let mut found = Vec::new();
    for service in services {
        if !found.contains(&service) {
            found.push(service);
        }
    }
    found
}

#[async_trait]
impl CallRooms for ActorBackend {
    async fn describe(&self, room: &RoomId) -> Result<Description, Refused> {
        let channel_key = self.room_of(room)?.0;
        self.check_writable(room)?;
        Ok(PlatformCalls::describe(self, &channel_key.channel))
    }

    async fn admits(&self, room: &RoomId, from: &str) -> Result<(), Refused> {
        let channel = self.room_of(room)?.0.channel;
        self.check_writable(room)?;
        let (calls, voice) = (&self.context.calls, &self.context.settings.voice);
        match calls.get(&channel) {
            Some(call)
                if call
                    .read(|call| call.person(&PersonId::from(from)).is_none() && call.people().count() >= voice.max_people) =>
            {
                Err(too_many_people(&self.context))
            }
            None if calls.all().len() >= voice.max_calls => Err(too_many_calls(&self.context)),
            Some(_) | None => Ok(()),
        }
    }

    async fn enter(&self, room: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused> {
        let channel_key = self.room_of(room)?.0;
        self.check_writable(room)?;
        let (context, voice) = (&self.context, &self.context.settings.voice);
        let channel_ref = ChannelRef { guild: channel_key.guild.clone(), channel: channel_key.channel.clone(), parent: None };
        let begin = || SharedCall::new(channel_ref, context.clock.now(), context.recorder.instruments().clone());
        let call = context.calls.get_or_begin(&channel_key.channel, voice.max_calls, begin);
        let call = call.ok_or_else(|| too_many_calls(context))?;
        Joined::new(CallHandle::new(call, self.inbound.clone())).enter(entrance).await
    }
}

impl PlatformCalls for ActorBackend {
    fn begin(
        &self,
        channel_ref: &ChannelRef,
        left: Option<&ChannelId>,
        connection: Arc<dyn CallConnection>,
    ) -> Result<(), Refused> {
        let context = &self.context;
        if !self.has_companions(&channel_ref.channel) {
            return Err(Refused::not_found("no companion is in the channel".to_owned()));
        }
        let begin = || SharedCall::new(channel_ref.clone(), context.clock.now(), context.recorder.instruments().clone());
        let ending = usize::from(left.is_some_and(|left| context.calls.get(left).is_some()));
        let most = context.settings.voice.max_calls.saturating_add(ending);
        let call = context.calls.get_or_begin(&channel_ref.channel, most, begin);
        let call = call.ok_or_else(|| too_many_calls(context))?;
        call.connect(connection);
        if let Some(actor) = context.directory.find(&VoiceCallKey(channel_ref.channel.clone())) {
            // A call actor that is being restarted connects by itself.
            let _ = actor.cast(CallMessage::Connect);
        }
        wake(&CallHandle::new(call, self.inbound.clone()));
        Ok(())
    }

    fn try_again(&self, channel: &ChannelId) {
        if let Some(actor) = self.context.directory.find(&VoiceCallKey(channel.clone())) {
            // A call actor that is being restarted retries by itself.
            let _ = actor.cast(CallMessage::TryAgain);
        }
    }

    fn has_companions(&self, channel: &ChannelId) -> bool {
        !self.context.memberships.present(channel).is_empty()
    }

    fn describe(&self, channel: &ChannelId) -> Description {
        let (speech, memberships) = (&self.context.speech, &self.context.memberships);
        let voices: Vec<_> = memberships
            .present(channel)
            .into_keys()
            .map(|companion| {
                let companion = memberships.companion(channel, &companion);
                speech.synthesis().of(companion.and_then(|companion| companion.voice.provider).as_deref())
            })
            .collect();
        let call = self.context.calls.get(channel);
        Description {
            recognition: each_once(speech.recognition().all().map(|provider| provider.description())),
            recognises_words: speech.recognition().first().recognises_words(),
            synthesis: each_once(voices.iter().map(|provider| provider.description())),
            people: call.as_ref().map(|call| call.read(|call| call.people().collect())).unwrap_or_default(),
            troubles: call.map(|call| self.troubles(&call, &voices)).unwrap_or_default(),
        }
    }
}

impl ActorBackend {
    /// The current problems of speech services in a call.
    fn troubles(&self, call: &SharedCall, voices: &[VoiceProvider]) -> Vec<Trouble> {
        let (context, now) = (&self.context, self.context.clock.now());
        let (recognition, guild) = (context.speech.recognition(), &call.channel_ref().guild);
        let is_used_up = |service| context.calls.allowances().is_used_up(&context.in_force().speech, guild, service, now);
        let is_paid = |name: &str| name != BUILT_IN;
        let is_deaf = is_paid(recognition.first().provider()) && is_used_up(Service::SpeechRecognition);
        let is_mute = voices.iter().any(|voice| is_paid(voice.service().provider())) && is_used_up(Service::SpeechSynthesis);
        let is_failing = call.read(|call| call.voices_fail()) || voices.iter().any(|voice| voice.fails(now));
        [
            (Trouble::RecognitionFailed, recognition.fail(now)),
            (Trouble::RecognitionUsedUp, is_deaf),
            (Trouble::SynthesisFailed, is_failing),
            (Trouble::SynthesisUsedUp, is_mute),
        ]
        .into_iter()
        .filter_map(|(trouble, is_so)| is_so.then_some(trouble))
        .collect()
    }
}
