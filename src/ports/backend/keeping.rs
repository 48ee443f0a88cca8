//! What an operator keeps in order: quarantine, copies, what is to be forgotten, readiness.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use super::Refused;
use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::id::{GuildId, Seq};

/// Guilds in quarantine, channels left alone and messages set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quarantine {
    /// Guilds that failed too often, in the order of ids.
    pub guilds: Vec<QuarantinedGuild>,
    /// Channels that cannot go on from their record, in the order of ids.
    pub channels: Vec<SuspendedChannel>,
    /// Messages that killed their handler, oldest first.
    pub messages: Vec<DeadLetter>,
}

/// A guild that failed too often and rests for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantinedGuild {
    /// Its id; `release` takes it.
    pub id: GuildId,
    /// Since when.
    pub since: Stamp,
    /// When it is tried again.
    pub until: Stamp,
    /// What failed last.
    pub detail: String,
}

/// A channel that died whenever it went on from its record, or whose record cannot be read, and rests for a while; the rest of its guild
/// goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuspendedChannel {
    /// The entry's id; `release` takes it.
    pub id: Arc<str>,
    /// Its guild.
    pub guild: GuildId,
    /// Its room.
    pub room: Arc<str>,
    /// Since when.
    pub since: Stamp,
    /// When it is tried again.
    pub until: Stamp,
    /// What failed last.
    pub detail: String,
}

/// A message that killed its handler too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// The entry's id; `retry` and `drop` take it.
    pub id: Arc<str>,
    /// Its guild.
    pub guild: GuildId,
    /// Its room.
    pub room: Arc<str>,
    /// The message's number.
    pub seq: Seq,
    /// When it was set aside.
    pub at: Stamp,
    /// How often it was tried.
    pub attempts: u32,
    /// What failed last.
    pub detail: String,
}

/// What to read out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportQuery {
    /// This room only; a replay script needs one.
    pub room: Option<RoomId>,
    /// In which form.
    pub form: ExportForm,
}

/// In which form to read out what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    /// The journal's events, an object a line.
    Json,
    /// A replay script.
    Replay,
}

/// A person in a guild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// In which guild: 1 to 64 characters.
    pub guild: GuildId,
    /// The person's id; on the console, their name. 1 to 64 characters.
    pub id: Arc<str>,
}

/// Lines without their line ends. An error ends them: what was read until then is not whole.
pub type Lines = Pin<Box<dyn Stream<Item = Result<String, Refused>> + Send>>;

/// A copy of the store was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// Where it lies.
    pub to: String,
    /// How many entries it holds.
    pub entries: u64,
}

/// Whom to forget.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// In which guild: 1 to 64 characters.
    pub guild: GuildId,
    /// The person's id; on the console, their name. 1 to 64 characters.
    pub person: Arc<str>,
    /// With what companions answered to them, which can repeat their words. It is found only by what they said, so not afterwards.
    #[serde(default)]
    pub answers: bool,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// How many messages, answers included if they were to go too.
    pub messages: u64,
    /// How many decisions that came from them.
    pub decisions: u64,
    /// How many summaries that came from them.
    pub summaries: u64,
    /// Until when, at the latest, the words can still be read in the store's file; none: until somebody compacts it.
    pub in_file_until: Option<Stamp>,
}

/// Whether messages can be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// Whether all parts are ready.
    pub ready: bool,
    /// Each part, named for what it is: `store`, `models`, `discord` …
    pub parts: Vec<ReadyPart>,
    /// The models that are asked.
    pub models: Option<ReadyModels>,
}

/// The models that are asked, by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyModels {
    /// Who decides whether to speak.
    pub side: ReadyModel,
    /// Who writes what is said.
    pub main: ReadyModel,
}

/// One model that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyModel {
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
}

/// Whether one part is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyPart {
    /// Which part.
    pub part: Arc<str>,
    /// Whether it is.
    pub ready: bool,
    /// What is in its way; of one that is ready, what else there is to say, which may be nothing.
    pub detail: String,
}
