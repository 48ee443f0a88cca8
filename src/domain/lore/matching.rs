//! Finds the entries of lorebooks whose keys occur in the newest messages (docs/design/memory.md K-21).

use std::cmp::Reverse;
use std::sync::Arc;

use regex::{Error, Regex, RegexBuilder};
use unicode_normalization::UnicodeNormalization as _;

use super::{Book, Entry, Logic, MAX_PATTERNS, Unusable, Why};
use crate::prompt::room::tokens;
use crate::recall::words::is_of_spaceless_script;
use crate::text::first_bytes;

/// The messages that are searched if neither book nor entry says how many.
const DEPTH: u32 = 4;
/// The most bytes of messages that are searched, and of texts of entries.
const MAX_SEARCHED: usize = 32 << 10;
/// How often the texts of entries are searched for further entries.
const MAX_ROUNDS: usize = 5;
/// The maximum size of a compiled regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// A book whose keys are ready to be searched for.
#[derive(Debug)]
pub struct Compiled {
    pub book: Book,
    keys: Vec<[Vec<Key>; 2]>,
    /// What is not used of the book.
    pub unusable: Vec<Unusable>,
}

#[derive(Debug)]
enum Key {
    Text { text: String, is_sensitive: bool, is_whole: bool },
    Pattern(Regex),
    Unusable,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The names of its book and of the entry, for the record.
    pub name: Arc<str>,
    pub text: String,
    /// Its place in the prompt.
    pub place: (i64, usize, usize),
}

/// The messages, joined, with the places at which the newest ones begin.
struct Searched {
    plain: String,
    small: String,
    /// For each number of newest messages, where they begin in both texts.
    begins: Vec<[usize; 2]>,
}

impl Compiled {
    pub fn new(book: Book) -> Self {
        let (mut unusable, mut patterns) = (Vec::new(), 0);
        let mut keys = Vec::new();
        for (index, entry) in book.entries.iter().enumerate() {
            let mut report = |key, why| unusable.push(Unusable { entry: entry.shown_name(index), key, why });
            let mut compiled = |keys: &[Arc<str>]| {
                let written = keys.iter().filter(|key| !key.trim().is_empty());
                let compile = |key: &Arc<str>| {
                    Key::new(key, entry, &mut patterns).unwrap_or_else(|why| {
                        report(Some(key.clone()), why);
                        Key::Unusable
                    })
                };
                written.map(compile).collect::<Vec<_>>()
            };
            keys.push([compiled(&entry.keys), compiled(&entry.secondary_keys)]);
            if entry.content.trim().is_empty() {
                report(None, Why::NoText);
            } else if !entry.constant && keys[index][0].is_empty() {
                report(None, Why::NoKeys);
            }
        }
        Self { book, keys, unusable }
    }

    /// The indices of the entries that are found, in the order of the book.
    fn found(&self, searched: &mut Searched, answered: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let is_new = |index: &usize| !found.contains(index) && self.is_found(*index, searched, answered);
            let new: Vec<usize> = (0..self.book.entries.len()).filter(is_new).collect();
            if self.book.recursive_scanning {
                new.iter().for_each(|index| searched.add(&self.book.entries[*index].content));
            }
            found.extend(&new);
            if new.is_empty() || !self.book.recursive_scanning {
                break;
            }
        }
        found.sort_unstable();
        found
    }

    fn is_found(&self, index: usize, searched: &Searched, answered: usize) -> bool {
        let (entry, [first, second]) = (&self.book.entries[index], &self.keys[index]);
        if !entry.enabled || entry.content.trim().is_empty() {
            return false;
        }
        if entry.constant {
            return true;
        }
        let depth = entry.scan_depth.or(self.book.scan_depth).unwrap_or(DEPTH) as usize;
        let texts = searched.newest(depth.max(answered));
        let occurs = |key: &Key| key.occurs(texts);
        if !first.iter().any(occurs) {
            return false;
        }
        !entry.selective
            || second.is_empty()
            || match entry.logic {
                Logic::Any => second.iter().any(occurs),
                Logic::All => second.iter().all(occurs),
                Logic::NotAny => !second.iter().any(occurs),
                Logic::NotAll => !second.iter().all(occurs),
            }
    }
}

/// The entries of these books that are found in the messages, which have the newest one last, the most important entry first. `answered` is the number of
/// newest messages that are always searched. `write` makes the text for a prompt.
pub fn fired(books: &[Arc<Compiled>], messages: &[&str], answered: usize, write: impl Fn(&str) -> String) -> Vec<Fired> {
    let mut all = Vec::new();
    for (number, compiled) in books.iter().enumerate() {
        let book = &compiled.book;
        let mut found = compiled.found(&mut Searched::new(messages), answered);
        let rank = |entry: &Entry| (entry.priority.unwrap_or(entry.insertion_order), entry.constant, entry.insertion_order);
        found.sort_by_key(|index| Reverse(rank(&book.entries[*index])));
        let budget = book.token_budget.map_or(usize::MAX, |budget| budget as usize);
        let mut left = budget;
        for index in found {
            let entry = &book.entries[index];
            let text = write(&entry.content);
            if tokens(&text) > budget {
                continue;
            }
            let Some(rest) = left.checked_sub(tokens(&text)) else { break };
            left = rest;
            let name = format!("{}: {}", book.name.trim(), entry.shown_name(index)).into();
            all.push((rank(entry), Fired { name, text, place: (entry.insertion_order, number, index) }));
        }
    }
    all.sort_by_key(|(rank, _)| Reverse(*rank));
    all.into_iter().map(|(_, fired)| fired).filter(|fired| !fired.text.trim().is_empty()).collect()
}

impl Key {
    fn new(key: &str, entry: &Entry, patterns: &mut usize) -> Result<Self, Why> {
        let written = key.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')).filter(|(pattern, _)| !pattern.is_empty());
        // Others, such as paths, are texts.
        let written = written.filter(|(_, flags)| flags.chars().all(|flag| "dgimsuvy".contains(flag)));
        let (pattern, flags) = match written {
            Some(written) => written,
            None if entry.use_regex => (key, if entry.case_sensitive { "" } else { "i" }),
            None => {
                let text: String = key.trim().nfc().collect();
                let text = if entry.case_sensitive { text } else { text.to_lowercase() };
                return Ok(Self::Text { text, is_sensitive: entry.case_sensitive, is_whole: entry.whole_words });
            }
        };
        *patterns += 1;
        if *patterns > MAX_PATTERNS {
            return Err(Why::TooLarge);
        }
        let mut builder = RegexBuilder::new(pattern);
        builder.case_insensitive(flags.contains('i')).multi_line(flags.contains('m')).dot_matches_new_line(flags.contains('s'));
        builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES).nest_limit(50);
        builder.build().map(Self::Pattern).map_err(|error| match error {
            Error::CompiledTooBig(_) => Why::TooLarge,
            error if error.to_string().contains("look-around") => Why::LookAround,
            error if error.to_string().contains("backreferences") => Why::BackReference,
            _ => Why::NotRegex,
        })
    }

    fn occurs(&self, [plain, small]: [&str; 2]) -> bool {
        match self {
            Self::Unusable => false,
            Self::Pattern(pattern) => pattern.is_match(plain),
            Self::Text { text, is_sensitive, is_whole } => {
                let searched = if *is_sensitive { plain } else { small };
                searched.match_indices(&**text).any(|(at, found)| !is_whole || is_whole_word(searched, at, found))
            }
        }
    }
}

/// Whether a match begins and ends where words do. Scripts without spaces have no such places.
fn is_whole_word(text: &str, at: usize, found: &str) -> bool {
    let continues = |inside: Option<char>, outside: Option<char>| {
        let is_letter = |char: Option<char>| {
            char.is_some_and(|char| (char.is_alphanumeric() || char == '_') && !is_of_spaceless_script(char))
        };
        is_letter(inside) && is_letter(outside)
    };
    let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
    !continues(found.chars().next(), before) && !continues(found.chars().next_back(), after)
}

impl Searched {
    fn new(messages: &[&str]) -> Self {
        let mut left = MAX_SEARCHED;
        let mut newest: Vec<String> = Vec::new();
        for message in messages.iter().rev() {
            let message = first_bytes(message, left);
            left -= message.len();
            newest.push(message.nfc().collect());
        }
        let (mut plain, mut small, mut begins) = (String::new(), String::new(), Vec::new());
        for message in newest.iter().rev() {
            begins.push([plain.len(), small.len()]);
            plain.push_str(message);
            small.push_str(&message.to_lowercase());
            plain.push('\n');
            small.push('\n');
        }
        begins.reverse();
        Self { plain, small, begins }
    }

    /// The newest messages, as they are and in lower case, with the texts of entries.
    fn newest(&self, count: usize) -> [&str; 2] {
        let last = [self.plain.len(), self.small.len()];
        let [plain, small] =
            if count == 0 { last } else { self.begins.get(count - 1).or(self.begins.last()).copied().unwrap_or_default() };
        [&self.plain[plain..], &self.small[small..]]
    }

    fn add(&mut self, text: &str) {
        let room = (2 * MAX_SEARCHED).saturating_sub(self.plain.len());
        let text: String = first_bytes(text, room).nfc().collect();
        self.small.push_str(&text.to_lowercase());
        self.plain.push_str(&text);
        self.plain.push('\n');
        self.small.push('\n');
    }
}
