//! Interactions and the state of their answers.
//!
//! <https://docs.discord.com/developers/interactions/receiving-and-responding>

use serde_json::Value;
use tokio::time::Instant;

use super::{Id, Refusal, Rules, Unknown};

pub const APPLICATION_COMMAND: u64 = 2;
pub const MESSAGE_COMPONENT: u64 = 3;
pub const AUTOCOMPLETE: u64 = 4;

#[derive(Clone, Debug)]
pub struct Interaction {
    pub id: Id,
    pub token: String,
    pub kind: u64,
    pub channel: Id,
    /// The person who used the command.
    pub user: Id,
    pub asked_at: Instant,
    pub answered: Answered,
    /// The first answer, if it is a message.
    pub original: Option<Id>,
}

/// The state of an interaction's first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Not,
    /// A message was promised and is not there yet.
    Deferred,
    Fully,
}

impl Interaction {
    /// Checks that a first answer is allowed now.
    ///
    /// # Errors
    ///
    /// It was answered before, or its deadline (three seconds) is over.
    pub fn accepts(&self, rules: &Rules) -> Result<(), Refusal> {
        if self.answered != Answered::Not {
            return Err(Refusal::new(400, 40060, "Interaction has already been acknowledged."));
        }
        if self.asked_at.elapsed() > rules.interaction_deadline {
            return Err(Refusal::unknown(Unknown::Interaction));
        }
        Ok(())
    }

    /// Checks that its token can be used for further messages.
    ///
    /// # Errors
    ///
    /// It was not answered yet, or its token has expired (after fifteen minutes).
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

/// Checks the components of an answer: at most five rows, with one select menu or one button each.
///
/// <https://docs.discord.com/developers/components/reference#string-select>
/// <https://docs.discord.com/developers/components/reference#button>
///
/// # Errors
///
/// Any other component, or a menu with too many options or with texts that are too long.
pub fn check_components(data: &Value) -> Result<(), Refusal> {
    let rows = data["components"].as_array().map_or(&[][..], Vec::as_slice);
    let length = |text: &Value| text.as_str().map_or(0, |text| text.chars().count());
    let is_select_menu = |list: &Value| {
        let options = list["options"].as_array().map_or(&[][..], Vec::as_slice);
        let mut values: Vec<&Value> = options.iter().map(|option| &option["value"]).collect();
        values.sort_by_key(|value| value.to_string());
        values.dedup();
        list["type"] == 3
            && (1..=100).contains(&length(&list["custom_id"]))
            && (1..=25).contains(&options.len())
            && values.len() == options.len()
            && options
                .iter()
                .all(|option| [&option["label"], &option["value"]].iter().all(|text| (1..=100).contains(&length(text))))
    };
    let is_button = |button: &Value| {
        button["type"] == 2
            && (1..=4).contains(&button["style"].as_u64().unwrap_or_default())
            && (1..=80).contains(&length(&button["label"]))
            && (1..=100).contains(&length(&button["custom_id"]))
    };
    let is_row = |row: &Value| {
        let components = row["components"].as_array().map(Vec::as_slice);
        row["type"] == 1 && matches!(components, Some([one]) if is_select_menu(one) || is_button(one))
    };
    if rows.len() <= 5 && rows.iter().all(is_row) {
        return Ok(());
    }
    Err(Refusal::field(
        &["data", "components"],
        "UNION_TYPE_CHOICES",
        "The counterpart supports select menus and single buttons only.",
    ))
}

/// Checks the choices that answer an autocomplete.
///
/// # Errors
///
/// More than 25 choices, or one with a missing or too long name or value.
pub fn check_choices(data: &Value) -> Result<(), Refusal> {
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
