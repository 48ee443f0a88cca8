//! Measures the likeness of two statements by their trigrams and by their content words (docs/design/closing.md C-12).

use std::collections::BTreeSet;

use super::super::common_words::is_function_word;
use super::acts::{self, Acts};
use super::numbers::numbers;

/// Statements that share at least this fraction of their trigrams count as the same.
const SAME_TRIGRAMS: f64 = 0.7;
/// Statements that share at least this fraction of their content words count as the same.
const SAME_WORDS: f64 = 0.9;

/// The endings that are removed from a word if at least three characters remain. The first match counts.
const ENDINGS: [&str; 9] = ["'s", "ingly", "ing", "edly", "ed", "ly", "es", "s", "e"];

/// Three consecutive characters, or the whole text if it is shorter.
type Trigram = [Option<char>; 3];

/// The features of a statement.
pub(super) struct Features {
    trigrams: BTreeSet<Trigram>,
    content: BTreeSet<String>,
    /// The spoken content words, without words of agreement and intensifiers.
    pub(super) told: BTreeSet<String>,
    /// In the order of the text.
    numbers: Vec<String>,
    /// Fenced code blocks, such as the board of a game.
    code: String,
    pub(super) acts: Acts,
}

impl Features {
    pub(super) fn of(text: &str) -> Self {
        let (text, code) = &without_code(text);
        let words = words(text);
        // A text without words, such as an emoji, is compared as it is.
        let plain = if words.is_empty() { text.to_lowercase() } else { words.join(" ") };
        let spoken = self::words(&without_directions(text));
        let acts = Acts::of(if spoken.is_empty() { &words } else { &spoken }, text.contains('?'));
        let is_content = |word: &&String| !is_function_word(word);
        let stems = |word: &String| stem(word).to_owned();
        let content = words.iter().filter(is_content).map(stems).collect();
        let told = spoken.iter().filter(|word| is_content(word) && !acts::is_filler(word)).map(stems).collect();
        Self { trigrams: trigrams(&plain), content, told, numbers: numbers(&words), code: code.clone(), acts }
    }

    /// The likeness of two statements, from 0 to 1.
    pub(super) fn likeness(&self, other: &Self) -> f64 {
        if self.has_moved_on(other) {
            return 0.0;
        }
        self.word_likeness(other, 2).max((jaccard(&self.trigrams, &other.trigrams) / SAME_TRIGRAMS).min(1.0))
    }

    /// Whether the statements differ in numbers or code, such as a count, a score, dice or a board.
    fn has_moved_on(&self, other: &Self) -> bool {
        self.numbers != other.numbers || self.code != other.code
    }

    /// Whether `self` has all content words of the statement `before` (at least three) and further ones.
    pub(super) fn extends(&self, before: &Self) -> bool {
        before.content.len() >= 3 && before.content.len() < self.content.len() && before.content.is_subset(&self.content)
    }

    /// Counts the content words that occur in none of these statements.
    pub(super) fn added_to(&self, before: &[Self]) -> usize {
        self.content.iter().filter(|word| before.iter().all(|statement| !statement.content.contains(*word))).count()
    }

    /// Whether a spoken content word occurs in none of these statements.
    pub(super) fn tells_more_than(&self, before: &[Self]) -> bool {
        self.told.iter().any(|word| before.iter().all(|statement| !statement.told.contains(word)))
    }

    fn is_letter(&self) -> bool {
        matches!(self.trigrams.first(), Some([Some(_), None, None]))
    }

    /// The likeness of the content words of two statements, from 0 to 1. It is 0 if either has fewer than `least`.
    pub(super) fn word_likeness(&self, other: &Self, least: usize) -> f64 {
        if self.content.len().min(other.content.len()) < least || self.has_moved_on(other) {
            return 0.0;
        }
        (dice(&self.content, &other.content) / SAME_WORDS).min(1.0)
    }
}

/// Whether all statements are single letters, and at least two differ.
pub(super) fn spells(statements: &[Features]) -> bool {
    statements.iter().all(Features::is_letter) && statements.windows(2).any(|pair| pair[0].trigrams != pair[1].trigrams)
}

/// The words of a text, in lower case: letters and digits, with apostrophes between them. Three or more equal consecutive
/// characters become one.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    let raw = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').map(|word| word.trim_matches('\''));
    raw.filter(|word| !word.is_empty()).map(shorten).collect()
}

/// Replaces three or more equal consecutive characters with one.
fn shorten(word: &str) -> String {
    let mut short = String::with_capacity(word.len());
    let mut rest = word.chars().peekable();
    while let Some(c) = rest.next() {
        let mut count = 1;
        while rest.next_if_eq(&c).is_some() {
            count += 1;
        }
        short.extend(std::iter::repeat_n(c, if count > 2 { 1 } else { count }));
    }
    short
}

/// The text without its fenced code blocks, and the blocks. A text that consists only of code is not split.
fn without_code(text: &str) -> (String, String) {
    let blocks: Vec<&str> = text.split("```").collect();
    let of = |first: usize| blocks.iter().skip(first).step_by(2).copied().collect::<String>();
    let (talk, code) = (of(0), of(1));
    if words(&talk).is_empty() { (text.to_owned(), String::new()) } else { (talk, code) }
}

/// The text without stage directions between asterisks, such as `*smiles*`. A single asterisk is kept.
fn without_directions(text: &str) -> String {
    let mut spoken = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('*') {
        let Some((_, after)) = after.split_once('*') else { break };
        spoken.push_str(before);
        spoken.push(' ');
        rest = after;
    }
    spoken + rest
}

fn stem(word: &str) -> &str {
    let stems = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    stems.into_iter().find(|stem| stem.chars().count() >= 3).unwrap_or(word)
}

fn trigrams(text: &str) -> BTreeSet<Trigram> {
    let all: Vec<Option<char>> = text.chars().map(Some).collect();
    let at = |place: usize| all.get(place).copied().flatten();
    (0..all.len().saturating_sub(2).max(1)).map(|start| [at(start), at(start + 1), at(start + 2)]).collect()
}

/// The Jaccard similarity of two non-empty sets: the size of their intersection, divided by the size of their union.
fn jaccard(one: &BTreeSet<Trigram>, other: &BTreeSet<Trigram>) -> f64 {
    let shared = one.intersection(other).count();
    shared as f64 / (one.len() + other.len() - shared) as f64
}

/// The Dice similarity of two non-empty sets: twice the size of their intersection, divided by the sum of their sizes.
fn dice(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    2.0 * one.intersection(other).count() as f64 / (one.len() + other.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_drawn_out_are_one() {
        assert_eq!(["sooo", "seeing", "yesss", "aab", ""].map(shorten), ["so", "seeing", "yes", "aab", ""]);
    }

    #[test]
    fn stage_directions_are_not_spoken() {
        assert_eq!(without_directions("*waves* Bye *smiles*!"), "  Bye  !");
        assert_eq!(without_directions("two * three"), "two * three");
    }
}
