mod fold;
mod hand_over;
mod order;
mod persons;
mod world;

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::world::{World, channel_key, jitter, made_event, new, outbox_record, retry, said};
use super::*;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Committed, OutboxWrite, Quiet, Refused, Request, WriteError, WriteMeta};
use crate::actors::runtime::hub::Live;
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::erased;
use crate::journal::key;
use crate::journal::reader::{Pending, Range};
use crate::journal::record::{Used, encode_number};
use crate::ports::store::Write;
use crate::ports::store::key::{ChannelNo, Key, Kind};

#[tokio::test(start_paused = true)]
async fn every_channel_is_numbered_without_gaps_when_many_interleave() {
    let world = World::new().await;
    let channels: Vec<_> = (0..40).map(|number| format!("room{number}")).collect();

    let mut answers = Vec::new();
    for round in 1..=25 {
        for channel in &channels {
            answers.push((round, world.accept(channel, "hi", None)));
            if round % 7 == 0 {
                world.finish().await;
            }
        }
    }

    for (round, answer) in answers {
        assert_eq!(answer.await.unwrap(), Ok(new(round)));
    }
    for channel in &channels {
        assert_eq!(world.delivered_to(channel), (1..=25).collect::<Vec<_>>());
        assert_eq!(world.reader().restore(&channel_key(channel)).await.unwrap().events.len(), 25);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_arrive_during_a_commit_are_committed_together() {
    let world = World::with_one().await;
    world.store.hold();

    let answers: Vec<_> = (0..60).map(|_| world.accept("lobby", "more", None)).collect();
    world.finish().await;
    world.store.release();
    World::all(answers).await;

    assert_eq!(world.store.groups(), [1, 1, 59]);
}

#[tokio::test(start_paused = true)]
async fn a_second_group_is_sent_before_the_first_is_answered_when_many_requests_wait() {
    let world = World::with_one().await;
    world.store.hold();

    let answers: Vec<_> = (0..300).map(|_| world.accept("lobby", "more", None)).collect();
    world.finish().await;
    world.store.release();
    assert_eq!(World::all(answers).await, (2..=301).map(new).collect::<Vec<_>>());

    assert_eq!(world.store.groups(), [1, 1, 64, 235]);
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_refused_one_get_new_numbers_in_later_groups() {
    let world = World::bounded_with_one(Bounds { ahead: 2, ..Bounds::default() }).await;
    world.store.hold();

    let duplicate = world.accept("lobby", "one", Some("a"));
    let (two, elsewhere, three) =
        (world.accept("lobby", "two", None), world.accept("attic", "hi", None), world.accept("lobby", "three", None));
    world.finish().await;
    let fence = world.fence("lobby");
    world.store.release();

    assert_eq!(duplicate.await.unwrap(), Ok(retry(1)));
    assert_eq!((two.await.unwrap(), three.await.unwrap()), (Ok(new(2)), Ok(new(3))));
    assert_eq!((elsewhere.await.unwrap(), fence.await.unwrap()), (Ok(new(1)), Ok(Seq(3))));
    assert_eq!(world.store.groups()[..3], [1, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_failed_group_are_answered() {
    let world = World::bounded_with_one(Bounds { ahead: 2, ..Bounds::default() }).await;
    world.store.hold();

    let failing = world.accept("lobby", "two", None);
    let (following, waiting) = (world.accept("lobby", "three", None), world.accept("lobby", "four", None));
    world.finish().await;
    let late = world.accept("lobby", "five", None);
    world.store.fail_next(StoreError::Failed("no space".into()));
    world.store.release();

    for answer in [failing, late] {
        assert!(answer.await.unwrap().is_err());
    }
    // The test store committed the group that followed the failed one.
    assert_eq!((following.await.unwrap(), waiting.await.unwrap()), (Ok(new(3)), Ok(new(4))));
}

#[tokio::test(start_paused = true)]
async fn a_group_is_limited_in_batches_and_bytes() {
    let world = World::bounded_with_one(Bounds { group_batches: 10, group_bytes: 100_000, ..Bounds::default() }).await;
    world.store.hold();

    let answers: Vec<_> = (0..20).map(|_| world.accept("lobby", "short", None)).collect();
    let large: Vec<_> = (0..2).map(|_| world.accept("lobby", &"long".repeat(30_000), None)).collect();
    world.finish().await;
    world.store.release();
    World::all(answers.into_iter().chain(large)).await;

    assert_eq!(world.store.groups(), [1, 1, 10, 10, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_id_returns_the_first_number_whatever_the_text() {
    let world = World::with_one().await;

    let stored = world.accept("lobby", "other", Some("a")).await.unwrap();
    let elsewhere = world.accept("attic", "one", Some("a")).await.unwrap();
    world.store.hold();
    let in_flight = world.accept("lobby", "two", Some("b"));
    world.finish().await;
    let same_group: Vec<_> = ["b", "c", "c", "d", "a"].map(|id| world.accept("lobby", id, Some(id))).into();
    world.finish().await;
    world.store.release();

    assert_eq!(stored, Ok(retry(1)));
    assert_eq!(elsewhere, Ok(new(1)));
    assert_eq!(in_flight.await.unwrap(), Ok(new(2)));
    assert_eq!(World::all(same_group).await, [retry(2), new(3), retry(3), new(4), retry(1)]);
    assert_eq!(world.delivered_to("lobby"), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_duplicate_get_new_numbers_in_order() {
    let world = World::with_one().await;
    world.store.hold();
    world.accept("attic", "blocks the store", None);
    world.finish().await;

    let duplicate = world.accept("lobby", "one", Some("a"));
    let next = world.accept("lobby", "two", None);
    let outbox_record = outbox_record(Trigger::Lull);
    let made = world.record(|record| {
        record.made = vec![made_event(Seq(1), jitter(9))];
        record.outbox = vec![OutboxWrite::Put(Ticket(1), outbox_record)];
    });
    let removed = world.record(|record| record.outbox = vec![OutboxWrite::Remove(Ticket(1))]);
    let fence = world.fence("lobby");
    let last = world.accept("lobby", "three", None);
    world.finish().await;
    world.store.release();

    assert_eq!(duplicate.await.unwrap(), Ok(retry(1)));
    assert_eq!(next.await.unwrap(), Ok(new(2)));
    assert_eq!(made.await.unwrap(), Ok(Committed { first: Seq(3), last: Seq(3) }));
    assert_eq!(removed.await.unwrap(), Ok(Committed { first: Seq(4), last: Seq(3) }));
    assert_eq!(fence.await.unwrap(), Ok(Seq(3)));
    assert_eq!(last.await.unwrap(), Ok(new(4)));
    assert_eq!(world.reader().outbox(&channel_key("lobby")).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_fails_all_requests_and_ends_all_writing() {
    let world = World::with_one().await;
    world.store.hold();
    world.store.fail_next(StoreError::Unknown("no answer".into()));
    let in_flight = world.accept("lobby", "two", None);
    world.finish().await;
    let made = world.record(|record| record.made = vec![made_event(Seq(1), jitter(9))]);
    let elsewhere = world.accept("attic", "hi", None);
    world.finish().await;
    world.store.release();

    assert_eq!(in_flight.await.unwrap(), Err(WriteError::Unknown.into()));
    assert!(matches!(made.await.unwrap(), Err(WriteError::Unavailable(_))));
    assert!(matches!(elsewhere.await.unwrap(), Err(Refused::WriteError(WriteError::Unavailable(_)))));
    let later = world.accept("lobby", "three", None).await.unwrap();
    assert!(matches!(later, Err(Refused::WriteError(WriteError::Unavailable(_)))));
    assert!(matches!(&world.failures.lock()[..], [why] if why.contains("no answer")));
}

#[tokio::test(start_paused = true)]
async fn a_failed_store_is_not_an_unknown_outcome() {
    let world = World::new().await;
    world.store.fail_next(StoreError::Failed("disk full".into()));

    let answer = world.accept("lobby", "one", None).await.unwrap();

    assert!(matches!(answer, Err(Refused::WriteError(WriteError::Unavailable(why))) if why.contains("disk full")));
    assert_eq!(world.failures.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ward_taken_by_another_writer_ends_all_writing() {
    let world = World::with_one().await;
    world.store.acquire_ward(channel_key("lobby").ward()).await.unwrap();

    let answer = world.accept("lobby", "two", None).await.unwrap();

    assert!(matches!(answer, Err(Refused::WriteError(WriteError::Unavailable(_)))));
    assert_eq!(world.failures.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_killed_writer_answers_all_requests_and_its_successor_continues_the_numbers() {
    let world = World::with_one().await;
    world.store.hold();
    let in_flight = world.accept("lobby", "two", None);
    world.finish().await;
    let waiting = world.accept("lobby", "three", None);
    world.finish().await;

    world.writer.kill();

    assert_eq!(in_flight.await.unwrap(), Err(WriteError::Unknown.into()));
    assert_eq!(waiting.await.unwrap(), Err(WriteError::Unknown.into()));
    let successor = World::on(world.store.clone(), Bounds::default()).await;
    let first = successor.accept("lobby", "four", None);
    successor.finish().await;
    world.store.release();
    assert_eq!(first.await.unwrap(), Ok(new(2)));
    assert_eq!(successor.texts("lobby").await, [(1, "one".into()), (2, "four".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_a_stopped_writer_is_answered() {
    let world = World::new().await;
    world.writer.stop_and_wait(None, None).await.unwrap();

    let answer = world.accept("lobby", "hi", None).await.unwrap();

    assert_eq!(answer, Err(WriteError::Unknown.into()));
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_pending_until_it_is_quiet_after_its_newest_inbound_event() {
    let world = World::new().await;

    world.accept("lobby", "one", None).await.unwrap().unwrap();
    let after_one = world.is_pending("lobby").await;
    world.record(|record| record.quiet = quiet(Seq(1))).await.unwrap().unwrap();
    let after_quiet = world.is_pending("lobby").await;

    assert!(after_one);
    assert!(!after_quiet);
    assert_eq!(world.reader().pending(channel_key("lobby").ward()).await, Ok(Pending::default()));
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_waits_for_a_silence_is_due_then_and_has_no_unfinished_work() {
    let world = World::new().await;
    let due = |secs: u64| Some(Moment::from_micros(secs * 1_000_000));
    let quiet = |due: Option<Moment>| Some(Quiet { handled: Seq(1), due });
    world.accept("lobby", "one", None).await.unwrap().unwrap();

    let mut found = Vec::new();
    for due in [due(60), due(90), None] {
        world.record(|record| record.quiet = quiet(due)).await.unwrap().unwrap();
        let pending = world.reader().pending(channel_key("lobby").ward()).await.unwrap();
        assert!(pending.channels.is_empty());
        found.push(pending.due.first().map(|(_, due)| *due));
    }

    assert_eq!(found, [due(60), due(90), None]);
}

#[tokio::test(start_paused = true)]
async fn a_message_accepted_while_a_quiet_record_is_in_flight_stays_pending() {
    let world = World::with_one().await;
    world.store.hold();

    let before = world.accept("lobby", "two", None);
    let quiet = world.record(|record| record.quiet = quiet(Seq(1)));
    world.finish().await;
    world.store.release();
    before.await.unwrap().unwrap();
    quiet.await.unwrap().unwrap();

    assert!(world.is_pending("lobby").await);
    let pending = world.reader().pending(channel_key("lobby").ward()).await.unwrap();
    assert_eq!(pending.channels[0].channel, "lobby".into());
    let head = world.reader().head(&channel_key("lobby")).await.unwrap();
    assert_eq!(head.pending.map(|pending| pending.heard), Some(Seq(2)));
}

#[tokio::test(start_paused = true)]
async fn the_pending_mark_survives_a_restart() {
    let world = World::with_one().await;
    world.accept("lobby", "two", None).await.unwrap().unwrap();
    let successor = World::on(world.store.clone(), Bounds::default()).await;

    successor.record(|record| record.quiet = quiet(Seq(1))).await.unwrap().unwrap();
    let too_early = successor.is_pending("lobby").await;
    successor.record(|record| record.quiet = quiet(Seq(2))).await.unwrap().unwrap();

    assert!(too_early);
    assert!(!successor.is_pending("lobby").await);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_channel_is_empty_and_continues_its_numbers() {
    let world = World::new().await;
    for number in 0..1_100 {
        let id = format!("id{number}");
        world.accept("lobby", "text", Some(&id)).await.unwrap().unwrap();
    }
    world.accept("attic", "stays", Some("id1")).await.unwrap().unwrap();

    let deleted = world.delete("lobby");
    let meanwhile = world.accept("lobby", "new", Some("id1"));
    deleted.await.unwrap().unwrap();

    assert_eq!(meanwhile.await.unwrap(), Ok(retry(2)));
    assert_eq!(world.texts("lobby").await, []);
    assert_eq!(world.accept("lobby", "anew", Some("id1")).await.unwrap(), Ok(new(1_101)));
    assert_eq!(world.texts("lobby").await, [(1_101, "anew".into())]);
    assert_eq!(world.reader().restore(&channel_key("lobby")).await.unwrap().events.len(), 1);
    assert_eq!(world.texts("attic").await.len(), 1);
    let ward = channel_key("lobby").ward();
    assert_eq!(world.store.count(Key::new(ward, Kind::Journal)), 2);
    assert_eq!(world.store.count(Key::new(ward, Kind::MessageId)), 2);
    assert_eq!(world.store.count(Key::new(ward, Kind::Person)), 2);
    assert_eq!(world.store.count(Key::new(ward, Kind::Meta).text("sweep")), 0);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_deletion_is_finished_when_the_channel_is_next_used() {
    let world = World::new().await;
    let ward = channel_key("lobby").ward();
    world.accept("lobby", "one", None).await.unwrap().unwrap();
    let deleted = [key::tombstone(ward, ChannelNo(0)), key::sweep(ward, ChannelNo(0))];
    deleted.into_iter().for_each(|key| world.store.put(key, encode_number(Seq(2))));
    let successor = World::on(world.store.clone(), Bounds::default()).await;

    let answer = successor.accept("lobby", "two", None).await.unwrap();
    successor.finish().await;

    assert_eq!(answer, Ok(new(2)));
    assert_eq!(successor.store.count(Key::new(ward, Kind::Journal)), 1);
    assert_eq!(successor.reader().head(&channel_key("lobby")).await.unwrap().swept_below, Seq::NONE);
}

#[tokio::test(start_paused = true)]
async fn late_events_of_a_deleted_conversation_are_not_recorded() {
    let world = World::with_one().await;
    world.delete("lobby").await.unwrap().unwrap();

    let late = world.record(|record| record.made = vec![made_event(Seq(1), jitter(9))]).await.unwrap();

    assert_eq!(late, Err(WriteError::Deleted));
    assert_eq!(world.texts("lobby").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_redacted_event_keeps_its_number_and_loses_its_words() {
    let world = World::new().await;
    world.accept("lobby", "secret", None).await.unwrap().unwrap();
    world.accept("lobby", "open", None).await.unwrap().unwrap();

    world.redact([1]).await;

    assert_eq!(world.texts("lobby").await, [(1, "".into()), (2, "open".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_posted_statement_removes_its_reply_from_the_outbox() {
    let world = World::new().await;
    let outbox_record = outbox_record(Trigger::DirectAddress);
    world.accept("lobby", "Aria?", None).await.unwrap().unwrap();
    world.record(|record| record.outbox = vec![OutboxWrite::Put(Ticket(4), outbox_record.clone())]).await.unwrap().unwrap();
    let before = world.reader().outbox(&channel_key("lobby")).await.unwrap();

    let posted = world.post("Here.", Ticket(4)).await.unwrap();

    assert_eq!(before, [(Ticket(4), outbox_record)]);
    assert_eq!(posted, Ok(new(2)));
    assert_eq!(world.reader().outbox(&channel_key("lobby")).await.unwrap(), []);
    assert_eq!(world.delivered_to("lobby"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn event_times_never_go_back_when_the_clock_does() {
    let world = World::new().await;
    world.clock.0.store(500, Ordering::Relaxed);
    world.accept("lobby", "one", None).await.unwrap().unwrap();
    world.clock.0.store(100, Ordering::Relaxed);
    world.accept("lobby", "two", None).await.unwrap().unwrap();

    let restarted = World::on(world.store.clone(), Bounds::default()).await;
    restarted.accept("lobby", "three", None).await.unwrap().unwrap();

    let all = Range { after: Seq::NONE, before: None, limit: 10, newest_first: false };
    let events = restarted.reader().events(&channel_key("lobby"), all).await.unwrap();
    assert!(events.iter().all(|event| event.at == Moment::from_micros(500)));
}

#[tokio::test(start_paused = true)]
async fn inbound_events_over_the_limit_are_refused_but_never_events_that_channels_make() {
    let world = World::bounded_with_one(Bounds { waiting: 3, ..Bounds::default() }).await;
    world.store.hold();
    let taken: Vec<_> = (0..3).map(|_| world.accept("lobby", "more", None)).collect();

    let refused = world.accept("lobby", "too many", None);
    let made = world.record(|record| record.made = vec![made_event(Seq(1), jitter(9))]);
    world.finish().await;
    world.store.release();

    assert_eq!(refused.await.unwrap(), Err(Refused::Busy { retry_after: Duration::from_secs(1) }));
    assert_eq!(made.await.unwrap(), Ok(Committed { first: Seq(5), last: Seq(5) }));
    World::all(taken).await;
}

#[tokio::test(start_paused = true)]
async fn committed_events_are_published_in_order_before_the_answer() {
    let world = World::new().await;
    let mut watcher = world.hub.watch(Some(&channel_key("lobby")));

    world.accept("lobby", "one", None).await.unwrap().unwrap();
    let two = vec![made_event(Seq(1), jitter(9)), made_event(Seq(1), jitter(6))];
    world.record(|record| record.made = two).await.unwrap().unwrap();

    for seq in 1..=3 {
        let Ok((_, Live::Recorded(recorded))) = watcher.next().await else { panic!("an event is expected") };
        assert_eq!(recorded.seq, Seq(seq));
    }
    assert_eq!(world.delivered_to("lobby"), [1]);
}

#[tokio::test(start_paused = true)]
async fn usages_at_the_same_moment_are_all_recorded() {
    let world = World::new().await;
    let used = || vec![Used::Evaluation { companion: "aria".into() }, Used::Statement { companion: "aria".into() }];

    world.record(|record| (record.at, record.usage) = (Moment::from_micros(5), used())).await.unwrap().unwrap();
    let restarted = World::on(world.store.clone(), Bounds::default()).await;
    restarted.record(|record| (record.at, record.usage) = (Moment::from_micros(5), used())).await.unwrap().unwrap();

    let reader = restarted.reader();
    let used_since = async |micros| {
        let mut count = 0;
        let take = |_| {
            count += 1;
            ControlFlow::Continue(())
        };
        reader.usage(&"home".into(), Moment::from_micros(micros), None, take).await.unwrap();
        count
    };
    assert_eq!(used_since(5).await, 4);
    assert_eq!(used_since(6).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_of_the_wrong_kind_is_not_recorded() {
    let world = World::new().await;

    let answer = world.accept_event("lobby", None, jitter(9), None);
    let heard = world.record(|record| record.made = vec![made_event(Seq(0), said("hi", Role::Person))]);

    assert!(matches!(answer.await.unwrap(), Err(Refused::WriteError(WriteError::Unfit(_)))));
    assert!(matches!(heard.await.unwrap(), Err(WriteError::Unfit(_))));
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_opened_does_not_affect_others() {
    let world = World::new().await;
    let damaged = channel_key("lobby");
    world.store.put(key::channel_name(&damaged), b"\x09?".to_vec());

    let broken = world.accept("lobby", "hi", None);
    let sound = world.accept("attic", "hi", None);

    let refused = broken.await.unwrap();
    assert!(matches!(refused, Err(Refused::WriteError(WriteError::Unreadable(why))) if why.contains("version 9")));
    assert_eq!(sound.await.unwrap(), Ok(new(1)));
    assert!(world.failures.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn evicted_journals_are_opened_again_at_their_position() {
    let world = World::bounded(Bounds { journals: 3, ..Bounds::default() }).await;

    for round in 1..=4 {
        for number in 0..10 {
            let answer = world.accept(&format!("room{number}"), "hi", None).await.unwrap();
            assert_eq!(answer, Ok(new(round)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn journaled_events_are_counted_once() {
    let world = World::new().await;
    world.accept("lobby", "one", Some("m1")).await.unwrap().unwrap();
    world.store.hold();
    let late = world.accept("lobby", "two", Some("m2"));
    world.finish().await;
    let together = [world.accept("lobby", "one again", Some("m1")), world.accept("attic", "three", None)];
    tokio::time::sleep(Duration::from_secs(2)).await;
    let not_yet = world.metrics.total("tertulia_messages_total", &[]);
    world.store.release();
    late.await.unwrap().unwrap();
    World::all(together).await;
    world.record(|record| record.made.push(made_event(Seq(1), jitter(3)))).await.unwrap().unwrap();
    world.post("hello", Ticket(9)).await.unwrap().unwrap();

    let total = |name: &str| world.metrics.total(name, &[]);
    assert_eq!(not_yet, 1.0, "only committed messages are counted");
    assert_eq!(total("tertulia_messages_total"), 4.0);
    assert_eq!(world.metrics.total("tertulia_messages_total", &[("platform", "other"), ("message_role", "companion")]), 1.0);
    assert_eq!(total("tertulia_journal_events_total"), 5.0);
    assert_eq!(total("tertulia_journal_append_duration_seconds_count"), 5.0);
    assert_eq!(total("tertulia_journal_append_duration_seconds_sum"), 4.0, "two waited for two seconds");
    assert_eq!(total("tertulia_journal_group_size_count"), world.store.groups().len() as f64);
}

#[tokio::test(start_paused = true)]
async fn every_erasing_write_marks_that_the_stores_file_still_has_the_words() {
    let world = World::new().await;
    let ward = channel_key("lobby").ward();
    let day = |days: u64| Moment::ZERO + Duration::from_secs(days * 24 * 60 * 60);
    let set = |days| world.clock.0.store(day(days).as_micros(), Ordering::Relaxed);
    set(3);
    for text in ["one", "two"] {
        world.accept("lobby", text, None).await.unwrap().unwrap();
    }
    world.record(|record| record.usage = vec![]).await.unwrap().unwrap();
    assert_eq!(erased::oldest(&*world.store).await, Ok(None), "new messages erase nothing");
    let marks = async || {
        let all = world.store.scan(Key::new(ward, Kind::Meta), Key::new(ward, Kind::Meta).end(), false, 100).await.unwrap();
        all.iter().filter(|(key, _)| erased::is_mark(key)).count()
    };

    world.redact([1, 2]).await;
    assert_eq!((erased::oldest(&*world.store).await, marks().await), (Ok(Some(day(3))), 1));

    set(5);
    world.delete("lobby").await.unwrap().unwrap();
    assert_eq!((erased::oldest(&*world.store).await, marks().await), (Ok(Some(day(3))), 2));

    set(6);
    let used = vec![Write::Put(Key::new(ward, Kind::Usage).text("home"), Vec::new())];
    let (reply, administered) = Reply::awaited();
    world.send(Request::WriteMeta(WriteMeta { ward, writes: used, reply }));
    administered.await.unwrap().unwrap();
    assert_eq!(marks().await, 3);
    let erasures = erased::last(&*world.store).await.unwrap();
    assert_eq!((erasures.last, erasures.requested), (Some(day(6)), Some(day(5))));
}

/// Nothing is pending once this inbound event is handled.
fn quiet(handled: Seq) -> Option<Quiet> {
    Some(Quiet { handled, due: None })
}
