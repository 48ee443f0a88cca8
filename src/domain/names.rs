//! Finds the companions that a text names: all names of all companions of a guild in one pass.

mod calling;
mod decoration;
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

use super::common_words::is_common;
use super::id::CompanionId;
use super::lookalike::shapes;
use super::policy::names::CommonNames;
use calling::calls;
use decoration::undecorated;
pub(crate) use zones::Zones;

/// The maximum size of all first words for which the faster automaton is built, in bytes. The automaton needs about 250 bytes of memory for each of
/// these bytes.
const FAST_UP_TO: usize = 32 * 1024;

/// The maximum distance from a name to the start or end of its emphasis, in characters.
const LONGEST_EMPHASIS: usize = 200;

/// An index of the names of a guild's companions, for searching texts.
///
/// Names are compared without case and in Unicode's composed form. They are found at word boundaries, outside code, links and quoted lines
/// (docs/design/gate.md G-6). The words of a name may be separated by any white space. A name in a text must have edges on both sides. An edge is
///
/// * the start or the end of the text,
/// * a neighbour that is no word character (regex `\w`), which for a name of word characters is Unicode's `\b`,
/// * any position where the name or its neighbour is of a script written without spaces,
/// * an underscore that begins or ends emphasis in Markdown.
///
/// A name that is an everyday word counts only where it addresses its bearer, unless it counts anywhere ([`with`](Self::with)).
#[derive(Clone, Debug)]
pub struct Names {
    /// Finds the first words anywhere in a text. Its patterns are the indices of `entries`.
    heads: AhoCorasick,
    /// Finds the first words at one position, for ASCII texts.
    heads_here: Option<DFA>,
    /// For each first word, the names that begin with it.
    entries: Vec<Vec<Entry>>,
    /// Sorted by id. An entry's `companion` is an index into this list.
    companions: Vec<CompanionId>,
    /// Whole names, folded, with the index of their companion.
    whole: BTreeMap<String, usize>,
    /// The shapes of whole names, with the index of their companion.
    shapes: BTreeMap<String, usize>,
}

/// The error that two companions of one guild share a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize)]
#[error(
    "the companions {first} and {second} share the name {name:?}: remove it from one of them, or put them in different guilds"
)]
pub struct SharedName {
    /// The name in the spelling of the second companion.
    pub name: String,
    /// The companion that had the name first.
    pub first: CompanionId,
    /// The second companion with the name.
    pub second: CompanionId,
}

/// One name, without its first word.
#[derive(Clone, Debug)]
struct Entry {
    companion: usize,
    /// The words after the first one.
    tail: Vec<Box<str>>,
    /// Whether it is an everyday word, which counts only where it addresses its bearer.
    is_common: bool,
    /// Whether its first character is of a script written without spaces.
    starts_unspaced: bool,
    /// Whether its last character is of such a script.
    ends_unspaced: bool,
}

impl Names {
    /// Builds the index from companions, each with its name and aliases. The id and the words of a decorated name are names, too,
    /// unless those words are the name of another companion or the words of an earlier one. A name without a visible character is
    /// ignored.
    pub fn new<'a, N>(companions: impl IntoIterator<Item = (CompanionId, N)>) -> Result<Self, SharedName>
    where
        N: IntoIterator<Item = &'a str>,
    {
        let mut owners: BTreeMap<String, CompanionId> = BTreeMap::new();
        let (mut ids, mut shaped, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for (id, names) in companions {
            let mut name_it = |name: &str| {
                shaped.extend(shapes(name).map(|shape| (shape, id.clone())));
                plain.extend(undecorated(name).map(|words| (normalized(&words), id.clone())));
                register(&mut owners, name, &id)
            };
            name_it(id.as_str())?;
            names.into_iter().try_for_each(name_it)?;
            ids.push(id);
        }
        plain.into_iter().for_each(|(words, id)| {
            owners.entry(words).or_insert(id);
        });
        ids.sort();
        ids.dedup();
        let mut names = Self::build(ids, owners);
        let index = |(shape, id)| Some((shape, names.companions.binary_search(&id).ok()?));
        names.shapes = shaped.into_iter().filter(|(shape, _)| !shape.is_empty()).filter_map(index).collect();
        Ok(names)
    }

    /// Builds the index of spellings that speech recognition produces instead of names (docs/design/voice.md A-63). Spellings
    /// that are a name of another companion in `names`, or that were already listed for another companion, are left out.
    pub fn of_sounds<'a, N>(names: &Self, companions: impl IntoIterator<Item = (CompanionId, N)>) -> Self
    where
        N: IntoIterator<Item = &'a str>,
    {
        let mut owners: BTreeMap<String, CompanionId> = BTreeMap::new();
        let mut ids = Vec::new();
        for (id, sounds) in companions {
            for sound in sounds.into_iter().map(normalized).filter(|sound| !sound.is_empty()) {
                if names.whole.get(&sound).is_none_or(|owner| names.companions[*owner] == id) {
                    owners.entry(sound).or_insert_with(|| id.clone());
                }
            }
            ids.push(id);
        }
        ids.sort();
        ids.dedup();
        Self::build(ids, owners)
    }

    /// The same names, with this setting for everyday words.
    #[must_use]
    pub fn with(mut self, common: CommonNames) -> Self {
        if common == CommonNames::Anywhere {
            self.entries.iter_mut().flatten().for_each(|entry| entry.is_common = false);
        }
        self
    }

    /// The companions that a written text names, sorted by id, without duplicates.
    pub fn find(&self, text: &str) -> Vec<CompanionId> {
        self.find_where(text, |folded, name| calls(text, folded, name))
    }

    /// The companions that spoken words name, sorted by id, without duplicates.
    pub fn find_spoken(&self, text: &str) -> Vec<CompanionId> {
        self.find_where(text, |folded, name| calling::is_at_end(folded, &name) || calls(text, folded, name))
    }

    /// The companions that a text names. `calls` decides about everyday words, given the folded text and the name's range in it.
    fn find_where(&self, text: &str, calls: impl Fn(&str, Range<usize>) -> bool) -> Vec<CompanionId> {
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
                let Some(range) = entry.matching_range(text, head.clone()) else { continue };
                if (!entry.is_common || calls(text, range.clone())) && !zones.get_or_insert_with(|| Zones::of(text)).touch(range)
                {
                    found.push(entry.companion);
                }
            }
        };
        match &self.heads_here {
            Some(heads) if text.is_ascii() => for_each_at_edge(heads, text.as_bytes(), consider),
            _ => self.heads.find_overlapping_iter(text).for_each(|head| consider(head.pattern().as_usize(), head.range())),
        }
        found.sort_unstable();
        found.into_iter().map(|index| self.companions[index].clone()).collect()
    }

    /// The companion with exactly this name.
    pub fn owner(&self, name: &str) -> Option<&CompanionId> {
        self.whole.get(&normalized(name)).map(|index| &self.companions[*index])
    }

    /// The companion with this name or a look-alike (docs/design/interfaces.md I-18).
    pub fn namesake(&self, name: &str) -> Option<&CompanionId> {
        let alike = || shapes(name).iter().find_map(|shape| self.shapes.get(shape)).map(|index| &self.companions[*index]);
        self.owner(name).or_else(alike)
    }

    /// All names of all companions, folded.
    pub fn whole_names(&self) -> impl Iterator<Item = &str> {
        self.whole.keys().map(String::as_str)
    }

    fn build(companions: Vec<CompanionId>, owners: BTreeMap<String, CompanionId>) -> Self {
        let mut heads: Vec<String> = Vec::new();
        let mut entries: Vec<Vec<Entry>> = Vec::new();
        let mut indices: BTreeMap<String, usize> = BTreeMap::new();
        let mut whole = BTreeMap::new();
        for (name, id) in owners {
            let Ok(companion) = companions.binary_search(&id) else { continue };
            let mut words = name.split(' ').map(Box::<str>::from);
            let head = words.next().unwrap_or_default().into_string();
            let entry = Entry {
                companion,
                tail: words.collect(),
                is_common: is_common(&name),
                starts_unspaced: name.chars().next().is_some_and(is_unspaced),
                ends_unspaced: name.chars().next_back().is_some_and(is_unspaced),
            };
            let index = *indices.entry(head.clone()).or_insert_with(|| {
                heads.push(head);
                entries.push(Vec::new());
                entries.len() - 1
            });
            entries[index].push(entry);
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
            .expect("the automaton holds two billion states, more than the names that fit into memory need");
        Self { heads, heads_here, entries, companions, whole, shapes: BTreeMap::new() }
    }
}

impl Entry {
    /// The range of the whole name, if the text continues with its other words and the name has edges on both sides.
    fn matching_range(&self, text: &str, head: Range<usize>) -> Option<Range<usize>> {
        let before = &text[..head.start];
        let is_emphasised = before.ends_with('_');
        if !is_emphasised && !is_edge(self.starts_unspaced, before.chars().next_back()) {
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
        let after = &text[end..];
        let starts = !is_emphasised || self.starts_unspaced || opens(before, after);
        let ends = is_edge(self.ends_unspaced, after.chars().next()) || after.starts_with('_') && closes(before, after);
        (starts && ends).then_some(head.start..end)
    }
}

/// Whether the underscores at the end of `before` open emphasis that is closed in `after`, as in Markdown.
fn opens(before: &str, after: &str) -> bool {
    let reach = after.char_indices().nth(LONGEST_EMPHASIS).map_or(after.len(), |(end, _)| end);
    let line = after[..reach].split('\n').next().unwrap_or_default();
    let ends = |(at, _)| !line[at..].trim_start_matches('_').starts_with(is_word);
    !before.trim_end_matches('_').ends_with(is_word) && line.match_indices('_').any(ends)
}

/// Whether the underscores at the start of `after` close emphasis that was opened in `before`.
fn closes(before: &str, after: &str) -> bool {
    let reach = before.char_indices().nth_back(LONGEST_EMPHASIS).map_or(0, |(start, _)| start);
    let line = before[reach..].rsplit('\n').next().unwrap_or_default();
    let begins = |(at, _)| !line[..at].trim_end_matches('_').ends_with(is_word);
    !after.trim_start_matches('_').starts_with(is_word) && line.match_indices('_').any(begins)
}

/// Finds the first words at the start of words. In ASCII, names begin only there.
fn for_each_at_edge(heads: &DFA, text: &[u8], mut consider: impl FnMut(usize, Range<usize>)) {
    // This fails only for an automaton without anchored starts.
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
                // A state also matches names that began later and end here.
                (0..heads.match_len(state))
                    .map(|index| heads.match_pattern(state, index))
                    .filter(|head| heads.pattern_len(*head) == length)
                    .for_each(|head| consider(head.as_usize(), at..at + length));
            }
        }
        // A name may follow the underscores at the start of a word.
        at += if text[at] == b'_' { 1 } else { text[at..].iter().take_while(|byte| is_word_byte(**byte)).count() + 1 };
    }
}

fn register(owners: &mut BTreeMap<String, CompanionId>, name: &str, id: &CompanionId) -> Result<(), SharedName> {
    let normalized = normalized(name);
    if normalized.is_empty() {
        return Ok(());
    }
    match owners.get(&normalized) {
        Some(first) if first != id => Err(SharedName { name: name.to_owned(), first: first.clone(), second: id.clone() }),
        _ => {
            owners.insert(normalized, id.clone());
            Ok(())
        }
    }
}

/// Whether a name, with or without decoration, is an everyday word.
pub fn is_everyday_word(name: &str) -> bool {
    is_common(&normalized(name)) || undecorated(name).is_some_and(|words| is_common(&normalized(&words)))
}

/// A name in normal form for comparison: folded, with one space between words.
fn normalized(name: &str) -> String {
    fold(name).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text in normal form for comparison: case-folded and composed (NFC).
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
            // The detour through upper case unifies `ß` and `ss`, and `ς` and `σ`.
            folded.extend(c.to_uppercase().flat_map(char::to_lowercase));
        }
    };
    if text.chars().all(stays_composed) || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text.chars().for_each(&mut push);
    } else {
        text.nfc().for_each(&mut push);
    }
    // Case folding may decompose a character.
    if is_composed || is_nfc_quick(folded.chars()) == IsNormalized::Yes { folded } else { folded.nfc().collect() }
}

/// Whether a character is in a range where all characters are composed and remain so after case folding. This saves most
/// look-ups.
fn stays_composed(c: char) -> bool {
    c < '\u{180}' || is_caseless(c)
}

/// Whether a character is in one of the large ranges without case and marks: kana, Han, Hangul.
fn is_caseless(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn is_edge(is_unspaced_name: bool, neighbour: Option<char>) -> bool {
    neighbour.is_none_or(|c| is_unspaced_name || !is_word(c) || is_unspaced(c))
}

/// Whether a character is a word character (regex `\w`).
pub(crate) fn is_word(c: char) -> bool {
    // The fallback is used only without the Unicode tables, which Cargo.toml enables. It is correct for letters and digits.
    try_is_word_character(c).unwrap_or_else(|_| c == '_' || c.is_alphanumeric())
}

/// Whether a character is of a script that is written without spaces. The prolonged sound mark belongs to two such scripts.
pub fn is_unspaced(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let scripts = c.script_extension();
    // A character that all scripts share belongs to none.
    !scripts.is_common()
        && !scripts.is_inherited()
        && [Script::Han, Script::Hiragana, Script::Katakana, Script::Thai, Script::Lao, Script::Khmer, Script::Myanmar]
            .into_iter()
            .any(|script| scripts.contains_script(script))
}
