//! Upgrades records of older versions to the newest one.
//!
//! A record's first byte is its version. Each version has one step to the next. An older record goes through all steps from its version on
//! whenever it is read. A store of an older format is rewritten, record by record, when it is opened ([`upgraded_value`]).

use serde::de::IgnoredAny;
use serde_json::Value as Json;

use super::key::channel_in;
use super::phrases::shorten_into;
use super::record::{NEWEST_VERSION, UNSHORTENED_VERSION};
use crate::domain::id::TurnId;
use crate::ports::store::Value;
use crate::ports::store::key::{Key, Kind};

/// Upgrades the JSON of an older version to that of the newest one.
///
/// # Errors
/// Returns an error if the content is not JSON.
pub(super) fn upgraded(key: &Key, version: u8, json: &[u8]) -> Result<Json, serde_json::Error> {
    let mut record: Json = serde_json::from_slice(json)?;
    for from in version..UNSHORTENED_VERSION {
        match from {
            0 => from_version_0(key, &mut record),
            1 => from_version_1(key, &mut record),
            _ => {}
        }
    }
    Ok(record)
}

/// Upgrades the value of this key to the newest version. `None`: the value has that version already, or has no version.
///
/// # Errors
/// Returns the problem of the value. Reading it later fails, too.
pub fn upgraded_value(key: &Key, value: &[u8]) -> Result<Option<Value>, String> {
    let Some((&version, content)) = value.split_first().filter(|_| is_versioned(key)) else { return Ok(None) };
    if version >= NEWEST_VERSION {
        return Ok(None);
    }
    let mut newest = vec![NEWEST_VERSION];
    if is_of_bytes(key) {
        newest.extend(content);
    } else if version == UNSHORTENED_VERSION {
        let json = std::str::from_utf8(content).map_err(|_| format!("{key} is not JSON"))?;
        serde_json::from_str::<IgnoredAny>(json).map_err(|error| not_json(key, &error))?;
        shorten_into(&mut newest, content);
    } else {
        let record = upgraded(key, version, content).map_err(|error| not_json(key, &error))?;
        shorten_into(&mut newest, record.to_string().as_bytes());
    }
    Ok(Some(newest))
}

fn not_json(key: &Key, error: &serde_json::Error) -> String {
    format!("{key} is not JSON at byte {}", error.column())
}

/// Version 0 called an author's `role` its `kind`, and a person `human`.
fn from_version_0(key: &Key, record: &mut Json) {
    if key.is(Kind::Journal) || key.is(Kind::Snapshot) {
        name_roles(record);
    }
}

/// Version 1 did not record when timers fired and when back-offs ended. These events are not derived here. A lull timer that is
/// armed after the journal was read fires when it is due or overdue, and a back-off ends the same way. A back-off in a snapshot
/// with a waiting question is over.
///
/// Only some events named their turn, by its trace. Work in progress without a turn is assigned to one turn for each channel.
fn from_version_1(key: &Key, record: &mut Json) {
    let channel_turn = TurnId((1 << 64) | u128::from(channel_in(key).map_or(0, |channel| channel.0)));
    if key.is(Kind::Journal) {
        name_turn(record, channel_turn);
    } else if key.is(Kind::Snapshot) {
        end_back_offs(record);
        name_turns_in_progress(record, channel_turn);
    }
}

/// Names the turn of an event: for a question, a round, a reply or a judgement its own trace, for an answer the trace of its call.
fn name_turn(record: &mut Json, channel_turn: TurnId) -> Option<()> {
    let event = record.get_mut("event")?.as_object_mut()?;
    event.remove("by_deadline");
    let trace = event.remove("trace").or_else(|| event.get("call")?.get("trace").cloned());
    let trace = trace.filter(|trace| trace.as_str().is_some_and(|trace| trace.parse::<TurnId>().is_ok()));
    let begins = ["round_opened", "evaluated", "repetition_asked", "reply_owed"].contains(&event.get("event")?.as_str()?);
    let turn = trace.or_else(|| begins.then(|| channel_turn.to_string().into()))?;
    record.as_object_mut()?.insert("turn".to_owned(), turn);
    Some(())
}

/// Names the turn of work in progress: a round, questions, votes, the selected companion or the floor, a statement that is being
/// judged.
fn name_turns_in_progress(record: &mut Json, channel_turn: TurnId) {
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
        part.insert("turn".to_owned(), channel_turn.to_string().into());
    }
}

/// Ends back-offs: a waiting companion asks when the channel continues, and the next back-off is as long as the first.
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

/// Whether a value consists of opaque bytes, not JSON: notes of platforms, pictures, cards and parts of files.
pub(super) fn is_of_bytes(key: &Key) -> bool {
    matches!(key.kind(), Some(Kind::Session | Kind::Picture | Kind::Card | Kind::FilePart))
}

/// Numbers that the store maintains, and records about the store, have no version byte.
fn is_versioned(key: &Key) -> bool {
    const PLAIN: [&[u8]; 4] = [b"store\0", b"term\0", b"counts\0", b"sweep\0"];
    match key.kind() {
        Some(Kind::Head | Kind::Tombstone) => false,
        Some(Kind::Meta) => !PLAIN.iter().any(|name| key.as_bytes()[2..].starts_with(name)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::conversation::{Conversation, Output};
    use crate::domain::event::{Event, Recorded};
    use crate::domain::id::{ChannelId, GuildId, Seq, Ward};
    use crate::domain::message::Role;
    use crate::domain::moment::Moment;
    use crate::domain::samples::with_world;
    use crate::key;
    use crate::ports::store::key::ChannelNo;
    use crate::record::{SnapshotRecord, decode, decode_event, encode_number};

    const OLD: &[u8] = b"\x00{\"at\":5,\"event\":{\"event\":\"said\",\"message\":{\"from\":{\"id\":\"Ana\",\"name\":\"Ana\",\"kind\":\"human\"},\"text\":\"hi\"}}}";

    fn event_key() -> Key {
        Key::event(Ward(1), ChannelNo(2), Seq(7))
    }

    #[test]
    fn an_event_of_version_0_is_upgraded() {
        let read = decode_event(&event_key(), OLD).unwrap();

        let crate::domain::event::Event::Said { message, .. } = read.event else { panic!("somebody said something") };
        assert_eq!((&*message.from.id, message.from.role, &*message.text), ("Ana", Role::Person, "hi"));
    }

    #[test]
    fn an_event_of_version_1_gets_its_turn_from_its_trace() {
        let asked = r#"{"at":5,"handled":4,"event":{"event":"evaluated","companion":"aria","ticket":3,"trigger":"lull","message":4,"messages":[4],"upto":4,"message_count":1,"check_count":0,"threshold":null,"by_deadline":true,"trace":"0123456789abcdef0123456789abcdef"}}"#;
        let answered = r#"{"at":6,"handled":4,"event":{"event":"decided","companions":["aria"],"trigger":"lull","decision":"NO","reason":"model_no","ticket":3,"messages":[4],"upto":4,"message_count":1,"check_count":0,"call":{"provider":"p","model":"m","wait_ms":0,"model_ms":0,"input_tokens":0,"output_tokens":0,"trace":"0123456789abcdef0123456789abcdef"}}}"#;
        let traceless = answered.replace("0123456789abcdef0123456789abcdef", "not a trace");

        let turns = [asked, answered, &traceless].map(|json| {
            let value = [b"\x01", json.as_bytes()].concat();
            decode_event(&event_key(), &value).unwrap().turn.map(|turn| turn.to_string())
        });

        let turn = Some("0123456789abcdef0123456789abcdef".to_owned());
        assert_eq!(turns, [turn.clone(), turn, None]);
        let untraced = asked.replace(",\"trace\":\"0123456789abcdef0123456789abcdef\"", "");
        assert!(
            decode_event(&event_key(), &[b"\x01", untraced.as_bytes()].concat()).unwrap().turn.is_some(),
            "a question has one"
        );
    }

    /// Events of version 1: a lull evaluation without an answer, and a message after it.
    fn events_of_version_1() -> Vec<Recorded> {
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
    fn unsettled_messages_of_version_1_are_asked_about_when_the_channel_continues() {
        let (soon, later) = (Moment::from_micros(14_000_000), Moment::from_micros(60_000_000));

        for (now, asked) in [(soon, 0), (later, 1)] {
            let mut conversation = Conversation::default();
            let made = with_world(|world| {
                events_of_version_1().iter().for_each(|recorded| conversation.fold(recorded, world));
                conversation.resume(now, Vec::new(), world)
            });

            let unsettled: Vec<_> = conversation.buffer(&"aria".into()).map(|entry| entry.seq).collect();
            assert_eq!((unsettled, conversation.open_questions().count()), (vec![Seq(2), Seq(6)], asked), "{now:?}");
            let ends = |output: &Output| matches!(output, Output::Made(made) if matches!(made.event, Event::BackOffEnded { .. }));
            assert_eq!(made.iter().filter(|output| ends(output)).count(), asked, "{made:?}");
            assert!(asked == 1 || conversation.wake_at().is_some_and(|at| at > now), "it waits for the end of the back-off");
        }
    }

    #[test]
    fn a_snapshot_of_version_1_loses_its_back_offs_and_its_work_in_progress_gets_a_turn() {
        let gate = r#"{"cursor":1,"message_counter":1,"check_count":0,"next_interjection_at":9,"lull_at":null,"evaluation":null,"wish":null,"waiting":{"trigger":"lull","message":2,"check":"unsettled","urgent":false},"back_off":{"pause":{"secs":320,"nanos":0},"until":99},"tried":2,"paused":false}"#;
        let old = format!(
            r#"{{"handled":2,"made":5,"conversation":{{"window":{{"entries":[]}},"gates":{{"aria":{gate}}},"floor":{{"companion":"ben","ticket":1,"trigger":"lull","messages":[2],"upto":2,"why":null,"selection":{{"opened":2,"selected_at":2,"asked_for_turn":false,"others":[]}}}},"episode":null,"summary":{{"text":null,"upto":0,"behind":0,"counted":0}},"handled":2,"clock":9,"tickets":1}}}}"#
        );

        let read: SnapshotRecord = decode(&key::snapshot(Ward(1), ChannelNo(2)), &[b"\x01", old.as_bytes()].concat()).unwrap();

        let gate = read.conversation.gate(&"aria".into()).unwrap();
        assert_eq!((gate.back_off, gate.message_counter, gate.waiting.is_some()), (None, 1, true));
        assert_eq!(read.conversation.turn_ids().count(), 1, "the reply that is owed has a turn");
    }

    #[test]
    fn an_upgraded_value_decodes_the_same_and_is_upgraded_once() {
        let newest = upgraded_value(&event_key(), OLD).unwrap().unwrap();

        assert_eq!(newest[0], NEWEST_VERSION);
        assert_eq!(decode_event(&event_key(), &newest), decode_event(&event_key(), OLD));
        assert_eq!(upgraded_value(&event_key(), &newest), Ok(None));
    }

    #[test]
    fn an_event_of_version_2_is_shortened_and_reads_the_same() {
        let json = br#"{"at":5,"event":{"event":"said","message":{"from":{"id":"Ana","name":"Ana","role":"user"},"text":"hi"}}}"#;
        let old = [&[2], &json[..]].concat();

        let newest = upgraded_value(&event_key(), &old).unwrap().unwrap();

        assert!(newest.len() < old.len() / 2, "{newest:?}");
        assert!(decode_event(&event_key(), &old).is_ok());
        assert_eq!(decode_event(&event_key(), &newest), decode_event(&event_key(), &old));
        assert!(upgraded_value(&event_key(), b"\x02{\"at\"").unwrap_err().contains("not JSON"));
        assert!(upgraded_value(&event_key(), b"\x02\"\xff\"").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn values_without_a_version_are_not_upgraded() {
        let (ward, no) = (Ward(1), ChannelNo(2));
        let number = encode_number(Seq(3));

        for key in [Key::head(ward, no), key::tombstone(ward, no), key::sweep(ward, no)] {
            assert_eq!(upgraded_value(&key, &number), Ok(None), "{key}");
        }
        assert_eq!(upgraded_value(&Key::new(Ward(0), Kind::Meta).text("store"), b"{}"), Ok(None));
    }

    #[test]
    fn notes_of_platforms_keep_their_bytes() {
        let key = key::note(Some(&GuildId::from("home")), "session");

        assert_eq!(upgraded_value(&key, b"\x00not json"), Ok(Some([&[NEWEST_VERSION], &b"not json"[..]].concat())));
    }

    #[test]
    fn a_value_that_cannot_be_upgraded_reports_the_error() {
        let key = key::room(&ChannelId::from("console:lobby"));

        assert!(upgraded_value(&key, b"\x00{\"room\"").unwrap_err().contains("not JSON"));
        assert!(decode::<u32>(&key, b"\x00{\"room\"").is_err());
    }
}
