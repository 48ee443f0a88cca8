//! Stories of a room with a long past: no unnecessary events are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::super::world::{World, channel_key, room};
use crate::actors::runtime::context::ActorContext;
use crate::adapters::store::memory::MemoryStore;
use crate::backend;
use crate::domain::id::{Seq, Ward};
use crate::domain::moment::Moment;
use crate::ports::backend::Backend;
use crate::ports::backend::decisions::{Why, WhyAt, WhyQuery};
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value};
use crate::texts::Language;

/// The number of events in the room's past.
const EVENTS: u64 = 6_000;

/// A store that counts the values that are read from it.
struct Counted {
    store: Arc<MemoryStore>,
    read: AtomicUsize,
}

#[async_trait]
impl Store for Counted {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        self.store.acquire_ward(ward).await
    }

    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.store.commit(group).await
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.store.get(key).await
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        let page = self.store.scan(from, to, newest_first, limit).await?;
        self.read.fetch_add(page.len().max(1), Ordering::Relaxed);
        Ok(page)
    }
}

#[tokio::test(start_paused = true)]
async fn a_story_of_the_beginning_of_a_long_past_is_found_with_few_reads() {
    let world = World::with_lobby().await;
    let first = world.say_then_pass("lobby", "the very first", 60.0).await;
    let beginning = world.context.clock.now();
    let mut middle = None;
    while last(&world).await < Seq(EVENTS) {
        // A burst, whose questions are asked one after the other.
        for number in 0..200 {
            world.say("lobby", &format!("number {number}")).await;
        }
        world.pass(120.0).await;
        middle = middle.or_else(|| Some(world.context.clock.now()));
    }
    let counted = Arc::new(Counted { store: world.store.clone(), read: AtomicUsize::new(0) });
    let context = ActorContext { store: counted.clone(), ..world.context.clone() };
    let backend = backend::backend(context, world.store.clone());

    let by_time = reads(&backend, &counted, WhyAt::Moment(beginning)).await;
    let by_number = reads(&backend, &counted, WhyAt::Event(first)).await;
    let by_message = reads(&backend, &counted, WhyAt::Message(first.to_string().into())).await;
    let in_the_middle = reads(&backend, &counted, WhyAt::Moment(middle.unwrap())).await;
    let before_everything = reads(&backend, &counted, WhyAt::Moment(Moment::ZERO)).await;

    for (why, read) in [&by_time, &by_number, &by_message] {
        assert_eq!(why.story[0].text, "Ana said: “the very first”");
        assert_eq!(&*why.decision.as_ref().unwrap().reason, "model_no");
        assert!(*read < 1_000, "{read} values were read");
    }
    assert!(in_the_middle.0.decision.is_some() && in_the_middle.1 < 1_500, "{} values were read", in_the_middle.1);
    assert!(before_everything.0.decision.is_none() && before_everything.1 < 1_000, "{} values were read", before_everything.1);
}

async fn reads(backend: &Backend, counted: &Counted, at: WhyAt) -> (Why, usize) {
    let before = counted.read.load(Ordering::Relaxed);
    let why = backend
        .records
        .why(WhyQuery { room: room("lobby"), companion: None, at: Some(at), language: Language::English })
        .await
        .unwrap();
    (why, counted.read.load(Ordering::Relaxed) - before)
}

async fn last(world: &World) -> Seq {
    world.reader().head(&channel_key("lobby")).await.unwrap().last
}
