//! A State (docs/design/turn-taking.md T-4): the vote that a companion publishes in a round, or that an external companion posts.

use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::answer::Verdict;
use super::super::closing::Stage;
use super::super::id::CompanionId;
use super::super::named::named;
use super::super::text::first;
use super::Vote;

/// The maximum importance. The minimum is 0.
pub const MOST_IMPORTANCE: f64 = 10.0;

/// The maximum influence of the mood on the tolerance for interruptions, in both directions.
pub const MOST_MOOD: f64 = 0.2;

/// The maximum length of an id, in characters.
const MOST_ID_CHARS: usize = 64;

/// A companion's vote in a round. Parsing is strict: an error names the field, the problem and the allowed values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    #[serde(deserialize_with = "from")]
    #[schemars(length(min = 1, max = MOST_ID_CHARS))]
    pub from: CompanionId,
    /// The number of the newest event at the round's opening, as text.
    #[serde(deserialize_with = "message_id")]
    #[schemars(extend("pattern" = "^[0-9]{1,64}$"))]
    pub message_id: String,
    /// Whether the companion wants to speak.
    #[serde(deserialize_with = "stance")]
    pub state: Stance,
    /// How urgently the conversation needs the statement, 0 to 10.
    #[serde(deserialize_with = "importance")]
    #[schemars(range(min = 0.0, max = MOST_IMPORTANCE))]
    pub importance: f64,
    /// Whether the previous speaker called on the companion.
    #[serde(deserialize_with = "selected")]
    pub selected: bool,
    /// The closing stage. Defaults to `none`.
    #[serde(default, deserialize_with = "closing")]
    pub closing: Stage,
    /// How much more than usual the companion tolerates interruptions of its speech, −0.2 to 0.2 (docs/design/voice.md A-32).
    /// Defaults to 0.
    #[serde(default, skip_serializing_if = "is_usual", deserialize_with = "mood")]
    #[schemars(range(min = -MOST_MOOD, max = MOST_MOOD))]
    pub mood: f64,
}

/// Whether a mood is the usual one, which records omit.
pub fn is_usual(mood: &f64) -> bool {
    *mood == 0.0
}

named! {
    /// Whether a companion wants to speak next.
    #[derive(schemars::JsonSchema)]
    pub enum Stance {
        /// It wants to speak.
        Speak = "speak",
        /// It does not want to speak.
        Listen = "listen",
    }
}

impl State {
    /// The State of a vote. It is `speak` if the vote is a YES. It is selected if the vote says so, or if an unsettled message
    /// addresses the companion.
    pub fn voted(vote: &Vote, from: CompanionId, message_id: String, is_addressed: bool) -> Self {
        Self {
            from,
            message_id,
            state: if vote.verdict == Verdict::Yes { Stance::Speak } else { Stance::Listen },
            importance: vote.importance,
            selected: vote.selected || is_addressed,
            closing: vote.closing,
            mood: vote.mood,
        }
    }

    /// The State of a companion that was not asked, or whose answer did not arrive. It listens, and keeps its stage.
    pub fn listening(from: CompanionId, message_id: String, is_addressed: bool, closing: Stage) -> Self {
        Self { from, message_id, state: Stance::Listen, importance: 0.0, selected: is_addressed, closing, mood: 0.0 }
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
    text.map(str::to_owned).ok_or_else(|| invalid(field, &value, &format!("{allowed}, of 1 to {MOST_ID_CHARS} characters")))
}

fn stance<'de, D: Deserializer<'de>>(given: D) -> Result<Stance, D::Error> {
    let value = Value::deserialize(given)?;
    let parsed = [Stance::Speak, Stance::Listen].into_iter().find(|stance| value.as_str() == Some(stance.as_str()));
    parsed.ok_or_else(|| invalid("state", &value, "\"speak\" or \"listen\""))
}

fn importance<'de, D: Deserializer<'de>>(given: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(given)?;
    let number = value.as_f64().filter(|number| (0.0..=MOST_IMPORTANCE).contains(number));
    number.ok_or_else(|| invalid("importance", &value, "a number from 0 to 10"))
}

fn selected<'de, D: Deserializer<'de>>(given: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(given)?;
    value.as_bool().ok_or_else(|| invalid("selected", &value, "true or false"))
}

fn closing<'de, D: Deserializer<'de>>(given: D) -> Result<Stage, D::Error> {
    let value = Value::deserialize(given)?;
    let parsed = Stage::ALL.into_iter().find(|stage| value.as_str() == Some(stage.as_str()));
    parsed.ok_or_else(|| {
        invalid("closing", &value, "\"none\", \"pre-closing\", \"closing\" or \"terminal\" (\"none\" when left out)")
    })
}

fn mood<'de, D: Deserializer<'de>>(given: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(given)?;
    let number = value.as_f64().filter(|number| (-MOST_MOOD..=MOST_MOOD).contains(number));
    number.ok_or_else(|| invalid("mood", &value, "a number from -0.2 to 0.2 (0 when left out)"))
}

/// An error that names a field, the problem and the allowed values.
fn invalid<E: Error>(field: &str, value: &Value, allowed: &str) -> E {
    const SHOWN_CHARS: usize = 40;
    let problem = match value {
        // Values that JSON lacks, such as `nan` in other formats, arrive as null.
        Value::Null => "is no value".to_owned(),
        Value::Array(_) => "is an array".to_owned(),
        Value::Object(_) => "is an object".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN_CHARS => {
            format!("is {:?}… of {} characters", first(text, SHOWN_CHARS), text.chars().count())
        }
        value => format!("is {value}"),
    };
    E::custom(format!("{field} {problem}, must be {allowed}"))
}
