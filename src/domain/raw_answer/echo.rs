//! Drops text that the answer copies word for word from the prompt. Small models copy its instructions, the decision's reason, or
//! another author's message.

use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation as _;

use super::Trimmed;
use super::cursor::{Cursor, Found, More, first, is_same_letter};
use super::stages::{Stage, Step};
use crate::split::is_end_of_sentence;

/// The minimum length of a copied sentence. Shorter ones may occur by chance.
const LEAST_WORDS: usize = 3;
const LEAST_BYTES: usize = 16;
/// The minimum length of a sentence that counts as copied within a longer one, in words.
const LEAST_WORDS_WITHIN: usize = 7;
/// The minimum length of a copied message, in words. It is greater because people do repeat greetings or lines of songs.
const LEAST_WORDS_OF_MESSAGE: usize = 5;
/// The signs that may surround a copy or end it, and their maximum length on a side, in bytes.
const SIGNS: &str = "\"“”„«»「」*_#.!?:…。！？()->–—";
const MAX_SIGNS: usize = 12;
/// The maximum length of the part of a sentence that differs from prompt to prompt, in bytes.
const MAX_VARIABLE: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A sentence of the frame or of the decision's reason. Digits may differ, because the prompt has the time.
    Sentence,
    /// The beginning of such a sentence, up to a colon. Its rest, such as a list of names, may differ.
    Opening,
    /// A long sentence of the frame. It may be a part of a longer one.
    Long,
    /// Another author's message. It counts as copied only as a whole line, because a companion may quote it.
    Message,
}

/// The texts of a prompt that an answer must not copy, longest first. Case and the signs around them do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(Vec<(Arc<str>, Kind)>);

impl Known {
    /// Collects the sentences of the prompt's frame and of the reason, and whole messages.
    pub fn new<'a>(frame: impl Iterator<Item = &'a str>, reason: Option<&str>, messages: impl Iterator<Item = Arc<str>>) -> Self {
        let bare = |text: &str| Arc::from(text.trim_matches(|c: char| is_sign(c) || c.is_whitespace()));
        let reason = reason.into_iter().flat_map(sentences).map(|(text, _)| (bare(text), Kind::Sentence));
        let frame = frame.flat_map(sentences).map(|(text, kind)| (bare(text), kind));
        let messages = messages.map(|text| (bare(&text), Kind::Message));
        let least = |kind| if kind == Kind::Message { LEAST_WORDS_OF_MESSAGE } else { LEAST_WORDS };
        let is_enough = |(text, kind): &(Arc<str>, Kind)| text.len() >= LEAST_BYTES && has_words(text, least(*kind));
        Self(frame.chain(reason).chain(messages).filter(is_enough).collect()).sorted()
    }

    /// Adds the texts of another prompt.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self.sorted()
    }

    fn sorted(mut self) -> Self {
        self.0.sort_unstable_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        self.0.dedup();
        self
    }

    /// The position after a copied text, if one begins at this word.
    fn copied<'a>(&self, text: Cursor<'a>) -> Found<'a> {
        let before = text.before().trim_end_matches([' ', '\t']);
        let (begins_line, begins_sentence) = (before.is_empty() || before.ends_with('\n'), begins_sentence(text.before()));
        let is_mark = |c: char| is_sign(c) || begins_line && (c == ' ' || c.is_ascii_digit());
        // The mark of a list item belongs to a copied sentence.
        let (begin, begin_of_item) = (text.past(is_sign, MAX_SIGNS)?, text.past(is_mark, MAX_SIGNS)?);
        first(&self.0, |(known, kind)| {
            let (is_message, is_long) = (*kind == Kind::Message, *kind == Kind::Long);
            if !is_long && !if is_message { begins_line } else { begins_sentence } {
                return Ok(None);
            }
            let is_digits = |one: char, other: char| !is_message && one.is_ascii_digit() && other.is_ascii_digit();
            let is_alike = |one, other| is_same_letter(one, other) || is_digits(one, other);
            let begin = if is_message { begin } else { begin_of_item };
            let Some(end) = begin.after_alike(known, is_alike)? else { return Ok(None) };
            let end = end.past(|c| is_sign(c) || is_long && matches!(c, ',' | ';'), MAX_SIGNS)?;
            let end = match end.next()? {
                Some(c) if c != '\n' && (is_message || !c.is_whitespace()) => return Ok(None),
                Some(' ') if *kind == Kind::Opening => end_of_sentence(end)?,
                _ => end,
            };
            past_gap(text, end).map(Some)
        })
    }
}

fn is_sign(c: char) -> bool {
    SIGNS.contains(c)
}

/// The position after the white space behind a copy that repeats the white space before it.
fn past_gap<'a>(text: Cursor<'a>, end: Cursor<'a>) -> Result<Cursor<'a>, More> {
    let before = &text.before()[text.before().trim_end().len()..];
    let after = end.past_blank()?;
    let line_feeds = end.until(after).match_indices('\n').map(|(at, _)| end.moved(at + 1));
    let repeated = line_feeds.take(before.matches('\n').count()).last();
    Ok(repeated.unwrap_or(if end.until(after).contains('\n') { end } else { after }))
}

/// The end of the sentence, or of its line.
fn end_of_sentence(text: Cursor<'_>) -> Result<Cursor<'_>, More> {
    let line = text.until(text.past(|c| c != '\n', MAX_VARIABLE)?);
    let end = line.char_indices().skip(1).map(|(at, _)| at).find(|at| is_end_of_sentence(&line[..*at], &line[*at..]));
    Ok(text.moved(end.unwrap_or(line.len())))
}

/// Whether a text has this many words. In scripts without spaces, three characters count as a word.
fn has_words(text: &str, least: usize) -> bool {
    let is_character = |word: &str| !word.is_ascii() && word.chars().nth(1).is_none();
    let mut thirds = 0;
    text.unicode_words().any(|word| {
        thirds += if is_character(word) { 1 } else { 3 };
        thirds >= least * 3
    })
}

/// The sentences of a text, each with its final punctuation. A colon ends an opening if more text follows in its line.
fn sentences(text: &str) -> impl Iterator<Item = (&str, Kind)> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let end = rest.char_indices().map(|(at, c)| at + c.len_utf8()).find(|end| begins_sentence(&rest[..*end]));
        let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        let kind = if has_words(sentence, LEAST_WORDS_WITHIN) { Kind::Long } else { Kind::Sentence };
        let is_opening = sentence.ends_with(": ");
        (!sentence.is_empty()).then(|| (sentence.trim_end(), if is_opening { Kind::Opening } else { kind }))
    })
}

/// Whether a sentence may begin after this text.
fn begins_sentence(before: &str) -> bool {
    let words = before.trim_end();
    let space = &before[words.len()..];
    words.is_empty() || space.contains('\n') || !space.is_empty() && words.ends_with(['.', '!', '?', ':', '。', '！', '？'])
}

#[derive(Clone, Debug)]
pub(super) struct Echo(pub Arc<Known>);

impl Stage for Echo {
    fn step<'a>(&mut self, text: Cursor<'a>, _: bool) -> Result<Step<'a>, More> {
        let rest = text.rest();
        // A sentence begins with a word. A text that arrives in pieces may be read from within a word or before white space.
        let is_word = text.before().chars().next_back().is_none_or(char::is_whitespace) && !rest.starts_with(char::is_whitespace);
        if let Some(end) = if is_word { self.0.copied(text)? } else { None } {
            return Ok(Step::Cut(Trimmed::Prompt, end));
        }
        let words = rest.find(char::is_whitespace).map_or(text.end(), |length| text.moved(length));
        let space = words.rest().len() - words.rest().trim_start().len();
        Ok(Step::Say(words.moved(space)))
    }
}
