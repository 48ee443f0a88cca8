//! Reads and writes lorebooks in the forms of five programs: books of character cards, SillyTavern, NovelAI, Agnai and RisuAI (docs/companions.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::file::{MAX_JSON_BYTES, json as parsed, utf8};
use super::salvage::Salvages;
use super::{NotACard, NotRead, png};
use crate::domain::lore::{Book, Entry, Logic, MAX_DEPTH, MAX_NAME_BYTES};
use crate::domain::named::named;

/// NovelAI searches characters, not messages.
const CHARS_OF_MESSAGE: i64 = 100;

named! {
    /// The form of a lorebook's file.
    #[derive(JsonSchema)]
    pub enum Form {
        /// A book of a character card, version 3 (`lorebook_v3`) or 2.
        Card = "card",
        SillyTavern = "sillytavern",
        NovelAi = "novelai",
        Agnai = "agnai",
        Risu = "risu",
    }
}

named! {
    /// What is not taken over from a lorebook.
    #[derive(JsonSchema)]
    pub enum Lost {
        /// Chance: such entries always count.
        Chance = "chance",
        /// Groups of which one entry counts: all count.
        Group = "group",
        /// Delays and durations.
        Timing = "timing",
        /// Instructions in an entry's text (`@@`).
        Decorator = "decorator",
        /// Entries that are too large, or too many.
        TooLarge = "too_large",
    }
}

/// A lorebook that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Read {
    pub form: Form,
    pub book: Book,
    /// What is not taken over, with the number of entries.
    pub lost: BTreeMap<Lost, usize>,
}

/// Reads a lorebook from its own file, or from a character card.
///
/// # Errors
/// Returns an error if the file is neither.
pub fn read(bytes: &[u8]) -> Result<Read, NotACard> {
    let other = || NotACard::Other { what: NotRead::OtherJson };
    if png::is_png(bytes) {
        return super::read(bytes)?.book.ok_or_else(other);
    }
    if bytes.len() > MAX_JSON_BYTES {
        return Err(NotACard::TextTooLong { most: MAX_JSON_BYTES });
    }
    let text = utf8(bytes, &mut Salvages::default()).into_owned();
    if text.trim().is_empty() {
        return Err(NotACard::Empty);
    }
    let object = Value::Object(parsed(&text, &mut Salvages::default()).map_err(|what| NotACard::NotJson { what })?);
    let is = |key: &str, value: &str| object.get(key).and_then(Value::as_str) == Some(value);
    if is("spec", "lorebook_v3") {
        return object.get("data").and_then(of_card).ok_or_else(other);
    }
    let entries = object.get("entries").or_else(|| object.get("data").filter(|_| is("type", "risu")));
    let Some(entries) = entries else { return super::read(bytes)?.book.ok_or_else(other) };
    let first = listed(entries).into_iter().next();
    let has = |key: &str| first.is_some_and(|entry| entry.get(key).is_some());
    let form = match () {
        () if is("type", "risu") => Form::Risu,
        () if object.get("lorebookVersion").is_some() || has("contextConfig") => Form::NovelAi,
        () if is("kind", "memory") || has("keywords") => Form::Agnai,
        () if entries.is_object() || has("key") => Form::SillyTavern,
        () => Form::Card,
    };
    Ok(book(form, &object, entries))
}

/// Reads the book of a character card. `None` if it is no book.
pub(super) fn of_card(value: &Value) -> Option<Read> {
    Some(book(Form::Card, value, value.get("entries")?))
}

fn book(form: Form, of: &Value, entries: &Value) -> Read {
    let number = |keys: &[&str]| keys.iter().find_map(|key| whole(of, key)).and_then(|number| u32::try_from(number).ok());
    let mut lost = BTreeMap::new();
    let mut read = Book {
        name: text(of, &["name"]).chars().take(MAX_NAME_BYTES / 4).collect::<String>().into(),
        scan_depth: number(&["scan_depth", "scanDepth"]).map(|depth| depth.clamp(1, MAX_DEPTH)).or(usual_depth(form)),
        token_budget: number(&["token_budget", "tokenBudget"]).filter(|budget| *budget > 0),
        recursive_scanning: flag(of, &["recursive_scanning", "recursiveScanning"]).unwrap_or_default(),
        entries: Vec::new(),
    };
    for value in listed(entries).into_iter().filter(|value| value.is_object() && value.get("mode") != Some(&json!("folder"))) {
        let mut entry = entry(form, value);
        note_lost(value, &mut lost);
        if form == Form::NovelAi {
            read.recursive_scanning |= flag(value, &["nonStoryActivatable"]).unwrap_or_default();
        } else if entry.content.trim_start().starts_with("@@") {
            undecorate(&mut entry);
            *lost.entry(Lost::Decorator).or_default() += 1;
        }
        read.entries.push(entry);
    }
    let too_large = read.drop_too_large();
    if too_large > 0 {
        lost.insert(Lost::TooLarge, too_large);
    }
    Read { form, book: read, lost }
}

/// Reads an entry. The programs have the same fields by other names, so that one reading serves all but what is special to a form.
fn entry(form: Form, value: &Value) -> Entry {
    let empty = Value::Null;
    let [extensions, config] = ["extensions", "contextConfig"].map(|key| value.get(key).unwrap_or(&empty));
    let either = |key: &str, other: &str| value.get(key).or_else(|| extensions.get(other)).unwrap_or(&empty);
    let flag = |keys: &[&str]| flag(value, keys).unwrap_or_default();
    let order = |keys: &[&str]| keys.iter().find_map(|key| whole(value, key));
    let around = |key| config.get(key).and_then(Value::as_str).unwrap_or_default();
    let use_regex = flag(&["use_regex", "useRegex"]);
    let keys = |names: &[&str]| match names.iter().find_map(|name| value.get(name)?.as_str()) {
        Some(pattern) if form == Form::Risu && use_regex => vec![pattern.into()],
        // RisuAI does not count keys of one character.
        _ => texts(value, names).into_iter().filter(|key| form != Form::Risu || key.chars().count() > 1).collect(),
    };
    let chance = whole(either("probability", "probability"), "");
    let counts_chance = either("useProbability", "useProbability").as_bool() != Some(false);
    let content = text(value, &["content", "entry", "text"]);
    Entry {
        name: text(value, &["name", "comment", "displayName"]),
        keys: keys(&["keys", "key", "keywords"]),
        secondary_keys: keys(&["secondary_keys", "keysecondary", "secondkey"]),
        // Version 3 of cards ignores them beside regular expressions.
        selective: flag(&["selective"]) && (form == Form::Risu || !use_regex),
        logic: match whole(either("selectiveLogic", "selectiveLogic"), "") {
            Some(1) => Logic::NotAll,
            Some(2) => Logic::NotAny,
            Some(3) => Logic::All,
            _ => Logic::Any,
        },
        constant: flag(&["constant", "forceActivation", "alwaysActive"])
            || form == Form::Risu && value.get("mode") == Some(&json!("constant")),
        use_regex,
        case_sensitive: [value.get("case_sensitive"), Some(either("caseSensitive", "case_sensitive"))]
            .into_iter()
            .flatten()
            .find_map(Value::as_bool)
            .unwrap_or_default(),
        whole_words: match form {
            Form::NovelAi | Form::Agnai => true,
            _ => either("matchWholeWords", "match_whole_words").as_bool().unwrap_or_default(),
        },
        insertion_order: order(&["insertion_order", "order", "insertorder", "weight"]).unwrap_or(if form == Form::Agnai {
            0
        } else {
            100
        }),
        priority: order(&["priority"]).or_else(|| whole(config, "budgetPriority")),
        scan_depth: whole(either("scanDepth", "scan_depth"), "")
            .or_else(|| order(&["searchRange"]).map(|chars| chars / CHARS_OF_MESSAGE))
            .and_then(depth),
        enabled: self::flag(value, &["enabled"]).unwrap_or(true) && !flag(&["disable"]) && !(counts_chance && chance == Some(0)),
        content: [around("prefix"), &content, around("suffix")].concat().trim().into(),
    }
}

fn note_lost(value: &Value, lost: &mut BTreeMap<Lost, usize>) {
    let extensions = value.get("extensions").unwrap_or(&Value::Null);
    let number = |key: &str| whole(value, key).or_else(|| whole(extensions, key));
    let counts_chance = flag(value, &["useProbability"]).or_else(|| flag(extensions, &["useProbability"])).unwrap_or(true);
    let chance = number("probability").filter(|_| counts_chance).or_else(|| number("activationPercent"));
    let has = |key: &str| number(key).is_some_and(|number| number > 0);
    let is_grouped = |of: &Value| of.get("group").and_then(Value::as_str).is_some_and(|group| !group.is_empty());
    for (kind, is_lost) in [
        (Lost::Chance, chance.is_some_and(|chance| chance > 0 && chance < 100)),
        (Lost::Group, is_grouped(value) || is_grouped(extensions)),
        (Lost::Timing, has("sticky") || has("cooldown") || has("delay")),
    ] {
        if is_lost {
            *lost.entry(kind).or_default() += 1;
        }
    }
}

/// Removes the decorators of version 3 at the beginning of a text, and follows those that say whether the entry counts.
fn undecorate(entry: &mut Entry) {
    let content = entry.content.clone();
    let mut rest = content.trim_start();
    while rest.starts_with("@@") {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let (name, value) =
            line.trim_start_matches('@').trim().split_once(' ').unwrap_or((line.trim_start_matches('@').trim(), ""));
        match name {
            "activate" => entry.constant = true,
            "dont_activate" => entry.enabled = false,
            "scan_depth" => entry.scan_depth = value.trim().parse().ok().and_then(depth),
            _ => {}
        }
        rest = after.trim_start();
    }
    entry.content = rest.into();
}

/// Writes a lorebook. What the form does not have is left out.
pub fn write(book: &Book, form: Form) -> Value {
    let entries = || book.entries.iter().enumerate();
    match form {
        Form::Card => json!({ "spec": "lorebook_v3", "data": character_book(book) }),
        Form::SillyTavern => {
            let entries = entries().map(|(uid, entry)| {
                let keys = |keys: &[Arc<str>]| keys.iter().map(|key| slashed(entry, key)).collect::<Vec<_>>();
                let value = json!({
                    "uid": uid, "key": keys(&entry.keys), "keysecondary": keys(&entry.secondary_keys), "comment": entry.name,
                    "content": entry.content, "constant": entry.constant, "vectorized": false, "selective": entry.selective,
                    "selectiveLogic": logic_number(entry.logic), "addMemo": true, "order": entry.insertion_order, "position": 0,
                    "disable": !entry.enabled, "excludeRecursion": false, "preventRecursion": false, "delayUntilRecursion": false,
                    "probability": 100, "useProbability": true, "depth": 4, "group": "", "scanDepth": entry.scan_depth,
                    "caseSensitive": entry.case_sensitive, "matchWholeWords": entry.whole_words, "priority": entry.priority,
                    "displayIndex": uid,
                });
                (uid.to_string(), value)
            });
            json!({ "name": book.name, "entries": Map::from_iter(entries) })
        }
        Form::NovelAi => {
            let entries = entries().map(|(_, entry)| {
                json!({
                    "text": entry.content, "displayName": entry.name, "enabled": entry.enabled, "forceActivation": entry.constant,
                    "keys": entry.keys.iter().map(|key| slashed(entry, key)).collect::<Vec<_>>(), "searchRange": entry.scan_depth.or(book.scan_depth).map_or(1_000, |depth| i64::from(depth) * CHARS_OF_MESSAGE),
                    "keyRelative": false, "nonStoryActivatable": book.recursive_scanning,
                    "contextConfig": {
                        "prefix": "", "suffix": "\n", "tokenBudget": 1, "reservedTokens": 0, "trimDirection": "trimBottom",
                        "budgetPriority": entry.priority.unwrap_or(entry.insertion_order), "insertionType": "newline",
                        "maximumTrimType": "sentence", "insertionPosition": -1,
                    },
                })
            });
            json!({ "lorebookVersion": 5, "entries": entries.collect::<Vec<_>>(), "settings": { "orderByKeyLocations": false }, "categories": [] })
        }
        Form::Agnai => {
            let entries = entries().map(|(_, entry)| {
                json!({
                    "name": entry.name, "entry": entry.content, "keywords": entry.keys, "weight": entry.insertion_order,
                    "priority": entry.priority.unwrap_or(entry.insertion_order), "enabled": entry.enabled,
                })
            });
            json!({
                "kind": "memory", "name": book.name, "description": "", "entries": entries.collect::<Vec<_>>(),
                "scanDepth": book.scan_depth, "tokenBudget": book.token_budget, "recursiveScanning": book.recursive_scanning,
            })
        }
        Form::Risu => {
            let entries = entries().map(|(_, entry)| {
                json!({
                    "key": entry.keys.join(", "), "secondkey": entry.secondary_keys.join(", "), "comment": entry.name,
                    "content": entry.content, "mode": "normal", "insertorder": entry.insertion_order, "selective": entry.selective,
                    "alwaysActive": entry.constant, "useRegex": entry.use_regex, "enabled": entry.enabled,
                })
            });
            json!({ "type": "risu", "ver": 1, "data": entries.collect::<Vec<_>>() })
        }
    }
}

/// A card's JSON with another book.
pub fn in_card(original: &Value, book: &Book) -> Value {
    let mut card = original.clone();
    let has_data = card.get("data").is_some_and(Value::is_object);
    let place = if has_data { &mut card["data"] } else { &mut card };
    place["character_book"] = character_book(book);
    card
}

/// The book of a character card, with the fields of versions 2 and 3, and with SillyTavern's extensions.
fn character_book(book: &Book) -> Value {
    let entries = book.entries.iter().enumerate().map(|(id, entry)| {
        let mut written = json!({
            "id": id, "name": entry.name, "comment": entry.name, "keys": entry.keys, "secondary_keys": entry.secondary_keys,
            "content": entry.content, "enabled": entry.enabled, "insertion_order": entry.insertion_order, "selective": entry.selective,
            "constant": entry.constant, "use_regex": entry.use_regex, "case_sensitive": entry.case_sensitive,
            "extensions": {
                "match_whole_words": entry.whole_words, "case_sensitive": entry.case_sensitive,
                "selectiveLogic": logic_number(entry.logic), "scan_depth": entry.scan_depth,
            },
        });
        if let Some(priority) = entry.priority {
            written["priority"] = priority.into();
        }
        written
    });
    let mut written = json!({
        "name": book.name, "recursive_scanning": book.recursive_scanning, "extensions": {}, "entries": entries.collect::<Vec<_>>(),
    });
    for (key, value) in [("scan_depth", book.scan_depth), ("token_budget", book.token_budget)] {
        if let Some(value) = value {
            written[key] = value.into();
        }
    }
    written
}

const fn logic_number(logic: Logic) -> u8 {
    match logic {
        Logic::Any => 0,
        Logic::NotAll => 1,
        Logic::NotAny => 2,
        Logic::All => 3,
    }
}

/// A key as programs write it that know a regular expression by its slashes.
fn slashed(entry: &Entry, key: &str) -> String {
    match entry.use_regex && !key.starts_with('/') {
        true => format!("/{key}/{}", if entry.case_sensitive { "" } else { "i" }),
        false => key.to_owned(),
    }
}

/// The depth that a program has if its file says none.
const fn usual_depth(form: Form) -> Option<u32> {
    match form {
        Form::SillyTavern => Some(2),
        Form::Risu => Some(5),
        Form::Card | Form::NovelAi | Form::Agnai => None,
    }
}

fn depth(depth: i64) -> Option<u32> {
    u32::try_from(depth).ok().filter(|depth| *depth > 0).map(|depth| depth.min(MAX_DEPTH))
}

fn listed(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        // A map by numbers, whose keys are strings.
        Value::Object(items) => {
            let mut items: Vec<_> = items.iter().collect();
            items.sort_by_key(|(key, _)| key.parse::<u64>().unwrap_or(u64::MAX));
            items.into_iter().map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    }
}

/// The first of these texts that is not empty.
fn text(value: &Value, keys: &[&str]) -> Arc<str> {
    let texts = keys.iter().filter_map(|key| value.get(key)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default().into()
}

/// A list of texts, or texts between commas.
fn texts(value: &Value, keys: &[&str]) -> Vec<Arc<str>> {
    let trimmed = |text: &str| (!text.trim().is_empty()).then(|| text.trim().into());
    match keys.iter().find_map(|key| value.get(key)) {
        Some(Value::Array(items)) => items.iter().filter_map(|item| trimmed(item.as_str()?)).collect(),
        Some(Value::String(text)) => text.split(',').filter_map(trimmed).collect(),
        _ => Vec::new(),
    }
}

fn flag(value: &Value, keys: &[&str]) -> Option<bool> {
    keys.iter().find_map(|key| value.get(key)?.as_bool())
}

/// A number, or a text with one, of a field. An empty name stands for the value itself.
fn whole(value: &Value, key: &str) -> Option<i64> {
    let value = if key.is_empty() { value } else { value.get(key)? };
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    number.is_finite().then_some(number as i64)
}
