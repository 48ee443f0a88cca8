//! Entering a call, as a person or as the connection that plays it to all.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::call_handle::CallHandle;
use super::presence;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::voice_call::{CallMessage, VoiceUserMessage};
use crate::actors::runtime::actor_keys::{SwitchboardKey, VoiceCallKey, VoiceUserKey};
use crate::actors::runtime::context::ActorContext;
use crate::domain::call::{Gone, Input};
use crate::domain::id::PersonId;
use crate::domain::message::Author;
use crate::ports::backend::{Detail, Refused};
use crate::ports::call_room::{Entrance, Line, Listener, PersonAction};
use crate::ports::inbound_events::InboundError;
use crate::ports::platform_call::PlatformCall;

/// A connection to a call: of one person, or of the listener that plays to all. Dropping it counts as a lost connection.
struct CallLine {
    hearing: CallHandle,
    line: u64,
}

impl Line for CallLine {
    fn push_packet(&self, number: u32, packet: &[u8]) {
        let call = &self.hearing.call;
        if let Some(user) = call.push_packet(self.line, number, packet) {
            self.hearing.cast(&VoiceUserKey(call.channel().clone(), user), VoiceUserMessage::Packets);
        }
    }

    fn report(&self, action: PersonAction) {
        self.hearing.report(Input::Acted { line: self.line, action });
    }
}

impl Drop for CallLine {
    fn drop(&mut self) {
        self.hearing.report(Input::Parted { line: self.line, gone: Gone::Lost });
    }
}

/// A call that people can enter.
pub struct Joined(CallHandle);

impl Joined {
    pub const fn new(hearing: CallHandle) -> Self {
        Self(hearing)
    }

    /// Enters the call. The entrance is journaled when this returns.
    ///
    /// # Errors
    /// Returns an error if the call is full, or if the store does not accept the entrance, now or ever.
    pub async fn enter(&self, Entrance { author, has_microphone, listener }: Entrance) -> Result<Arc<dyn Line>, Refused> {
        self.add(author, has_microphone, Some(listener)).await
    }

    async fn add(
        &self,
        author: Author,
        has_microphone: bool,
        listener: Option<Arc<dyn Listener>>,
    ) -> Result<Arc<dyn Line>, Refused> {
        let (call, context) = (&self.0.call, self.0.context());
        let user = PersonId::from(&*author.id);
        let most = context.settings.voice.max_people;
        let line = call.enter(author, has_microphone, listener, most);
        let line = CallLine { hearing: self.0.clone(), line: line.ok_or_else(|| too_many_people(context))? };
        let (hearing, entering) = (self.0.clone(), user.clone());
        // A task of its own finishes even if the caller is cancelled. Otherwise the journal could list a person whom this call does not know.
        let recorded = tokio::spawn(async move { presence::record(&hearing, &entering).await }).await;
        match context.directory.find(&VoiceCallKey(call.channel().clone())) {
            Some(actor) if actor.cast(CallMessage::Handle(Input::Entered { user })).is_ok() => {}
            // Its guild starts the actor, which then reads the people from the state of the call.
            _ => wake(&self.0),
        }
        match recorded {
            Ok(Ok(())) => Ok(Arc::new(line)),
            Ok(Err(InboundError::Later { after, detail })) => {
                Err(Refused::Unavailable { detail: detail.into(), retry_after: Some(after) })
            }
            Ok(Err(InboundError::Broken(detail))) => Err(Refused::broken(detail)),
            Err(_) => Err(Refused::broken(Detail::key("refusals.failed"))),
        }
    }
}

pub fn wake(hearing: &CallHandle) {
    let channel_ref = hearing.call.channel_ref();
    if let Some(switchboard) = hearing.context().directory.find(&SwitchboardKey()) {
        // A switchboard that is being restarted starts all calls.
        let _ = switchboard.cast(SwitchboardMessage::Wake(channel_ref.guild.clone(), channel_ref.channel.clone()));
    }
}

#[async_trait]
impl PlatformCall for Joined {
    async fn enter(&self, author: Author) -> Result<Arc<dyn Line>, Refused> {
        // The connection of the whole call shows the call to this person.
        self.add(author, true, None).await
    }

    fn attach(&self, listener: Arc<dyn Listener>) -> Arc<dyn Line> {
        let (hearing, line) = (self.0.clone(), self.0.call.attach(listener));
        Arc::new(CallLine { hearing, line })
    }
}

pub fn too_many_people(context: &ActorContext) -> Refused {
    let limit = context.settings.voice.max_people;
    full(context, "people", Detail::of("refusals.too_many_people", json!({ "most": limit })))
}

pub fn too_many_calls(context: &ActorContext) -> Refused {
    let limit = context.settings.voice.max_calls;
    full(context, "calls", Detail::of("refusals.too_many_calls", json!({ "most": limit })))
}

fn full(context: &ActorContext, limit: &'static str, detail: Detail) -> Refused {
    context.recorder.instruments().voice_refusals.add(1, [limit]);
    Refused::TooMany { detail, retry_after: std::time::Duration::from_secs(10) }
}
