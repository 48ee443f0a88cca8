//! Rooms, who is in them, and what an operator can change about them at run time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::stamp::Stamp;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
pub use crate::settings::console::MOST_IN_A_ROOM;

/// A room as its users name it: one of the console's by 1 to 64 of `A-Z a-z 0-9 _ -`, a channel of another platform by its whole id,
/// `discord:1234`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RoomId(Arc<str>);

/// What the console's own channels begin with.
const CONSOLE: &str = "console";

impl RoomId {
    /// The longest that a room's id may be, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Takes a text for a room's id, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = match text.split_once(':') {
            None => is_plain_id(text),
            Some((platform, id)) => platform != CONSOLE && is_plain_id(platform) && is_plain_id(id),
        };
        is_id.then(|| Self(text.into()))
    }

    /// Whether it is one of the console's own rooms.
    pub fn is_of_console(&self) -> bool {
        !self.0.contains(':')
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The channel that the room is: `console:lobby`, `discord:1234`.
    pub fn channel(&self) -> ChannelId {
        if self.is_of_console() { ChannelId::from(format!("{CONSOLE}:{}", self.0)) } else { ChannelId::from(&*self.0) }
    }

    /// The room that a channel is.
    pub fn of(channel: &ChannelId) -> Option<Self> {
        match channel.as_str().split_once(':') {
            Some((CONSOLE, id)) => is_plain_id(id).then(|| Self(id.into())),
            _ => Self::parse(channel.as_str()).filter(|room| !room.is_of_console()),
        }
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The platform that a channel's id begins with; the whole id where it names none.
pub fn platform_in(channel: &ChannelId) -> &str {
    channel.as_str().split_once(':').map_or(channel.as_str(), |(platform, _)| platform)
}

/// Whether a channel is one of the console's own rooms.
pub fn is_of_console(channel: &ChannelId) -> bool {
    RoomId::of(channel).is_some_and(|room| room.is_of_console())
}

/// Whether a text is 1 to 64 of `A-Z a-z 0-9 _ -`, as ids of rooms and companions are.
pub fn is_plain_id(text: &str) -> bool {
    (1..=RoomId::MAX_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Every room.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rooms {
    /// In the order of ids.
    pub rooms: Vec<Room>,
}

/// One room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Room {
    /// Its name.
    pub id: RoomId,
    /// What people call it where it is, in one line of plain text, at most 200 characters: `#general · Home`; absent for rooms of the
    /// console, and where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The guild that it belongs to, for good.
    pub guild: GuildId,
    /// The channel that this is a thread in, if what is changed there holds here.
    #[serde(rename = "lives_by", skip_serializing_if = "Option::is_none")]
    pub inherits_from: Option<ChannelId>,
    /// Who is in it, in the order of ids.
    pub companions: Vec<RoomCompanion>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// When something was last said in it.
    pub last_at: Option<Stamp>,
}

/// A companion in a room, with the room's overrides applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomCompanion {
    /// Its id.
    pub id: CompanionId,
    /// What people call it.
    pub name: Arc<str>,
    /// What else people call it.
    pub aliases: Vec<Arc<str>>,
    /// A program outside plays it.
    pub external: bool,
    /// Its tier: `very_quiet`, `quiet`, `average`, `eager`, `very_eager`.
    pub interjection: Arc<str>,
    /// Whether an operator paused it here.
    pub paused: bool,
}

/// What a room shall be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomPlan {
    /// The guild that it belongs to: 1 to 64 characters.
    pub guild: GuildId,
    /// Who is to be in it: at most [`MOST_IN_A_ROOM`], none twice.
    pub companions: Vec<Invited>,
}

/// A companion that is to be in a room: written `"aria"`, or `{"id": "zed", "external": true}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    /// Its id.
    pub id: CompanionId,
    /// A program outside plays it.
    pub external: bool,
    /// What people call it, if it is external; absent: its id with a capital.
    pub name: Option<Arc<str>>,
    /// What else people call it, if it is external.
    pub aliases: Vec<Arc<str>>,
}

impl<'de> Deserialize<'de> for Invited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InvitedVisitor)
    }
}

// Written out, because what serde says of a value that fits no variant of an untagged enum names neither field nor way out.
struct InvitedVisitor;

impl<'de> Visitor<'de> for InvitedVisitor {
    type Value = Invited;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a companion's id, or {\"id\": \"zed\", \"external\": true}")
    }

    fn visit_str<E: de::Error>(self, id: &str) -> Result<Invited, E> {
        Ok(Invited { id: id.into(), external: false, name: None, aliases: Vec::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Invited, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            id: CompanionId,
            #[serde(default)]
            external: bool,
            #[serde(default)]
            name: Option<Arc<str>>,
            #[serde(default)]
            aliases: Vec<Arc<str>>,
        }

        let Written { id, external, name, aliases } = Written::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Invited { id, external, name, aliases })
    }
}

/// What is to be overridden in a room at run time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPatch {
    /// Pause the room, or let it go on.
    pub paused: Override<bool>,
    /// By companion's id, each of them present in the room.
    #[serde(deserialize_with = "by_companion")]
    pub companions: BTreeMap<Arc<str>, CompanionPatch>,
}

/// What is to be overridden for one companion in one room.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompanionPatch {
    /// Its tier: `very_quiet`, `quiet`, `average`, `eager`, `very_eager`.
    pub interjection: Override<Arc<str>>,
    /// How it likes to talk, in words, verbatim in its prompts.
    pub chattiness: Override<Arc<str>>,
    /// Seconds of quiet after which it considers a text.
    pub text_lull_timeout: Override<f64>,
    /// Seconds of quiet after which it considers what was spoken.
    pub voice_lull_timeout: Override<f64>,
    /// Pause it, or let it go on.
    pub paused: Override<bool>,
}

fn by_companion<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Arc<str>, CompanionPatch>, D::Error> {
    let written = BTreeMap::<Arc<str>, WrittenPatch>::deserialize(deserializer)?;
    Ok(written.into_iter().map(|(id, WrittenPatch(patch))| (id, patch)).collect())
}

/// One that is written as an object: what is derived reads a list too, which would make the order of fields part of the API.
struct WrittenPatch(CompanionPatch);

impl<'de> Deserialize<'de> for WrittenPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PatchVisitor).map(Self)
    }
}

struct PatchVisitor;

impl<'de> Visitor<'de> for PatchVisitor {
    type Value = CompanionPatch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of what is to change, such as {\"interjection\": \"quiet\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CompanionPatch, A::Error> {
        CompanionPatch::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}

/// What to do about one override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Override<T> {
    /// Leave it as it is: the field is absent.
    #[default]
    Keep,
    /// Take it back, so that the configured value holds again: the field is `null`.
    TakeBack,
    /// Set it.
    Set(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Override<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::TakeBack, Self::Set))
    }
}

/// Every companion.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Companions {
    /// In the order of ids.
    pub companions: Vec<CompanionView>,
}

/// A companion as it is configured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompanionView {
    /// Its id: the stem of its file.
    pub id: CompanionId,
    /// What people call it.
    pub name: Arc<str>,
    /// What else people call it.
    pub aliases: Vec<Arc<str>>,
    /// Its tier.
    pub interjection: Arc<str>,
    /// How it likes to talk, in words.
    pub chattiness: Arc<str>,
    /// Seconds of quiet after which it considers a text.
    pub text_lull_timeout: f64,
    /// Seconds of quiet after which it considers what was spoken.
    pub voice_lull_timeout: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_value_are_three_things() {
        let patch: RoomPatch =
            serde_json::from_str(r#"{"companions": {"aria": {"interjection": null, "chattiness": "shy"}}}"#).unwrap();

        assert_eq!(patch.paused, Override::Keep);
        assert_eq!(patch.companions["aria"].interjection, Override::TakeBack);
        assert_eq!(patch.companions["aria"].chattiness, Override::Set("shy".into()));
    }

    #[test]
    fn a_companion_is_invited_by_id_or_by_object() {
        let plan: RoomPlan =
            serde_json::from_str(r#"{"guild": "home", "companions": ["aria", {"id": "zed", "external": true}]}"#).unwrap();

        let external: Vec<_> = plan.companions.iter().map(|invited| (invited.id.as_str(), invited.external)).collect();
        assert_eq!(external, [("aria", false), ("zed", true)]);
    }

    #[test]
    fn a_room_is_a_channel_of_the_console() {
        let room = RoomId::parse("lobby").unwrap();

        assert_eq!(room.channel().as_str(), "console:lobby");
        assert_eq!(RoomId::of(&room.channel()), Some(room));
        assert_eq!(RoomId::of(&"discord:12".into()).map(|room| room.channel()), Some("discord:12".into()));
        for channel in ["lobby", "console:discord:12", "discord:", ":12", "discord:1:2", "console:a b"] {
            assert_eq!(RoomId::of(&channel.into()), None, "{channel}");
        }
    }

    #[test]
    fn only_plain_ids_are_rooms() {
        let refused = ["", "a b", "ä", "a/b", "..", &"x".repeat(65)].map(RoomId::parse);

        assert_eq!(refused, [const { None }; 6]);
        assert!(RoomId::parse(&"x".repeat(64)).is_some());
    }
}
