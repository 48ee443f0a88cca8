use std::collections::HashMap;

use proptest::prelude::*;

use super::super::*;
use super::world::{World, jitter, made_event};
use crate::actors::messages::writer::Accepted;
use crate::domain::id::Seq;

/// What somebody does to the writer or to its store.
#[derive(Clone, Debug)]
enum Deed {
    /// Something is said in a channel, perhaps with an id.
    Hear(u8, Option<u8>),
    /// A channel makes so many events.
    Make(u8, u8),
    Hold,
    Release,
    Settle,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..3_u8, prop::option::of(0..6_u8)).prop_map(|(channel, id)| Deed::Hear(channel, id)),
        2 => (0..3_u8, 0..3_u8).prop_map(|(channel, events)| Deed::Make(channel, events)),
        1 => Just(Deed::Hold),
        1 => Just(Deed::Release),
        2 => Just(Deed::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_arrives_when_each_channel_is_numbered_in_the_order_of_its_requests(deeds in prop::collection::vec(deed(), 1..80), size in 1..6_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();

        let (answered, stored) = runtime.block_on(live_through(deeds, size));

        prop_assert_eq!(answered, stored);
    }
}

type Journals = HashMap<String, Vec<(u64, String)>>;

/// What the journals should hold by the answers, numbered by the order of requests; and what they do hold.
async fn live_through(deeds: Vec<Deed>, group_batches: usize) -> (Journals, Journals) {
    let world = World::bounded(Bounds { group_batches, ahead: group_batches, journals: 2, ..Bounds::default() }).await;
    let (mut heard, mut made) = (Vec::new(), Vec::new());
    let (mut expected, mut first): (Journals, HashMap<_, u64>) = (HashMap::new(), HashMap::new());
    for (step, deed) in deeds.into_iter().enumerate() {
        match deed {
            Deed::Hear(channel, id) => {
                let (channel, id, text) = (format!("room{channel}"), id.map(|id| id.to_string()), format!("text {step}"));
                let journal = expected.entry(channel.clone()).or_default();
                let next = journal.len() as u64 + 1;
                let number = id.clone().map_or(next, |id| *first.entry((channel.clone(), id)).or_insert(next));
                if number == next {
                    journal.push((next, text.clone()));
                }
                heard.push((Accepted { seq: Seq(number), is_new: number == next }, world.hear(&channel, &text, id.as_deref())));
            }
            Deed::Make(channel, events) => {
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
            Deed::Hold => world.store.hold(),
            Deed::Release => world.store.release(),
            Deed::Settle => world.finish().await,
        }
    }
    world.store.release();

    for (expected, answer) in heard {
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
