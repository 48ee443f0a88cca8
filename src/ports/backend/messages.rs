//! Messages of a room: statements of external companions, edits, and the history.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refused::Why;
use super::stamp::Stamp;
use crate::domain::attachment::{self, Attachment};
use crate::domain::event::Disclosed;
use crate::domain::id::{CompanionId, PersonId, Seq, Ticket};
use crate::domain::message::{Cut, Modality, NoteWords, Quoted, Role, VoiceNote};
use crate::domain::tools::built_in::Poll;
use crate::domain::tools::{StatementCall, Who};
use crate::settings::safety::Safety;

/// The statement of an external companion that was selected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The speaker: the id of a companion of the room.
    #[schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,64}$"))]
    pub from: CompanionId,
    /// The message of the round: the number of its event, as a number or as a string, as in States.
    #[serde(deserialize_with = "message_id")]
    #[schemars(extend("type" = ["integer", "string"], "pattern" = "^[0-9]+$"))]
    pub message_id: Arc<str>,
    /// The text, within the same limits as a message.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
}

/// The new text of a message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text, within the same limits as a message.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
}

/// A greeting for a companion to post.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    pub companion: CompanionId,
    /// One of the companion's configured `greetings`.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
    /// Whether the companion may say it although the room has messages.
    #[serde(default)]
    pub anyway: bool,
}

/// A scene to write into a room's history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScene {
    /// The name of the person who writes it, as in `from` of a message. Forgetting that person removes the scene.
    #[schemars(length(min = 1, max = 64))]
    pub from: Arc<str>,
    /// The text, within the same limits as a message.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Imported {
    /// The number of messages that are in the room now.
    pub messages: usize,
    /// The number of messages that are hidden from the model there, or empty.
    pub left_out: usize,
    /// The number of lines that are no message.
    pub unreadable: usize,
    /// The number of texts that were too long and lost their end.
    pub cut: usize,
    /// The number of messages without a time that can be read, or with one in the future. They have the time of the message before.
    pub undated: usize,
    /// The author's note in the file, which is not taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The prompt of a statement as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PromptText {
    /// When the answer was complete.
    pub at: Stamp,
    /// The name of the model in the settings.
    pub model: Arc<str>,
    /// The messages of the prompt. Pictures are left out.
    pub messages: Vec<PromptMessage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PromptMessage {
    /// `system`, `user` or `assistant`.
    pub role: Arc<str>,
    pub text: Arc<str>,
}

/// Who speaks next, without a vote: one companion, or everybody once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The companion that speaks next.
    pub companion: Option<CompanionId>,
    /// Each companion that can speak does so once. Then all wait for people.
    #[serde(default)]
    pub everybody: bool,
    /// The person who chooses, as `from` of a message. Forgetting that person removes the name.
    #[schemars(length(min = 1, max = 64))]
    pub by: Option<Arc<str>>,
}

/// The companions that were chosen to speak next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chosen {
    /// The number of the choice on record.
    pub seq: Seq,
    pub companions: Vec<CompanionId>,
    /// With `everybody`, the companions that cannot speak now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A companion that cannot speak now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    pub companion: CompanionId,
    /// The reason.
    pub detail: String,
    /// The same for programs that word it themselves.
    pub why: Why,
}

/// The range of a room's history to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    pub after: Option<Seq>,
    pub before: Option<Seq>,
    /// The most messages to return: 1 to 1,000.
    pub limit: usize,
}

/// A search in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words, or a part of a text.
    pub words: String,
    /// The most messages to return: 1 to 100.
    pub limit: usize,
}

/// The results of a search in a room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Found {
    /// Best match first.
    pub messages: Vec<HistoryMessage>,
    /// The number of all matches, including those over the limit.
    pub count: usize,
}

/// A page of a room's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct History {
    /// Oldest first.
    pub messages: Vec<HistoryMessage>,
    /// The numbers of deleted messages between these messages and the end where reading began. If there are no messages: all
    /// deleted ones in the range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<Seq>,
}

/// One message of the history (docs/design/interfaces.md I-11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryMessage {
    pub seq: Seq,
    /// The sender's own id of the message.
    pub id: Option<Arc<str>>,
    /// The author: a person's name, or a companion's id.
    pub from: Arc<str>,
    /// For a companion: its name at that time. It may have left since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    pub role: Role,
    /// Whether the author is an AI, that is, a companion.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ai: bool,
    /// For an event that must be acknowledged: its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    pub text: Arc<str>,
    /// When the message was accepted, or when it was said if that was well before.
    pub at: Stamp,
    pub modality: Modality,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Seq>,
    /// The beginning of the message that this one replies to, if that message is not on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoted: Option<HistoryQuote>,
    /// For a spoken statement that was cut off: its whole text, and who cut it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<HistoryCut>,
    /// Whether this is a statement without its end, because the model reached its token limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Whether somebody edited this text. Another version of a statement that stands is no edit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// The texts of a statement's place, if people requested other answers. Guests get none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<HistoryVersions>,
    /// For a companion's statement: the number of its reply (`ticket` in the live view). A greeting and an imported message have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Ticket>,
    /// The length of the voice note that this message is or has the words of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice_note: Option<HistoryVoiceNote>,
    /// The numbers of older messages and notes of this room that were recalled for a companion's statement, best match first (docs/design/memory.md).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Seq>,
    /// The entries of lorebooks that were in the prompt of a companion's statement, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lore: Vec<Arc<str>>,
    /// The calls of tools that were made or proposed for a companion's statement (docs/design/tools.md).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<HistoryCall>,
    /// The notice below the message that companions are AI, if there is one: its information about the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<RunBy>,
    /// The files that were uploaded with the message. `text` ends in a line for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MessageFile>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryCall {
    /// The number of the call, for `/api/rooms/{room}/calls/{call}`.
    pub call: Ticket,
    pub tool: Arc<str>,
    /// How it ended: `answered`, `failed`, `not_made`, `timeout` or `unknown`. Absent if it was not made, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Arc<str>>,
    /// Until when it can be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// Whether it was confirmed (true) or declined. Absent: nobody has decided, or nobody had to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
    /// The poll below the message. The newest reply of each person that is one of its options is a vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<Box<Poll>>,
}

impl From<&StatementCall> for HistoryCall {
    fn from(StatementCall { call, tool, outcome, until, poll, .. }: &StatementCall) -> Self {
        let outcome = outcome.map(|outcome| outcome.as_str().into());
        Self { call: *call, tool: tool.clone(), outcome, until: until.map(Stamp::from), confirmed: None, poll: poll.clone() }
    }
}

/// The call of a tool, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallView {
    pub call: Ticket,
    pub companion: CompanionId,
    pub tool: Arc<str>,
    /// A JSON object. Empty after a deletion.
    pub arguments: Arc<str>,
    /// The person who is the cause. Null if there is none.
    pub cause: Option<PersonId>,
    /// The name of that person.
    pub asked_by: Option<Arc<str>>,
    /// Who may decide about it besides operators: people with one of these roles, and `cause`. Empty: nobody.
    pub approvers: Vec<Arc<str>>,
    /// Whether who asks for this may decide about it.
    pub may_decide: bool,
    /// Whether it can be confirmed now.
    pub is_open: bool,
    /// Until when it can be confirmed.
    pub until: Option<Stamp>,
    /// Whether it was confirmed (true) or declined. Null: nobody has decided.
    pub confirmed: Option<bool>,
    /// How it ended: `answered`, `failed`, `not_made`, `timeout` or `unknown`.
    pub outcome: Option<Arc<str>>,
}

/// A decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// Whether the call is made.
    pub confirm: bool,
}

/// A person who decides about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    /// `None`: an operator without a name in the room.
    pub who: Option<Who>,
    /// Whether the person has signed in as the operator of the console.
    pub is_operator: bool,
    /// The ids of the person's roles, as the platform sent them with the decision.
    pub roles: Option<BTreeSet<Arc<str>>>,
}

/// The versions of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryVersions {
    /// The texts, oldest first, with the one that stands.
    pub texts: Vec<Arc<str>>,
    /// The index of the text that stands.
    pub standing: usize,
}

/// The version of the newest statement that stands from now on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Its index among the texts of the versions.
    pub version: usize,
}

/// The request for a draft of a message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drafting {
    /// The companion that writes it.
    pub companion: CompanionId,
    /// The person for whom it writes, as `from` of a message.
    #[schemars(length(min = 1, max = 64))]
    pub from: Arc<str>,
}

/// A draft of a message. It is not on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Drafted {
    pub text: Arc<str>,
}

/// A file of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessageFile {
    /// Its number within the message.
    pub id: u64,
    pub kind: attachment::Kind,
    pub media_type: Arc<str>,
    pub name: Arc<str>,
    /// Its size.
    pub bytes: u64,
    /// In pixels, for a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The length of a recording, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secs: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Whether its author hid it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spoiler: bool,
}

impl MessageFile {
    /// A file whose bytes are stored. `None` if they are on a platform.
    pub fn of(attachment: &Attachment) -> Option<Self> {
        let Attachment { kind, media_type, name, bytes, pixels, secs, description, is_spoiler, .. } = attachment.clone();
        let (width, height) = pixels.unzip();
        let id = attachment.stored()?;
        Some(Self { id, kind, media_type, name, bytes, width, height, secs, description, spoiler: is_spoiler })
    }
}

/// The information about a server in notices to people (docs/design/safety.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunBy {
    /// The operator of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Arc<str>>,
    /// The address of the server's privacy text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Arc<str>>,
}

impl From<&Safety> for RunBy {
    fn from(safety: &Safety) -> Self {
        Self { operator: safety.operator.clone(), privacy: safety.privacy.clone() }
    }
}

impl From<&Disclosed> for RunBy {
    fn from(disclosed: &Disclosed) -> Self {
        Self { operator: disclosed.operator.clone(), privacy: disclosed.privacy.clone() }
    }
}

/// A spoken statement that was cut off. The message's text is the part that was heard (docs/design/voice.md A-60).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryCut {
    /// The whole text.
    pub full: Arc<str>,
    /// The name of the person who cut it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
}

/// A voice note (docs/design/voice.md A-78).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryVoiceNote {
    /// The length of the recording in seconds.
    pub secs: u64,
    /// `awaited`: the words follow in another message, which takes the place of this one. `heard`: the text of this message. `missing`: there are
    /// none; `why` says why not. Absent: nobody asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<NoteWords>,
}

impl From<&VoiceNote> for HistoryVoiceNote {
    fn from(note: &VoiceNote) -> Self {
        Self { secs: (note.ms + 500) / 1_000, words: note.words.clone() }
    }
}

/// The beginning of a message that is not on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryQuote {
    /// The name of the message's author.
    pub from: Arc<str>,
    pub text: Arc<str>,
}

impl From<&Quoted> for HistoryQuote {
    fn from(quoted: &Quoted) -> Self {
        Self { from: quoted.from.name.clone(), text: quoted.text.clone() }
    }
}

impl From<&Cut> for HistoryCut {
    fn from(cut: &Cut) -> Self {
        Self { full: cut.full.clone(), by: cut.by.as_ref().map(|by| by.name.clone()) }
    }
}

fn message_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Number(number) if number.is_u64() => Ok(number.to_string().into()),
        Value::String(text) if text.parse::<u64>().is_ok() => Ok(text.into()),
        _ => Err(D::Error::custom("must be the number of the message that the round was about")),
    }
}
