//! The voice calls of rooms, for platforms that carry audio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::ActorBackend;
use crate::actors::calls::call::{Call, Entered};
use crate::actors::calls::hearing::Hearing;
use crate::actors::calls::{CallLine, presence};
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::voice_call::CallMessage;
use crate::actors::runtime::actor_keys::{SwitchboardKey, VoiceCallKey};
use crate::domain::id::PersonId;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::call_room::{CallRooms, Description, End, Entrance, Line, SpeechService};
use crate::ports::inbound_events::{ChannelRef, InboundError};

#[async_trait]
impl CallRooms for ActorBackend {
    async fn describe(&self, room: &RoomId) -> Result<Description, Refused> {
        let channel_key = self.room_of(room)?.0;
        self.check_writable(room)?;
        let speech = &self.context.speech;
        Ok(Description {
            recognition: SpeechService { provider: speech.recognition.provider(), host: speech.recognition.host() },
            recognises_words: speech.recognition.recognises_words(),
            synthesis: SpeechService { provider: speech.synthesis.provider(), host: speech.synthesis.host() },
            people: self.context.calls.get(&channel_key.channel).map(|call| call.people()).unwrap_or_default(),
        })
    }

    async fn admits(&self, room: &RoomId, from: &str) -> Result<(), Refused> {
        let channel = self.room_of(room)?.0.channel;
        self.check_writable(room)?;
        let (calls, voice) = (&self.context.calls, &self.context.settings.voice);
        match calls.get(&channel) {
            Some(call) if call.person(&PersonId::from(from)).is_none() && call.people().len() >= voice.max_people => {
                Err(too_many_people(voice.max_people))
            }
            None if calls.all().len() >= voice.max_calls => Err(too_many_calls(voice.max_calls)),
            Some(_) | None => Ok(()),
        }
    }

    async fn enter(&self, room: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused> {
        let channel_key = self.room_of(room)?.0;
        self.check_writable(room)?;
        let (context, voice) = (&self.context, &self.context.settings.voice);
        let channel_ref = ChannelRef { guild: channel_key.guild.clone(), channel: channel_key.channel.clone(), parent: None };
        let begin = || Call::new(channel_ref, context.clock.now(), context.recorder.instruments().clone());
        let call = context.calls.get_or_begin(&channel_key.channel, voice.max_calls, begin);
        let call = call.ok_or_else(|| too_many_calls(voice.max_calls))?;
        let user = PersonId::from(&*entrance.from);
        let entered = call.enter(&user, entrance.has_microphone, entrance.listener, voice.max_people);
        let Entered { line, moved } = entered.ok_or_else(|| too_many_people(voice.max_people))?;
        if let Some(moved) = moved {
            moved.end(End::Moved);
        }
        // Dropping it counts as a lost connection.
        let line = CallLine {
            call: call.clone(),
            user: user.clone(),
            line,
            directory: context.directory.clone(),
            instruments: context.recorder.instruments().clone(),
        };
        let hearing = Hearing::new(call, self.inbound.clone());
        let entering = user.clone();
        // It goes on if the caller is cancelled, so that nobody is on record who is not known to be.
        let recorded = tokio::spawn(async move { presence::record(&hearing, &entering).await }).await;
        match context.directory.find(&VoiceCallKey(channel_key.channel.clone())) {
            Some(actor) if actor.cast(CallMessage::Entered(user)).is_ok() => {}
            // Its guild starts it, and it looks by itself who is there, and who is not.
            _ => {
                if let Some(switchboard) = context.directory.find(&SwitchboardKey()) {
                    let _ = switchboard.cast(SwitchboardMessage::Wake(channel_key.guild, channel_key.channel));
                }
            }
        }
        match recorded {
            Ok(Ok(())) => Ok(Arc::new(line)),
            Ok(Err(InboundError::Later { after, detail })) => Err(Refused::Unavailable { detail, retry_after: Some(after) }),
            Ok(Err(InboundError::Broken(detail))) => Err(Refused::Broken(detail)),
            Err(_) => Err(Refused::Broken("the entrance into the call failed; see the server's log".to_owned())),
        }
    }
}

fn too_many_calls(limit: usize) -> Refused {
    full(format!("{limit} calls are going on, which is the limit; try again, or raise voice.max_calls"))
}

fn too_many_people(limit: usize) -> Refused {
    full(format!("{limit} people are in this call, which is the limit; try again, or raise voice.max_people"))
}

fn full(detail: String) -> Refused {
    Refused::TooMany { detail, retry_after: Duration::from_secs(10) }
}
