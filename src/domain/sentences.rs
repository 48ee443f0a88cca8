//! Splits the text of an answer into sentences while a model still writes it, so that speech can begin (docs/design/voice.md ).

#[cfg(test)]
mod tests;

use super::split::{is_end_of_sentence, may_break};
use super::text::is_blank;

/// The length in characters at which a sentence is split.
const MOST_CHARS: usize = 200;

/// Splits a growing text into sentences.
///
/// The sentences together are the text: white space belongs to the sentence after it. The result does not depend on the pieces in which the text
/// arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentences {
    /// The text after the last split.
    pending: String,
    /// The number of characters in `pending`, without leading white space.
    length: usize,
}

impl Sentences {
    /// Appends the next piece of the text. Returns the sentences that are complete now.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        let mut out = Vec::new();
        piece.chars().for_each(|c| self.say(c, &mut out));
        out
    }

    /// Ends the text. Returns the rest.
    pub fn finish(self) -> Option<String> {
        (!is_blank(&self.pending)).then(|| self.pending.trim_end().to_owned())
    }

    /// Appends a character. If a sentence ends before it, splits there.
    fn say(&mut self, c: char, out: &mut Vec<String>) {
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

/// The position where a sentence that is too long is split: after the last comma within 200 characters, otherwise before the last white space,
/// otherwise between two characters.
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
