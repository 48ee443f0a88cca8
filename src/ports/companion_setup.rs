//! The configured companions. They can be created, changed and deleted while the server runs.

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

use super::backend::refused::{Refused, Why};
use super::backend::room::RoomId;
use super::model_setup::Trial;
use crate::domain::id::{CompanionId, GuildId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::settings::companion::{Companion, CompanionFile, Interjection, Override, QuietHours, with_plain_lines};

/// Creates, changes and deletes companions.
#[async_trait]
pub trait CompanionSetup: Send + Sync + 'static {
    /// The choices for a new companion.
    async fn options(&self) -> Result<CompanionOptions, Refused>;

    /// A companion with its configuration.
    async fn companion(&self, id: CompanionId) -> Result<CompanionProfile, Refused>;

    /// Creates a companion. Its id is derived from its name.
    async fn create(&self, new: NewCompanion) -> Result<CompanionProfile, Refused>;

    /// Replaces the configuration of a companion. Returns [`Refused::Conflict`] if its revision has changed.
    async fn change(&self, id: CompanionId, change: CompanionChange) -> Result<CompanionProfile, Refused>;

    /// Deletes a companion with its picture and its card. It leaves its rooms; its messages stay there.
    async fn delete(&self, id: CompanionId, revision: Revision) -> Result<(), Refused>;

    /// Makes one decision and one statement as a companion that need not exist, with the models in force. Nothing is stored.
    async fn try_out(&self, trial: CompanionTrial) -> Result<Trial, Refused>;

    /// The bytes of the companion's picture, or a smaller square for display at `size` pixels. Returns [`Refused::NotFound`] if no picture has this
    /// hash.
    async fn picture(&self, id: CompanionId, hash: String, size: Option<u32>) -> Result<Vec<u8>, Refused>;

    /// The data for an export of a companion.
    async fn exported(&self, id: CompanionId) -> Result<Exported, Refused>;
}

/// The revision of a companion: a hash of its files, its picture and its card. Clients receive it, and send it with their changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Revision(pub String);

/// The configuration that people write. A field that is absent or null is not written, so that the default of the settings applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompanionFields {
    /// The display name: 1 to 64 characters in one line, in any script. It is empty only in the preview of a card without a name.
    #[schemars(length(max = 64))]
    pub name: Arc<str>,
    /// Alternative names, at most 16.
    #[schemars(length(max = 16))]
    pub aliases: Vec<Arc<str>>,
    /// The description of the companion's character: at most 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<Arc<str>>,
    /// How willing the companion is to speak, in words: at most 2 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chattiness: Option<Arc<str>>,
    /// How often the companion speaks without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interjection: Option<Interjection>,
    /// How the companion speaks up, in one sentence: at most 2 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tone: Option<Arc<str>>,
    /// One sentence about the companion that everybody sees in its profile, guests too: at most 200 characters in one line. It is in no prompt.
    #[schemars(length(max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
    /// The hours in which the companion speaks only when spoken to: `never`, `always`, or hours such as `23:00-08:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// The silence in seconds after which the companion may start a conversation, 60 to 604,800. Absent: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// Whether the companion is for adults only, so that it does not join rooms with minors. Absent: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adult: bool,
    /// The name of the model that writes its statements. Absent: `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The companion's voice.
    pub voice: VoiceFields,
    /// The https address of the companion's picture, for platforms that fetch pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture_url: Option<Arc<str>>,
    /// Greetings for a room in which nothing was said yet: at most 64, each at most 16 KiB.
    #[schemars(length(max = 64))]
    pub greetings: Vec<Arc<str>>,
}

/// Omits the keys of the file that cannot be edited here.
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
            about: file.about,
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

/// The voice of a companion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceFields {
    /// The speech service. Absent: that of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The service's name of the voice. Absent: its first voice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Arc<str>>,
    /// The speed as a factor from 0.5 to 2. Absent: the voice's own speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// A companion to create.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCompanion {
    pub companion: CompanionFields,
    /// The companion to copy. The copy gets its picture, its card, and the keys of its file that are no field here.
    pub copy_of: Option<CompanionId>,
    /// The picture in base64: a PNG, JPEG or WebP of at most 1 MiB.
    pub picture: Option<Base64>,
    /// The character card from which the companion is created, in base64. It is stored for exports. Its picture is used if `picture` is absent.
    pub card: Option<Base64>,
    /// The room that the companion joins. If it cannot join, nothing is created.
    pub room: Option<RoomId>,
    /// The guild whose own companion it is. `None`: it is the operator's.
    #[serde(skip)]
    pub guild: Option<GuildId>,
}

/// The new configuration of a companion.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanionChange {
    /// The revision that the change is based on, as the server returned it.
    pub revision: Revision,
    pub companion: CompanionFields,
    /// The new picture in base64. Absent: no change. Null: remove the picture.
    #[serde(default)]
    pub picture: Override<Base64>,
}

/// A companion to try out.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanionTrial {
    pub companion: CompanionFields,
    /// The companion that is being edited or copied: the keys of its file that are no field here count, too.
    pub of: Option<CompanionId>,
    /// A person's message to the companion, at most 4,000 characters. Absent: a default sentence.
    #[schemars(length(max = 4_000))]
    pub message: Option<Arc<str>>,
}

/// The choices for a new companion.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompanionOptions {
    /// Where a new companion is stored.
    pub kept: Kept,
    /// The names of the models.
    pub models: Vec<ModelName>,
    /// The speech services, each with its voices.
    pub voices: Vec<ServiceVoices>,
    /// Everyday words in lower case. As names, they count only where they call a companion.
    pub common_names: BTreeSet<&'static str>,
    /// Whether one call asks all companions of a round (`turn_taking.voting`).
    pub decides_together: bool,
    /// The default values of fields.
    pub defaults: DefaultFields,
}

/// A speech service.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServiceVoices {
    pub provider: Arc<str>,
    /// The known names of its voices. Others may exist.
    pub voices: Vec<Arc<str>>,
}

/// The values of fields that a companion's configuration does not set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DefaultFields {
    pub persona: Arc<str>,
    pub chattiness: Arc<str>,
    pub interjection: Interjection,
    pub quiet_hours: QuietHours,
}

/// Where a companion is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum Kept {
    /// The companion is part of the program. A change writes it, and the other built-in companions, to `path`.
    BuiltIn {
        /// The folder that a change creates.
        path: String,
    },
    /// A file, or a folder with `companion.toml` and persona files.
    File {
        path: String,
        /// Whether the server may write there. If not, changes are kept in the store.
        writable: bool,
    },
    /// A record in the store.
    Store {
        /// Why the companion is not in a file.
        why: String,
        /// The unused file of the same companion, or the built-in companion. It is used again when this record is deleted.
        #[serde(skip_serializing_if = "Option::is_none")]
        instead_of: Option<String>,
    },
}

/// A companion with its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompanionProfile {
    pub id: CompanionId,
    pub revision: Revision,
    pub kept: Kept,
    /// The only guild in whose rooms the companion takes part. Absent: in any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild: Option<GuildId>,
    /// The written configuration. For a folder with persona files, `persona` has the text of all files.
    pub companion: CompanionFields,
    /// Why the persona cannot be changed here: it is in several files. One sentence that names the files. Absent: it can be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona_elsewhere: Option<String>,
    /// The path of the picture on this server, `/pictures/ID/HASH`, which needs no token. Absent: no picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// The picture that Discord shows.
    pub discord_picture: DiscordPicture,
    /// Whether the companion was created from a character card. An export then includes the unused fields of the card.
    pub has_card: bool,
    /// The rooms that have the companion as a member, ordered by id.
    pub rooms: Vec<ProfileRoom>,
    /// Warnings, one sentence each, for example about a name that another companion elsewhere also has.
    pub warnings: Vec<String>,
    /// The warnings for programs that word them themselves, in the same order.
    pub warning_codes: Vec<Why>,
}

/// The data for an export of a companion.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The companion with its effective values.
    pub companion: Companion,
    /// The bytes of the picture.
    pub picture: Option<Vec<u8>>,
    /// The original character card.
    pub card: Option<Vec<u8>>,
}

/// A room that has a companion as a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProfileRoom {
    pub id: RoomId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
}

/// The picture that Discord shows for a companion. Discord fetches it, and so needs a public address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum DiscordPicture {
    /// The companion has no picture.
    None,
    /// Discord loads the picture from this URL.
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
