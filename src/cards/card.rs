//! Parses the fields of a card of any version, including the variants that programs write.

use serde::Serialize;
use serde_json::{Map, Value};

use super::lorebook;
use super::not_a_card::{NotACard, NotRead};
use super::salvage::{SalvageKind, Salvages};
use crate::domain::named::named;
use crate::domain::text;
use crate::settings::companion::{Interjection, MAX_ALIASES, MAX_NAME_CHARS, MAX_TRAIT_BYTES};

named! {
    /// The versions of the card format.
    #[derive(schemars::JsonSchema)]
    pub enum Form {
        V1 = "v1",
        V2 = "v2",
        V3 = "v3",
    }
}

/// The maximum number of entries that are read from a list. It is far above hand-written lists.
const MOST_ENTRIES: usize = 1_000;

/// The key of our own values in `extensions`.
pub(super) const OURS: &str = "tertulia";
/// SillyTavern's key in `extensions` for how much a character talks in groups: from 0 to 1, usually written as a string.
pub(super) const TALKATIVENESS: &str = "talkativeness";
/// The fields of the first version, which has no `data` object.
pub(super) const V1_FIELDS: [&str; 6] = ["name", "description", "personality", "scenario", "first_mes", "mes_example"];
/// The equivalent keys of Pygmalion, TextGen and Agnai.
pub(super) const OTHER_KEYS: [(&str, &str); 8] = [
    ("name", "char_name"),
    ("description", "char_persona"),
    ("scenario", "world_scenario"),
    ("first_mes", "char_greeting"),
    ("mes_example", "example_dialogue"),
    ("description", "context"),
    ("first_mes", "greeting"),
    ("mes_example", "sampleChat"),
];
/// All keys of `data` that are read.
pub(super) const READ_KEYS: [&str; 17] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "group_only_greetings",
    "nickname",
    "tags",
    "creator",
    "character_version",
    "character_book",
    "extensions",
];

/// A character card. Its exports have every field that is not skipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    #[serde(skip)]
    pub form: Form,
    /// As written in the card. It may be empty.
    pub name: String,
    /// The character's name in prompts, instead of `name`. Usually empty.
    pub nickname: String,
    pub description: String,
    pub personality: String,
    pub scenario: String,
    pub first_mes: String,
    pub mes_example: String,
    /// Notes for people who choose a card. They must never reach a prompt.
    pub creator_notes: String,
    pub system_prompt: String,
    pub post_history_instructions: String,
    pub alternate_greetings: Vec<String>,
    pub group_only_greetings: Vec<String>,
    pub tags: Vec<String>,
    pub creator: String,
    pub character_version: String,
    /// Its lorebook.
    #[serde(skip)]
    pub book: Option<lorebook::Read>,
    /// Our own extension fields, and SillyTavern's talkativeness.
    #[serde(skip)]
    pub traits: Traits,
    /// The card's JSON as it was written. An export needs it ([`super::write_json`]).
    #[serde(skip)]
    pub original: Value,
    /// The PNG around the card, without its text chunks. It is not validated; see [`super::picture::check`].
    #[serde(skip)]
    pub picture: Option<Vec<u8>>,
    /// The number of asset chunks in the PNG. Their contents are not kept.
    #[serde(skip)]
    pub embedded_assets: usize,
    #[serde(skip)]
    pub(super) salvages: Salvages,
}

/// Settings of a companion that the card format does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub aliases: Vec<String>,
    pub chattiness: Option<String>,
    pub tone: Option<String>,
    pub about: Option<String>,
    pub interjection: Option<Interjection>,
}

impl Card {
    /// Parses a card from a JSON object.
    pub(super) fn of(mut object: Map<String, Value>, salvages: Salvages) -> Result<Self, NotACard> {
        if let Some(inner) = wrapped(&object) {
            object = inner.clone();
        }
        describe_by_attributes(&mut object);
        let data = object.get("data").and_then(Value::as_object);
        let form = match object.get("spec").and_then(Value::as_str) {
            Some("chara_card_v3") => Form::V3,
            _ if data.is_some() => Form::V2,
            _ => Form::V1,
        };
        let mut fields = Fields { data: data.unwrap_or(&object), beside: data.map(|_| &object), salvages };
        if !V1_FIELDS.iter().any(|key| fields.find(key).is_some_and(|(value, _)| !is_empty(value))) {
            let is_lorebook = object.contains_key("entries") || data.is_some_and(|data| data.contains_key("entries"));
            return Err(NotACard::Other { what: if is_lorebook { NotRead::Lorebook } else { NotRead::OtherJson } });
        }
        let mut card = Self {
            form,
            name: fields.text("name"),
            nickname: fields.text("nickname"),
            description: fields.text("description"),
            personality: fields.text("personality"),
            scenario: fields.text("scenario"),
            first_mes: fields.text("first_mes"),
            mes_example: fields.text("mes_example"),
            creator_notes: fields.text("creator_notes"),
            system_prompt: fields.text("system_prompt"),
            post_history_instructions: fields.text("post_history_instructions"),
            alternate_greetings: fields.list("alternate_greetings"),
            group_only_greetings: fields.list("group_only_greetings"),
            tags: fields.list("tags"),
            creator: fields.text("creator"),
            character_version: fields.text("character_version"),
            book: fields.book(),
            traits: fields.traits(),
            original: Value::Null,
            picture: None,
            embedded_assets: 0,
            salvages: fields.salvages,
        };
        if card.shown_name().is_empty() {
            card.salvages.field(SalvageKind::NoName, "name");
        } else if card.shown_name() != card.written_name() {
            card.salvages.field(SalvageKind::ChangedName, "name");
        }
        card.original = Value::Object(object);
        Ok(card)
    }

    fn written_name(&self) -> &str {
        let nickname = self.nickname.trim();
        if nickname.is_empty() { self.name.trim() } else { nickname }
    }

    /// The character's nickname, else its name, cleaned so that a companion can have it. Empty if there is none.
    pub fn shown_name(&self) -> String {
        proper_name(self.written_name())
    }
}

/// Cleans a name for a companion: one line of visible characters, of limited length, without the brackets of macros. Empty if no
/// character is left.
pub(super) fn proper_name(written: &str) -> String {
    let mut name = text::one_line(&written.replace(['{', '}', '<', '>'], ""), MAX_NAME_CHARS - 1);
    // The cut may have turned a joiner into an invisible character.
    while text::first_hidden(&name).is_some() {
        name = text::seen(&name).collect();
    }
    if text::is_blank(&name) { String::new() } else { name.trim().to_owned() }
}

/// The character object inside an export of Character.AI or a response of Chub.
fn wrapped(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let definition = object.get("node").and_then(|node| node.get("definition"));
    object.get("character").or(definition)?.as_object()
}

/// Converts the persona attributes of Agnai's format to a description. Agnai's own `description` is a note for people, so it
/// moves to `creator_notes`.
fn describe_by_attributes(object: &mut Map<String, Value>) {
    let attributes = object.get("persona").and_then(|persona| persona.get("attributes")).and_then(Value::as_object);
    let Some(attributes) = attributes else { return };
    let lines = attributes.iter().map(|(name, values)| {
        let values: Vec<&str> = values.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match name.as_str() {
            "text" => values.join("\n"),
            _ => format!("{name}: {}", values.join(", ")),
        }
    });
    let description = lines.collect::<Vec<_>>().join("\n");
    if let Some(note) = object.insert("description".to_owned(), description.into()) {
        object.entry("creator_notes").or_insert(note);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads fields whose values may have the wrong type.
struct Fields<'a> {
    data: &'a Map<String, Value>,
    /// The object around `data`.
    beside: Option<&'a Map<String, Value>>,
    salvages: Salvages,
}

impl<'a> Fields<'a> {
    /// The value of a field wherever the card has it, and the salvage kind if that is not the standard place.
    fn find(&self, key: &str) -> Option<(&'a Value, Option<SalvageKind>)> {
        let inside = self.data.get(key);
        let beside = self.beside.and_then(|beside| beside.get(key));
        let others = OTHER_KEYS.iter().filter(|(field, _)| *field == key).map(|(_, other)| self.data.get(*other));
        let others = others.map(|value| (value, Some(SalvageKind::OtherKey)));
        let places = [(inside, None), (beside, Some(SalvageKind::BesideData))].into_iter().chain(others);
        let mut found = places.filter_map(|(value, oddity)| Some((value?, oddity)));
        found.find(|(value, _)| !is_empty(value)).or_else(|| Some((inside?, None)))
    }

    fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        let (value, oddity) = self.find(key)?;
        if let Some(oddity) = oddity {
            self.salvages.field(oddity, key);
        }
        Some(value)
    }

    fn text(&mut self, key: &'static str) -> String {
        match self.value(key) {
            Some(value) => self.as_text(key, value),
            None => String::new(),
        }
    }

    fn as_text(&mut self, key: &'static str, value: &Value) -> String {
        let mut salvaged = |kind| self.salvages.field(kind, key);
        match value {
            Value::String(text) => text.clone(),
            Value::Null => {
                salvaged(SalvageKind::Null);
                String::new()
            }
            Value::Bool(_) | Value::Number(_) => {
                salvaged(SalvageKind::NumberForText);
                value.to_string()
            }
            Value::Array(items) if items.iter().all(Value::is_string) => {
                salvaged(SalvageKind::ListForText);
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
            }
            Value::Array(_) | Value::Object(_) => {
                salvaged(SalvageKind::ListForText);
                value.to_string()
            }
        }
    }

    /// A list of texts without empty ones.
    fn list(&mut self, key: &'static str) -> Vec<String> {
        let mut items: Vec<&Value> = match self.value(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items.iter().collect(),
            Some(Value::Null) => {
                self.salvages.field(SalvageKind::Null, key);
                return Vec::new();
            }
            Some(other) => {
                self.salvages.field(SalvageKind::TextForList, key);
                other.as_object().map_or_else(|| vec![other], |fields| fields.values().collect())
            }
        };
        items.truncate(MOST_ENTRIES);
        let texts: Vec<String> = items.into_iter().map(|item| self.as_text(key, item)).collect();
        let (said, empty): (Vec<String>, Vec<String>) = texts.into_iter().partition(|text| !text.trim().is_empty());
        for _ in empty {
            self.salvages.field(SalvageKind::EmptyEntry, key);
        }
        said
    }

    fn book(&mut self) -> Option<lorebook::Read> {
        match self.value("character_book")? {
            Value::Null => {
                self.salvages.field(SalvageKind::Null, "character_book");
                None
            }
            book => lorebook::of_card(book),
        }
    }

    fn traits(&mut self) -> Traits {
        let Some(extensions) = self.value("extensions") else { return Traits::default() };
        let ours = extensions.get(OURS).unwrap_or(&Value::Null);
        let text = |key| ours.get(key).and_then(Value::as_str).map(|text| text::first_bytes(text, MAX_TRAIT_BYTES).to_owned());
        let aliases = ours.get("aliases").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let aliases = aliases.iter().filter_map(Value::as_str).map(proper_name).filter(|alias| !alias.is_empty());
        let level = ours.get("interjection").and_then(|level| serde_json::from_value(level.clone()).ok());
        Traits {
            aliases: aliases.take(MAX_ALIASES).collect(),
            chattiness: text("chattiness"),
            tone: text("tone"),
            about: text("about"),
            interjection: level.or_else(|| extensions.get(TALKATIVENESS).and_then(talkative)),
        }
    }
}

/// Converts SillyTavern's talkativeness to an interjection level.
fn talkative(value: &Value) -> Option<Interjection> {
    let share = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    Some(match share {
        ..0.2 => Interjection::VeryQuiet,
        0.2..0.4 => Interjection::Quiet,
        0.4..=0.6 => Interjection::Average,
        0.6..=0.8 => Interjection::Eager,
        0.8.. => Interjection::VeryEager,
        _ => return None,
    })
}
