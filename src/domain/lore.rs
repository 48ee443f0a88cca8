//! Lorebooks: texts about a world that a statement's prompt gets when words of the talk call for them (docs/design/memory.md K-20).

pub mod matching;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;
use crate::policy::Problem;

/// The maximum numbers of entries in a book, of keys in an entry, and of regular expressions in a book.
pub const MAX_ENTRIES: usize = 2_000;
pub const MAX_KEYS: usize = 100;
pub const MAX_PATTERNS: usize = 100;
/// The maximum number of keys in a book. Each is searched for in the newest messages.
pub const MAX_BOOK_KEYS: usize = 5_000;
/// The longest key, name and text of an entry, and all of a book's texts and keys together, in bytes.
pub const MAX_KEY_BYTES: usize = 500;
pub const MAX_NAME_BYTES: usize = 200;
pub const MAX_TEXT_BYTES: usize = 16 << 10;
pub const MAX_BOOK_BYTES: usize = 1 << 20;
/// The most messages that a book searches.
pub const MAX_DEPTH: u32 = 100;

/// A lorebook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Book {
    /// The name for people: 1 to 200 bytes.
    pub name: Arc<str>,
    /// How many of the newest messages are searched for keys: 1 to 100. Those that a statement answers always are. Absent: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_depth: Option<u32>,
    /// The most tokens that entries of this book take in a prompt. `prompt.lore_tokens` limits all books together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u32>,
    /// Whether the texts of entries that were found are searched for keys, too.
    pub recursive_scanning: bool,
    /// At most 2,000 entries.
    pub entries: Vec<Entry>,
}

/// An entry of a lorebook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Entry {
    /// The name for people. It may be empty.
    pub name: Arc<str>,
    /// One of them must occur. A key written as `/pattern/flags` is a regular expression.
    pub keys: Vec<Arc<str>>,
    /// With `selective`, these must occur, too, as `logic` says.
    pub secondary_keys: Vec<Arc<str>>,
    pub selective: bool,
    pub logic: Logic,
    /// Whether the entry needs no key.
    pub constant: bool,
    /// Whether all keys are regular expressions.
    pub use_regex: bool,
    pub case_sensitive: bool,
    /// Whether a key that begins or ends with a letter or digit must not continue a word there.
    pub whole_words: bool,
    /// The order in the prompt, the lowest first.
    pub insertion_order: i64,
    /// Entries with the lowest priority are left out first. Absent: `insertion_order` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Instead of the book's `scan_depth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_depth: Option<u32>,
    pub enabled: bool,
    /// The text for the prompt: at most 16 KiB.
    pub content: Arc<str>,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            name: "".into(),
            keys: Vec::new(),
            secondary_keys: Vec::new(),
            selective: false,
            logic: Logic::Any,
            constant: false,
            use_regex: false,
            case_sensitive: false,
            whole_words: true,
            insertion_order: 100,
            priority: None,
            scan_depth: None,
            enabled: true,
            content: "".into(),
        }
    }
}

named! {
    /// Which secondary keys of a selective entry must occur.
    #[derive(Default, JsonSchema)]
    pub enum Logic {
        #[default]
        Any = "any",
        All = "all",
        NotAny = "not_any",
        NotAll = "not_all",
    }
}

named! {
    /// Why an entry, or one of its keys, is not used.
    #[derive(JsonSchema)]
    pub enum Why {
        /// It has no text.
        NoText = "no_text",
        /// It is not constant, and has no key.
        NoKeys = "no_keys",
        /// The regular expression looks ahead or behind.
        LookAround = "look_around",
        /// The regular expression refers back to a group.
        BackReference = "back_reference",
        /// The regular expression is too large, or the book has more than 100.
        TooLarge = "too_large",
        /// It is no regular expression.
        NotRegex = "not_regex",
    }
}

/// An entry, or a key, that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unusable {
    /// The entry's name, or its first key.
    pub entry: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    pub why: Why,
}

impl Entry {
    /// The name, else the first key, else the number in the book.
    pub fn shown_name(&self, index: usize) -> Arc<str> {
        let named = [Some(&self.name), self.keys.first()].into_iter().flatten().find(|name| !name.trim().is_empty());
        named.cloned().unwrap_or_else(|| format!("{}", index + 1).into())
    }

    fn check(&self, index: usize) -> Result<(), Problem> {
        let key = |field: &str| format!("entries[{index}].{field}");
        let longest = self.keys.iter().chain(&self.secondary_keys).map(|key| key.len()).max();
        within(&key("name"), self.name.len(), 0..=MAX_NAME_BYTES, "bytes")?;
        within(&key("content"), self.content.len(), 0..=MAX_TEXT_BYTES, "bytes")?;
        within(&key("keys"), self.key_count(), 0..=MAX_KEYS, "keys")?;
        within(&key("keys"), longest.unwrap_or_default(), 0..=MAX_KEY_BYTES, "bytes")?;
        check_depth(&key("scan_depth"), self.scan_depth)
    }

    const fn key_count(&self) -> usize {
        self.keys.len() + self.secondary_keys.len()
    }

    fn bytes(&self) -> usize {
        let keys = self.keys.iter().chain(&self.secondary_keys);
        self.name.len() + self.content.len() + keys.map(|key| key.len()).sum::<usize>()
    }
}

impl Book {
    /// Checks the limits, and returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        within("name", self.name.trim().len(), 1..=MAX_NAME_BYTES, "bytes")?;
        check_depth("scan_depth", self.scan_depth)?;
        self.entries.iter().enumerate().try_for_each(|(index, entry)| entry.check(index))?;
        within("entries", self.entries.len(), 0..=MAX_ENTRIES, "entries")?;
        within("entries", self.entries.iter().map(Entry::key_count).sum(), 0..=MAX_BOOK_KEYS, "keys")?;
        within("entries", self.entries.iter().map(Entry::bytes).sum(), 0..=MAX_BOOK_BYTES, "bytes")
    }

    /// Leaves out the entries that exceed a limit, and returns how many.
    pub fn drop_too_large(&mut self) -> usize {
        let (before, mut bytes, mut kept, mut keys) = (self.entries.len(), 0, 0, 0);
        self.entries.retain(|entry| {
            let fits = kept < MAX_ENTRIES
                && bytes + entry.bytes() <= MAX_BOOK_BYTES
                && keys + entry.key_count() <= MAX_BOOK_KEYS
                && entry.check(0).is_ok();
            if fits {
                (bytes, kept, keys) = (bytes + entry.bytes(), kept + 1, keys + entry.key_count());
            }
            fits
        });
        before - self.entries.len()
    }
}

fn check_depth(key: &str, depth: Option<u32>) -> Result<(), Problem> {
    within(key, depth.unwrap_or(1) as usize, 1..=MAX_DEPTH as usize, "messages")
}

fn within(key: &str, is: usize, allowed: std::ops::RangeInclusive<usize>, unit: &str) -> Result<(), Problem> {
    if allowed.contains(&is) {
        return Ok(());
    }
    let (least, most) = (allowed.start(), allowed.end());
    let values = serde_json::json!({ "is": is, "least": least, "most": most, "unit": unit });
    Err(Problem::new(key, format!("has {is} {unit}, must have {least} to {most}")).coded("refusals.lore_size", values))
}

/// A lorebook with its owners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shelved {
    #[serde(flatten)]
    pub book: Book,
    /// The companions that know it, in every room.
    #[serde(default)]
    pub companions: BTreeSet<Arc<str>>,
    /// The rooms in which all companions know it.
    #[serde(default)]
    pub rooms: BTreeSet<Arc<str>>,
}
