//! A position in a text that may still grow. A decision that depends on missing text is postponed, so that the split into pieces
//! makes no difference.

use crate::text::first_bytes;

/// How much text is held back at most until its kind is clear, in bytes.
pub(super) const MAX_HELD: usize = 4_000;

/// The decision needs more of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More;

/// The position after a match, or `None` without a match.
pub(super) type Found<'a> = Result<Option<Cursor<'a>>, More>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The text is complete.
    is_whole: bool,
}

impl<'a> Cursor<'a> {
    pub const fn new(text: &'a str, at: usize, is_whole: bool) -> Self {
        Self { text, at, is_whole }
    }

    pub fn rest(self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn before(self) -> &'a str {
        &self.text[..self.at]
    }

    /// The text from here to a later position.
    pub fn until(self, end: Self) -> &'a str {
        &self.text[self.at..end.at]
    }

    /// The position this many bytes further on.
    pub const fn moved(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, ..self }
    }

    /// The result for a text that ends here; an error if the text may still grow.
    pub fn at_end<T>(self, found: T) -> Result<T, More> {
        if self.is_whole { Ok(found) } else { Err(More) }
    }

    /// The next character. `None` at the end of a complete text.
    pub fn next(self) -> Result<Option<char>, More> {
        match self.rest().chars().next() {
            None => self.at_end(None),
            next => Ok(next),
        }
    }

    /// The position after `expected`, if the rest of the text begins with it.
    pub fn after(self, expected: &str) -> Found<'a> {
        self.after_alike(expected, |c, expected| c == expected)
    }

    /// Like `after`, but ignores case.
    pub fn after_any_case(self, expected: &str) -> Found<'a> {
        self.after_alike(expected, is_same_letter)
    }

    /// Like `after`, for characters that are `alike`.
    pub fn after_alike(self, expected: &str, alike: impl Fn(char, char) -> bool) -> Found<'a> {
        let mut end = self;
        for expected in expected.chars() {
            match end.next()? {
                Some(c) if alike(c, expected) => end = end.moved(c.len_utf8()),
                _ => return Ok(None),
            }
        }
        Ok(Some(end))
    }

    /// The position after all characters of this kind, at most `most_bytes` further on.
    pub fn past(self, is_of_kind: impl Fn(char) -> bool, most_bytes: usize) -> Result<Self, More> {
        let rest = first_bytes(self.rest(), most_bytes);
        match rest.find(|c| !is_of_kind(c)) {
            Some(end) => Ok(self.moved(end)),
            None if rest.len() == self.rest().len() => self.at_end(self.moved(rest.len())),
            None => Ok(self.moved(rest.len())),
        }
    }

    pub fn past_blank(self) -> Result<Self, More> {
        self.past(char::is_whitespace, MAX_HELD)
    }

    /// The end of the text so far.
    pub fn end(self) -> Self {
        self.moved(self.rest().len())
    }

    /// The rest of the line. `None` if it is longer than `most_bytes`.
    pub fn line(self, most_bytes: usize) -> Result<Option<&'a str>, More> {
        let end = self.past(|c| c != '\n', most_bytes)?;
        Ok(Some(self.until(end)).filter(|_| matches!(end.rest().chars().next(), None | Some('\n'))))
    }
}

/// Whether two characters differ at most in case.
pub(super) fn is_same_letter(one: char, other: char) -> bool {
    one == other || one.to_lowercase().eq(other.to_lowercase())
}

/// The first match of several.
pub(super) fn first<T, F>(
    items: impl IntoIterator<Item = T>,
    find: impl FnMut(T) -> Result<Option<F>, More>,
) -> Result<Option<F>, More> {
    items.into_iter().map(find).find_map(Result::transpose).transpose()
}
