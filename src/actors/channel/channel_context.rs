//! The surroundings that every part of a channel uses: the channel's key, the shared context, and the channel's own actor.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorRef, ActorRuntime};
use tokio::sync::oneshot;

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{Source, Tell};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::messages::writer::{Accept, Refused, Request, WriteError};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::actors::writer::requests::send_to_writer;
use crate::domain::conversation::Conversation;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::journal::channel_key::ChannelKey;
use crate::ports::chat_platform::ChatPlatform;
use crate::telemetry::plain::Plain;
use crate::texts::Language;

#[derive(Clone)]
pub(super) struct ChannelContext {
    pub(super) key: ChannelKey,
    pub(super) context: Arc<ActorContext>,
    pub(super) actor: ActorRef<ChannelMessage>,
}

impl ChannelContext {
    /// The time of the machine's clock. Measurements use it. Decisions use the channel's own clock.
    pub(super) fn machine_time(&self) -> Moment {
        self.context.clock.now()
    }

    /// The newest event that prompts must not show, because a guest in the room must not know it.
    pub(super) fn hidden_upto(&self) -> Seq {
        self.context.guests.read(|guests| guests.hidden_upto(&self.key.channel, self.machine_time()))
    }

    /// The language of the server's own sentences in the channel.
    pub(super) fn language(&self) -> Language {
        let spoken = self.context.memberships.language(&self.key.channel);
        Language::of_code(spoken.as_deref().unwrap_or(&self.context.in_force().speech.language)).unwrap_or_default()
    }

    /// What a call of a tool costs.
    pub(super) fn price_of_call(&self, tool: &str) -> Option<UnitPrice> {
        let price = self.context.in_force().tools.prices.get(tool).copied()?;
        Some(UnitPrice::per_call(price, &self.context.settings.models.currency))
    }

    /// The channel's id, for log lines.
    pub(super) fn shown(&self) -> Plain<'_> {
        Plain(self.key.channel.as_str())
    }

    /// Sends a request to the writer. If the writer is not running, the request is dropped and thereby answered as lost. Then the channel fails and
    /// restarts.
    pub(super) fn send_to_writer(&self, request: Request) {
        drop(send_to_writer(&self.context, request));
    }

    /// Sends an inbound event to the writer, which returns it to the channel. An event with a known id is recorded once. If it is not known whether it
    /// was stored, the channel restarts, and reads its journal.
    pub(super) fn accept(&self, event: Event, id: Option<Arc<str>>) {
        let lost = |refused| match refused {
            Refused::WriteError(lost) => ChannelMessage::NotHandedOver(lost),
            refused => ChannelMessage::NotHandedOver(WriteError::Unavailable(refused.to_string().into())),
        };
        let (channel_key, reply) = (self.key.clone(), self.reply(move |result| result.err().map(lost)));
        self.send_to_writer(Request::Accept(Accept { channel_key, at: None, event, id, files: Vec::new(), reply }));
    }

    /// A reply that is sent to the channel as this message, if there is one. A channel that has stopped needs no message, because it reads its
    /// journal when it restarts.
    pub(super) fn reply<T, E: From<Dropped>>(
        &self,
        message: impl FnOnce(Result<T, E>) -> Option<ChannelMessage> + Send + 'static,
    ) -> Reply<T, E> {
        let channel = self.actor.clone();
        Reply::new(move |result| {
            if let Some(message) = message(result) {
                let _ = channel.cast(message);
            }
        })
    }

    /// Returns a function that sends messages to this channel, or to its successor. A channel that has stopped asks again when it restarts.
    pub(super) fn message_sender(&self) -> Tell {
        let (directory, at) = (self.context.directory.clone(), ChannelActorKey(self.key.channel.clone()));
        Arc::new(move |message| {
            if let Some(channel) = directory.find(&at) {
                let _ = channel.cast(message);
            }
        })
    }

    /// The source of a prompt's input. It is looked up in the conversation each time it is needed.
    pub(super) fn source<T: Send + 'static>(
        &self,
        find: impl Fn(&Conversation) -> Option<T> + Clone + Send + Sync + 'static,
    ) -> Source<T> {
        let tell = self.message_sender();
        Arc::new(move || {
            let (find, (sender, found)) = (find.clone(), oneshot::channel());
            let read = move |conversation: &Conversation| drop(find(conversation).map(|found| sender.send(found)));
            tell(ChannelMessage::Read(Box::new(read)));
            Box::pin(async { found.await.ok() })
        })
    }

    /// Whether a companion is no longer configured.
    pub(super) fn is_absent(&self, companion: &CompanionId) -> bool {
        self.context.memberships.companion(&self.key.channel, companion).is_none()
    }

    /// The platform of the channel, unless it is the console.
    pub(super) fn platform(&self) -> Option<Arc<dyn ChatPlatform>> {
        self.context.platforms.of(&self.key.channel)
    }

    /// Whether the platform knows that it cannot post in this channel at the moment.
    pub(super) fn is_unpostable(&self) -> bool {
        self.platform().is_some_and(|platform| platform.is_unpostable(&self.key.channel))
    }

    /// Starts an actor that is linked to the channel. Logs `failure` if the actor cannot be started.
    pub(super) fn start<A: Actor>(&self, actor: A, arguments: A::Arguments, failure: &'static str) -> Option<ActorRef<A::Msg>> {
        match ActorRuntime::spawn_linked_instant(None, actor, arguments, self.actor.get_cell()) {
            Ok((actor, _)) => Some(actor),
            Err(error) => {
                tracing::error!(channel = %self.shown(), %error, "{failure}");
                None
            }
        }
    }

    /// Records that an actor of the channel died and is replaced.
    pub(super) fn record_restart(&self, sort: Sort, ending: &'static str) {
        self.context.restarted(sort, self.key.channel.as_str(), ending, Duration::ZERO);
    }
}
