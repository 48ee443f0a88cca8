//! What tests of a channel's parts share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use serde_json::json;
use tokio::sync::mpsc;

use super::channel_context::ChannelContext;
use super::world::ChannelWorld;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::system::{SystemClock, SystemRng};
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::settings::Settings;
use crate::telemetry::recorder::Recorder;

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
    let settings = Arc::new(Settings::overlay(json!({})).unwrap());
    let model = || Arc::new(Rehearsal::new(&settings.models.rehearsal));
    let context = ActorContext::new(Environment {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        rng: Arc::new(SystemRng),
        models: Models::new(model(), model()),
        recorder: Recorder::silent(),
        settings: settings.clone(),
        companions: BTreeMap::new(),
    });
    let (actor, received) = probe().await;
    let key = ChannelKey::new(&"home".into(), &"console:lobby".into());
    (ChannelContext { key, context: Arc::new(context), actor }, received)
}

/// The conversation after these events, the first of which has the number 1.
pub(super) fn conversation_after(channel: &ChannelContext, events: impl IntoIterator<Item = Event>) -> Conversation {
    let mut conversation = Conversation::default();
    for (seq, event) in (1..).zip(events) {
        let recorded = Recorded { seq: Seq(seq), at: Moment::from_micros(seq), handled: Seq::NONE, turn: None, event };
        ChannelWorld::new(Arc::default()).with(channel, |world| conversation.fold(&recorded, world));
    }
    conversation
}
