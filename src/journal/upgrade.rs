//! Records of older versions, in the form in which they are written now.
//!
//! A record says its version in its first byte. Each version has one step to the next; what is of an older one goes through all that follow,
//! whenever it is read. A store of an older format is written anew, record by record, when it is opened ([`renewed`]).

use serde_json::Value as Json;

use super::key::channel_in;
use super::record::NEWEST_VERSION;
use crate::domain::id::TurnId;
use crate::ports::store::Value;
use crate::ports::store::key::{Key, Kind};

/// The JSON of an older version as it is written now.
///
/// # Errors
/// It is no JSON.
pub(super) fn upgraded(key: &Key, version: u8, json: &[u8]) -> Result<Json, serde_json::Error> {
    let mut record: Json = serde_json::from_slice(json)?;
    for from in version..NEWEST_VERSION {
        match from {
            0 => from_version_0(key, &mut record),
            1 => from_version_1(key, &mut record),
            _ => {}
        }
    }
    Ok(record)
}

/// The value of this key as it is written now; `None`: it already is, or has no version.
///
/// # Errors
/// What is wrong with it. Whoever reads it later is told again.
pub fn renewed(key: &Key, value: &[u8]) -> Result<Option<Value>, String> {
    let Some((&version, content)) = value.split_first().filter(|_| is_versioned(key)) else { return Ok(None) };
    if version >= NEWEST_VERSION {
        return Ok(None);
    }
    let mut renewed = vec![NEWEST_VERSION];
    if is_of_bytes(key) {
        renewed.extend(content);
    } else {
        let record = upgraded(key, version, content).map_err(|error| format!("{key} is no JSON at byte {}", error.column()))?;
        serde_json::to_writer(&mut renewed, &record).map_err(|error| error.to_string())?;
    }
    Ok(Some(renewed))
}

/// Version 0 called an author's `role` its `kind`, and a person `human`.
fn from_version_0(key: &Key, record: &mut Json) {
    if key.is(Kind::Journal) || key.is(Kind::Snapshot) {
        name_roles(record);
    }
}

/// Version 1 did not record when timers fired and when back-offs ended. What fired is not derived: a lull timer that is armed once the journal
/// was read fires when its time comes, or has come; so does a back-off end. One that is in a snapshot, with something to ask again, is over.
///
/// Only some events named their turn, by its trace. What goes on without one belongs to one turn of its channel.
fn from_version_1(key: &Key, record: &mut Json) {
    let nameless = TurnId((1 << 64) | u128::from(channel_in(key).map_or(0, |channel| channel.0)));
    if key.is(Kind::Journal) {
        name_turn(record, nameless);
    } else if key.is(Kind::Snapshot) {
        end_back_offs(record);
        name_turns_that_go_on(record, nameless);
    }
}

/// Of a question, a round, a reply or a judgement its own trace, of an answer that of its call.
fn name_turn(record: &mut Json, nameless: TurnId) -> Option<()> {
    let event = record.get_mut("event")?.as_object_mut()?;
    event.remove("by_deadline");
    let trace = event.remove("trace").or_else(|| event.get("call")?.get("trace").cloned());
    let trace = trace.filter(|trace| trace.as_str().is_some_and(|trace| trace.parse::<TurnId>().is_ok()));
    let begins = ["round_opened", "evaluated", "repetition_asked", "reply_owed"].contains(&event.get("event")?.as_str()?);
    let turn = trace.or_else(|| begins.then(|| nameless.to_string().into()))?;
    record.as_object_mut()?.insert("turn".to_owned(), turn);
    Some(())
}

/// A round, questions, wishes, whoever was selected or has the floor, a statement that is being judged.
fn name_turns_that_go_on(record: &mut Json, nameless: TurnId) {
    let Some(conversation) = record.get_mut("conversation").and_then(Json::as_object_mut) else { return };
    let mut parts = Vec::new();
    for (name, part) in conversation {
        match (name.as_str(), part) {
            ("round" | "spoken", part) => parts.push(part),
            ("turn" | "floor", part) => parts.extend(part.get_mut("selection")),
            ("gates", Json::Object(gates)) => {
                for gate in gates.values_mut().filter_map(Json::as_object_mut) {
                    parts.extend(
                        gate.iter_mut().filter(|(name, _)| ["evaluation", "wish"].contains(&name.as_str())).map(|(_, part)| part),
                    );
                }
            }
            _ => {}
        }
    }
    for part in parts.into_iter().filter_map(Json::as_object_mut) {
        part.insert("turn".to_owned(), nameless.to_string().into());
    }
}

/// Whoever waits to ask again asks when the channel goes on; the next pause is as long as the first.
fn end_back_offs(record: &mut Json) {
    let gates = record.pointer_mut("/conversation/gates").and_then(Json::as_object_mut);
    for gate in gates.into_iter().flat_map(|gates| gates.values_mut()).filter_map(Json::as_object_mut) {
        if gate.get("waiting").is_some_and(|waiting| !waiting.is_null()) {
            gate.insert("back_off".to_owned(), Json::Null);
        }
    }
}

fn name_roles(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            if fields.contains_key("id")
                && fields.contains_key("name")
                && let Some(kind) = fields.remove("kind")
            {
                let role = if kind == "human" { "user".into() } else { kind };
                fields.insert("role".into(), role);
            }
            fields.values_mut().for_each(name_roles);
        }
        Json::Array(items) => items.iter_mut().for_each(name_roles),
        _ => {}
    }
}

/// What platforms remember is theirs, and no JSON of ours.
fn is_of_bytes(key: &Key) -> bool {
    key.is(Kind::Session)
}

/// Numbers that the store keeps itself, and facts about it, begin with no version.
fn is_versioned(key: &Key) -> bool {
    const PLAIN: [&[u8]; 4] = [b"store\0", b"term\0", b"counts\0", b"sweep\0"];
    match key.kind() {
        Some(Kind::Head | Kind::Tombstone) => false,
        Some(Kind::Meta) => !PLAIN.iter().any(|name| key.as_bytes()[2..].starts_with(name)),
        Some(
            Kind::Journal
            | Kind::Snapshot
            | Kind::Pending
            | Kind::Outbox
            | Kind::MessageId
            | Kind::Person
            | Kind::ChannelName
            | Kind::ChannelOf
            | Kind::Summary
            | Kind::Setting
            | Kind::Usage
            | Kind::DeadLetter
            | Kind::Room
            | Kind::Session
            | Kind::Webhook
            | Kind::OptOut,
        )
        | None => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::domain::budget::Ledger;
    use crate::domain::conversation::{Conversation, Output, Rules, World};
    use crate::domain::event::{Event, Recorded};
    use crate::domain::gate::InterjectionPolicy;
    use crate::domain::id::{ChannelId, GuildId, Seq, Ward};
    use crate::domain::message::Role;
    use crate::domain::moment::Moment;
    use crate::journal::key;
    use crate::journal::record::{SnapshotRecord, decode, decode_event, encode_number};
    use crate::ports::store::key::ChannelNo;
    use crate::settings::Settings;

    const OLD: &[u8] = b"\x00{\"at\":5,\"event\":{\"event\":\"said\",\"message\":{\"from\":{\"id\":\"Ana\",\"name\":\"Ana\",\"kind\":\"human\"},\"text\":\"hi\"}}}";

    fn event_key() -> Key {
        Key::event(Ward(1), ChannelNo(2), Seq(7))
    }

    #[test]
    fn an_event_of_version_0_reads_as_if_it_had_been_written_now() {
        let read = decode_event(&event_key(), OLD).unwrap();

        let crate::domain::event::Event::Said { message, .. } = read.event else { panic!("somebody said something") };
        assert_eq!((&*message.from.id, message.from.role, &*message.text), ("Ana", Role::Person, "hi"));
    }

    #[test]
    fn an_event_of_version_1_says_its_turn_where_its_trace_was_on_record() {
        let asked = r#"{"at":5,"handled":4,"event":{"event":"evaluated","companion":"aria","ticket":3,"trigger":"lull","message":4,"messages":[4],"upto":4,"message_count":1,"check_count":0,"threshold":null,"by_deadline":true,"trace":"0123456789abcdef0123456789abcdef"}}"#;
        let answered = r#"{"at":6,"handled":4,"event":{"event":"decided","companions":["aria"],"trigger":"lull","decision":"NO","reason":"model_no","ticket":3,"messages":[4],"upto":4,"message_count":1,"check_count":0,"call":{"provider":"p","model":"m","wait_ms":0,"model_ms":0,"input_tokens":0,"output_tokens":0,"trace":"0123456789abcdef0123456789abcdef"}}}"#;
        let spared = answered.replace("0123456789abcdef0123456789abcdef", "not a trace");

        let turns = [asked, answered, &spared].map(|json| {
            let value = [b"\x01", json.as_bytes()].concat();
            decode_event(&event_key(), &value).unwrap().turn.map(|turn| turn.to_string())
        });

        let turn = Some("0123456789abcdef0123456789abcdef".to_owned());
        assert_eq!(turns, [turn.clone(), turn, None]);
        let untold = asked.replace(",\"trace\":\"0123456789abcdef0123456789abcdef\"", "");
        assert!(decode_event(&event_key(), &[b"\x01", untold.as_bytes()].concat()).unwrap().turn.is_some(), "a question has one");
    }

    /// What a channel of version 1 left: a lull that was asked about and got no answer, and a message after it.
    fn left_by_version_1() -> Vec<Recorded> {
        let said = |at: u64, text: &str| {
            format!(
                r#"{{"at":{at},"event":{{"event":"said","message":{{"from":{{"id":"Ana","name":"Ana","role":"user"}},"text":"{text}"}}}}}}"#
            )
        };
        let events = [
            r#"{"at":0,"event":{"event":"joined","companion":"aria"}}"#.to_owned(),
            said(1_000_000, "hi"),
            r#"{"at":1000000,"handled":2,"event":{"event":"jitter_drawn","companion":"aria","next_interjection_at":9}}"#.to_owned(),
            r#"{"at":11000000,"handled":2,"event":{"event":"evaluated","companion":"aria","ticket":1,"trigger":"lull","message":2,"messages":[2],"upto":2,"message_count":1,"check_count":0,"threshold":9,"by_deadline":true}}"#.to_owned(),
            r#"{"at":12000000,"handled":2,"event":{"event":"unanswered","companion":"aria","ticket":1,"trigger":"lull","error":"timeout","back_off":{"secs":10,"nanos":0}}}"#.to_owned(),
            said(13_000_000, "still there?"),
        ];
        let read = |(index, json): (usize, &String)| {
            let key = Key::event(Ward(1), ChannelNo(2), Seq(index as u64 + 1));
            decode_event(&key, &[b"\x01", json.as_bytes()].concat()).unwrap()
        };
        events.iter().enumerate().map(read).collect()
    }

    #[test]
    fn what_was_unsettled_in_version_1_is_asked_about_when_its_channel_goes_on() {
        let settings = Settings::overlay(serde_json::json!({})).unwrap();
        let timeout = Duration::from_secs(10);
        let policy = InterjectionPolicy { starting_interval: 9, text_lull_timeout: timeout, voice_lull_timeout: timeout };
        let mut world = World {
            channel: &"lobby".into(),
            rules: Rules::from(&settings),
            policies: &BTreeMap::from([("aria".into(), policy)]),
            jitter: &mut || 0,
            turn: &mut || TurnId(7),
            ledger: &mut Ledger::default(),
            summary_after: None,
            tokens_per_day: None,
            is_unpostable: false,
        };
        let (soon, later) = (Moment::from_micros(14_000_000), Moment::from_micros(60_000_000));

        for (now, asked) in [(soon, 0), (later, 1)] {
            let mut conversation = Conversation::default();
            left_by_version_1().iter().for_each(|recorded| conversation.fold(recorded, &mut world));
            let made = conversation.resume(now, &mut world);

            let unsettled: Vec<_> = conversation.buffer(&"aria".into()).map(|entry| entry.seq).collect();
            assert_eq!((unsettled, conversation.open_questions().count()), (vec![Seq(2), Seq(6)], asked), "{now:?}");
            let ends = |output: &Output| matches!(output, Output::Made(made) if matches!(made.event, Event::BackOffEnded { .. }));
            assert_eq!(made.iter().filter(|output| ends(output)).count(), asked, "{made:?}");
            assert!(asked == 1 || conversation.wake_at().is_some_and(|at| at > now), "it waits for the end of the back-off");
        }
    }

    #[test]
    fn back_offs_of_a_snapshot_of_version_1_are_over_and_what_goes_on_has_a_turn() {
        let gate = r#"{"cursor":1,"message_counter":1,"check_count":0,"next_interjection_at":9,"lull_at":null,"evaluation":null,"wish":null,"waiting":{"trigger":"lull","message":2,"check":"unsettled","urgent":false},"back_off":{"pause":{"secs":320,"nanos":0},"until":99},"tried":2,"paused":false}"#;
        let old = format!(
            r#"{{"handled":2,"made":5,"conversation":{{"window":{{"entries":[]}},"gates":{{"aria":{gate}}},"floor":{{"companion":"ben","ticket":1,"trigger":"lull","messages":[2],"upto":2,"why":null,"selection":{{"opened":2,"selected_at":2,"asked_for_turn":false,"others":[]}}}},"episode":null,"summary":{{"text":null,"upto":0,"behind":0,"counted":0}},"handled":2,"clock":9,"tickets":1}}}}"#
        );

        let read: SnapshotRecord = decode(&key::snapshot(Ward(1), ChannelNo(2)), &[b"\x01", old.as_bytes()].concat()).unwrap();

        let gate = read.conversation.gate(&"aria".into()).unwrap();
        assert_eq!((gate.back_off, gate.message_counter, gate.waiting.is_some()), (None, 1, true));
        assert_eq!(read.conversation.turns().count(), 1, "the reply that is owed has a turn");
    }

    #[test]
    fn what_is_renewed_reads_the_same_and_is_renewed_once() {
        let renewed_value = renewed(&event_key(), OLD).unwrap().unwrap();

        assert_eq!(renewed_value[0], NEWEST_VERSION);
        assert_eq!(decode_event(&event_key(), &renewed_value), decode_event(&event_key(), OLD));
        assert_eq!(renewed(&event_key(), &renewed_value), Ok(None));
    }

    #[test]
    fn numbers_and_facts_have_no_version_and_stay() {
        let (ward, no) = (Ward(1), ChannelNo(2));
        let number = encode_number(Seq(3));

        for key in [Key::head(ward, no), key::tombstone(ward, no), key::sweep(ward, no)] {
            assert_eq!(renewed(&key, &number), Ok(None), "{key}");
        }
        assert_eq!(renewed(&Key::new(Ward(0), Kind::Meta).text("store"), b"{}"), Ok(None));
    }

    #[test]
    fn bytes_of_platforms_stay_as_they_are() {
        let key = key::note(Some(&GuildId::from("home")), "session");

        assert_eq!(renewed(&key, b"\x00not json"), Ok(Some([&[NEWEST_VERSION], &b"not json"[..]].concat())));
    }

    #[test]
    fn what_cannot_be_renewed_says_where() {
        let key = key::room(&ChannelId::from("console:lobby"));

        assert!(renewed(&key, b"\x00{\"room\"").unwrap_err().contains("no JSON"));
        assert!(decode::<u32>(&key, b"\x00{\"room\"").is_err());
    }
}
