//! The encoding of stored values: one byte for the version of the format, then JSON, whose frequent phrases are shortened (`phrases.rs`).

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::phrases::{expand_into, expanded, shorten_into};
use super::upgrade::upgraded;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq, Ticket, TurnId};
use crate::domain::message::{Message, Recalled, Versions};
use crate::domain::moment::Moment;
use crate::domain::notice::{Occasion, Owed};
use crate::domain::price::{Price, UnitPrice};
use crate::domain::service::Service;
use crate::domain::token_usage::TokenUsage;
use crate::domain::trigger::Trigger;
use crate::ports::store::Value;
use crate::ports::store::key::Key;

/// The version in which records are written. All earlier versions can be read.
///
/// A record is a JSON object whose absent fields have defaults. So a new kind of event or a new field needs no new version: older
/// records can be read as they are, and an older server reports unknown content ([`RecordError::UnknownVariant`]).
pub const NEWEST_VERSION: u8 = 3;

/// The version with the same JSON as the newest one, not shortened.
pub(super) const UNSHORTENED_VERSION: u8 = 2;

/// Why a stored value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error(
        "{key} has format version {found}, this server reads up to {newest}: start the version of tertulia that wrote it, or a newer one"
    )]
    UnknownVersion {
        key: Key,
        /// Its format version.
        found: u8,
        /// The newest version that this server knows.
        newest: u8,
    },
    /// A newer server wrote the value, with a kind or a field value that was added without a new version of the format.
    #[error(
        "{key} contains something that this version of tertulia does not know: start the version that wrote it, or a newer one"
    )]
    UnknownVariant { key: Key },
    /// The value is not the record that its key requires.
    #[error("{key} cannot be read: {detail}; check the store with `tertulia history verify`")]
    Malformed { key: Key, detail: String },
}

impl RecordError {
    /// The key of the value.
    pub const fn key(&self) -> &Key {
        match self {
            Self::UnknownVersion { key, .. } | Self::UnknownVariant { key } | Self::Malformed { key, .. } => key,
        }
    }

    /// The problem, without the key and without the remedy.
    pub fn detail(&self) -> String {
        match self {
            Self::UnknownVersion { found, newest, .. } => {
                format!("it has format version {found}, and this version of tertulia reads up to {newest}")
            }
            Self::UnknownVariant { .. } => "it contains something that this version of tertulia does not know".into(),
            Self::Malformed { detail, .. } => detail.clone(),
        }
    }
}

/// The initial capacity, in bytes; most records fit.
const INITIAL_CAPACITY: usize = 256;

/// Encodes a record in the newest version.
pub fn encode<T: Serialize + ?Sized>(record: &T) -> Value {
    let mut json = Vec::with_capacity(INITIAL_CAPACITY);
    serde_json::to_writer(&mut json, record).expect("records have text keys and write to memory, so nothing can fail");
    let mut value = Vec::with_capacity(json.len());
    value.push(NEWEST_VERSION);
    shorten_into(&mut value, &json);
    value
}

/// Decodes the record in the value of this key, upgrading older versions.
pub fn decode<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Result<T, RecordError> {
    match value.split_first() {
        None => Err(RecordError::Malformed { key: key.clone(), detail: "it is empty".into() }),
        Some((&NEWEST_VERSION, shortened)) => {
            let json = expanded(shortened).ok_or_else(|| RecordError::UnknownVariant { key: key.clone() })?;
            serde_json::from_slice(&json).map_err(|error| unreadable_json(key, &error))
        }
        Some((&UNSHORTENED_VERSION, json)) => serde_json::from_slice(json).map_err(|error| unreadable_json(key, &error)),
        Some((&older @ ..UNSHORTENED_VERSION, json)) => {
            let read = upgraded(key, older, json).and_then(serde_json::from_value);
            read.map_err(|error| malformed_json(key, &error))
        }
        Some((&found, _)) => Err(RecordError::UnknownVersion { key: key.clone(), found, newest: NEWEST_VERSION }),
    }
}

/// The JSON of a value, for tests that search it. A value that is not JSON stays as it is.
#[cfg(any(test, feature = "samples"))]
pub fn json_of(value: &[u8]) -> Vec<u8> {
    value.strip_prefix(&[NEWEST_VERSION]).and_then(expanded).unwrap_or_else(|| value.to_vec())
}

/// The bytes of a file in one record. Records are read hundreds at a time.
pub const FILE_PART_BYTES: usize = 1 << 16;

/// A file of a message. Its bytes are in other records, in parts of [`FILE_PART_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The media type with which it is served.
    pub media_type: Arc<str>,
    pub bytes: u64,
}

/// Encodes opaque bytes: a platform's note, a picture, a character card or a part of a file.
pub fn encode_bytes(bytes: &[u8]) -> Value {
    [&[NEWEST_VERSION], bytes].concat()
}

/// Decodes the opaque bytes in the value of this key.
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

/// The error for invalid JSON. It does not use serde's message, because that quotes stored content.
fn malformed_json(key: &Key, error: &serde_json::Error) -> RecordError {
    let detail = match error.classify() {
        serde_json::error::Category::Syntax => "not JSON",
        serde_json::error::Category::Eof => "cut off",
        _ => "not the record that belongs here",
    };
    RecordError::Malformed { key: key.clone(), detail: format!("it is {detail} at byte {}", error.column()) }
}

/// Encodes an event of a journal. Its number is in its key.
pub fn encode_event(recorded: &Recorded) -> Value {
    let handled = (!recorded.event.is_inbound()).then_some(recorded.handled);
    encode(&EventRecord { at: recorded.at, handled, turn: recorded.turn, event: Cow::Borrowed(&recorded.event) })
}

/// Decodes the event in the value of this key.
pub fn decode_event(key: &Key, value: &[u8]) -> Result<Recorded, RecordError> {
    if let Some(said) = decode_said(key, value) {
        return Ok(said);
    }
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

/// The JSON before the kind of an event.
const KIND: &[u8] = br#""event":{"event":""#;
/// An event has its kind within this number of bytes: its time, a number and a turn come before.
const KIND_WITHIN: usize = 160;

/// The kind of the event in a value, such as `said`, without decoding the rest. `None`: only decoding it tells. `json` is where it is kept.
pub fn event_kind<'a>(value: &[u8], json: &'a mut Vec<u8>) -> Option<&'a str> {
    json.clear();
    expand_into(json, value.strip_prefix(&[NEWEST_VERSION])?, KIND_WITHIN)?;
    let begin = json.windows(KIND.len()).position(|bytes| bytes == KIND)? + KIND.len();
    let kind = &json[begin..];
    std::str::from_utf8(&kind[..kind.iter().position(|byte| *byte == b'"')?]).ok()
}

/// Decodes a message directly. serde first copies an event of any kind, which takes as long again. `None`: the value has another event, or another
/// form.
fn decode_said(key: &Key, value: &[u8]) -> Option<Recorded> {
    #[derive(Deserialize)]
    struct Record {
        at: Moment,
        turn: Option<TurnId>,
        event: Said,
    }
    #[derive(Deserialize)]
    struct Said {
        message: Message,
        reply_to: Option<Seq>,
        reply: Option<Ticket>,
        said_at: Option<Moment>,
    }
    let mut json = Vec::with_capacity(value.len() * 3);
    if event_kind(value, &mut json)? != "said" {
        return None;
    }
    json.clear();
    expand_into(&mut json, &value[1..], usize::MAX)?;
    let Record { at, turn, event: Said { message, reply_to, reply, said_at } } = serde_json::from_slice(&json).ok()?;
    let seq = Seq(key.last_number()?);
    Some(Recorded { seq, at, handled: seq, turn, event: Event::Said { message, reply_to, reply, said_at } })
}

/// The part of an event that recall needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched<'a> {
    /// A message: when it was recorded, the author's name and the text.
    Words {
        at: Moment,
        name: Cow<'a, str>,
        text: Cow<'a, str>,
    },
    Cleared,
    Other,
}

impl Searched<'_> {
    pub fn of(Recorded { at, event, .. }: &Recorded) -> Self {
        match event {
            Event::Said { message, .. } => {
                Self::Words { at: *at, name: message.from.name.to_string().into(), text: message.text.to_string().into() }
            }
            Event::Cleared { .. } => Self::Cleared,
            _ => Self::Other,
        }
    }
}

/// Decodes only the part of an event that recall needs, in a fifth of the time of [`decode_event`]. `json` is where it may keep the event's JSON.
pub fn decode_searched<'a>(key: &Key, value: &[u8], json: &'a mut Vec<u8>) -> Result<Searched<'a>, RecordError> {
    if event_kind(value, json).is_some_and(|kind| !matches!(kind, "said" | "cleared")) {
        return Ok(Searched::Other);
    }
    *json = value.strip_prefix(&[NEWEST_VERSION]).and_then(expanded).unwrap_or_default();
    match serde_json::from_slice(json) {
        Ok(SearchedRecord { at, event }) => Ok(match (&*event.event, event.message) {
            ("said", Some(SearchedMessage { from, text })) => Searched::Words { at, name: from.name, text },
            ("cleared", _) => Searched::Cleared,
            _ => Searched::Other,
        }),
        // It has an older version, or cannot be read.
        Err(_) => decode_event(key, value).map(|recorded| Searched::of(&recorded)),
    }
}

#[derive(Deserialize)]
struct SearchedRecord<'a> {
    at: Moment,
    #[serde(borrow)]
    event: SearchedEvent<'a>,
}

#[derive(Deserialize)]
struct SearchedEvent<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "message")]
    message: Option<SearchedMessage<'a>>,
}

/// Reads a message. In some events, the field is the number of one.
fn message<'de, D: Deserializer<'de>>(field: D) -> Result<Option<SearchedMessage<'de>>, D::Error> {
    struct Field;
    impl<'de> Visitor<'de> for Field {
        type Value = Option<SearchedMessage<'de>>;

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.write_str("a message or its number")
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            SearchedMessage::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    field.deserialize_any(Field)
}

#[derive(Deserialize)]
struct SearchedMessage<'a> {
    #[serde(borrow)]
    from: SearchedAuthor<'a>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SearchedAuthor<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Encodes a [`SnapshotRecord`] of this conversation.
pub fn encode_snapshot(made: Seq, conversation: &Conversation) -> Value {
    #[derive(Serialize)]
    struct Borrowed<'a> {
        handled: Seq,
        made: Seq,
        conversation: &'a Conversation,
    }
    encode(&Borrowed { handled: conversation.handled(), made, conversation })
}

/// Decodes an eight-byte number, the format of heads and low-water marks.
pub fn decode_number(key: &Key, value: &[u8]) -> Result<Seq, RecordError> {
    let bytes = value.try_into().map_err(|_| RecordError::Malformed {
        key: key.clone(),
        detail: format!("it holds {} bytes where a number of 8 bytes is expected", value.len()),
    })?;
    Ok(Seq(u64::from_be_bytes(bytes)))
}

/// Encodes an eight-byte number.
pub fn encode_number(number: Seq) -> Value {
    number.0.to_be_bytes().to_vec()
}

#[derive(Serialize, Deserialize)]
struct EventRecord<'a> {
    at: Moment,
    /// Absent if it equals the event's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handled: Option<Seq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    event: Cow<'a, Event>,
}

/// A conversation's state, with the events that it contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// The newest inbound event that it contains.
    pub handled: Seq,
    /// The newest of the channel's own events that it contains. It also contains all earlier ones.
    pub made: Seq,
    pub conversation: Conversation,
}

/// An owed reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxRecord {
    pub companion: CompanionId,
    /// The trigger of the reply.
    pub trigger: Trigger,
    /// The messages that it answers.
    pub messages: Vec<Seq>,
    /// The newest event that the reply settles.
    pub upto: Seq,
    /// The text, once it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// The state of each part, once the text is split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRecord>,
    /// The display name under which it is sent to a platform, even if the companion is renamed later. A part that was sent is
    /// found by this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// How the text was written.
    #[serde(flatten)]
    pub written: Written,
    /// The disclosure below its last part that companions are AI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<NoticeRecord>,
}

/// How a statement was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Whether the text is incomplete, because the model reached its token limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The older messages that recall added to its prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
    /// The messages whose files were in its prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_of: Vec<Seq>,
    /// The entries of lorebooks that were in its prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lore: Vec<Arc<str>>,
    /// The statement whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Seq>,
    /// Why people were notified with the statement whose place it takes, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Occasion>,
    /// Whether it continues a text that somebody edited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Its versions, if it takes the place of another statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Box<Versions>>,
    /// The platform's ids of the parts of that statement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Arc<str>>,
}

impl Written {
    /// The same for a statement that takes no other one's place.
    pub fn beside_former(self) -> Self {
        Self { again: None, told: None, versions: None, former: Vec::new(), ..self }
    }
}

/// A disclosure that is sent with a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeRecord {
    #[serde(flatten)]
    pub owed: Owed,
    /// Its text. A part that was sent is found by this text, even if the settings have changed since.
    pub text: Arc<str>,
}

impl OutboxRecord {
    /// A reply whose text is not written yet.
    pub fn new(companion: CompanionId, trigger: Trigger, messages: Vec<Seq>, upto: Seq) -> Self {
        let (text, parts, name, written, notice) = (None, Vec::new(), None, Written::default(), None);
        Self { companion, trigger, messages, upto, text, parts, name, written, notice }
    }
}

/// The state of a part of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PartRecord {
    /// Not sent yet.
    Owed,
    /// Being sent. This is committed before the request is made.
    Sending {
        /// The platform's id of the newest message known before the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Arc<str>>,
    },
    Sent {
        /// The platform's id of the message.
        id: Arc<str>,
    },
    /// Sent, with an outcome that remains unknown. It is not sent again.
    Unconfirmed,
}

/// Exists while a channel has unsettled messages, armed timers or owed replies, or while a companion may start a conversation
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRecord {
    /// The newest inbound event when this was written. Later inbound events do not rewrite it.
    pub heard: Seq,
    /// When a companion may start a conversation, if nothing is unsettled or owed. `None`: there is unfinished work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Moment>,
}

/// The channel of an interned number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRecord {
    pub guild: GuildId,
    pub channel: ChannelId,
}

/// An entry of the directory of rooms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomRecord {
    pub room: ChannelId,
    pub guild: GuildId,
    pub created_at: Moment,
}

/// A use that counts against a budget or has a cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    pub at: Moment,
    pub channel: ChannelId,
    pub used: Used,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Used {
    /// An evaluation for a turn, an interjection, a lull or a silence.
    Evaluation {
        companion: CompanionId,
    },
    /// An evaluation because a message addressed a companion.
    Address {
        /// The author of the message.
        person: PersonId,
        message: Seq,
    },
    Statement {
        companion: CompanionId,
    },
    /// A question to a service, with all its calls.
    Call {
        /// The kind of service. Absent: a language model.
        #[serde(default, skip_serializing_if = "is_language_model")]
        service: Service,
        /// The companion. Absent for a summary, a judgement, and the votes of several companions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<CompanionId>,
        /// `gen_ai.request.model`.
        model: Arc<str>,
        /// `gen_ai.provider.name`.
        provider: Arc<str>,
        role: Arc<str>,
        /// Its tokens. Those of failed calls are unknown.
        #[serde(flatten)]
        usage: TokenUsage,
        /// The number of calls, including every retry.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u32,
        /// The number of calls without an answer. Their tokens are unknown and not counted.
        #[serde(default, skip_serializing_if = "is_zero")]
        failed_calls: u32,
        /// The model's price at the time of the call. Absent: no price was configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<Price>,
    },
    /// People received the disclosure that companions are AI. This variant and the next two are figures; their time is the
    /// beginning of their month (`figures.rs`).
    Notice {
        occasion: Occasion,
        people: u64,
    },
    /// The author of a message was shown where to find help.
    Help {
        /// Absent: it was deleted. Of several records about it, one stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Seq>,
    },
    /// The moderation service refused a statement.
    Refusal,
    /// A call of a tool from outside this server.
    ToolCall {
        companion: CompanionId,
        tool: Arc<str>,
        /// The price of a call at that time. Absent: no price was configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<UnitPrice>,
    },
    /// Speech that a service recognised or synthesised.
    Speech {
        service: Service,
        /// The companion that spoke. Absent: speech recognition.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<CompanionId>,
        /// `gen_ai.provider.name`.
        provider: Arc<str>,
        /// Milliseconds of recognised audio, or the number of spoken characters.
        amount: u64,
        /// The price of a unit at that time. Absent: no price was configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<UnitPrice>,
    },
}

// A record from before calls were counted represents one call.
const fn one() -> u32 {
    1
}

const fn is_one(number: &u32) -> bool {
    *number == 1
}

const fn is_language_model(service: &Service) -> bool {
    matches!(service, Service::LanguageModel)
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A start of the server. The time is in the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    #[serde(default)]
    pub version: Arc<str>,
}

/// The last check of the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// The clock's time at the check.
    pub seen: Moment,
    /// Since when the clock has not jumped.
    pub since: Moment,
}

/// A person's opt-out in a guild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptOutRecord {
    pub guild: GuildId,
    pub person: PersonId,
    pub since: Moment,
}

/// Whether notes are taken, in a guild or of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteSwitchRecord {
    pub on: bool,
    /// Since when.
    pub since: Moment,
    /// For a guild: whether notes are used in other rooms than their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across_rooms: bool,
}

/// The brief of a persona, written by the side model. The persona's hash is in the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BriefRecord {
    pub text: Arc<str>,
    /// When it was written.
    pub at: Moment,
}

/// A companion that is stored in the store, because it could not be written to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionRecord {
    /// The content that its file would have.
    pub text: Arc<str>,
    /// Why it is not in a file.
    pub why: Arc<str>,
    /// When it was written.
    pub at: Moment,
}

/// A dead letter: a message that killed its handler too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    pub guild: GuildId,
    pub channel: ChannelId,
    /// The number of the message.
    pub seq: Seq,
    /// When it became a dead letter.
    pub at: Moment,
    /// How many handlers it killed.
    pub deaths: u32,
    /// The last known error.
    pub error: Arc<str>,
    /// Whether an operator has closed it. A closed dead letter is no longer listed, and is still never handled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
}

#[cfg(test)]
mod tests;
