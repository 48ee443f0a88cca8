//! The companions of the server, and how they are made, changed and removed while it runs.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::backend::refused::Refused;
use super::backend::room::RoomId;
use super::model_setup::Trial;
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::settings::companion::{Companion, CompanionFile, Interjection, Override, QuietHours, with_plain_lines};

/// Makes, changes and removes companions.
#[async_trait]
pub trait CompanionSetup: Send + Sync + 'static {
    /// What somebody who makes a companion can choose from.
    async fn options(&self) -> Result<CompanionOptions, Refused>;

    /// A companion as it is configured.
    async fn companion(&self, id: CompanionId) -> Result<CompanionProfile, Refused>;

    /// Makes a companion. Its id is made from its name.
    async fn create(&self, new: NewCompanion) -> Result<CompanionProfile, Refused>;

    /// Replaces what is written about a companion. A [`Refused::Conflict`] if it is not of this revision any more.
    async fn change(&self, id: CompanionId, change: CompanionChange) -> Result<CompanionProfile, Refused>;

    /// Removes a companion, with its picture and its card. It leaves its rooms; what it said stays there.
    async fn delete(&self, id: CompanionId, revision: Revision) -> Result<(), Refused>;

    /// Has a companion that need not exist make one decision and one statement, with the models in force. Nothing is kept.
    async fn try_out(&self, trial: CompanionTrial) -> Result<Trial, Refused>;

    /// The bytes of its picture, or of a square that is large enough to be shown in this size, if that is smaller. [`Refused::NotFound`] if it has none with
    /// this hash.
    async fn picture(&self, id: CompanionId, hash: String, size: Option<u32>) -> Result<Vec<u8>, Refused>;

    /// What an export of it is made of.
    async fn exported(&self, id: CompanionId) -> Result<Exported, Refused>;
}

/// A companion as written at one time: a hash of its files, its picture and its card. It is told to clients, and comes back with their changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Revision(pub String);

/// What people write about a companion. A field that is absent or null is not written, so that the default of the settings applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompanionFields {
    /// The name that people see: 1 to 64 characters in one line, in any script. Only the preview of a card that has none is without.
    #[schemars(length(max = 64))]
    pub name: Arc<str>,
    /// Further names that it answers to: at most 16.
    #[schemars(length(max = 16))]
    pub aliases: Vec<Arc<str>>,
    /// What it is like: at most 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<Arc<str>>,
    /// How willing it is to speak, in words: at most 2 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chattiness: Option<Arc<str>>,
    /// How often it speaks without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interjection: Option<Interjection>,
    /// How it speaks up, in one sentence: at most 2 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tone: Option<Arc<str>>,
    /// When it speaks only when spoken to: `never`, `always`, or hours such as `23:00-08:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Seconds of silence after which it may start a conversation, 60 to 604,800; absent: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// Whether it is for adults only, so that it does not join rooms with minors; absent: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adult: bool,
    /// The name of the model that writes its statements; absent: `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// How it sounds.
    pub voice: VoiceFields,
    /// The https address of its picture, for platforms that fetch pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture_url: Option<Arc<str>>,
    /// What it may say first in a room where nothing was said yet: at most 64, each at most 16 KiB.
    #[schemars(length(max = 64))]
    pub greetings: Vec<Arc<str>>,
}

/// Keys of a file that people do not write here are left out.
impl From<CompanionFile> for CompanionFields {
    fn from(file: CompanionFile) -> Self {
        let voice = file.voice.unwrap_or_default();
        Self {
            name: file.name.unwrap_or_default(),
            aliases: file.aliases.unwrap_or_default(),
            persona: file.persona.map(with_plain_lines),
            chattiness: file.chattiness,
            interjection: file.interjection,
            tone: file.tone,
            quiet_hours: file.quiet_hours,
            starts_after: file.starts_after.filter(|silence| *silence != 0.0),
            adult: file.adult.unwrap_or_default(),
            model: file.model.map(|model| model.main).filter(|main| *main != ModelRole::Main.into()),
            voice: VoiceFields { provider: voice.provider, voice: voice.voice, speed: voice.speed },
            picture_url: file.picture,
            greetings: file.greetings.unwrap_or_default().into_iter().map(with_plain_lines).collect(),
        }
    }
}

/// How a companion sounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceFields {
    /// The service that speaks; absent: that of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The service's name of the voice; absent: its first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Arc<str>>,
    /// How fast it speaks, as a factor from 0.5 to 2; absent: as fast as the voice does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// A companion that is to be made.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCompanion {
    pub companion: CompanionFields,
    /// The companion of which this is a copy: it has the keys of its file that are no field here, its picture and its card.
    #[serde(default)]
    pub copy_of: Option<CompanionId>,
    /// Its picture in base64: a PNG, JPEG or WebP of at most 1 MiB.
    #[serde(default)]
    pub picture: Option<Base64>,
    /// The character card that it is made of, in base64, which is kept for an export. Its picture is used if `picture` is absent.
    #[serde(default)]
    pub card: Option<Base64>,
    /// The room that it joins. If it cannot, nothing is made.
    #[serde(default)]
    pub room: Option<RoomId>,
}

/// What is to be written about a companion instead of what is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanionChange {
    /// What the change was made of, as it was told.
    pub revision: Revision,
    pub companion: CompanionFields,
    /// Its picture in base64; absent: as it is; null: none.
    #[serde(default)]
    pub picture: Override<Base64>,
}

/// A companion that is tried.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanionTrial {
    pub companion: CompanionFields,
    /// The companion that it is an edit or a copy of: the keys of its file that are no field here count, too.
    #[serde(default)]
    pub of: Option<CompanionId>,
    /// What somebody says to it, at most 4,000 characters; absent: a sentence for trials.
    #[serde(default)]
    #[schemars(length(max = 4_000))]
    pub message: Option<Arc<str>>,
}

/// What somebody who makes a companion can choose from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompanionOptions {
    /// Where a new companion is kept.
    pub kept: Kept,
    /// The names of models.
    pub models: Vec<ModelName>,
    /// The services that speak, each with its voices.
    pub voices: Vec<ServiceVoices>,
    /// Everyday words in lower case, which count as names only where they call somebody.
    pub common_names: BTreeSet<&'static str>,
    /// What applies where nothing is written.
    pub defaults: DefaultFields,
}

/// A service that speaks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServiceVoices {
    pub provider: Arc<str>,
    /// The names of its voices, as far as they are known. Others may exist.
    pub voices: Vec<Arc<str>>,
}

/// What applies to a companion where nothing is written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DefaultFields {
    pub persona: Arc<str>,
    pub chattiness: Arc<str>,
    pub interjection: Interjection,
    pub quiet_hours: QuietHours,
}

/// Where a companion is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum Kept {
    /// It is part of the program. A change writes it, and the other built-in companions, to `path`.
    BuiltIn {
        /// The folder that a change makes.
        path: String,
    },
    /// A file, or a folder with `companion.toml` and persona files.
    File {
        path: String,
        /// Whether the server may write there. If it may not, a change is kept in the store.
        writable: bool,
    },
    /// A record of the store.
    Store {
        /// Why it is not in a file.
        why: String,
        /// The file of the same companion, or the built-in one, which is not used. It counts again when this one is deleted.
        #[serde(skip_serializing_if = "Option::is_none")]
        instead_of: Option<String>,
    },
}

/// A companion as it is configured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompanionProfile {
    pub id: CompanionId,
    pub revision: Revision,
    pub kept: Kept,
    /// What is written about it. Of a folder with persona files, `persona` is what all of them say.
    pub companion: CompanionFields,
    /// Why its persona cannot be changed here, if it cannot: it is in several files. One sentence that names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona_elsewhere: Option<String>,
    /// The path of its picture on this server, `/pictures/ID/HASH`, which needs no token; absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// What Discord shows as its picture.
    pub discord_picture: DiscordPicture,
    /// Whether it was made of a character card, which an export gives back with what is not used of it.
    pub has_card: bool,
    /// The rooms that it is a member of, ordered by id.
    pub rooms: Vec<ProfileRoom>,
    /// What is unusual and yet allowed, such as a name that it shares with a companion elsewhere. One sentence each.
    pub warnings: Vec<String>,
}

/// What an export of a companion is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The companion with the values that apply to it.
    pub companion: Companion,
    /// The bytes of its picture.
    pub picture: Option<Vec<u8>>,
    /// The character card that it was made of, as it was given.
    pub card: Option<Vec<u8>>,
}

/// A room that a companion is a member of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProfileRoom {
    pub id: RoomId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
}

/// What Discord shows as a companion's picture. Discord fetches it, and so needs a public address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum DiscordPicture {
    /// It has no picture.
    None,
    /// Discord loads it from here.
    Shown { url: String },
    /// Discord cannot reach this server: `server.public_url` is not set, or is not https.
    NoPublicUrl,
}

/// Bytes, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(|_| de::Error::custom("is not base64"))
    }
}

impl JsonSchema for Base64 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}
