//! Records of older versions, in the form in which they are written now.
//!
//! A record says its version in its first byte. Each version has one step to the next; what is of an older one goes through all that follow,
//! whenever it is read. A store of an older format is written anew, record by record, when it is opened ([`renewed`]).

use serde_json::Value as Json;

use super::record::NEWEST_VERSION;
use crate::ports::store::Value;
use crate::ports::store::key::{Key, Kind};

/// The JSON of an older version as it is written now.
///
/// # Errors
/// It is no JSON.
pub(super) fn upgraded(key: &Key, version: u8, json: &[u8]) -> Result<Json, serde_json::Error> {
    let mut record: Json = serde_json::from_slice(json)?;
    for from in version..NEWEST_VERSION {
        if from == 0 {
            from_version_0(key, &mut record);
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
    let is_plain_fact = || key.is(Kind::Meta) && PLAIN.iter().any(|name| key.as_bytes()[2..].starts_with(name));
    !key.is(Kind::Head) && !key.is(Kind::Tombstone) && !is_plain_fact()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{ChannelId, GuildId, Seq, Ward};
    use crate::domain::message::Role;
    use crate::journal::key;
    use crate::journal::record::{decode, decode_event, encode_number};
    use crate::ports::store::key::ChannelNo;

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
