//! How values are stored: one byte for the version of the format, then JSON.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::upgrade::upgraded;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq, TurnId};
use crate::domain::moment::Moment;
use crate::domain::price::Price;
use crate::domain::service::Service;
use crate::domain::trigger::Trigger;
use crate::ports::store::Value;
use crate::ports::store::key::Key;

/// The version in which records are written. Every version up to it is read.
///
/// A record is a JSON object whose absent fields have a default. So another kind of event, or another field, needs no new version: what was
/// written before reads as it is, and a server that does not know what a newer one wrote says so ([`RecordError::UnknownVariant`]).
pub const NEWEST_VERSION: u8 = 2;

/// Why a stored value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A newer server wrote it.
    #[error(
        "{key} has format version {found}, this server reads up to {newest}: start the version of tertulia that wrote it, or a newer one"
    )]
    UnknownVersion {
        /// Which value.
        key: Key,
        /// Its version.
        found: u8,
        /// The newest that is known.
        newest: u8,
    },
    /// A newer server wrote it: of a kind, or with a word, that came without a new version of the format.
    #[error("{key} says something that this version of tertulia does not know: start the version that wrote it, or a newer one")]
    UnknownVariant {
        /// Which value.
        key: Key,
    },
    /// It is not what its key promises.
    #[error("{key} cannot be read: {detail}; check the store with `tertulia history verify`")]
    Malformed {
        /// Which value.
        key: Key,
        /// What is wrong.
        detail: String,
    },
}

impl RecordError {
    /// Which value.
    pub const fn key(&self) -> &Key {
        match self {
            Self::UnknownVersion { key, .. } | Self::UnknownVariant { key } | Self::Malformed { key, .. } => key,
        }
    }

    /// What is wrong, and nothing of where or of what to do.
    pub fn detail(&self) -> String {
        match self {
            Self::UnknownVersion { found, newest, .. } => {
                format!("it has format version {found}, and this version of tertulia reads up to {newest}")
            }
            Self::UnknownVariant { .. } => "it says something that this version of tertulia does not know".into(),
            Self::Malformed { detail, .. } => detail.clone(),
        }
    }
}

/// Most records fit into so many bytes.
const ROOM: usize = 256;

/// The value of a record.
pub fn encode<T: Serialize + ?Sized>(record: &T) -> Value {
    let mut value = Vec::with_capacity(ROOM);
    value.push(NEWEST_VERSION);
    serde_json::to_writer(&mut value, record).expect("records have text keys and write to memory, so nothing can fail");
    value
}

/// The record in the value of this key.
pub fn decode<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Result<T, RecordError> {
    match value.split_first() {
        None => Err(RecordError::Malformed { key: key.clone(), detail: "it is empty".into() }),
        Some((&NEWEST_VERSION, json)) => serde_json::from_slice(json).map_err(|error| unreadable_json(key, &error)),
        Some((&older @ ..NEWEST_VERSION, json)) => {
            let read = upgraded(key, older, json).and_then(serde_json::from_value);
            read.map_err(|error| malformed_json(key, &error))
        }
        Some((&found, _)) => Err(RecordError::UnknownVersion { key: key.clone(), found, newest: NEWEST_VERSION }),
    }
}

/// The value of bytes that nobody here reads.
pub fn encode_bytes(bytes: &[u8]) -> Value {
    [&[NEWEST_VERSION], bytes].concat()
}

/// The bytes in the value of this key.
pub fn decode_bytes(key: &Key, value: &[u8]) -> Result<Vec<u8>, RecordError> {
    match value.split_first() {
        None => Err(RecordError::Malformed { key: key.clone(), detail: "it is empty".into() }),
        Some((..=NEWEST_VERSION, bytes)) => Ok(bytes.to_vec()),
        Some((&found, _)) => Err(RecordError::UnknownVersion { key: key.clone(), found, newest: NEWEST_VERSION }),
    }
}

fn unreadable_json(key: &Key, error: &serde_json::Error) -> RecordError {
    if error.is_data() && error.to_string().starts_with("unknown variant") {
        return RecordError::UnknownVariant { key: key.clone() };
    }
    malformed_json(key, error)
}

/// Where JSON is wrong, and how; not in serde's words, which quote what is stored.
fn malformed_json(key: &Key, error: &serde_json::Error) -> RecordError {
    let detail = match error.classify() {
        serde_json::error::Category::Syntax => "no JSON",
        serde_json::error::Category::Eof => "cut off",
        _ => "not the record that belongs here",
    };
    RecordError::Malformed { key: key.clone(), detail: format!("it is {detail} at byte {}", error.column()) }
}

/// The value of an event in a journal. Its number is in its key.
pub fn encode_event(recorded: &Recorded) -> Value {
    let handled = (!recorded.event.is_inbound()).then_some(recorded.handled);
    encode(&EventRecord { at: recorded.at, handled, turn: recorded.turn, event: Cow::Borrowed(&recorded.event) })
}

/// The event in the value of this key.
pub fn decode_event(key: &Key, value: &[u8]) -> Result<Recorded, RecordError> {
    let malformed = |detail: &str| RecordError::Malformed { key: key.clone(), detail: detail.into() };
    let record: EventRecord<'_> = decode(key, value)?;
    let seq = key.last_number().map(Seq).ok_or_else(|| malformed("its key ends in no number"))?;
    let event = record.event.into_owned();
    let handled = match record.handled {
        _ if event.is_inbound() => seq,
        Some(handled) => handled,
        None => return Err(malformed("it does not say what was handled before it")),
    };
    Ok(Recorded { seq, at: record.at, handled, turn: record.turn, event })
}

/// The value of a [`SnapshotRecord`] of this conversation.
pub fn encode_snapshot(made: Seq, conversation: &Conversation) -> Value {
    #[derive(Serialize)]
    struct Borrowed<'a> {
        handled: Seq,
        made: Seq,
        conversation: &'a Conversation,
    }
    encode(&Borrowed { handled: conversation.handled(), made, conversation })
}

/// An eight-byte number, as the store itself keeps heads and low-water marks.
pub fn decode_number(key: &Key, value: &[u8]) -> Result<Seq, RecordError> {
    let bytes = value.try_into().map_err(|_| RecordError::Malformed {
        key: key.clone(),
        detail: format!("it holds {} bytes where a number of 8 bytes is expected", value.len()),
    })?;
    Ok(Seq(u64::from_be_bytes(bytes)))
}

/// The value of an eight-byte number.
pub fn encode_number(number: Seq) -> Value {
    number.0.to_be_bytes().to_vec()
}

#[derive(Serialize, Deserialize)]
struct EventRecord<'a> {
    at: Moment,
    /// Absent where it is the event's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handled: Option<Seq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    event: Cow<'a, Event>,
}

/// A conversation's state, and which events it contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// The newest event from outside that it contains.
    pub handled: Seq,
    /// It contains every event up to this number that the channel made itself.
    pub made: Seq,
    /// The state.
    pub conversation: Conversation,
}

/// A reply owed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxRecord {
    /// Who owes it.
    pub companion: CompanionId,
    /// What it answers to.
    pub trigger: Trigger,
    /// The snapshot that it answers.
    pub messages: Vec<Seq>,
    /// The newest event that settled with it.
    pub upto: Seq,
    /// The words, once they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// What became of each part, once the words are split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRecord>,
    /// Under which name it is sent to a platform, whoever is called what there later: by it a part that left is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

/// How far a part of a reply has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PartRecord {
    /// Still to be sent.
    Owed,
    /// On its way: committed before the request leaves.
    Sending {
        /// The platform's id of the newest message known before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Arc<str>>,
    },
    /// Posted.
    Sent {
        /// The platform's id of it.
        id: Arc<str>,
    },
    /// Sent, and nobody can know whether it was posted: it is not sent again.
    Unconfirmed,
}

/// That something is unsettled, armed or owed in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRecord {
    /// The newest event from outside when this was written: it is not written again for those that come after.
    pub heard: Seq,
}

/// The channel that a number stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRecord {
    /// Whose channel.
    pub guild: GuildId,
    /// Which one.
    pub channel: ChannelId,
}

/// A room in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomRecord {
    /// Which room.
    pub room: ChannelId,
    /// Whose it is.
    pub guild: GuildId,
    /// Since when it is there.
    pub created_at: Moment,
}

/// Something that counts against a budget, or costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// When.
    pub at: Moment,
    /// Where.
    pub channel: ChannelId,
    /// What.
    pub used: Used,
}

/// What was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Used {
    /// A question for a lull, an interjection or a turn.
    Evaluation {
        /// Who was asked.
        companion: CompanionId,
    },
    /// A question because somebody addressed a companion.
    Address {
        /// Who did.
        person: PersonId,
        /// With which message.
        message: Seq,
    },
    /// A statement that was made.
    Statement {
        /// Whose.
        companion: CompanionId,
    },
    /// A question to a service, and every call that was made for it.
    Call {
        /// Of which kind of service; absent: a language model.
        #[serde(default, skip_serializing_if = "is_language_model")]
        service: Service,
        /// For whom; absent for a summary and a judgement.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<CompanionId>,
        /// `gen_ai.request.model`.
        model: Arc<str>,
        /// `gen_ai.provider.name`.
        provider: Arc<str>,
        /// `side` or `main`.
        role: Arc<str>,
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
        /// Calls made, every try counted.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u32,
        /// How many of them gave no answer: what those used is not known, and not among the tokens.
        #[serde(default, skip_serializing_if = "is_zero")]
        failed_calls: u32,
        /// What the model cost when it was called; absent: nobody had said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<Price>,
    },
}

// What was recorded before calls were counted stands for one.
const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_language_model(service: &Service) -> bool {
    matches!(service, Service::LanguageModel)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// That a server was started. When is in the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// Its version.
    #[serde(default)]
    pub version: Arc<str>,
}

/// A person who is not to be heard in a guild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptOutRecord {
    /// Where.
    pub guild: GuildId,
    /// Who.
    pub person: PersonId,
    /// Since when.
    pub since: Moment,
}

/// A message that killed its handler too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    /// Whose channel.
    pub guild: GuildId,
    /// Which one.
    pub channel: ChannelId,
    /// The message.
    pub seq: Seq,
    /// When it was set aside.
    pub at: Moment,
    /// How often its handler died.
    pub deaths: u32,
    /// What was last known of why.
    pub error: Arc<str>,
    /// An operator has dealt with it: it is not shown any more, and still never handled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
}

#[cfg(test)]
mod tests;
