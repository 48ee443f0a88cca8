//! Interactions: what a person asked for, and how far it is answered.
//!
//! <https://docs.discord.com/developers/interactions/receiving-and-responding>

use serde_json::Value;
use tokio::time::Instant;

use super::id::Id;
use super::refusal::{Refusal, Unknown};
use super::rules::Rules;

pub const APPLICATION_COMMAND: u64 = 2;
pub const AUTOCOMPLETE: u64 = 4;

#[derive(Clone, Debug)]
pub struct Interaction {
    pub id: Id,
    pub token: String,
    pub kind: u64,
    pub channel: Id,
    /// Who asks.
    pub user: Id,
    pub asked_at: Instant,
    pub answered: Answered,
    /// The first answer, when it is a message.
    pub original: Option<Id>,
    /// Every other message that was sent with its token.
    pub followups: Vec<Id>,
}

/// How far an interaction is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Not,
    /// A message is to come.
    Deferred,
    Fully,
}

impl Interaction {
    /// Whether a first answer comes in time.
    ///
    /// # Errors
    ///
    /// It was answered before, or the three seconds are over.
    pub fn accepts(&self, rules: &Rules) -> Result<(), Refusal> {
        if self.answered != Answered::Not {
            return Err(Refusal::new(400, 40060, "Interaction has already been acknowledged."));
        }
        if self.asked_at.elapsed() > rules.interaction_deadline {
            return Err(Refusal::unknown(Unknown::Interaction));
        }
        Ok(())
    }

    /// Whether its token still works for more.
    ///
    /// # Errors
    ///
    /// It was not answered yet, or its fifteen minutes are over.
    pub fn continues(&self, rules: &Rules) -> Result<(), Refusal> {
        if self.answered == Answered::Not {
            return Err(Refusal::unknown(Unknown::Webhook));
        }
        if self.asked_at.elapsed() > rules.interaction_token {
            return Err(Refusal::new(401, 50027, "Invalid Webhook Token"));
        }
        Ok(())
    }
}

/// Choices that an autocomplete answers with.
///
/// # Errors
///
/// More than 25, or one without a name or a value.
pub fn choices(data: &Value) -> Result<(), Refusal> {
    let choices = data["choices"].as_array().ok_or_else(|| Refusal::missing(&["data", "choices"]))?;
    if choices.len() > 25 {
        return Err(Refusal::length(&["data", "choices"], 0, 25));
    }
    for (number, choice) in choices.iter().enumerate() {
        let number = number.to_string();
        let name = choice["name"].as_str().map_or(0, |name| name.chars().count());
        if !(1..=100).contains(&name) {
            return Err(Refusal::length(&["data", "choices", &number, "name"], 1, 100));
        }
        let value = &choice["value"];
        if !value.is_number() && value.as_str().is_none_or(|value| value.chars().count() > 100) {
            return Err(Refusal::length(&["data", "choices", &number, "value"], 0, 100));
        }
    }
    Ok(())
}
