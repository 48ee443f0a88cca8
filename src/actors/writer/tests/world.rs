//! A writer on an in-memory store, with its collaborators.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use tokio::sync::oneshot::Receiver;

use super::super::*;
use crate::actors::messages::channel::Received;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{
    Accept, Accepted, Committed, DeleteChannel, Fence, Post, Record, Refused, Request, WriteError,
};
use crate::actors::runtime::hub::Hub;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Range;
use crate::journal::samples::store::TestStore;
use crate::ports::clock::Clock;
use crate::samples::{self, author, message};
pub(super) use crate::samples::{channel_key, made as made_event, outbox_record};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::recorder::Recorder;

/// The messages to channels, each as the numbers of its events.
type Delivered = Vec<(ChannelKey, Vec<Seq>)>;

pub(super) struct World {
    pub(super) store: Arc<TestStore>,
    pub(super) writer: ActorRef<WriterMessage>,
    pub(super) hub: Hub,
    pub(super) clock: Arc<TestClock>,
    pub(super) delivered: Arc<Mutex<Delivered>>,
    pub(super) failures: Arc<Mutex<Vec<String>>>,
    pub(super) metrics: Metrics,
}

#[derive(Default)]
pub(super) struct TestClock(pub(super) AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl World {
    pub(super) async fn new() -> Self {
        Self::on(Arc::new(TestStore::new()), Bounds::default()).await
    }

    pub(super) async fn bounded(bounds: Bounds) -> Self {
        Self::on(Arc::new(TestStore::new()), bounds).await
    }

    /// A writer that has accepted one message, with the id `a`, in the lobby.
    pub(super) async fn with_one() -> Self {
        Self::bounded_with_one(Bounds::default()).await
    }

    pub(super) async fn bounded_with_one(bounds: Bounds) -> Self {
        let world = Self::bounded(bounds).await;
        world.accept("lobby", "one", Some("a")).await.unwrap().unwrap();
        world
    }

    pub(super) async fn on(store: Arc<TestStore>, bounds: Bounds) -> Self {
        let (hub, clock) = (Hub::new(), Arc::<TestClock>::default());
        let (delivered, failures) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let metrics = Metrics::local();
        let (deliver_to, report_to) = (delivered.clone(), failures.clone());
        let context = ActorContext {
            store: store.clone(),
            clock: clock.clone(),
            hub: hub.clone(),
            recorder: Recorder::new(None, false, metrics.instruments()),
            store_failed: Arc::new(move |why| report_to.lock().push(why)),
            ..samples::context()
        };
        let arguments = Arguments {
            context,
            deliver: Arc::new(move |guild, channel, message| {
                let delivered = match message {
                    ChannelMessage::Received(Received::Inbound(recorded, _)) => vec![*recorded],
                    ChannelMessage::Received(Received::HandedOver(batch, _)) => batch,
                    _ => Vec::new(),
                };
                let delivered = delivered.iter().map(|recorded| recorded.seq).collect();
                deliver_to.lock().push((ChannelKey::new(guild, channel), delivered));
            }),
            bounds,
        };
        let (writer, _) = Writer::spawn(None, Writer, arguments).await.unwrap();
        Self { store, writer, hub, clock, delivered, failures, metrics }
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.store)
    }

    pub(super) fn send(&self, request: Request) {
        self.writer.cast(WriterMessage::Request(request)).unwrap();
    }

    pub(super) fn accept(&self, channel: &str, text: &str, id: Option<&str>) -> Receiver<Result<Accepted, Refused>> {
        self.accept_from("ana", channel, text, id)
    }

    pub(super) fn accept_from(
        &self,
        person: &str,
        channel: &str,
        text: &str,
        id: Option<&str>,
    ) -> Receiver<Result<Accepted, Refused>> {
        self.accept_event(channel, None, samples::said(message(samples::person(person), text)), id)
    }

    pub(super) fn accept_event(
        &self,
        channel: &str,
        at: Option<Moment>,
        event: Event,
        id: Option<&str>,
    ) -> Receiver<Result<Accepted, Refused>> {
        let (reply, answer) = Reply::awaited();
        let accept = Accept { channel_key: channel_key(channel), at, event, id: id.map(Into::into), files: Vec::new(), reply };
        // A writer that has stopped answers, too.
        let _ = self.writer.cast(WriterMessage::Request(Request::Accept(accept)));
        answer
    }

    pub(super) fn record(&self, record: impl FnOnce(&mut Record)) -> Receiver<Result<Committed, WriteError>> {
        let (reply, answer) = Reply::awaited();
        let mut empty = Record::new(channel_key("lobby"), Moment::ZERO, reply);
        record(&mut empty);
        self.send(Request::Record(empty));
        answer
    }

    pub(super) fn post(&self, text: &str, ticket: Ticket) -> Receiver<Result<Accepted, WriteError>> {
        let (reply, answer) = Reply::awaited();
        let event = said(text, Role::Companion);
        self.send(Request::Post(Post {
            turn: None,
            channel_key: channel_key("lobby"),
            at: None,
            event,
            disclosed: None,
            ids: Vec::new(),
            replaces: None,
            ticket,
            usage: Vec::new(),
            reply,
        }));
        answer
    }

    pub(super) fn delete(&self, channel: &str) -> Receiver<Result<(), WriteError>> {
        let (reply, answer) = Reply::awaited();
        self.send(Request::DeleteChannel(DeleteChannel { channel_key: channel_key(channel), reply }));
        answer
    }

    pub(super) fn fence(&self, channel: &str) -> Receiver<Result<Seq, WriteError>> {
        let (reply, answer) = Reply::awaited();
        self.send(Request::Fence(Fence { channel_key: channel_key(channel), reply }));
        answer
    }

    /// All of these requests are accepted.
    pub(super) async fn all(answers: impl IntoIterator<Item = Receiver<Result<Accepted, Refused>>>) -> Vec<Accepted> {
        let mut accepted = Vec::new();
        for answer in answers {
            accepted.push(answer.await.unwrap().unwrap());
        }
        accepted
    }

    /// Lets the writer handle the messages that it was sent.
    pub(super) async fn finish(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    /// The texts in a channel's journal, by number.
    pub(super) async fn texts(&self, channel: &str) -> Vec<(u64, String)> {
        let all = Range { after: Seq::NONE, before: None, limit: usize::MAX, newest_first: false };
        let events = self.reader().events(&channel_key(channel), all).await.unwrap();
        let text = |event: &Event| match event {
            Event::Said { message, .. } => message.text.to_string(),
            other => format!("{other:?}"),
        };
        events.iter().map(|recorded| (recorded.seq.0, text(&recorded.event))).collect()
    }

    pub(super) fn delivered_to(&self, channel: &str) -> Vec<u64> {
        let delivered = self.delivered.lock();
        delivered.iter().filter(|(to, _)| *to == channel_key(channel)).flat_map(|(_, seqs)| seqs).map(|seq| seq.0).collect()
    }

    /// The numbers of the events of each message to a channel.
    pub(super) fn batches_delivered(&self) -> Vec<Vec<u64>> {
        self.delivered.lock().iter().map(|(_, seqs)| seqs.iter().map(|seq| seq.0).collect()).collect()
    }

    pub(super) async fn is_pending(&self, channel: &str) -> bool {
        self.reader().head(&channel_key(channel)).await.unwrap().pending.is_some()
    }
}

pub(super) fn said(text: &str, role: Role) -> Event {
    samples::said(message(author("ana", role), text))
}

pub(super) fn jitter(next: u64) -> Event {
    Event::JitterDrawn { companion: "aria".into(), next_interjection_at: next }
}

pub(super) fn new(seq: u64) -> Accepted {
    Accepted { seq: Seq(seq), is_new: true }
}

pub(super) fn retry(seq: u64) -> Accepted {
    Accepted { seq: Seq(seq), is_new: false }
}
