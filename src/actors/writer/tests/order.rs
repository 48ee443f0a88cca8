use std::collections::HashMap;

use proptest::prelude::*;

use super::super::*;
use super::world::{World, jitter, made_event};
use crate::actors::messages::writer::Accepted;
use crate::domain::id::Seq;

/// An action on the writer or its store.
#[derive(Clone, Debug)]
enum Action {
    /// A message arrives in a channel, with an id or without.
    Accept(u8, Option<u8>),
    /// A channel makes this many events.
    Make(u8, u8),
    Hold,
    Release,
    Settle,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..3_u8, prop::option::of(0..6_u8)).prop_map(|(channel, id)| Action::Accept(channel, id)),
        2 => (0..3_u8, 0..3_u8).prop_map(|(channel, events)| Action::Make(channel, events)),
        1 => Just(Action::Hold),
        1 => Just(Action::Release),
        2 => Just(Action::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_channel_is_numbered_in_the_order_of_its_requests(actions in prop::collection::vec(action(), 1..80), size in 1..6_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();

        let (answered, stored) = runtime.block_on(run(actions, size));

        prop_assert_eq!(answered, stored);
    }
}

type Journals = HashMap<String, Vec<(u64, String)>>;

/// Runs the actions. Returns the journals as expected from the order of requests, and the journals as stored.
async fn run(actions: Vec<Action>, group_batches: usize) -> (Journals, Journals) {
    let world = World::bounded(Bounds { group_batches, ahead: group_batches, journals: 2, ..Bounds::default() }).await;
    let (mut accepted, mut made) = (Vec::new(), Vec::new());
    let (mut expected, mut first): (Journals, HashMap<_, u64>) = (HashMap::new(), HashMap::new());
    for (step, action) in actions.into_iter().enumerate() {
        match action {
            Action::Accept(channel, id) => {
                let (channel, id, text) = (format!("room{channel}"), id.map(|id| id.to_string()), format!("text {step}"));
                let journal = expected.entry(channel.clone()).or_default();
                let next = journal.len() as u64 + 1;
                let number = id.clone().map_or(next, |id| *first.entry((channel.clone(), id)).or_insert(next));
                if number == next {
                    journal.push((next, text.clone()));
                }
                accepted
                    .push((Accepted { seq: Seq(number), is_new: number == next }, world.accept(&channel, &text, id.as_deref())));
            }
            Action::Make(channel, events) => {
                let channel = format!("room{channel}");
                let journal = expected.entry(channel.clone()).or_default();
                for _ in 0..events {
                    journal.push((journal.len() as u64 + 1, format!("{:?}", jitter(step as u64))));
                }
                let last = Seq(journal.len() as u64);
                let answer = world.record(|record| {
                    record.channel_key.channel = channel.as_str().into();
                    record.made = (0..events).map(|_| made_event(Seq::NONE, jitter(step as u64))).collect();
                });
                made.push((last, answer));
            }
            Action::Hold => world.store.hold(),
            Action::Release => world.store.release(),
            Action::Settle => world.finish().await,
        }
    }
    world.store.release();

    for (expected, answer) in accepted {
        assert_eq!(answer.await.unwrap(), Ok(expected));
    }
    for (last, answer) in made {
        assert_eq!(answer.await.unwrap().map(|committed| committed.last), Ok(last));
    }
    let mut stored = HashMap::new();
    for channel in expected.keys() {
        stored.insert(channel.clone(), world.texts(channel).await);
    }
    (expected, stored)
}
