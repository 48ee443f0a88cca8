use super::*;
use crate::domain::conversation::Conversation;
use crate::domain::id::Ticket;
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::record::{encode_event, encode_snapshot};
use crate::samples::{self, lobby, message, person, recorded};

fn said(by: &str, id: Option<&str>) -> Recorded {
    recorded(7, samples::said(Message { id: id.map(Into::into), ..message(person(by), "zebra") }))
}

fn salvaged(records: &[(Key, Value)]) -> Salvaged {
    let mut salvaged = Salvaged::default();
    records.iter().for_each(|(key, value)| salvaged.observe(key, value));
    salvaged
}

#[test]
fn each_half_of_a_channels_name_rebuilds_the_other_and_its_number_is_not_reused() {
    let (channel_key, no) = (lobby(), ChannelNo(3));
    let record = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
    let reverse = (key::channel_of(channel_key.ward(), no), encode(&record));
    let name = (key::channel_name(&channel_key), encode(&no.0));
    let next = (key::next_channel(channel_key.ward()), encode(&4_u32));

    for records in [&reverse, &name] {
        let salvaged = salvaged(std::slice::from_ref(records));

        assert_eq!(salvaged.missing_records(), [reverse.clone(), name.clone()]);
        assert_eq!(salvaged.outdated_counters(), std::slice::from_ref(&next));
    }
}

#[test]
fn records_of_a_newer_version_are_not_replaced() {
    let (ward, no) = (lobby().ward(), ChannelNo(3));
    let newer = b"\x03{}".to_vec();
    let (name, next) = (key::channel_name(&lobby()), key::next_channel(ward));

    let salvaged = salvaged(&[(Key::event(ward, no, Seq(1)), encode_event(&said("Ana", None))), (next.clone(), newer.clone())]);

    assert!(!salvaged.should_replace(&name, &encode(&no.0), &newer));
    assert!(salvaged.outdated_counters().iter().all(|(key, _)| *key != next));
}

#[test]
fn a_journal_ends_at_its_last_event_if_its_head_is_unreadable_and_at_its_stretch_if_it_is_lost() {
    let (ward, no) = (lobby().ward(), ChannelNo(3));
    let (head, event) = (Key::head(ward, no), (Key::event(ward, no, Seq(4)), encode_event(&said("Ana", None))));
    let listed = (key::person(&lobby().guild, &"Ana".into(), no, Seq(4)), encode(&()));
    let end = |records: &[(Key, Value)]| {
        salvaged(records).outdated_counters().into_iter().find(|(key, _)| *key == head).map(|(_, end)| end)
    };

    let unreadable = end(&[event.clone(), listed.clone(), (head.clone(), b"?".to_vec())]);
    let lost = end(&[event, listed]);

    assert_eq!(unreadable, Some(encode_number(Seq(4))));
    assert_eq!(lost, Some(encode_number(Seq(255))));
}

#[test]
fn of_two_messages_with_one_id_the_newer_wins() {
    let id = key::message_id(lobby().ward(), ChannelNo(3), "4711");
    let should_replace = |seq: u64, there: &[u8]| Salvaged::default().should_replace(&id, &encode(&Seq(seq)), there);

    assert_eq!([6, 7, 8].map(|seq| should_replace(seq, &encode(&Seq(7)))), [false, false, true]);
    assert!(should_replace(6, b"\x01?"), "an unreadable record is replaced");
    assert!(!should_replace(8, b"\x03{}"), "a record of a newer format is kept");
}

#[test]
fn index_entries_for_author_and_message_id_are_rebuilt() {
    let (channel_key, no) = (lobby(), ChannelNo(3));
    let salvaged = salvaged(&[(key::channel_name(&channel_key), encode(&no.0))]);
    let followers = |recorded: &Recorded| {
        salvaged.derived_records(&Key::event(channel_key.ward(), no, recorded.seq), &encode_event(recorded))
    };
    let person = (key::person(&channel_key.guild, &"Ana".into(), no, Seq(7)), encode(&()));
    let id = (key::message_id(channel_key.ward(), no, "4711"), encode(&Seq(7)));

    assert_eq!(followers(&said("Ana", None)), std::slice::from_ref(&person));
    assert_eq!(followers(&said("Ana", Some("4711"))), [person, id]);
    // A redacted message has no author.
    assert_eq!(followers(&said("", None)), []);
}

#[test]
fn an_event_number_that_any_record_names_is_not_reused() {
    let (channel_key, no) = (lobby(), ChannelNo(3));
    // The last number of a stretch: a journal may have reached it if the index of persons names the stretch.
    let (ward, seq) = (channel_key.ward(), Seq(511));
    let owed = OutboxRecord {
        companion: "aria".into(),
        trigger: Trigger::Lull,
        messages: Vec::new(),
        upto: seq,
        text: None,
        parts: Vec::new(),
        name: None,
        truncated: false,
    };
    let used = Used::Address { person: "ana".into(), message: seq };
    let usage = UsageRecord { at: Moment::ZERO, channel: channel_key.channel.clone(), used };
    let records = [
        (Key::event(ward, no, seq), b"?".to_vec()),
        (Key::head(ward, no), encode_number(seq)),
        (key::snapshot(ward, no), encode_snapshot(seq, &Conversation::default())),
        (key::pending(ward, no), encode(&PendingRecord { heard: seq, due: None })),
        (key::outbox(ward, no, Ticket(900)), encode(&owed)),
        (key::message_id(ward, no, "a rather long id"), encode(&seq)),
        (key::person(&channel_key.guild, &"ana".into(), no, seq), encode(&())),
        (key::dead_letter(ward, no, seq), b"?".to_vec()),
        (key::tombstone(ward, no), encode_number(seq.next())),
        (key::sweep(ward, no), encode_number(seq.next())),
        (key::index_removal(ward, no, seq), encode(&())),
        (key::usage(&channel_key.guild, Moment::ZERO, no, 900), encode(&usage)),
    ];

    for record in records {
        let (next, head) = ((key::next_channel(ward), encode(&4_u32)), (Key::head(ward, no), encode_number(seq)));
        let outdated = |record: &(Key, Value), next: u32, last: u64| {
            let head = if record.0 == head.0 { record.clone() } else { (head.0.clone(), encode_number(Seq(last))) };
            salvaged(&[(key::next_channel(ward), encode(&next)), head, record.clone()]).outdated_counters()
        };

        if record.0 == head.0 {
            assert_eq!(salvaged(std::slice::from_ref(&record)).outdated_counters(), std::slice::from_ref(&next));
        } else {
            assert_eq!(salvaged(std::slice::from_ref(&record)).outdated_counters(), [next.clone(), head.clone()], "{}", record.0);
            // If the head is stored, the index of persons does not matter.
            let raised = [next.clone(), head.clone()];
            let raised = if record.0.as_bytes()[1] == Kind::Person as u8 { &raised[..1] } else { &raised };
            assert_eq!(outdated(&record, 3, 510), raised, "{}", record.0);
        }
        assert_eq!(outdated(&record, 4, 511), [], "{}", record.0);
        assert_eq!(outdated(&record, 5, 512), [], "{}", record.0);
    }
}

#[test]
fn a_channel_number_that_any_record_names_is_not_reused() {
    let (channel_key, no) = (lobby(), ChannelNo(3));
    let ward = channel_key.ward();
    let records = [
        key::pending(ward, no),
        key::outbox(ward, no, Ticket(1)),
        key::message_id(ward, no, "4711"),
        key::summary(ward, no),
        key::dead_letter(ward, no, Seq(1)),
        key::snapshot(ward, no),
        key::person(&channel_key.guild, &"ana".into(), no, Seq(1)),
        key::usage(&channel_key.guild, Moment::ZERO, no, 1),
        key::sweep(ward, no),
        key::index_removal(ward, no, Seq(1)),
    ];

    for key in records {
        let behind = salvaged(&[(key.clone(), b"?".to_vec())]).outdated_counters();

        assert!(behind.contains(&(key::next_channel(ward), encode(&4_u32))), "{key}");
    }
}
