//! Leaves out what stands in the prompt word for word: small models copy sentences of its frame, the reason of the decision, or somebody's message.

use std::sync::Arc;

use super::Look;

/// A shorter text may be said by anybody, so that it is no copy.
const LEAST_WORDS: usize = 4;
const LEAST_BYTES: usize = 24;
/// Of a person's message, which a greeting or a line of a song may be.
const LEAST_WORDS_OF_MESSAGE: usize = 8;

/// What of a prompt is never said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Sentences of the frame and of the reason, the longest first.
    sentences: Vec<Arc<str>>,
    /// Whole messages of others, the longest first.
    messages: Vec<Arc<str>>,
}

impl Known {
    /// Sentences of these texts, and these messages.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>, messages: impl IntoIterator<Item = Arc<str>>) -> Self {
        let has_words = |text: &str, least: usize| text.len() >= LEAST_BYTES && text.split_whitespace().count() >= least;
        let mut sentences: Vec<Arc<str>> =
            texts.into_iter().flat_map(sentences).filter(|text| has_words(text, LEAST_WORDS)).map(Arc::from).collect();
        let messages = messages.into_iter().map(|text| Arc::from(text.trim()));
        let mut messages: Vec<Arc<str>> = messages.filter(|text| has_words(text, LEAST_WORDS_OF_MESSAGE)).collect();
        for texts in [&mut sentences, &mut messages] {
            texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
            texts.dedup();
        }
        Self { sentences, messages }
    }

    /// Whether a text begins with something of the prompt, and the length of that.
    fn copied(&self, text: &str, is_end: bool) -> Look<usize> {
        let ends = |after: &str, is_message: bool| match after.chars().next() {
            None if is_end => Look::Yes(()),
            None => Look::More,
            Some(c) if c == '\n' || !is_message && c.is_whitespace() => Look::Yes(()),
            Some(_) => Look::No,
        };
        let begins = |known: &Arc<str>, is_message: bool| match text.strip_prefix(&**known) {
            Some(after) => ends(after, is_message).map(|()| known.len()),
            None if !is_end && known.starts_with(text) => Look::More,
            None => Look::No,
        };
        let sentences = self.sentences.iter().fold(Look::No, |found, known| found.or(|| begins(known, false)));
        self.messages.iter().fold(sentences, |found, known| found.or(|| begins(known, true)))
    }
}

/// The sentences of a text, each with the mark at its end.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let end = sentence_end(rest, None).map_or(rest.len(), |(end, _)| end);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        (!sentence.is_empty()).then(|| sentence.trim_end())
    })
}

/// After which byte the next sentence begins, if it does, and the last character before.
fn sentence_end(text: &str, mut before: Option<char>) -> Option<(usize, Option<char>)> {
    for (at, c) in text.char_indices() {
        if c == '\n' || c.is_whitespace() && matches!(before, Some('.' | '!' | '?' | ':' | '。' | '！' | '？')) {
            return Some((at + c.len_utf8(), Some(c)));
        }
        before = Some(c);
    }
    None
}

/// Passes a text on without what is known of the prompt. It does not matter in which pieces it comes.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    known: Arc<Known>,
    /// What is undecided: the beginning of a sentence.
    head: String,
    /// Whether a sentence begins.
    is_begin: bool,
    /// The last character before.
    before: Option<char>,
    /// Whether anything was left out.
    pub found: bool,
}

impl Echo {
    pub(super) const fn new(known: Arc<Known>) -> Self {
        Self { known, head: String::new(), is_begin: true, before: None, found: false }
    }

    pub(super) fn feed(&mut self, piece: &str, is_end: bool, say: &mut impl FnMut(&str)) {
        self.head.push_str(piece);
        let mut at = 0;
        while at < self.head.len() {
            let rest = &self.head[at..];
            let space = rest.len() - rest.trim_start().len();
            if self.is_begin && space == 0 {
                match self.known.copied(rest, is_end) {
                    Look::More => break,
                    Look::Yes(length) => {
                        (self.found, at) = (true, at + length);
                        continue;
                    }
                    Look::No => self.is_begin = false,
                }
            }
            let said = if self.is_begin {
                space
            } else {
                let end = sentence_end(rest, self.before);
                self.is_begin = end.is_some();
                end.map_or(rest.len(), |(end, _)| end)
            };
            say(&rest[..said]);
            self.before = rest[..said].chars().next_back();
            at += said;
        }
        self.head.drain(..at);
    }
}
