//! Interactions and the state of their answers.
//!
//! <https://docs.discord.com/developers/interactions/receiving-and-responding>

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Guild, Id, Refusal, Rules, Unknown};

pub const APPLICATION_COMMAND: u64 = 2;
pub const MESSAGE_COMPONENT: u64 = 3;
pub const AUTOCOMPLETE: u64 = 4;
pub const MODAL_SUBMIT: u64 = 5;

/// The types of components: a button, a menu of texts, a text input, a menu of roles, a menu of channels.
const BUTTON: u64 = 2;
pub const TEXT_MENU: u64 = 3;
const TEXT_INPUT: u64 = 4;
pub const ROLE_MENU: u64 = 6;
pub const CHANNEL_MENU: u64 = 8;

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
    /// The message with the component that was used.
    pub component_of: Option<Id>,
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

/// Who installed the application where an interaction happened: a guild. In direct messages it is 0.
///
/// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-authorizing-integration-owners-object>
pub fn guild_install(guild: Option<&Guild>) -> Value {
    json!({ "0": guild.map_or_else(|| "0".to_owned(), |guild| guild.id.to_string()) })
}

/// Checks the components of a message: at most five rows, with one menu or up to five buttons each.
///
/// <https://docs.discord.com/developers/components/reference>
///
/// # Errors
///
/// Any other component, one id twice, or a menu with too many options, with texts that are too long, or with impossible numbers of choices.
pub fn check_components(data: &Value) -> Result<(), Refusal> {
    let rows = data["components"].as_array().map_or(&[][..], Vec::as_slice);
    let is_menu = |menu: &Value| {
        let limits = (menu["min_values"].as_u64().unwrap_or(1), menu["max_values"].as_u64().unwrap_or(1));
        let defaults = menu["default_values"].as_array().map_or(0, Vec::len);
        limits.0 <= limits.1
            && (1..=25).contains(&limits.1)
            && defaults as u64 <= limits.1
            && length(&menu["placeholder"]) <= 150
            && match menu["type"].as_u64() {
                Some(TEXT_MENU) => has_options(menu, limits.1),
                Some(ROLE_MENU | CHANNEL_MENU) => menu["options"].is_null(),
                _ => false,
            }
    };
    let is_button = |button: &Value| {
        button["type"] == BUTTON
            && (1..=4).contains(&button["style"].as_u64().unwrap_or_default())
            && (1..=80).contains(&length(&button["label"]))
    };
    let is_row = |row: &Value| {
        let components = row["components"].as_array().map_or(&[][..], Vec::as_slice);
        let is_valid = match components {
            [one] => is_menu(one) || is_button(one),
            several => (1..=5).contains(&several.len()) && several.iter().all(is_button),
        };
        row["type"] == 1 && is_valid
    };
    let ids: Vec<_> = components_in(rows).map(|component| &component["custom_id"]).collect();
    let are_ids_valid = ids.iter().enumerate().all(|(at, id)| (1..=100).contains(&length(id)) && !ids[..at].contains(id));
    if rows.len() <= 5 && rows.iter().all(is_row) && are_ids_valid {
        return Ok(());
    }
    Err(Refusal::field(&["data", "components"], "UNION_TYPE_CHOICES", "The counterpart supports menus and rows of buttons only."))
}

fn length(text: &Value) -> usize {
    text.as_str().map_or(0, |text| text.chars().count())
}

/// Whether a menu of texts has valid options, of which no more are chosen than may be.
fn has_options(menu: &Value, most: u64) -> bool {
    let options = menu["options"].as_array().map_or(&[][..], Vec::as_slice);
    let mut values: Vec<&Value> = options.iter().map(|option| &option["value"]).collect();
    values.sort_by_key(|value| value.to_string());
    values.dedup();
    (1..=25).contains(&options.len())
        && values.len() == options.len()
        && most <= options.len() as u64
        && options.iter().filter(|option| option["default"] == true).count() as u64 <= most
        && options.iter().all(|option| [&option["label"], &option["value"]].iter().all(|text| (1..=100).contains(&length(text))))
}

/// The components in rows.
pub fn components_in(rows: &[Value]) -> impl Iterator<Item = &Value> {
    rows.iter().flat_map(|row| row["components"].as_array().into_iter().flatten())
}

/// Checks the embeds of a message.
///
/// <https://docs.discord.com/developers/resources/message#embed-object-embed-limits>
///
/// # Errors
///
/// More than ten embeds, a text that is too long, or a picture without a web address.
pub fn check_embeds(data: &Value) -> Result<Vec<Value>, Refusal> {
    let embeds = data["embeds"].as_array().cloned().unwrap_or_default();
    let texts = |embed: &Value| {
        let fields = embed["fields"].as_array().cloned().unwrap_or_default();
        let fields = fields.into_iter().flat_map(|field| [(field["name"].clone(), 1, 256), (field["value"].clone(), 1, 1_024)]);
        let own = [(&embed["title"], 256), (&embed["description"], 4_096), (&embed["footer"]["text"], 2_048)];
        own.map(|(text, most)| (text.clone(), 0, most)).into_iter().chain(fields).collect::<Vec<_>>()
    };
    let all: Vec<_> = embeds.iter().flat_map(texts).collect();
    let is_url = |url: &Value| url.is_null() || url.as_str().is_some_and(|url| url.starts_with("https://") && url.len() <= 2_048);
    let is_valid = embeds.len() <= 10
        && embeds.iter().all(|embed| embed["fields"].as_array().map_or(0, Vec::len) <= 25 && is_url(&embed["thumbnail"]["url"]))
        && all.iter().all(|(text, least, most)| (*least..=*most).contains(&length(text)))
        && all.iter().map(|(text, ..)| length(text)).sum::<usize>() <= 6_000;
    is_valid
        .then_some(embeds)
        .ok_or_else(|| Refusal::field(&["data", "embeds"], "BASE_TYPE_BAD_LENGTH", "An embed is not valid."))
}

/// Checks a modal: one to five rows with one text input each.
///
/// <https://docs.discord.com/developers/components/reference#text-input>
///
/// # Errors
///
/// A text that is missing or too long, or another component.
pub fn check_modal(data: &Value) -> Result<(), Refusal> {
    let rows = data["components"].as_array().map_or(&[][..], Vec::as_slice);
    let is_input = |input: &Value| {
        let most = input["max_length"].as_u64().unwrap_or(4_000);
        input["type"] == TEXT_INPUT
            && (1..=2).contains(&input["style"].as_u64().unwrap_or_default())
            && (1..=100).contains(&length(&input["custom_id"]))
            && (1..=45).contains(&length(&input["label"]))
            && length(&input["placeholder"]) <= 100
            && (1..=4_000).contains(&most)
            && length(&input["value"]) as u64 <= most
    };
    let is_row = |row: &Value| matches!(row["components"].as_array().map(Vec::as_slice), Some([input]) if is_input(input));
    let has_texts = (1..=45).contains(&length(&data["title"])) && (1..=100).contains(&length(&data["custom_id"]));
    if has_texts && (1..=5).contains(&rows.len()) && rows.iter().all(is_row) {
        return Ok(());
    }
    Err(Refusal::field(&["data", "components"], "BASE_TYPE_BAD_LENGTH", "The modal is not valid."))
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
