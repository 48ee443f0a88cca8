//! Finds which companions a text names: all names of all companions of a guild in one pass.

mod zones;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::{AhoCorasick, Anchored, MatchKind, StartKind};
use regex_syntax::{is_word_byte, try_is_word_character};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_script::{Script, UnicodeScript};

use super::id::CompanionId;
pub(in crate::domain) use zones::Zones;

/// Bytes of first words up to which the faster automaton is built too; it takes about 250 bytes of memory for each of them.
const FAST_UP_TO: usize = 32 * 1024;

/// The names of the companions of one guild, ready to be looked for.
///
/// Names compare case-insensitively and in Unicode's composed form. They are found at word boundaries, outside code, links and
/// quoted lines (docs/design/gate.md G-6); several words may be separated by any white space. The edges of a name in a text are
///
/// * the ends of the text,
/// * beside a character that is no word character (regex `\w`), which for a name of word characters is Unicode's `\b`,
/// * anywhere that the name or its neighbour is of a script written without spaces.
#[derive(Clone, Debug)]
pub struct Names {
    /// Looks for the first words anywhere; its patterns are the indices of `entries`.
    heads: AhoCorasick,
    /// Looks for them at one place, for texts in ASCII.
    heads_here: Option<DFA>,
    /// The names that begin with each first word.
    entries: Vec<Vec<Entry>>,
    /// Sorted; an entry's `companion` is an index into it.
    companions: Vec<CompanionId>,
    /// Whole names, folded, and whose they are.
    whole: BTreeMap<String, usize>,
}

/// Two companions of one guild have a name in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the companions {first} and {second} share the name {name:?}: take it from one of them, or keep them in different guilds"
)]
pub struct SharedName {
    /// The name, as the second gives it.
    pub name: String,
    /// Who had it first.
    pub first: CompanionId,
    /// Who has it too.
    pub second: CompanionId,
}

/// One name.
#[derive(Clone, Debug)]
struct Entry {
    companion: usize,
    /// The words after the first one.
    tail: Vec<Box<str>>,
    /// Its first character is of a script written without spaces.
    open_before: bool,
    /// Its last character is.
    open_after: bool,
}

impl Names {
    /// Takes companions, each with its name and aliases. An id is always a name too; a name without a visible character is none.
    pub fn new<'a, N>(companions: impl IntoIterator<Item = (CompanionId, N)>) -> Result<Self, SharedName>
    where
        N: IntoIterator<Item = &'a str>,
    {
        let mut owners: BTreeMap<String, CompanionId> = BTreeMap::new();
        let mut ids = Vec::new();
        for (id, names) in companions {
            take(&mut owners, id.as_str(), &id)?;
            for name in names {
                take(&mut owners, name, &id)?;
            }
            ids.push(id);
        }
        ids.sort();
        ids.dedup();
        Ok(Self::build(ids, owners))
    }

    /// The companions that a text names, sorted, each once.
    pub fn find(&self, text: &str) -> Vec<CompanionId> {
        let folded;
        let text = if text.is_ascii() {
            text
        } else {
            folded = fold(text);
            &folded
        };
        let mut found: Vec<usize> = Vec::new();
        let mut zones = None;
        let mut consider = |pattern: usize, head: Range<usize>| {
            for entry in &self.entries[pattern] {
                if found.contains(&entry.companion) {
                    continue;
                }
                let Some(range) = entry.standing_alone(text, head.clone()) else { continue };
                if !zones.get_or_insert_with(|| Zones::of(text)).touch(range) {
                    found.push(entry.companion);
                }
            }
        };
        match &self.heads_here {
            Some(heads) if text.is_ascii() => at_edges(heads, text.as_bytes(), consider),
            _ => self.heads.find_overlapping_iter(text).for_each(|head| consider(head.pattern().as_usize(), head.range())),
        }
        found.sort_unstable();
        found.into_iter().map(|index| self.companions[index].clone()).collect()
    }

    /// Whose name this is, as a whole.
    pub fn owner(&self, name: &str) -> Option<&CompanionId> {
        self.whole.get(&normal(name)).map(|index| &self.companions[*index])
    }

    fn build(companions: Vec<CompanionId>, owners: BTreeMap<String, CompanionId>) -> Self {
        let mut heads: Vec<String> = Vec::new();
        let mut entries: Vec<Vec<Entry>> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut whole = BTreeMap::new();
        for (name, id) in owners {
            let Ok(companion) = companions.binary_search(&id) else { continue };
            let mut words = name.split(' ').map(Box::<str>::from);
            let head = words.next().unwrap_or_default().into_string();
            let entry = Entry {
                companion,
                tail: words.collect(),
                open_before: name.chars().next().is_some_and(is_unspaced),
                open_after: name.chars().next_back().is_some_and(is_unspaced),
            };
            let place = *places.entry(head.clone()).or_insert_with(|| {
                heads.push(head);
                entries.push(Vec::new());
                entries.len() - 1
            });
            entries[place].push(entry);
            whole.insert(name, companion);
        }
        let size: usize = heads.iter().map(String::len).sum();
        let heads_here = (size <= FAST_UP_TO)
            .then(|| {
                let mut builder = DFA::builder();
                builder.ascii_case_insensitive(true).start_kind(StartKind::Anchored).prefilter(false).build(&heads).ok()
            })
            .flatten();
        let heads = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&heads)
            .expect("an automaton holds two thousand million states, more than any names that fit into memory");
        Self { heads, heads_here, entries, companions, whole }
    }
}

impl Entry {
    /// Where the whole name stands, if it goes on after its first word and has its edges.
    fn standing_alone(&self, text: &str, head: Range<usize>) -> Option<Range<usize>> {
        let before = text[..head.start].chars().next_back();
        if !is_edge(self.open_before, before) {
            return None;
        }
        let mut end = head.end;
        for word in &self.tail {
            let rest = &text[end..];
            let next = rest.trim_start();
            let begins = next.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
            if next.len() == rest.len() || !begins {
                return None;
            }
            end = text.len() - next.len() + word.len();
        }
        let after = text[end..].chars().next();
        is_edge(self.open_after, after).then_some(head.start..end)
    }
}

/// Finds the first words that begin after anything but a word character: in ASCII no name begins elsewhere.
fn at_edges(heads: &DFA, text: &[u8], mut consider: impl FnMut(usize, Range<usize>)) {
    // Only an automaton without anchored starts refuses one.
    let Ok(start) = heads.start_state(Anchored::Yes) else { return };
    let mut at = 0;
    while at < text.len() {
        let mut state = start;
        for (distance, byte) in text[at..].iter().enumerate() {
            state = heads.next_state(Anchored::Yes, state, *byte);
            if !heads.is_special(state) {
                continue;
            }
            if heads.is_dead(state) {
                break;
            }
            if heads.is_match(state) {
                let length = distance + 1;
                // A state knows the names that end in it too, which began later.
                (0..heads.match_len(state))
                    .map(|index| heads.match_pattern(state, index))
                    .filter(|head| heads.pattern_len(*head) == length)
                    .for_each(|head| consider(head.as_usize(), at..at + length));
            }
        }
        at += text[at..].iter().take_while(|byte| is_word_byte(**byte)).count() + 1;
    }
}

/// Notes whose name this is.
fn take(owners: &mut BTreeMap<String, CompanionId>, name: &str, id: &CompanionId) -> Result<(), SharedName> {
    let normal = normal(name);
    if normal.is_empty() {
        return Ok(());
    }
    match owners.get(&normal) {
        Some(first) if first != id => Err(SharedName { name: name.to_owned(), first: first.clone(), second: id.clone() }),
        _ => {
            owners.insert(normal, id.clone());
            Ok(())
        }
    }
}

/// A name as names are compared: folded, its words separated by one space.
fn normal(name: &str) -> String {
    fold(name).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as texts are compared: without case, composed (NFC).
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut is_composed = true;
    let mut push = |c: char| {
        is_composed &= stays_composed(c);
        if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else if is_caseless(c) {
            folded.push(c);
        } else {
            // By way of the upper case, which `ß` and `ss`, `ς` and `σ` have in common.
            folded.extend(c.to_uppercase().flat_map(char::to_lowercase));
        }
    };
    if text.chars().all(stays_composed) || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text.chars().for_each(&mut push);
    } else {
        text.nfc().for_each(&mut push);
    }
    // Taking the case away may take a composed character apart.
    if is_composed || is_nfc_quick(folded.chars()) == IsNormalized::Yes { folded } else { folded.nfc().collect() }
}

/// Whether a character is, by its range alone, known to be composed already, and to stay so without its case. Saves most look-ups.
fn stays_composed(c: char) -> bool {
    c < '\u{180}' || is_caseless(c)
}

/// Whether a character is of the large ranges without case and without marks: kana, Han, Hangul.
fn is_caseless(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn is_edge(name_is_open: bool, neighbour: Option<char>) -> bool {
    neighbour.is_none_or(|c| name_is_open || !is_word(c) || is_unspaced(c))
}

/// Whether it is a word character (regex `\w`).
pub(in crate::domain) fn is_word(c: char) -> bool {
    // Without tables, which Cargo.toml asks for, letters and digits would still be right.
    try_is_word_character(c).unwrap_or_else(|_| c == '_' || c.is_alphanumeric())
}

/// Whether it is of a script that is written without spaces. The prolonged sound mark is of two, and so belongs here.
fn is_unspaced(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let scripts = c.script_extension();
    // A character that all scripts use belongs to none.
    !scripts.is_common()
        && !scripts.is_inherited()
        && [Script::Han, Script::Hiragana, Script::Katakana, Script::Thai, Script::Lao, Script::Khmer, Script::Myanmar]
            .into_iter()
            .any(|script| scripts.contains_script(script))
}
