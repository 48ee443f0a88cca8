//! What tests of a channel's parts share.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use tokio::sync::mpsc;

use super::channel_context::ChannelContext;
use super::world::ChannelWorld;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::samples::{context, lobby, recorded};

/// Forwards its messages to the test.
struct Probe<M>(mpsc::UnboundedSender<M>);

impl<M: Message> Actor for Probe<M> {
    type Msg = M;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<M>, message: M, (): &mut ()) -> Result<(), ActorProcessingErr> {
        // The test may be over.
        let _ = self.0.send(message);
        Ok(())
    }
}

pub(super) async fn probe<M: Message>() -> (ActorRef<M>, mpsc::UnboundedReceiver<M>) {
    let (sender, received) = mpsc::unbounded_channel();
    let (actor, _) = Actor::spawn(None, Probe(sender), ()).await.unwrap();
    (actor, received)
}

pub(super) async fn next<M>(received: &mut mpsc::UnboundedReceiver<M>) -> M {
    tokio::time::timeout(Duration::from_secs(60), received.recv()).await.unwrap().unwrap()
}

/// The surroundings of a channel in which no other actor runs, and what the channel receives.
pub(super) async fn channel_context() -> (ChannelContext, mpsc::UnboundedReceiver<ChannelMessage>) {
    let (actor, received) = probe().await;
    (ChannelContext { key: lobby(), context: Arc::new(context()), actor }, received)
}

/// The conversation after these events, the first of which has the number 1.
pub(super) fn conversation_after(channel: &ChannelContext, events: impl IntoIterator<Item = Event>) -> Conversation {
    let mut conversation = Conversation::default();
    for (seq, event) in (1..).zip(events) {
        let recorded = Recorded { at: Moment::from_micros(seq), handled: Seq::NONE, ..recorded(seq, event) };
        ChannelWorld::new(Arc::default()).with(channel, |world| conversation.fold(&recorded, world));
    }
    conversation
}
