use super::*;
use crate::domain::conversation::Conversation;
use crate::domain::event::Event;
use crate::domain::samples::recorded;
use crate::record::{SnapshotRecord, encode, encode_event, encode_number};
use crate::samples::lobby;
use crate::samples::store::TestStore;

const NO: ChannelNo = ChannelNo(0);

#[tokio::test]
async fn a_channel_without_records_restores_to_nothing() {
    let store = TestStore::new();

    let restored = Reader::new(&store).restore(&lobby()).await;

    assert_eq!(restored, Ok(Restored::default()));
}

#[tokio::test]
async fn a_missing_event_is_an_error_with_both_numbers() {
    let store = journal(5);
    store.remove(&Key::event(lobby().ward(), NO, Seq(3)));

    let error = Reader::new(&store).restore(&lobby()).await.unwrap_err();

    assert_eq!(error, ReadError::Gap { channel_key: lobby(), expected: Seq(3), found: Seq(4) });
}

#[tokio::test]
async fn a_journal_that_ends_too_early_is_an_error() {
    let store = journal(5);
    store.remove(&Key::event(lobby().ward(), NO, Seq(5)));

    let error = Reader::new(&store).restore(&lobby()).await.unwrap_err();

    assert_eq!(error, ReadError::Gap { channel_key: lobby(), expected: Seq(5), found: Seq(6) });
}

#[tokio::test]
async fn a_journal_that_ends_before_its_snapshot_is_an_error() {
    let store = journal(5);
    let restored = async |seq| {
        let snapshot = SnapshotRecord { handled: Seq(seq), made: Seq(seq), conversation: Conversation::default() };
        store.put(key::snapshot(lobby().ward(), NO), encode(&snapshot));
        Reader::new(&store).restore(&lobby()).await
    };

    let (at_the_end, beyond) = (restored(5).await, restored(9).await);

    assert_eq!(at_the_end.unwrap().events, []);
    assert_eq!(beyond, Err(ReadError::Gap { channel_key: lobby(), expected: Seq(6), found: Seq(10) }));
}

#[tokio::test]
async fn no_channel_has_the_number_of_the_next_one() {
    let store = journal(5);
    let ward = lobby().ward();
    let next = async || Reader::new(&store).next_channel(ward).await.unwrap();

    let lost = next().await;
    store.put(key::next_channel(ward), encode(&3_u32));
    store.put(Key::head(ward, ChannelNo(3)), encode_number(Seq(1)));

    assert_eq!((lost, next().await), (1, 4));
}

#[tokio::test]
async fn a_low_water_mark_explains_what_is_missing_below_it() {
    let store = journal(5);
    store.remove(&Key::event(lobby().ward(), NO, Seq(1)));
    store.remove(&Key::event(lobby().ward(), NO, Seq(3)));
    store.put(key::tombstone(lobby().ward(), NO), encode_number(Seq(4)));

    let restored = Reader::new(&store).restore(&lobby()).await.unwrap();

    assert_eq!(numbers(&restored.events), [2, 4, 5]);
}

#[tokio::test]
async fn a_damaged_pending_record_is_rebuilt_from_the_journal() {
    for damaged in [&b""[..], b"\x01not what it was"] {
        let store = journal(5);
        let record = PendingRecord { heard: Seq(2), due: None };
        store.put(key::pending(lobby().ward(), NO), encode(&record));
        let intact = Reader::new(&store).head(&lobby()).await.unwrap();
        store.put(key::pending(lobby().ward(), NO), damaged.to_vec());

        let head = Reader::new(&store).head(&lobby()).await;

        assert!(intact.pending.is_some_and(|pending| pending.heard > Seq(2)), "{intact:?}");
        assert_eq!(head, Ok(intact));
        assert_eq!(numbers(&Reader::new(&store).restore(&lobby()).await.unwrap().events), [1, 2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn events_are_read_in_ranges_from_either_end() {
    let store = journal(2_000);
    let reader = Reader::new(&store);
    let all = Range { after: Seq::NONE, before: None, limit: 1_200, newest_first: false };

    let oldest = reader.events(&lobby(), all).await.unwrap();
    let newest = reader.events(&lobby(), Range { newest_first: true, ..all }).await.unwrap();
    let between = reader.events(&lobby(), Range { after: Seq(7), before: Some(Seq(10)), ..all }).await.unwrap();
    let beyond = reader.events(&lobby(), Range { after: Seq(u64::MAX), ..all }).await.unwrap();

    assert_eq!(numbers(&oldest), (1..=1_200).collect::<Vec<_>>());
    assert_eq!(numbers(&newest), (801..=2_000).rev().collect::<Vec<_>>());
    assert_eq!(numbers(&between), [8, 9]);
    assert!(beyond.is_empty());
}

#[tokio::test]
async fn events_below_a_sweep_are_not_read() {
    let store = journal(5);
    store.put(key::sweep(lobby().ward(), NO), encode_number(Seq(4)));
    store.put(key::message_id(lobby().ward(), NO, "old"), encode(&Seq(2)));
    let reader = Reader::new(&store);

    let restored = reader.restore(&lobby()).await.unwrap();

    assert_eq!(numbers(&restored.events), [4, 5]);
    assert_eq!(reader.event(&lobby(), Seq(2)).await, Ok(None));
    assert_eq!(reader.message(&lobby(), "old").await, Ok(None));
}

#[tokio::test]
async fn a_dead_letter_is_skipped_when_its_channel_is_restored() {
    let store = journal(3);
    let ChannelKey { guild, channel } = lobby();
    let record =
        DeadLetterRecord { guild, channel, seq: Seq(2), at: Moment::ZERO, deaths: 3, error: "panicked".into(), is_closed: false };
    store.put(key::dead_letter(lobby().ward(), NO, Seq(2)), encode(&record));

    let restored = Reader::new(&store).restore(&lobby()).await.unwrap();

    assert_eq!(restored.skip, BTreeSet::from([Seq(2)]));
}

#[tokio::test]
async fn usage_is_read_in_order_from_an_inclusive_to_an_exclusive_moment_over_many_pages() {
    let store = TestStore::new();
    for at in 0..2_000 {
        used(&store, "home", at);
    }
    used(&store, "homestead", 700);
    let reader = Reader::new(&store);
    let read = async |from, to| {
        let mut times = Vec::new();
        let take = |record: UsageRecord| {
            times.push(record.at.as_micros());
            ControlFlow::Continue(())
        };
        reader.usage(&"home".into(), Moment::from_micros(from), to, take).await.unwrap();
        times
    };

    let between = read(500, Some(Moment::from_micros(1_900))).await;
    let rest = read(1_990, None).await;

    assert_eq!(between, (500..1_900).collect::<Vec<_>>());
    assert_eq!(rest, (1_990..2_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn reading_usage_stops_when_the_caller_breaks() {
    let store = TestStore::new();
    for at in 0..2_000 {
        used(&store, "home", at);
    }
    let mut count = 0;

    let take = |_| {
        count += 1;
        if count == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    Reader::new(&store).usage(&"home".into(), Moment::ZERO, None, take).await.unwrap();

    assert_eq!(count, 3);
}

#[tokio::test]
async fn every_guild_that_used_something_is_found_once() {
    let store = TestStore::new();
    let guilds = (0..300).map(|number| format!("guild-{number}")).chain(["a", "ab", "café ☕", "dm:x"].map(str::to_owned));
    let mut expected: Vec<GuildId> = guilds.map(|guild| guild.as_str().into()).collect();
    for guild in &expected {
        used(&store, guild.as_str(), 1);
        used(&store, guild.as_str(), u64::MAX);
    }

    let found = Reader::new(&store).guilds_with_usage().await.unwrap();

    expected.sort();
    assert_eq!(found, expected);
}

fn used(store: &TestStore, guild: &str, at: u64) {
    let at = Moment::from_micros(at);
    let used = crate::record::Used::Statement { companion: "aria".into() };
    let record = UsageRecord { at, channel: "console:lobby".into(), used };
    store.put(key::usage(&guild.into(), at, NO, at.as_micros()), encode(&record));
}

#[tokio::test]
async fn the_head_of_a_journal_with_unreadable_last_events_has_the_time_of_the_last_readable_one() {
    let store = journal(40);
    store.put(key::pending(lobby().ward(), NO), encode(&PendingRecord { heard: Seq(2), due: None }));
    for seq in (20..=40).map(Seq) {
        store.put(Key::event(lobby().ward(), NO, seq), b"?".to_vec());
    }

    let head = Reader::new(&store).head(&lobby()).await.unwrap();

    assert_eq!((head.last, head.at), (Seq(40), Moment::from_micros(19)));
    assert_eq!(head.pending, Some(PendingRecord { heard: Seq(40), due: None }), "it may be from outside");
}

#[tokio::test]
async fn a_conversation_is_restored_up_to_the_first_unreadable_event_and_the_error_names_it() {
    let store = journal(5);
    store.put(Key::event(lobby().ward(), NO, Seq(4)), b"\x01{\"at\"".to_vec());

    let RestoredSoFar { restored, wrong } = Reader::new(&store).restore_so_far(&lobby()).await.unwrap();
    let strict = Reader::new(&store).restore(&lobby()).await;

    assert_eq!(numbers(&restored.events), [1, 2, 3]);
    let error = wrong.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(
        error.starts_with("event 4 of channel console:lobby of guild home cannot be read: it is cut off at byte 5"),
        "{error}"
    );
    assert_eq!(strict.err(), wrong);
}

#[tokio::test]
async fn an_unreadable_snapshot_is_reported() {
    let store = journal(5);
    store.put(key::snapshot(lobby().ward(), NO), b"\x01?".to_vec());

    let RestoredSoFar { restored, wrong } = Reader::new(&store).restore_so_far(&lobby()).await.unwrap();

    assert_eq!(restored, Restored { head: Seq(5), ..Restored::default() });
    let error = wrong.map(|wrong| wrong.to_string()).unwrap_or_default();
    assert!(error.starts_with("the snapshot of channel console:lobby of guild home cannot be read: it is not JSON"), "{error}");
}

fn journal(events: u64) -> TestStore {
    let store = TestStore::new();
    let ward = lobby().ward();
    store.put(key::channel_name(&lobby()), encode(&NO.0));
    store.put(Key::head(ward, NO), encode_number(Seq(events)));
    for seq in (1..=events).map(Seq) {
        let recorded = Recorded { at: Moment::from_micros(seq.0), ..recorded(seq.0, Event::cleared()) };
        store.put(Key::event(ward, NO, seq), encode_event(&recorded));
    }
    store
}

fn numbers(events: &[Recorded]) -> Vec<u64> {
    events.iter().map(|recorded| recorded.seq.0).collect()
}
