//! The voice calls of rooms, for platforms that carry audio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::ActorBackend;
use crate::actors::calls::call::Call;
use crate::actors::calls::hearing::Hearing;
use crate::actors::calls::{CallLine, presence};
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::voice_call::CallMessage;
use crate::actors::runtime::actor_keys::{SwitchboardKey, VoiceCallKey};
use crate::domain::id::PersonId;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::call_room::{CallRooms, Description, End, Entrance, Line};
use crate::ports::inbound_events::{ChannelRef, InboundError};

#[async_trait]
impl CallRooms for ActorBackend {
    async fn describe(&self, room: &RoomId) -> Result<Description, Refused> {
        let channel_key = self.room_of(room)?.0;
        let speech = &self.context.speech;
        Ok(Description {
            recognition: speech.recognition.provider(),
            recognises_words: speech.recognition.recognises_words(),
            synthesis: speech.synthesis.provider(),
            people: self.context.calls.get(&channel_key.channel).map(|call| call.people()).unwrap_or_default(),
        })
    }

    async fn enter(&self, room: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused> {
        let channel_key = self.room_of(room)?.0;
        let (context, voice) = (&self.context, &self.context.settings.voice);
        let channel_ref = ChannelRef { guild: channel_key.guild.clone(), channel: channel_key.channel.clone(), parent: None };
        let begin = || Call::new(channel_ref, context.clock.now(), context.recorder.instruments().clone());
        let Some(call) = context.calls.get_or_begin(&channel_key.channel, voice.max_calls, begin) else {
            return Err(full(format!(
                "{} calls are going on, which is the limit; try again, or raise voice.max_calls",
                voice.max_calls
            )));
        };
        let user = PersonId::from(&*entrance.from);
        let Some(entered) = call.enter(&user, entrance.has_microphone, entrance.listener, voice.max_people) else {
            context.calls.end(call.channel());
            let limit = voice.max_people;
            return Err(full(format!(
                "{limit} people are in this call, which is the limit; try again, or raise voice.max_people"
            )));
        };
        if let Some(moved) = entered.moved {
            moved.end(End::Moved);
        }
        let line = CallLine {
            call: call.clone(),
            user: user.clone(),
            line: entered.line,
            directory: context.directory.clone(),
            instruments: context.recorder.instruments().clone(),
        };
        if let Err(error) = presence::record(&Hearing::new(call.clone(), self.inbound.clone()), &user).await {
            drop(line);
            if call.remove(&user, Duration::ZERO) {
                context.calls.end(call.channel());
            }
            return Err(match error {
                InboundError::Later { after, detail } => Refused::Unavailable { detail, retry_after: Some(after) },
                InboundError::Broken(detail) => Refused::Broken(detail),
            });
        }
        match context.directory.find(&VoiceCallKey(channel_key.channel.clone())) {
            Some(actor) if actor.cast(CallMessage::Entered(user)).is_ok() => {}
            // Its guild starts it, and it looks by itself who is there.
            _ => {
                if let Some(switchboard) = context.directory.find(&SwitchboardKey()) {
                    let _ = switchboard.cast(SwitchboardMessage::Wake(channel_key.guild, channel_key.channel));
                }
            }
        }
        Ok(Arc::new(line))
    }
}

fn full(detail: String) -> Refused {
    Refused::TooMany { detail, retry_after: Duration::from_secs(10) }
}
