use proptest::prelude::*;

use super::super::*;
use super::world::{World, channel_key, made_event, said};
use crate::domain::conversation::{self, Conversation, SummaryLimits};
use crate::domain::event::{Evaluated, Event, Recorded, order_of_handling};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::reader::Range;
use crate::samples::{self, evaluated, reply_owed};

/// A step in the life of a channel.
#[derive(Clone, Debug)]
enum Step {
    /// An inbound event is accepted.
    Accepted(u8),
    /// The channel handles its next unhandled event.
    Handled,
    /// The channel makes an event, with a snapshot or without.
    Made(u8, bool),
    /// The channel records only a snapshot.
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8_u8).prop_map(Step::Accepted),
        4 => Just(Step::Handled),
        4 => (0..7_u8, any::<bool>()).prop_map(|(kind, snapshot)| Step::Made(kind, snapshot)),
        1 => Just(Step::Snapshot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_conversation_is_the_fold_of_everything(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();

        let (restored, folded, live) = runtime.block_on(run(steps));

        prop_assert_eq!(&restored, &folded);
        prop_assert_eq!(&restored, &live);
    }
}

/// Runs the steps. Returns the conversation as restored, as folded from the first event, and as it was live.
async fn run(steps: Vec<Step>) -> (Conversation, Conversation, Conversation) {
    let world = World::new().await;
    let mut live = Conversation::default();
    let mut handled = Seq::NONE;
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Accepted(kind) => {
                let at = Some(Moment::from_micros(number as u64 * 400_000));
                world.accept_event("lobby", at, inbound_event(kind, number), None).await.unwrap().unwrap();
            }
            Step::Handled => {
                handle_next(&world, &mut live, &mut handled).await;
            }
            Step::Made(kind, with_snapshot) => {
                let event = made_by_channel(kind, number, handled);
                let at = live.clock();
                let recorded = Recorded { seq: Seq::NONE, at, handled, turn: None, event: event.clone() };
                with_world(|world| live.fold(&recorded, world));
                let snapshot = with_snapshot.then(|| Box::new(live.clone()));
                let answer = world.record(|record| {
                    record.at = at;
                    record.made = vec![made_event(handled, event)];
                    record.snapshot = snapshot;
                });
                answer.await.unwrap().unwrap();
            }
            Step::Snapshot => {
                let snapshot = Some(Box::new(live.clone()));
                world.record(|record| record.snapshot = snapshot).await.unwrap().unwrap();
            }
        }
    }
    while handle_next(&world, &mut live, &mut handled).await {}

    let restored = world.reader().restore(&channel_key("lobby")).await.unwrap();
    let mut from_snapshot = restored.snapshot.map(|snapshot| snapshot.conversation).unwrap_or_default();
    with_world(|world| restored.events.iter().for_each(|event| from_snapshot.fold(event, world)));

    let mut events = all(&world).await;
    order_of_handling(&mut events);
    let mut folded = Conversation::default();
    with_world(|world| events.iter().for_each(|event| folded.fold(event, world)));
    (from_snapshot, folded, live)
}

async fn handle_next(world: &World, live: &mut Conversation, handled: &mut Seq) -> bool {
    let Some(next) = all(world).await.into_iter().find(|event| event.event.is_inbound() && event.seq > *handled) else {
        return false;
    };
    with_world(|world| live.fold(&next, world));
    *handled = next.seq;
    true
}

async fn all(world: &World) -> Vec<Recorded> {
    let all = Range { after: Seq::NONE, before: None, limit: usize::MAX, newest_first: false };
    world.reader().events(&channel_key("lobby"), all).await.unwrap()
}

fn inbound_event(kind: u8, number: usize) -> Event {
    let companion = CompanionId::from("aria");
    match kind {
        0 => Event::Joined { companion, external: false },
        1 => Event::deleted(vec![Seq(number as u64 / 2)]),
        2 => Event::Edited { message: Seq(number as u64 / 2), text: "changed".into(), captions: Vec::new(), version: None },
        3 if number.is_multiple_of(3) => Event::Left { companion },
        4 if number.is_multiple_of(5) => Event::cleared(),
        5 => Event::Paused { companion: None, paused: number.is_multiple_of(2) },
        _ => said(&format!("text {number}"), Role::Person),
    }
}

fn made_by_channel(kind: u8, number: usize, handled: Seq) -> Event {
    let companion = CompanionId::from("aria");
    let ticket = Ticket(number as u64);
    match kind {
        0 => Event::JitterDrawn { companion, next_interjection_at: number as u64 },
        1 => Event::Summarised { upto: handled, text: "so far".into(), messages: 1 },
        2 => reply_owed("aria", ticket, Trigger::Lull, vec![handled]),
        3 => Event::ReplyFailed {
            companion,
            ticket: Ticket(ticket.0.saturating_sub(1)),
            trigger: Trigger::Lull,
            error: "timeout".into(),
            category: None,
        },
        4 => Event::Unanswered {
            companion,
            ticket,
            trigger: Trigger::Lull,
            error: "timeout".into(),
            back_off: Duration::from_secs(2),
        },
        _ => Event::Evaluated(Evaluated {
            trigger: Trigger::Interjection,
            threshold: Some(3),
            ..evaluated("aria", ticket, handled)
        }),
    }
}

fn with_world(fold: impl FnOnce(&mut conversation::World<'_>)) {
    samples::with_world(|world| {
        world.summary = Some(SummaryLimits { messages: 40, tokens: 2_000 });
        fold(world);
    });
}
