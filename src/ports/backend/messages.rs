//! What is said in a room, and what was.

use std::sync::Arc;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stamp::Stamp;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Modality, Role};

/// Something a person says in a room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// Who says it: 1 to 64 characters, at least one of them visible, none of them a control or bidirectional formatting character.
    pub from: Arc<str>,
    /// The words: at least one visible character, `\n` and `\t` the only control characters; `server.max_text_chars` at most.
    pub text: Arc<str>,
    /// The sender's own id of it, 1 to 128 characters: the same one again is the same message.
    #[serde(default)]
    pub id: Option<Arc<str>>,
    /// The number of the message that it answers.
    #[serde(default)]
    pub reply_to: Option<Seq>,
    /// Names or ids of companions or people that it addresses: at most 64, each 1 to 64 characters.
    #[serde(default)]
    pub mentions: Vec<Arc<str>>,
    /// Typed or spoken: what the adapter that hands it over says, and no request.
    #[serde(skip)]
    pub modality: Modality,
    /// A voice utterance that ends a lull (docs/design/gate.md G-4); as above.
    #[serde(skip)]
    pub lull_endpoint: bool,
}

/// What an external companion says when it was selected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Who says it: the id of a companion of the room.
    pub from: CompanionId,
    /// What the round that selected it was about: the number of an event, written as such or as a text, as States have it.
    #[serde(deserialize_with = "message_id")]
    pub message_id: Arc<str>,
    /// The words, within the limits of [`NewMessage::text`].
    pub text: Arc<str>,
}

/// What a message is to say instead.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The words, within the limits of [`NewMessage::text`].
    pub text: Arc<str>,
}

/// Where in a room's history to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Messages after this one only.
    pub after: Option<Seq>,
    /// Messages before this one only.
    pub before: Option<Seq>,
    /// How many at most: 1 to 1,000.
    pub limit: usize,
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// Oldest first.
    pub messages: Vec<HistoryMessage>,
}

/// One message that was said. Fields as in docs/design/interfaces.md I-11.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryMessage {
    /// Its number.
    pub seq: Seq,
    /// The sender's own id of it.
    pub id: Option<Arc<str>>,
    /// A person's name, a companion's id.
    pub from: Arc<str>,
    /// What its speaker is.
    pub role: Role,
    /// The words.
    pub text: Arc<str>,
    /// When it was accepted; where that was well after it was said, when it was said.
    pub at: Stamp,
    /// Typed or spoken.
    pub modality: Modality,
    /// The number of the message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Seq>,
}

fn message_id<'de, D: Deserializer<'de>>(given: D) -> Result<Arc<str>, D::Error> {
    match Value::deserialize(given)? {
        Value::Number(number) if number.is_u64() => Ok(number.to_string().into()),
        Value::String(text) if text.parse::<u64>().is_ok() => Ok(text.into()),
        _ => Err(D::Error::custom("must be the number of the message that the round was about")),
    }
}
