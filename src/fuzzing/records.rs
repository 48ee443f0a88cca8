//! Targets for the store: records of every kind, and keys.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rules::{is_bounded, is_plain_line, text, texts};
use crate::domain::guests::Invitation;
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq, Ticket, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::membership::Membership;
use crate::journal::record::{
    BriefRecord, ChannelRecord, ClockRecord, CompanionRecord, DeadLetterRecord, FileRecord, NEWEST_VERSION, OptOutRecord,
    OutboxRecord, PendingRecord, RecordError, RoomRecord, Searched, SnapshotRecord, StartRecord, UsageRecord, decode,
    decode_bytes, decode_event, decode_number, decode_searched, encode, encode_bytes, encode_event, encode_number,
};
use crate::journal::redaction::redact;
use crate::ports::store::key::{ChannelNo, Key};

/// Stored samples of many kinds of events.
const EVENTS: &[&str] = &[
    r#"{"at":5,"event":{"event":"said","message":{"id":"m1","from":{"id":"ana","name":"Ana","role":"user"},"text":"Hi, Aria","modality":"voice","lull_endpoint":true,"address":{"companions":["aria"],"others":true}},"reply_to":3,"said_at":4}}"#,
    r#"{"at":5,"event":{"event":"said","message":{"from":{"id":"aria","name":"Aria","role":"companion"},"text":"Hello!","modality":"text","address":{"companions":[],"others":false}},"reply":7}}"#,
    r#"{"at":5,"event":{"event":"said","message":{"from":{"id":"ana","name":"Ana","role":"user"},"text":"[image: a.png]","attachments":[{"id":"0","kind":"image","media_type":"image/png","name":"a.png","bytes":9,"pixels":[3,2],"is_spoiler":true}]}}}"#,
    r#"{"at":5,"event":{"event":"edited","message":3,"text":"no"}}"#,
    r#"{"at":5,"event":{"event":"said","message":{"from":{"id":"aria","name":"Aria","role":"companion"},"text":"Hello","modality":"voice","address":{},"cut":{"full":"Hello, Ana","by":{"id":"ana","name":"Ana","role":"user"}}},"reply":7}}"#,
    r#"{"at":5,"event":{"event":"deleted","messages":[3,4],"unnamed":[2]}}"#,
    r#"{"at":5,"event":{"event":"joined","companion":"zed","external":true}}"#,
    r#"{"at":5,"event":{"event":"left","companion":"zed"}}"#,
    r#"{"at":5,"event":{"event":"paused","companion":"aria","paused":true}}"#,
    r#"{"at":5,"event":{"event":"cleared"}}"#,
    r#"{"at":5,"event":{"event":"caught_up","read":4,"missed":{"after":"1","before":"9","why":"too_many"}}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"jitter_drawn","companion":"aria","next_interjection_at":9}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"lull_fired","companions":["aria"]}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"back_off_ended","companions":["aria","bob"]}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"deadlines_extended","round":25,"floor":60}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"address_refused","message":4}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"round_opened","message":4,"deadline":25,"asked":["aria"],"listening":[{"from":"bob","messageId":"4","state":"listen","importance":0.0,"selected":false,"closing":"none"}]},"turn":"0123456789abcdef0123456789abcdef"}"#,
    r#"{"at":5,"handled":4,"event":{"event":"evaluated","companion":"aria","ticket":1,"trigger":"lull","message":4,"messages":[3,4],"upto":4,"message_count":2,"check_count":0,"threshold":9}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"decided","companions":["aria"],"trigger":"direct_address","decision":"NO","reason":"model_no","ticket":1,"messages":[4],"upto":4,"message_count":2,"check_count":0,"threshold":9,"next_interjection_at":12,"vote":{"from":"aria","messageId":"4","state":"listen","importance":5.5,"selected":false,"closing":"closing"},"why":"not mine","call":{"provider":"p","model":"m","wait_ms":1,"model_ms":2,"prompt":[["instructions",9]],"answer":"NO","input_tokens":3,"output_tokens":4,"trace":"0123456789abcdef0123456789abcdef"}}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"unanswered","companion":"aria","ticket":1,"trigger":"turn","error":"timeout","back_off":{"secs":10,"nanos":0}}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"stage_changed","companion":"aria","from":"none","to":"pre-closing","cause":"state"}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"round_closed","message":4,"states":[],"selected":"aria","speak_at":9,"others":[{"companion":"bob","next_interjection_at":12}]}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"repetition_asked","ticket":2,"message":4}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"repetition_judged","message":4,"score":0.75,"detections":1}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"reply_owed","companion":"aria","ticket":2,"trigger":"interjection","messages":[3,4],"upto":4,"next_interjection_at":9,"due_at":60}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"reply_failed","companion":"aria","ticket":2,"trigger":"lull","error":"empty"}}"#,
    r#"{"at":5,"handled":4,"event":{"event":"summarised","upto":4,"text":"They greeted."}}"#,
];

/// Stored samples of other kinds of records.
const RECORDS: &[&str] = &[
    r#"{"companion":"aria","trigger":"lull","messages":[3,4],"upto":4,"text":"Hello","parts":[{"state":"sent","id":"9"},{"state":"sending","after":"8"},{"state":"owed"},{"state":"unconfirmed"}]}"#,
    r#"{"media_type":"image/png","bytes":9}"#,
    r#"{"heard":4}"#,
    r#"{"guild":"home","channel":"console:lobby"}"#,
    r#"{"room":"console:lobby","guild":"home","created_at":5}"#,
    r#"{"at":5,"channel":"console:lobby","used":{"what":"address","person":"ana","message":3}}"#,
    r#"{"at":5,"channel":"console:lobby","used":{"what":"call","model":"m","provider":"p","role":"side","input_tokens":7,"output_tokens":2,"cache_read_tokens":4,"cache_write_tokens":1,"reasoning_tokens":2,"calls":2,"failed_calls":1,"price":{"input":9,"output":8,"cache_read":1,"currency":"EUR"}}}"#,
    r#"{"version":"0.1.0"}"#,
    r#"{"seen":9,"since":5}"#,
    r#"{"guild":"home","person":"ana","since":5}"#,
    r#"{"text":"You are curious.","at":5}"#,
    r#"{"text":"name = \"Mira\"\n","why":"config/companions/mira.toml cannot be written: read-only filesystem","at":5}"#,
    r#"{"guild":"home","channel":"console:lobby","seq":3,"at":5,"deaths":3,"error":"it broke","is_closed":true}"#,
    r#"{"guild":"home","companions":["aria","zed"],"externals":{"zed":{"name":"Zed","aliases":["z"]}},"overrides":{"aria":{"paused":true}},"paused":false,"within":"console:hall","created_at":5}"#,
];

pub(super) fn events() -> Vec<Vec<u8>> {
    versioned(EVENTS)
}

pub(super) fn all() -> Vec<Vec<u8>> {
    versioned(RECORDS)
}

pub(super) fn keys() -> Vec<Vec<u8>> {
    texts(&["home\u{1f}console:lobby\u{1f}ana", "discord:1\u{1f}discord:2\u{1f}discord:3", "\u{0}\u{1f}a\u{0}b\u{1f}é"])
}

fn versioned(json: &[&str]) -> Vec<Vec<u8>> {
    json.iter().map(|json| [&[NEWEST_VERSION], json.as_bytes()].concat()).collect()
}

pub(super) fn event(bytes: &[u8]) {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    for version in (NEWEST_VERSION + 1..=u8::MAX).step_by(51) {
        let other = [&[version], bytes.get(1..).unwrap_or_default()].concat();
        assert!(
            matches!(decode_event(&key, &other), Err(RecordError::UnknownVersion { .. })),
            "version {version} is read as the newest version"
        );
    }

    let read = decode_event(&key, bytes);

    match read {
        Ok(recorded) => {
            assert!(
                bytes.first().is_some_and(|version| *version <= NEWEST_VERSION),
                "a future version is read as the newest version"
            );
            assert_eq!(recorded.seq, Seq(7));
            let written = encode_event(&recorded);
            assert_eq!(decode_event(&key, &written).as_ref(), Ok(&recorded), "an event changes when it is written and read");
            for value in [bytes, &written] {
                assert_eq!(
                    decode_searched(&key, value, &mut Vec::new()),
                    Ok(Searched::of(&recorded)),
                    "recall reads something else"
                );
            }
            let redacted = redact(&recorded);
            assert_eq!(redact(&redacted), redacted);
            let wordless = encode_event(&redacted);
            assert!(decode_event(&key, &wordless).is_ok(), "an event without its words cannot be read");
        }
        Err(error) => check_error(&error, bytes),
    }
}

pub(super) fn record(bytes: &[u8]) {
    check_record::<OutboxRecord>(bytes);
    check_record::<PendingRecord>(bytes);
    check_record::<ChannelRecord>(bytes);
    check_record::<RoomRecord>(bytes);
    check_record::<UsageRecord>(bytes);
    check_record::<StartRecord>(bytes);
    check_record::<ClockRecord>(bytes);
    check_record::<OptOutRecord>(bytes);
    check_record::<BriefRecord>(bytes);
    check_record::<CompanionRecord>(bytes);
    check_record::<Invitation>(bytes);
    check_record::<DeadLetterRecord>(bytes);
    check_record::<FileRecord>(bytes);
    check_record::<Membership>(bytes);
    check_record::<SnapshotRecord>(bytes);
    let key = Key::from_bytes(bytes);
    match decode_bytes(&key, bytes) {
        Ok(read) => assert_eq!(encode_bytes(&read), bytes),
        Err(error) => check_error(&error, bytes),
    }
    match decode_number(&key, bytes) {
        Ok(number) => assert_eq!(encode_number(number), bytes),
        Err(error) => assert!(bytes.len() != 8, "{error}"),
    }
}

fn check_record<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    match decode::<T>(&key, bytes) {
        Ok(record) => {
            assert!(
                bytes.first().is_some_and(|version| *version <= NEWEST_VERSION),
                "a future version is read as the newest version"
            );
            assert_eq!(decode::<T>(&key, &encode(&record)).as_ref(), Ok(&record), "a record changes when it is written and read");
        }
        Err(error) => check_error(&error, bytes),
    }
}

/// Asserts that an error names the key and quotes nothing of the record.
fn check_error(error: &RecordError, bytes: &[u8]) {
    let message = error.to_string();
    assert!(is_plain_line(&message) && is_bounded(&message, 400 + bytes.len().min(1) * 5 * bytes.len()), "{message}");
    assert!(!message.contains("Hi, Aria"), "the error quotes the record: {message}");
    match error {
        RecordError::UnknownVersion { found, .. } => assert_eq!(bytes.first(), Some(found)),
        RecordError::UnknownVariant { .. } => {
            assert!(bytes.first().is_some_and(|version| (2..=NEWEST_VERSION).contains(version)))
        }
        RecordError::Malformed { .. } => assert!(bytes.first().is_none_or(|version| *version <= NEWEST_VERSION)),
    }
}

pub(super) fn key(bytes: &[u8]) {
    let any = Key::from_bytes(bytes);
    let _ = (
        key::guild_of_usage(&any),
        key::channel_in(&any),
        key::channel_before_number(&any),
        any.last_number(),
        key::message_of_file(&any),
    );
    assert!(any < key::successor(&any));
    let end = any.clone().end();
    assert!(end.as_bytes().is_empty() || any < end);
    assert!(is_plain_line(&any.to_string()));
    assert!(key::name_of_note(None, &any).is_none_or(|name| key::note(None, &name) == any), "a note has two names");

    let all = text(bytes);
    let mut named = super::parts(&all).into_iter().cycle();
    let mut next = || named.next().unwrap_or_default();
    let (guild, channel, person, name) = (GuildId::from(next()), ChannelId::from(next()), PersonId::from(next()), next());
    let channel_key = ChannelKey::new(&guild, &channel);
    let ward = Ward::of(&guild);
    assert_eq!(channel_key.ward(), ward);
    // The parts of a key can be read back from it, and the keys of one person are adjacent.
    let plain = |text: &str| text.replace('\0', "");
    assert_eq!(
        key::guild_of_usage(&key::usage(&guild, Moment::from_micros(7), ChannelNo(3), 1)),
        Some(plain(guild.as_str()).as_str().into())
    );
    assert_eq!(key::name_of_note(Some(&guild), &key::note(Some(&guild), name)), Some(plain(name)));
    assert_eq!(key::channel_in(&key::outbox(ward, ChannelNo(9), Ticket(4))), Some(ChannelNo(9)));
    assert_eq!(key::channel_before_number(&key::person(&guild, &person, ChannelNo(9), Seq(4))), Some(ChannelNo(9)));
    let person_prefix = key::person_entries(&guild, &person);
    let entry = key::person(&guild, &person, ChannelNo(9), Seq(4));
    assert!(
        entry.as_bytes().starts_with(person_prefix.as_bytes()) && person_prefix < entry && entry < person_prefix.clone().end()
    );
    // The keys of one person are no prefix of another's.
    let other = PersonId::from(format!("{}x", person.as_str()));
    assert!(
        !key::person(&guild, &other, ChannelNo(9), Seq(4)).as_bytes().starts_with(person_prefix.as_bytes()),
        "two people share keys"
    );
}
