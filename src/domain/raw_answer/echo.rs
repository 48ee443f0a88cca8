//! Drops text that the answer copies word for word from the prompt. Small models copy its instructions, the decision's reason, or
//! another author's message.

use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation as _;

use super::Trimmed;
use super::cursor::{Cursor, Found, More, first};
use super::stages::{Stage, Step};

/// The minimum length of a copied sentence. Shorter ones may occur by chance.
const LEAST_WORDS: usize = 3;
const LEAST_BYTES: usize = 16;
/// The minimum length of a copied message, in words. It is greater because people do repeat greetings or lines of songs.
const LEAST_WORDS_OF_MESSAGE: usize = 5;
/// The signs that may surround a copy or end it, and their maximum length on a side, in bytes.
const SIGNS: [char; 19] = ['"', '“', '”', '„', '«', '»', '「', '」', '*', '_', '#', '.', '!', '?', ':', '…', '。', '！', '？'];
const MAX_SIGNS: usize = 12;

/// The texts of a prompt that an answer must not copy, longest first, each with a flag for messages. They are sentences of the
/// instructions and of the decision's reason, and other authors' messages. Case and the signs around them do not matter. A message
/// counts as copied only if the line ends after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(Vec<(Arc<str>, bool)>);

impl Known {
    /// Collects the sentences of `texts`, and whole `messages`.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>, messages: impl IntoIterator<Item = Arc<str>>) -> Self {
        let bare = |text: &str| Arc::from(text.trim_matches(|c: char| SIGNS.contains(&c) || c.is_whitespace()));
        let sentences = texts.into_iter().flat_map(sentences).map(|text| (bare(text), false));
        let messages = messages.into_iter().map(|text| (bare(&text), true));
        let is_long = |(text, is_message): &(Arc<str>, bool)| {
            let least_words = if *is_message { LEAST_WORDS_OF_MESSAGE } else { LEAST_WORDS };
            text.len() >= LEAST_BYTES && words(text) >= least_words
        };
        let mut known: Vec<_> = sentences.chain(messages).filter(is_long).collect();
        known.sort_unstable_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        Self(known)
    }

    /// The position after a copied text, if one begins here.
    fn copied<'a>(&self, text: Cursor<'a>) -> Found<'a> {
        let is_sign = |c| SIGNS.contains(&c);
        let begin = text.past(is_sign, MAX_SIGNS)?;
        first(&self.0, |(known, is_message)| {
            let Some(end) = begin.after_any_case(known)? else { return Ok(None) };
            let end = end.past(is_sign, MAX_SIGNS)?;
            let is_end = |c: char| c == '\n' || !is_message && c.is_whitespace();
            Ok(end.next()?.is_none_or(is_end).then_some(end))
        })
    }
}

/// The number of words. In scripts without spaces, three characters count as a word.
fn words(text: &str) -> usize {
    let is_character = |word: &str| !word.is_ascii() && word.chars().nth(1).is_none();
    text.unicode_words().map(|word| if is_character(word) { 1 } else { 3 }).sum::<usize>() / 3
}

/// The sentences of a text, each with its final punctuation.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let end = rest.char_indices().map(|(at, c)| at + c.len_utf8()).find(|end| begins_sentence(&rest[..*end]));
        let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        (!sentence.is_empty()).then(|| sentence.trim_end())
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
        if !rest.starts_with(char::is_whitespace)
            && begins_sentence(text.before())
            && let Some(end) = self.0.copied(text)?
        {
            return Ok(Step::Cut(Trimmed::Prompt, end));
        }
        // A sentence may begin after white space.
        let words = rest.find(char::is_whitespace).map_or(text.end(), |length| text.moved(length));
        let space = words.rest().len() - words.rest().trim_start().len();
        Ok(Step::Say(words.moved(space)))
    }
}
