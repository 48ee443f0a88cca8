//! Cuts an answer into sentences while a model still writes it, so that speech can begin (docs/design/voice.md ).

mod opening;
#[cfg(test)]
mod tests;

use opening::Opening;

use super::split::{is_end_of_sentence, may_break};
use super::statement::{MAX_CHARS, from_json};
use super::text::is_blank;
use super::thoughts::{Tag, may_become_tag, tag_at};

/// A longer sentence is cut, in characters.
const MOST_CHARS: usize = 200;

/// Cuts a growing text into sentences.
///
/// The sentences follow each other without anything between them: white space belongs to the sentence after it. Together they are what
/// [`clean_statement`](super::statement::clean_statement) makes of the whole text, with two differences: quotation marks around the whole stay, and
/// words that were cut off before a thought without a beginning ends cannot be taken back. It does not matter in which pieces the text comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentences {
    name: String,
    /// The beginning of what may become a tag of a thought.
    tag: String,
    is_thinking: bool,
    opening: Opening,
    /// The words after the last cut.
    pending: String,
    /// The number of characters in `pending`, without white space before them.
    length: usize,
    /// The number of characters so far.
    total: usize,
}

impl Sentences {
    /// Before the first word of a companion with this name.
    pub fn new(companion_name: &str) -> Self {
        Self { name: companion_name.trim().to_owned(), ..Self::default() }
    }

    /// Takes the next piece of the text. Returns the sentences that are whole now.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        let mut out = Vec::new();
        piece.chars().for_each(|c| self.take(c, &mut out));
        out
    }

    /// The text has ended. Returns the rest.
    pub fn finish(mut self) -> Vec<String> {
        let mut out = Vec::new();
        // A tag that was never finished is text.
        std::mem::take(&mut self.tag).chars().for_each(|c| self.show(c, &mut out));
        if let Opening::Json(json) = &self.opening {
            let text = from_json(json.trim()).unwrap_or_else(|| json.clone());
            self.opening = Opening::without_json();
            text.chars().for_each(|c| self.show(c, &mut out));
        }
        let held = std::mem::replace(&mut self.opening, Opening::Past).finish(&self.name);
        held.chars().for_each(|c| self.say(c, &mut out));
        if !is_blank(&self.pending) {
            out.push(self.pending.trim_end().to_owned());
        }
        out
    }

    /// Removes thoughts.
    fn take(&mut self, c: char, out: &mut Vec<String>) {
        self.tag.push(c);
        while !self.tag.is_empty() {
            match tag_at(&self.tag, 0) {
                Some((Tag::Open, _)) => self.is_thinking = true,
                Some((Tag::Close, _)) => {
                    if !self.is_thinking {
                        // An endpoint began the thought itself. What was not cut off yet was part of it.
                        self.opening = Opening::default();
                        self.pending.clear();
                        self.length = 0;
                    }
                    self.is_thinking = false;
                }
                None if may_become_tag(&self.tag) => return,
                None => {
                    let first = self.tag.remove(0);
                    if !self.is_thinking {
                        self.show(first, out);
                    }
                    continue;
                }
            }
            self.tag.clear();
        }
    }

    /// Removes control characters and what comes before the words.
    fn show(&mut self, c: char, out: &mut Vec<String>) {
        if self.is_thinking || c.is_control() && !matches!(c, '\n' | '\t') {
            return;
        }
        if self.opening == Opening::Past {
            self.say(c, out);
        } else if let Some(words) = self.opening.take(c, &self.name) {
            words.chars().for_each(|c| self.say(c, out));
        }
    }

    /// Adds a character to the words, and cuts them before it where a sentence ends.
    fn say(&mut self, c: char, out: &mut Vec<String>) {
        if self.total == MAX_CHARS {
            return;
        }
        self.total += 1;
        if self.length > 0 && is_end_of_sentence(&self.pending, c.encode_utf8(&mut [0; 4])) {
            out.push(std::mem::take(&mut self.pending));
            self.length = 0;
        }
        self.pending.push(c);
        if self.length > 0 || !c.is_whitespace() {
            self.length += 1;
        }
        if self.length > MOST_CHARS {
            let rest = self.pending.split_off(end_of_long(&self.pending));
            self.length = rest.trim_start().chars().count();
            out.push(std::mem::replace(&mut self.pending, rest));
        }
    }
}

/// Where a sentence that is too long is cut: after the last comma that leaves at most 200 characters, else before the last white space, else between two
/// characters.
fn end_of_long(text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    let places: Vec<_> = text[start..].char_indices().map(|(at, c)| (start + at + c.len_utf8(), c)).take(MOST_CHARS).collect();
    let is_comma = |(end, c): &&(usize, char)| match c {
        ',' => text[*end..].starts_with(char::is_whitespace),
        '、' | '，' | '،' => true,
        _ => false,
    };
    let is_before_space = |(end, c): &&(usize, char)| !c.is_whitespace() && text[*end..].starts_with(char::is_whitespace);
    let is_between = |(end, _): &&(usize, char)| may_break(&text[..*end], &text[*end..]);
    let find = |is_end: &dyn Fn(&&(usize, char)) -> bool| places.iter().rfind(is_end).map(|(end, _)| *end);
    let last = places.last().map_or(text.len(), |(end, _)| *end);
    find(&is_comma).or_else(|| find(&is_before_space)).or_else(|| find(&is_between)).unwrap_or(last)
}
