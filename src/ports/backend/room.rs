//! Rooms, their members, and what an operator can change about them at run time.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::stamp::Stamp;
use crate::domain::id::{ChannelId, CompanionId, GuildId, ModelName};
use crate::settings::companion::ModelChoice;
pub use crate::settings::console::MOST_IN_A_ROOM;

/// The id of a room in the API. The console's rooms have 1 to 64 of `A-Z a-z 0-9 _ -`; a channel of another platform has its whole id, such
/// as `discord:1234`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RoomId(Arc<str>);

/// The prefix of the console's own channels.
const CONSOLE: &str = "console";

impl RoomId {
    /// The longest that a room's id may be, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Parses a room's id; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = match text.split_once(':') {
            None => is_plain_id(text),
            Some((platform, id)) => platform != CONSOLE && is_plain_id(platform) && is_plain_id(id),
        };
        is_id.then(|| Self(text.into()))
    }

    pub fn is_of_console(&self) -> bool {
        !self.0.contains(':')
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The room's channel: `console:lobby`, `discord:1234`.
    pub fn channel(&self) -> ChannelId {
        if self.is_of_console() { ChannelId::from(format!("{CONSOLE}:{}", self.0)) } else { ChannelId::from(&*self.0) }
    }

    /// A channel's room; `None` if the channel's id cannot be a room's.
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

/// The platform part of a channel's id; the whole id if it has none.
pub fn platform_in(channel: &ChannelId) -> &str {
    channel.as_str().split_once(':').map_or(channel.as_str(), |(platform, _)| platform)
}

/// Whether a channel is a room of the console.
pub fn is_of_console(channel: &ChannelId) -> bool {
    RoomId::of(channel).is_some_and(|room| room.is_of_console())
}

/// Whether a text is 1 to 64 of `A-Z a-z 0-9 _ -`, as ids of rooms and companions are.
pub fn is_plain_id(text: &str) -> bool {
    (1..=RoomId::MAX_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A list of all rooms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rooms {
    /// Ordered by id.
    pub rooms: Vec<Room>,
}

/// A room with its members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Room {
    pub id: RoomId,
    /// Its title in one line of plain text: for a channel of another platform the one that it has there, at most 200 characters (`#general · Home`),
    /// for a room of the console the one that somebody gave it, at most 64. It is absent where it is unknown, or nobody gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The guild that it belongs to. It never changes.
    pub guild: GuildId,
    /// The parent channel of a thread, if the thread inherits its members and overrides.
    #[serde(rename = "lives_by", skip_serializing_if = "Option::is_none")]
    pub inherits_from: Option<ChannelId>,
    /// Its members, ordered by id.
    pub companions: Vec<RoomCompanion>,
    /// The language that is spoken in it; absent: `speech.language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// The time of the last message.
    pub last_at: Option<Stamp>,
}

/// A companion in a room, with the room's overrides applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomCompanion {
    pub id: CompanionId,
    /// Its display name.
    pub name: Arc<str>,
    /// Other names that address it.
    pub aliases: Vec<Arc<str>>,
    /// Whether a program outside plays it.
    pub external: bool,
    /// Its interjection level: `very_quiet`, `quiet`, `average`, `eager`, `very_eager`.
    pub interjection: Arc<str>,
    /// The silence after which it may start a conversation, in seconds; absent: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// The number of its own statements after which it ends a conversation; absent: it has no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether its statements are judged for repetition.
    pub repetition: bool,
    pub model: ModelChoice,
    /// Whether an operator paused it here.
    pub paused: bool,
}

/// The desired state of a console room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomPlan {
    /// The guild that it belongs to: 1 to 64 characters.
    pub guild: GuildId,
    /// The desired members: at most [`MOST_IN_A_ROOM`], without duplicates.
    pub companions: Vec<Invited>,
    /// The language that is spoken in it: the name of a table of `speech.words`.
    #[serde(default)]
    pub language: Override<Arc<str>>,
    /// Whether a room that exists is refused instead of changed.
    #[serde(default, rename = "new")]
    pub must_be_new: bool,
}

/// A desired member of a room: written `"aria"`, or `{"id": "zed", "external": true}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    pub id: CompanionId,
    /// Whether a program outside plays it.
    pub external: bool,
    /// The display name of an external companion; absent: its id, capitalised.
    pub name: Option<Arc<str>>,
    /// Other names that address it, if it is external.
    pub aliases: Vec<Arc<str>>,
}

impl<'de> Deserialize<'de> for Invited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InvitedVisitor)
    }
}

// Written by hand: for a value that fits no variant of an untagged enum, serde's message names neither the field nor what to write.
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
        struct Fields {
            id: CompanionId,
            #[serde(default)]
            external: bool,
            #[serde(default)]
            name: Option<Arc<str>>,
            #[serde(default)]
            aliases: Vec<Arc<str>>,
        }

        let Fields { id, external, name, aliases } = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Invited { id, external, name, aliases })
    }
}

/// A change of a room's overrides at run time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPatch {
    /// The title of a room of the console: 1 to 64 characters in one line.
    pub title: Override<Arc<str>>,
    pub paused: Override<bool>,
    /// Changes by companion id. Each companion must be present in the room.
    #[serde(deserialize_with = "by_companion")]
    pub companions: BTreeMap<Arc<str>, CompanionPatch>,
}

/// A change of one companion's overrides in one room.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompanionPatch {
    /// Its interjection level: `very_quiet`, `quiet`, `average`, `eager`, `very_eager`.
    pub interjection: Override<Arc<str>>,
    /// How it likes to talk, in words, verbatim in its prompts.
    pub chattiness: Override<Arc<str>>,
    /// The lull timeout after typed messages, in seconds.
    pub text_lull_timeout: Override<f64>,
    /// The lull timeout after spoken messages, in seconds.
    pub voice_lull_timeout: Override<f64>,
    /// The silence after which it may start a conversation, in seconds; 0: it never does.
    pub starts_after: Override<f64>,
    /// The number of its own statements after which it ends a conversation.
    pub max_turns: Override<u32>,
    /// Whether its statements are judged for repetition.
    pub repetition: Override<bool>,
    #[serde(deserialize_with = "model_patch")]
    pub model: Override<ModelPatch>,
    pub paused: Override<bool>,
}

/// A change of the models that a companion uses in one room, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPatch {
    /// The model that writes its statements.
    pub main: Override<ModelName>,
    /// The model that decides whether it speaks.
    pub side: Override<ModelName>,
}

/// A patch that must be an object.
trait Patch {
    /// What to write instead of something else.
    const EXPECTED: &'static str;
}

impl Patch for CompanionPatch {
    const EXPECTED: &'static str = "an object of what is to change, such as {\"interjection\": \"quiet\"}";
}

impl Patch for ModelPatch {
    const EXPECTED: &'static str = "an object with the names of models, such as {\"side\": \"main\"}";
}

fn by_companion<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Arc<str>, CompanionPatch>, D::Error> {
    let patches = BTreeMap::<Arc<str>, PatchObject<CompanionPatch>>::deserialize(deserializer)?;
    Ok(patches.into_iter().map(|(id, PatchObject(patch))| (id, patch)).collect())
}

fn model_patch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Override<ModelPatch>, D::Error> {
    let patch = Option::<PatchObject<ModelPatch>>::deserialize(deserializer)?;
    Ok(patch.map_or(Override::Reset, |PatchObject(patch)| Override::Set(patch)))
}

/// Reads a patch from an object. A derived struct also accepts a list, which would make the order of fields part of the API.
struct PatchObject<T>(T);

impl<'de, T: Patch + Deserialize<'de>> Deserialize<'de> for PatchObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PatchVisitor(PhantomData)).map(Self)
    }
}

struct PatchVisitor<T>(PhantomData<T>);

impl<'de, T: Patch + Deserialize<'de>> Visitor<'de> for PatchVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}

/// A change of one override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Override<T> {
    /// Keep the current override: the field is absent.
    #[default]
    Keep,
    /// Remove the override, so that the configured value applies: the field is `null`.
    Reset,
    /// Set the override to this value.
    Set(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Override<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Reset, Self::Set))
    }
}

/// A list of all companions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Companions {
    /// Ordered by id.
    pub companions: Vec<CompanionView>,
}

/// A companion as it is configured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompanionView {
    /// Its id: the file name of its settings without the extension.
    pub id: CompanionId,
    /// Its display name.
    pub name: Arc<str>,
    /// Other names that address it.
    pub aliases: Vec<Arc<str>>,
    pub interjection: Arc<str>,
    /// How it likes to talk, in words.
    pub chattiness: Arc<str>,
    /// The lull timeout after typed messages, in seconds.
    pub text_lull_timeout: f64,
    /// The lull timeout after spoken messages, in seconds.
    pub voice_lull_timeout: f64,
    /// The silence after which it may start a conversation, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// The number of its own statements after which it ends a conversation; absent: it has no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether its statements are judged for repetition.
    pub repetition: bool,
    pub model: ModelChoice,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_a_value_mean_keep_reset_and_set() {
        let patch: RoomPatch =
            serde_json::from_str(r#"{"companions": {"aria": {"interjection": null, "chattiness": "shy"}}}"#).unwrap();

        assert_eq!(patch.paused, Override::Keep);
        assert_eq!(patch.companions["aria"].interjection, Override::Reset);
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
    fn a_room_id_and_a_channel_id_convert_into_each_other() {
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
