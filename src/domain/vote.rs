//! A companion's vote in a round.

use serde::{Deserialize, Serialize};

use super::answer::Verdict;
use super::closing::Stage;
use super::id::CompanionId;

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub why: Option<String>,
    /// How much, from 0 to 10.
    pub importance: f64,
    /// Called upon.
    pub selected: bool,
    /// The stage.
    pub closing: Stage,
}

impl From<super::answer::Reading> for Vote {
    fn from(reading: super::answer::Reading) -> Self {
        Self { verdict: reading.decision, why: reading.why, importance: 5.0, selected: false, closing: Stage::None }
    }
}

/// Whether a companion wants to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It does.
    Speak,
    /// It does not.
    Listen,
}

/// A companion's vote in a round (seed 000).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Who.
    pub from: CompanionId,
    /// The round.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// Speak or listen.
    pub state: Stance,
    /// From 0 to 10.
    pub importance: f64,
    /// Called upon.
    pub selected: bool,
    /// The stage.
    #[serde(default)]
    pub closing: Stage,
}

/// Reads an answer.
pub fn read(text: &str) -> Vote {
    let object = text
        .find('{')
        .and_then(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter::<serde_json::Value>().next()?.ok());
    let Some(object) = object else {
        let reading = super::answer::read(text);
        return Vote { verdict: reading.decision, why: reading.why, importance: 5.0, selected: false, closing: Stage::None };
    };
    let verdict =
        object.get("decision").and_then(|d| d.as_str()).map_or(Verdict::Unreadable, |d| super::answer::read(d).decision);
    let importance = object.get("importance").and_then(serde_json::Value::as_f64).unwrap_or(5.0).clamp(0.0, 10.0);
    let closing = object.get("closing").and_then(|c| serde_json::from_value(c.clone()).ok()).unwrap_or_default();
    let why = object.get("reason").and_then(|r| r.as_str()).map(str::to_owned);
    Vote { verdict, why, importance, selected: object.get("selected") == Some(&true.into()), closing }
}
