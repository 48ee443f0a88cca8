//! Writes a companion as a card, and keeps everything else of the card from which it was imported.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::card::{Card, OTHER_KEYS, OURS, V1_FIELDS};
use super::file::KEYWORDS;
use super::persona::{Choices, persona};
use super::picture::NotAPicture;
use super::png;
use super::preview::{GreetingKind, Offered, called, greetings, users};
use super::salvage::Salvages;
use crate::domain::card_macros::{Found, User};
use crate::settings::companion::Companion;

/// The fields of `data` from which a persona is made. An edited persona replaces all of them: it becomes the description, and the
/// others become empty.
const EDITED: [&str; 4] = ["description", "personality", "scenario", "mes_example"];

/// The fields of `data` for all greetings except the first.
const GREETINGS: [&str; 2] = ["alternate_greetings", "group_only_greetings"];

/// A card of the third version. Programs for the first and second version can read it, too.
///
/// `original` is the card from which the companion was imported ([`Card::original`]). Its keys and extensions are kept. The text
/// fields are kept while the persona is the one that the card gives. An edited persona becomes the description, and personality,
/// scenario and examples become empty. Edited greetings are written likewise: the first becomes `first_mes`, the others become
/// alternatives.
pub fn write_json(original: Option<&Value>, companion: &Companion) -> Value {
    let object = original.and_then(Value::as_object).cloned().unwrap_or_default();
    let card = Card::of(object.clone(), Salvages::default()).ok();
    let mut top = object;
    let mut data = match top.remove("data") {
        Some(Value::Object(data)) => data,
        // A card of the first version has all fields at the top level.
        _ => Map::new(),
    };
    if let Some(card) = &card {
        insert_fields(&mut data, card);
        move_inside(&mut top, &mut data);
    }
    if card.as_ref().is_none_or(|card| *card.shown_name() != *companion.name) {
        data.insert("name".to_owned(), json!(companion.name));
        data.remove("nickname");
    }
    if !card.as_ref().is_some_and(|card| gives(card, companion)) {
        for field in EDITED {
            data.insert(field.to_owned(), json!(""));
        }
        data.insert("description".to_owned(), json!(companion.persona.trim()));
    }
    insert_greetings(&mut data, card.as_ref(), companion);
    for field in ["first_mes", "creator_notes", "system_prompt", "post_history_instructions", "creator", "character_version"] {
        data.entry(field).or_insert_with(|| json!(""));
    }
    for field in ["alternate_greetings", "group_only_greetings", "tags"] {
        data.entry(field).or_insert_with(|| json!([]));
    }
    insert_ours(&mut data, companion);
    for field in V1_FIELDS {
        top.insert(field.to_owned(), data[field].clone());
    }
    // Some programs also read the fields beside `data`.
    for (field, other) in OTHER_KEYS.into_iter().chain(GREETINGS.map(|field| (field, field))) {
        if let Some(same) = top.get_mut(other) {
            *same = data[field].clone();
        }
    }
    top.insert("data".to_owned(), Value::Object(data));
    with_spec(Value::Object(top), "chara_card_v3", "3.0")
}

/// A PNG that contains the card of [`write_json`] twice: as version 3 and as version 2. Text chunks with other keywords are kept.
///
/// # Errors
/// Returns an error if `picture` is not a PNG.
pub fn write_png(picture: &[u8], original: Option<&Value>, companion: &Companion) -> Result<Vec<u8>, NotAPicture> {
    if !png::is_png(picture) || png::size(picture).is_none() {
        return Err(NotAPicture::Unknown);
    }
    let third = write_json(original, companion);
    let second = with_spec(third.clone(), "chara_card_v2", "2.0");
    let [third, second] = [third, second].map(|card| STANDARD.encode(card.to_string()));
    let [ccv3, chara] = KEYWORDS;
    // The second version comes first, for programs that read the first text chunk they know.
    Ok(png::with_texts(picture, &[(chara, second.as_bytes()), (ccv3, third.as_bytes())]))
}

fn with_spec(mut card: Value, spec: &str, version: &str) -> Value {
    card["spec"] = json!(spec);
    card["spec_version"] = json!(version);
    card
}

/// Writes the fields as they were parsed. An empty field that the card does not have is not added.
fn insert_fields(data: &mut Map<String, Value>, card: &Card) {
    // Serializing to memory does not fail.
    let Ok(Value::Object(fields)) = serde_json::to_value(card) else { return };
    for (field, value) in fields {
        let is_empty = value == "" || value == json!([]);
        if !is_empty || data.contains_key(&field) || V1_FIELDS.contains(&&*field) {
            data.insert(field, value);
        }
    }
    // Programs that support lorebooks refuse a null book.
    if data.get("character_book").is_some_and(Value::is_null) {
        data.remove("character_book");
    }
}

/// Moves fields into `data` that belong there, unless `data` has them already.
fn move_inside(top: &mut Map<String, Value>, data: &mut Map<String, Value>) {
    for field in ["character_book", "extensions", "assets"] {
        let is_absent = data.get(field).is_none_or(|inside| inside.as_object().is_some_and(Map::is_empty));
        if is_absent && let Some(beside) = top.remove(field).filter(|beside| !beside.is_null()) {
            data.insert(field.to_owned(), beside);
        }
    }
}

/// Whether the card gives the companion's persona with any combination of choices.
fn gives(card: &Card, companion: &Companion) -> bool {
    let given = |name: &str, system_prompt, post_history_instructions| {
        let choices = Choices { name: None, system_prompt, post_history_instructions };
        // Companions of earlier versions have the words in English.
        let mut users = [users(card)[0], User::IN_PERSONA].into_iter();
        users.any(|user| persona(card, called(name), user, &choices, &mut Found::default()).text == companion.persona.trim())
    };
    let choices = [(false, false), (true, false), (false, true), (true, true)];
    // After a rename, and in a copy, the persona still contains the card's name.
    let names = [companion.name.to_string(), card.shown_name()];
    let mut names = names.iter().filter(|name| !name.is_empty());
    names.any(|name| choices.into_iter().any(|(system, post)| given(name, system, post)))
}

/// The greetings with these words for the user.
fn offered_by<'a>(card: &'a Card, name: &str, user: User) -> Vec<Offered<'a>> {
    greetings(card, called(name), user, &mut Found::default()).0
}

/// Writes the greetings if they were edited. A greeting from the card keeps its original text with macros.
fn insert_greetings(data: &mut Map<String, Value>, card: Option<&Card>, companion: &Companion) {
    let is_companions = |offered: &Offered<'_>| companion.greetings.iter().any(|greeting| **greeting == *offered.greeting.text);
    let mut offered = Vec::new();
    if let Some(card) = card {
        // After a rename, and in a copy, the greetings still contain the card's name. Those of earlier versions have the word for the user in English.
        let names = [companion.name.to_string(), card.shown_name()].into_iter().filter(|name| !name.is_empty());
        let users = [users(card)[1], User::IN_GREETING];
        let mut all: Vec<_> = names.flat_map(|name| users.map(|user| offered_by(card, &name, user))).collect();
        let known = all.iter().position(|offered| offered.iter().any(is_companions)).unwrap_or_default();
        offered = all.swap_remove(known);
    }
    if offered.iter().map(|offered| offered.greeting.text.as_str()).eq(companion.greetings.iter().map(|greeting| &**greeting)) {
        return;
    }
    let (mut for_all, mut for_groups) = (Vec::new(), Vec::new());
    for greeting in &companion.greetings {
        let known = offered.iter().position(|offered| *offered.greeting.text == **greeting).map(|at| offered.remove(at));
        match known {
            Some(known) if known.greeting.kind == GreetingKind::GroupOnly => for_groups.push(known.written),
            Some(known) => for_all.push(known.written),
            None => for_all.push(greeting),
        }
    }
    let mut for_all = for_all.into_iter();
    data.insert("first_mes".to_owned(), json!(for_all.next().unwrap_or_default()));
    let [alternate, group_only] = GREETINGS;
    data.insert(alternate.to_owned(), json!(for_all.collect::<Vec<_>>()));
    data.insert(group_only.to_owned(), json!(for_groups));
}

fn insert_ours(data: &mut Map<String, Value>, companion: &Companion) {
    let mut ours = json!({
        "aliases": companion.aliases,
        "interjection": companion.interjection,
    });
    if !companion.chattiness.is_empty() {
        ours["chattiness"] = json!(companion.chattiness);
    }
    for (key, text) in [("tone", &companion.tone), ("about", &companion.about)] {
        if let Some(text) = text {
            ours[key] = json!(text);
        }
    }
    let extensions = data.entry("extensions").or_insert_with(|| json!({}));
    match extensions {
        Value::Object(extensions) => _ = extensions.insert(OURS.to_owned(), ours),
        // A list or a string has no keys, so the value moves to `other`.
        other => *other = json!({ OURS: ours, "other": other.take() }),
    }
}
