use super::super::upgrade::is_of_bytes;
use super::*;
use crate::domain::event::{Event, Recorded};
use crate::domain::guests::{InvitationPlan, Invitations};
use crate::domain::id::{ChannelId, GuildId, Ticket};
use crate::membership;
use crate::record::{ClockRecord, FileRecord, Used, encode, encode_bytes, encode_event, encode_number, encode_snapshot};
use crate::samples::outbox_record;

const NO: ChannelNo = ChannelNo(7);

/// A valid record of each kind that is stored.
fn all() -> Vec<(Key, Vec<u8>)> {
    let (guild, channel) = (GuildId::from("home"), ChannelId::from("console:lobby"));
    let channel_key = ChannelKey::new(&guild, &channel);
    let ward = channel_key.ward();
    let (seq, at) = (Seq(3), Moment::from_micros(5));
    let event = Recorded { seq, at, handled: seq, turn: None, event: Event::cleared() };
    let used = UsageRecord { at, channel: channel.clone(), used: Used::Statement { companion: "aria".into() } };
    let dead_letter = DeadLetterRecord {
        guild: guild.clone(),
        channel: channel.clone(),
        seq,
        at,
        deaths: 3,
        error: "panicked".into(),
        is_closed: false,
    };
    let owed = outbox_record(crate::domain::trigger::Trigger::Lull);
    let mut invitations = Invitations::default();
    let (room, secret) = (channel.clone(), "hash".into());
    let invitation = InvitationPlan {
        guild: guild.clone(),
        channel: room,
        secret,
        from: seq,
        ends_at: None,
        most_guests: 5,
        knows_before: true,
    };
    assert!(invitations.add("one".into(), invitation, at));
    vec![
        (Key::event(ward, NO, seq), encode_event(&event)),
        (key::snapshot(ward, NO), encode_snapshot(seq, &crate::domain::conversation::Conversation::default())),
        (key::pending(ward, NO), encode(&PendingRecord { heard: seq, due: None })),
        (key::outbox(ward, NO, Ticket(1)), encode(&owed)),
        (key::message_id(ward, NO, "m1"), encode(&seq)),
        (key::person(&guild, &"Ana".into(), NO, seq), encode(&())),
        (key::channel_name(&channel_key), encode(&NO.0)),
        (key::channel_of(ward, NO), encode(&ChannelRecord { guild: guild.clone(), channel: channel.clone() })),
        (membership::key(&channel_key), encode(&Membership::empty(guild.clone(), at))),
        (key::usage(&guild, at, NO, 1), encode(&used)),
        (key::dead_letter(ward, NO, seq), encode(&dead_letter)),
        (key::room(&channel), encode(&RoomRecord { room: channel.clone(), guild: guild.clone(), created_at: at })),
        (key::note(Some(&guild), "session"), encode_bytes(b"\xff")),
        (key::opt_out(&guild, &"Ana".into()), encode(&OptOutRecord { guild: guild.clone(), person: "Ana".into(), since: at })),
        (key::companion(&"mira".into()), encode(&CompanionRecord { text: "".into(), why: "read-only".into(), at })),
        (key::file(ward, NO, seq, 0), encode(&FileRecord { media_type: "image/png".into(), bytes: 1 })),
        (key::file_parts(ward, NO, seq, 0).number(0), encode_bytes(b"\xff")),
        (key::picture(&"mira".into()), encode_bytes(b"\xff")),
        (key::card(&"mira".into()), encode_bytes(b"{}")),
        (key::invitation("one"), encode(invitations.get("one").unwrap())),
        (key::next_channel(ward), encode(&8_u32)),
        (key::start(at), encode(&StartRecord::default())),
        (key::clock(), encode(&ClockRecord { seen: at, since: at })),
        (erased::large_expiry_key(), encode(&at)),
        (key::usage_kept_from(&guild), encode(&at)),
        (key::index_removal(ward, NO, seq), encode(&())),
        (key::sweep(ward, NO), encode_number(seq)),
    ]
}

#[test]
fn every_kind_of_record_can_be_decoded() {
    for (key, value) in all() {
        assert_eq!(Inspection.fault(&key, &value), None, "{key}");
    }
}

#[test]
fn a_record_of_any_kind_that_cannot_be_decoded_is_a_fault() {
    for (key, value) in all() {
        for damaged in [&b""[..], b"\x09{}", b"\x01not what it was"] {
            let is_of_bytes = is_of_bytes(&key) && damaged.starts_with(b"\x01");
            assert_eq!(Inspection.fault(&key, damaged).is_none(), is_of_bytes, "{key}: {damaged:?}");
        }
        let cut = &value[..value.len() - 1];
        assert_eq!(Inspection.fault(&key, cut).is_none(), is_of_bytes(&key), "{key}, cut");
    }
}

#[test]
fn a_fault_describes_the_record_and_quotes_nothing_of_it() {
    let faults: Vec<_> = all().into_iter().filter_map(|(key, _)| Inspection.fault(&key, b"\x01\"Ana's secret")).collect();

    let descriptions: Vec<_> = faults.iter().map(|fault| (&*fault.what, fault.channel)).collect();
    assert_eq!(descriptions[0], ("event 3", Some(NO)));
    assert_eq!(descriptions[1], ("the snapshot", Some(NO)));
    assert_eq!(descriptions[3], ("the owed reply 1", Some(NO)));
    assert_eq!(descriptions[5], ("an entry of the index of persons", Some(NO)));
    assert_eq!(descriptions[8], ("the members of channel console:lobby of guild home", None));
    assert_eq!(descriptions[9], ("something that guild home used", None));
    assert_eq!(descriptions[11], ("the entry of room console:lobby in the directory of rooms", None));
    assert_eq!(
        descriptions.iter().find(|description| description.0.contains("opt-out")),
        Some(&("an opt-out in guild home", None))
    );
    assert!(
        descriptions.iter().any(|description| description.0.starts_with("the number that the next channel of ward ")),
        "{descriptions:?}"
    );
    assert!(descriptions.contains(&("the companion mira", None)), "{descriptions:?}");
    assert_eq!(descriptions.last(), Some(&("the marker of a deletion in progress", Some(NO))));
    assert!(faults.iter().all(|fault| !fault.detail.contains("secret") && !fault.detail.contains("verify")), "{faults:?}");
}

#[test]
fn the_name_of_a_channel_is_taken_from_both_of_its_records() {
    let names: Vec<_> = all().iter().filter_map(|(key, value)| Inspection.named(key, value)).collect();

    let name = (NO, "channel console:lobby of guild home".to_owned());
    assert_eq!(names, [name.clone(), name]);
}
