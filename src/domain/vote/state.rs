//! A State (docs/design/turn-taking.md T-4): what a companion publishes in a round, and what programs outside post.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::answer::Verdict;
use super::super::closing::Stage;
use super::super::id::CompanionId;
use super::Vote;

/// The highest importance; the lowest is 0.
pub const MOST_IMPORTANCE: f64 = 10.0;

/// The longest id, in characters.
const MOST_ID_CHARS: usize = 64;

/// A companion's vote in a round.
///
/// Read strictly: every field but `closing` is required, no other is known, and an error names the field, what is wrong and what is
/// allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// Who votes.
    #[serde(deserialize_with = "from")]
    pub from: CompanionId,
    /// The number of the newest event at the round's opening, as text.
    #[serde(deserialize_with = "message_id")]
    pub message_id: String,
    /// Whether it wants to speak.
    #[serde(deserialize_with = "stance")]
    pub state: Stance,
    /// How much the conversation needs what it would say, 0 to 10.
    #[serde(deserialize_with = "importance")]
    pub importance: f64,
    /// The previous speaker called on it.
    #[serde(deserialize_with = "selected")]
    pub selected: bool,
    /// How near its end it sees the conversation.
    #[serde(default, deserialize_with = "closing")]
    pub closing: Stage,
}

/// Whether a companion wants to speak next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    /// It wants to.
    Speak,
    /// It does not.
    Listen,
}

impl Stance {
    /// `speak` or `listen`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Speak => "speak",
            Self::Listen => "listen",
        }
    }
}

impl State {
    /// What a vote becomes: `speak` exactly when it is a YES, and selected also when an unsettled message addresses the companion.
    pub fn voted(vote: &Vote, from: CompanionId, message_id: String, is_addressed: bool) -> Self {
        Self {
            from,
            message_id,
            state: if vote.verdict == Verdict::Yes { Stance::Speak } else { Stance::Listen },
            importance: vote.importance,
            selected: vote.selected || is_addressed,
            closing: vote.closing,
        }
    }

    /// What one publishes that was not asked, or whose answer did not arrive: it listens, and stays in its stage.
    pub fn listening(from: CompanionId, message_id: String, is_addressed: bool, closing: Stage) -> Self {
        Self { from, message_id, state: Stance::Listen, importance: 0.0, selected: is_addressed, closing }
    }
}

fn from<'de, D: Deserializer<'de>>(given: D) -> Result<CompanionId, D::Error> {
    id(given, "from", "the id of a companion").map(CompanionId::from)
}

fn message_id<'de, D: Deserializer<'de>>(given: D) -> Result<String, D::Error> {
    id(given, "messageId", "the number of the message that the round is about, as a string")
}

fn id<'de, D: Deserializer<'de>>(given: D, field: &str, allowed: &str) -> Result<String, D::Error> {
    let value = Value::deserialize(given)?;
    let text = value.as_str().filter(|text| !text.is_empty() && text.chars().count() <= MOST_ID_CHARS);
    text.map(str::to_owned).ok_or_else(|| refusal(field, &value, &format!("{allowed}, of 1 to {MOST_ID_CHARS} characters")))
}

fn stance<'de, D: Deserializer<'de>>(given: D) -> Result<Stance, D::Error> {
    let value = Value::deserialize(given)?;
    let known = [Stance::Speak, Stance::Listen].into_iter().find(|stance| value.as_str() == Some(stance.as_str()));
    known.ok_or_else(|| refusal("state", &value, "\"speak\" or \"listen\""))
}

fn importance<'de, D: Deserializer<'de>>(given: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(given)?;
    let number = value.as_f64().filter(|number| (0.0..=MOST_IMPORTANCE).contains(number));
    number.ok_or_else(|| refusal("importance", &value, "a number from 0 to 10"))
}

fn selected<'de, D: Deserializer<'de>>(given: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(given)?;
    value.as_bool().ok_or_else(|| refusal("selected", &value, "true or false"))
}

fn closing<'de, D: Deserializer<'de>>(given: D) -> Result<Stage, D::Error> {
    let value = Value::deserialize(given)?;
    let known = Stage::ALL.into_iter().find(|stage| value.as_str() == Some(stage.as_str()));
    known.ok_or_else(|| {
        refusal("closing", &value, "\"none\", \"pre-closing\", \"closing\" or \"terminal\" (\"none\" when left out)")
    })
}

/// Names a field, what is wrong with it and what is allowed.
fn refusal<E: Error>(field: &str, value: &Value, allowed: &str) -> E {
    const SHOWN_CHARS: usize = 40;
    let is = match value {
        // What has no JSON, such as `nan` in other formats, arrives as null.
        Value::Null => "is no value".to_owned(),
        Value::Array(_) => "is an array".to_owned(),
        Value::Object(_) => "is an object".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN_CHARS => {
            format!("is {:?}… of {} characters", text.chars().take(SHOWN_CHARS).collect::<String>(), text.chars().count())
        }
        value => format!("is {value}"),
    };
    E::custom(format!("{field} {is}, must be {allowed}"))
}
