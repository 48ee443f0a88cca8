//! Operator tasks: quarantine, backups, exports, forgetting people, readiness.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::{Refused, Why};
use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::id::{CompanionId, GuildId, Seq};
use crate::domain::named::named;
use crate::texts::Language;

/// Guilds in quarantine, suspended channels, dead letters, and companions that were lost at a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Quarantine {
    /// Guilds that failed too often, ordered by id.
    pub guilds: Vec<QuarantinedGuild>,
    /// Channels that cannot continue from their record, ordered by id.
    pub channels: Vec<SuspendedChannel>,
    /// Messages that killed their handler, oldest first.
    pub messages: Vec<DeadLetter>,
    /// Companions whose folder was skipped at the last reload, ordered by id.
    pub companions: Vec<SkippedCompanion>,
    /// The errors of the last reload, or of the start. The affected parts were left unchanged at a reload, or left out at a start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<FailedReload>,
}

/// A reload of the settings, or a start, with errors. The affected parts were left unchanged at a reload, or left out at a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedReload {
    pub at: Stamp,
    /// The errors, each with the file, the line and the remedy as far as they are known.
    pub problems: Vec<String>,
}

/// A companion that is no longer configured, because its folder has neither `companion.toml` nor persona files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedCompanion {
    pub id: CompanionId,
    pub folder: Arc<str>,
}

/// A guild that failed too often and is stopped for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuarantinedGuild {
    /// The guild's id, which `release` takes.
    pub id: GuildId,
    pub since: Stamp,
    /// When it is started again.
    pub until: Stamp,
    pub detail: String,
}

/// A channel that crashed whenever it continued from its record, or whose record cannot be read. It is stopped for a while; the rest of its guild
/// keeps working.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SuspendedChannel {
    /// The entry's id, which `release` takes.
    pub id: Arc<str>,
    pub guild: GuildId,
    pub room: Arc<str>,
    pub since: Stamp,
    /// When it is started again.
    pub until: Stamp,
    pub detail: String,
}

/// A message that killed its handler too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeadLetter {
    /// The entry's id, which `retry` and `drop` take.
    pub id: Arc<str>,
    pub guild: GuildId,
    pub room: Arc<str>,
    pub seq: Seq,
    pub at: Stamp,
    pub attempts: u32,
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportQuery {
    /// Exports only this room. It is required for all formats but JSON.
    pub room: Option<RoomId>,
    pub form: ExportForm,
    /// The language of documents.
    pub language: Language,
}

named! {
    /// The format of an export.
    #[derive(JsonSchema, clap::ValueEnum)]
    pub enum ExportForm {
        /// Events, one JSON object per line.
        Json = "json",
        /// A script for `tertulia replay`.
        Replay = "replay",
        /// Group chat for `tertulia-lab evaluate`.
        Chat = "chat",
        /// The messages, for people.
        Markdown = "markdown",
        /// The messages, for people: a page to open in a browser, or to print.
        Html = "html",
    }
}

/// A person in a guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The guild: 1 to 64 characters.
    pub guild: GuildId,
    /// The person's id; on the console, their name. 1 to 64 characters.
    pub id: Arc<str>,
}

/// Lines without line endings. If the last item is an error, the export is incomplete.
pub type Lines = Pin<Box<dyn Stream<Item = Result<String, Refused>> + Send>>;

/// The result of writing a copy of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackedUp {
    pub to: String,
    pub entries: u64,
}

/// A request to forget a person.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The guild: 1 to 64 characters.
    #[schemars(length(min = 1, max = 64))]
    pub guild: GuildId,
    /// The person's id, 1 to 64 characters. On the console it is the person's name.
    #[schemars(length(min = 1, max = 64))]
    pub person: Arc<str>,
    /// Whether to delete also the answers of companions to this person, which can repeat the person's words. The answers are found by the person's
    /// messages, so they cannot be deleted later.
    #[serde(default)]
    pub answers: bool,
}

/// The result of forgetting a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Forgotten {
    /// The number of deleted messages, including answers if those were requested.
    pub messages: u64,
    pub decisions: u64,
    pub summaries: u64,
    /// The number of notes that were made from the messages, or are about the person.
    #[serde(skip_serializing_if = "is_none")]
    pub notes: u64,
    /// The number of open reminders of the person.
    #[serde(skip_serializing_if = "is_none")]
    pub reminders: u64,
    /// The latest time at which the text can still be read in the store's file. None: until an operator compacts the store.
    pub in_file_until: Option<Stamp>,
}

const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Whether messages can be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    pub ready: bool,
    /// Each part with its name: `store`, `models`, `discord` … Absent for a client without a token or session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReadyPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<ReadyModels>,
    /// Whether this node is a standby: another node runs the channels, and this one would take over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stands_by: bool,
    /// For a standby: the address of the node that runs the channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Arc<str>>,
}

/// The models in use, by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadyModels {
    pub side: ReadyModel,
    pub main: ReadyModel,
}

/// A model in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadyModel {
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
}

/// Whether one part is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadyPart {
    pub part: Arc<str>,
    pub ready: bool,
    /// Why the part is not ready. For a ready part: further information, which may be empty.
    pub detail: String,
    /// The sentences of `detail` for programs that word them themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Why>,
    /// For a platform that is not ready: since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// For a platform: the known names of its servers that the bot is a member of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Arc<str>>,
    /// For a platform: the link that invites the bot to another server, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
}
