//! Rooms, their members, and the overrides that an operator can change at run time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::stamp::Stamp;
use crate::domain::id::{ChannelId, CompanionId, GuildId, id_of_title};
use crate::domain::named::named;
use crate::domain::room_words::{MOST_DEPTH, MOST_INSTRUCTIONS, MOST_NOTE, RoomWords, Style};
pub use crate::settings::companion::{CompanionPatch, Override};
use crate::settings::companion::{Interjection, ModelChoice, QuietHours};
pub use crate::settings::console::MOST_IN_A_ROOM;

/// The id of a room in the API. Rooms of the console have 1 to 64 of `A-Z a-z 0-9 _ -`. A channel of another platform has its whole id, such as
/// `discord:1234`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("pattern" = "^([A-Za-z0-9_-]{1,64}:)?[A-Za-z0-9_-]{1,64}$"))]
pub struct RoomId(Arc<str>);

impl<'de> Deserialize<'de> for RoomId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Arc::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("is not the id of a room"))
    }
}

/// The prefix of the console's own channels.
const CONSOLE: &str = "console";

impl RoomId {
    /// The longest id of a room of the console, and of each part of another platform's id, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Parses a room's id. `None` if the text is not a valid id.
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

    /// The id of a new room with this title: its letters in ASCII, with a number if that id is taken. A title without such letters gives `room`.
    pub fn of_title(title: &str, is_taken: impl Fn(&Self) -> bool) -> Self {
        Self(id_of_title(title, Self::MAX_CHARS, "room", |id| is_taken(&Self(id.into()))).into())
    }

    /// The room of a channel. `None` if the channel's id cannot be a room's.
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

/// The platform part of a channel's id; the whole id if it has no such part.
pub fn platform_in(channel: &ChannelId) -> &str {
    channel.as_str().split_once(':').map_or(channel.as_str(), |(platform, _)| platform)
}

/// Whether a channel is a room of the console.
pub fn is_of_console(channel: &ChannelId) -> bool {
    RoomId::of(channel).is_some_and(|room| room.is_of_console())
}

/// Whether a text is 1 to 64 of `A-Z a-z 0-9 _ -`, as in ids of rooms and companions.
pub fn is_plain_id(text: &str) -> bool {
    (1..=RoomId::MAX_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A list of all rooms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rooms {
    /// Ordered by id.
    pub rooms: Vec<Room>,
}

/// A room with its members.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Room {
    pub id: RoomId,
    /// The title in one line of plain text. A channel of another platform has its title there (`#general · Home`), at most 200 characters. A room
    /// of the console has the title that a person set, at most 64 characters. Absent if it is unknown or not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The guild of the room. It never changes.
    pub guild: GuildId,
    /// The parent channel of a thread, if the thread inherits its members and overrides.
    #[serde(rename = "lives_by", skip_serializing_if = "Option::is_none")]
    pub inherits_from: Option<ChannelId>,
    /// The members, ordered by id.
    pub companions: Vec<RoomCompanion>,
    /// The spoken language in the room. Absent: `speech.language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    /// The hours in which all companions in the room speak only when spoken to. Absent: as configured for each companion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Whether minors are in the room, by the setting of the room or its guild. Absent: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub minors: bool,
    /// Which voice notes in the room have their words recognised. Absent: none, because no service recognises words.
    #[serde(skip_serializing_if = "VoiceNotes::are_unrecognised")]
    pub voice_notes: VoiceNotes,
    /// The words of the room itself, for its companions. Absent: none.
    #[serde(skip_serializing_if = "RoomWords::are_unset")]
    pub words: RoomWords,
    pub paused: bool,
    pub last_at: Option<Stamp>,
}

named! {
    /// Which voice notes have their words recognised (docs/design/voice.md A-78).
    #[derive(JsonSchema)]
    pub enum VoiceNotes {
        All = "all",
        /// Those to a companion: a reply to one, a mention, a direct message, or any in a room with one companion.
        Addressed = "addressed",
        /// None, because that is turned off.
        Off = "off",
        /// None, because no service recognises words.
        NoRecogniser = "no_recogniser",
    }
}

impl VoiceNotes {
    const fn are_unrecognised(&self) -> bool {
        matches!(self, Self::NoRecogniser)
    }
}

/// A companion in a room, with the room's overrides applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoomCompanion {
    pub id: CompanionId,
    pub name: Arc<str>,
    /// Always true: a companion is AI, also if an external program plays it.
    pub ai: bool,
    /// One sentence about the companion, by whoever made it. Absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
    pub aliases: Vec<Arc<str>>,
    /// Whether an external program plays the companion.
    pub external: bool,
    /// The interjection level: `very_quiet`, `quiet`, `average`, `eager`, `very_eager`.
    #[schemars(with = "Interjection")]
    pub interjection: Arc<str>,
    /// The hours in which the companion speaks only when spoken to. Absent: never. The hours of the room and the guild apply in addition.
    #[serde(skip_serializing_if = "QuietHours::are_never")]
    pub quiet_hours: QuietHours,
    /// The silence in seconds after which the companion may start a conversation. Absent: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// The number of its own statements after which the companion ends a conversation. Absent: no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether the companion's statements are judged for repetition.
    pub repetition: bool,
    pub model: ModelChoice,
    /// Whether the companion takes no part because it is for adults only, and minors are present. Absent: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept_out: bool,
    pub paused: bool,
    /// The path of the companion's picture on this server, which needs no token. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// The desired state of a console room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoomPlan {
    /// The guild of the room: 1 to 64 characters.
    #[schemars(length(min = 1, max = 64))]
    pub guild: GuildId,
    /// The desired members: at most 32, without duplicates.
    #[schemars(length(max = MOST_IN_A_ROOM))]
    pub companions: Vec<Invited>,
    /// The spoken language in the room: the name of a table of `speech.words`. Absent: no change. Null: `speech.language`.
    #[serde(default)]
    pub language: Override<Arc<str>>,
    /// Whether to return an error, instead of changing the room, if it already exists.
    #[serde(default, rename = "new")]
    pub must_be_new: bool,
}

/// A room of the console to create. Its id is derived from the title.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRoom {
    /// The display name: 1 to 64 characters in one line, in any script. It must differ from the titles of all other rooms of the console.
    #[schemars(length(min = 1, max = 64))]
    pub title: Arc<str>,
    /// The guild of the room: 1 to 64 characters.
    #[schemars(length(min = 1, max = 64))]
    pub guild: GuildId,
    /// The members: at most 32, without duplicates.
    #[schemars(length(max = MOST_IN_A_ROOM))]
    pub companions: Vec<Invited>,
    /// The spoken language in the room: the name of a table of `speech.words`. Absent or null: `speech.language`.
    #[serde(default)]
    pub language: Override<Arc<str>>,
}

/// The amount of data that deleting a room deletes, and the deadline for undoing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deletion {
    /// The number of readable messages in the room now.
    pub messages: u64,
    /// When the room is deleted. Null: no deletion was requested.
    pub deleted_at: Option<Stamp>,
}

/// A desired member of a room: written `"aria"`, or `{"id": "zed", "external": true}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
#[schemars(rename = "Invited", transform = or_id)]
pub struct Invited {
    pub id: CompanionId,
    /// Whether an external program plays the companion.
    #[serde(default)]
    pub external: bool,
    /// The display name of an external companion. Absent: its id, capitalised.
    pub name: Option<Arc<str>>,
    /// Other names that address the companion, if it is external.
    #[serde(default)]
    pub aliases: Vec<Arc<str>>,
}

/// Adds the short form, which is the id alone.
fn or_id(schema: &mut Schema) {
    let object = std::mem::take(schema);
    *schema = json_schema!({ "anyOf": [{ "type": "string" }, object] });
}

impl<'de> Deserialize<'de> for Invited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InvitedVisitor)
    }
}

// Written by hand: for a value that fits no variant of an untagged enum, serde's message names neither the field nor the accepted forms.
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
        Invited::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}

/// A change of a room's overrides at run time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPatch {
    /// The title of a room of the console: 1 to 64 characters in one line.
    #[schemars(length(min = 1, max = 64))]
    pub title: Override<Arc<str>>,
    pub paused: Override<bool>,
    /// The hours in which all companions in the room speak only when spoken to: `never`, `always`, or hours such as `23:00-08:00`.
    pub quiet_hours: Override<QuietHours>,
    /// Whether minors are in the room. If so, a notice repeats each hour that companions are AI, companions for adults only take no part, and the
    /// others speak only when spoken to.
    pub minors: Override<bool>,
    /// Whether the words of all voice notes in the room are recognised (true), or of none (false).
    pub voice_notes: Override<bool>,
    /// The words of the room itself, for its companions.
    pub words: WordsPatch,
    /// Changes by companion id. Each companion must be present in the room.
    pub companions: BTreeMap<Arc<str>, CompanionPatch>,
}

/// A change of the words of a room. Null: those of the settings, if there are any. An empty text: none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WordsPatch {
    /// Instructions for all companions in the room.
    #[schemars(length(max = MOST_INSTRUCTIONS))]
    pub instructions: Override<Arc<str>>,
    pub style: Override<Style>,
    /// A note to the companions that stands within the talk in each prompt of a statement.
    #[schemars(length(max = MOST_NOTE))]
    pub note: Override<Arc<str>>,
    /// The number of messages after the note. Null: 4.
    #[schemars(range(max = MOST_DEPTH))]
    pub note_depth: Override<u8>,
}

impl WordsPatch {
    pub fn apply(self, words: &mut RoomWords) {
        self.instructions.apply(&mut words.instructions);
        self.style.apply(&mut words.style);
        self.note.apply(&mut words.note);
        self.note_depth.apply(&mut words.note_depth);
    }
}

/// A list of all companions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Companions {
    /// Ordered by id.
    pub companions: Vec<CompanionView>,
}

/// A companion with its configuration. The fields have the same meaning as those of its file (docs/design/interfaces.md I-3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompanionView {
    pub id: CompanionId,
    pub name: Arc<str>,
    /// Always true.
    pub ai: bool,
    pub aliases: Vec<Arc<str>>,
    #[schemars(with = "Interjection")]
    pub interjection: Arc<str>,
    pub chattiness: Arc<str>,
    pub text_lull_timeout: f64,
    pub voice_lull_timeout: f64,
    #[serde(skip_serializing_if = "QuietHours::are_never")]
    pub quiet_hours: QuietHours,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    pub repetition: bool,
    pub model: ModelChoice,
    /// The path of the companion's picture on this server, which needs no token. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Whether the companion has greetings for empty rooms. Absent: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub greets: bool,
    /// The only guild whose rooms the companion can join, whose managers made it. Absent: it is the operator's, and can join any room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild: Option<GuildId>,
    /// The address from which anybody can load the picture. `None`: there is no such address.
    #[serde(skip)]
    pub public_picture: Option<Arc<str>>,
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
    fn a_title_in_any_script_has_an_id() {
        let id = |title: &str| RoomId::of_title(title, |id| ["den", "den-2", "room"].contains(&id.as_str())).to_string();

        assert_eq!(id("Großmutters Küche"), "grossmutters-kuche");
        assert_eq!(id("  Den! "), "den-3");
        assert_eq!(id("Кухня № 7"), "kukhnya-no-7");
        assert_eq!(id("\u{1f9f6}\u{fe0f} 夜"), "yarn-ye");
        assert_eq!(id("\u{e000}!"), "room-2");
        for title in ["おばあちゃんの台所", "غرفة", "厨房", "ß".repeat(64).as_str(), "_", "../..", "\u{1f468}\u{200d}\u{1f469}"]
        {
            assert!(RoomId::parse(&id(title)).is_some_and(|id| id.is_of_console()), "{title}: {}", id(title));
        }
    }

    #[test]
    fn only_plain_ids_are_rooms() {
        let refused = ["", "a b", "ä", "a/b", "..", &"x".repeat(65)].map(RoomId::parse);

        assert_eq!(refused, [const { None }; 6]);
        assert!(RoomId::parse(&"x".repeat(64)).is_some());
    }
}
