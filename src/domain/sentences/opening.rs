//! Holds back the beginning of an answer until it is clear what of it is said.

use super::super::statement::{QUOTES, without_name};

/// How often a name is removed from the beginning, as in `Aria: "Aria: Hello"`.
const MOST_NAMES: u8 = 3;
/// The number of characters beside a name, such as `**`, after which it is no name before the words.
const MOST_MARKS: usize = 16;

/// What is known of the beginning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It may be a name before the words, or JSON.
    Open {
        head: String,
        /// The number of names that may still be removed.
        names: u8,
        may_be_json: bool,
    },
    /// It is JSON. Only its end shows what is said.
    Json(String),
    /// The words have begun.
    Past,
}

impl Default for Opening {
    fn default() -> Self {
        Self::Open { head: String::new(), names: MOST_NAMES, may_be_json: true }
    }
}

/// Whether a text begins with a name and a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    No,
    /// More characters are needed.
    Maybe,
    Yes,
}

impl Opening {
    /// The beginning of a text that is no JSON.
    pub(super) fn without_json() -> Self {
        Self::Open { head: String::new(), names: MOST_NAMES, may_be_json: false }
    }

    /// Takes a character. Returns the words once they have begun.
    pub(super) fn take(&mut self, c: char, name: &str) -> Option<String> {
        let (head, names, may_be_json) = match self {
            Self::Past => return Some(c.into()),
            Self::Json(json) => {
                json.push(c);
                return None;
            }
            Self::Open { head, names, may_be_json } => (head, names, may_be_json),
        };
        let is_before_words = head.is_empty() || *names < MOST_NAMES && after_quote(head).1.is_empty();
        if is_before_words && c.is_whitespace() {
            return None;
        }
        head.push(c);
        if *may_be_json && head == "{" {
            *self = Self::Json(std::mem::take(head));
            return None;
        }
        *may_be_json = false;
        while *names > 0 && !head.is_empty() {
            match prefix(head, name) {
                Prefix::Maybe => return None,
                Prefix::No => break,
                Prefix::Yes => {
                    *head = after_name(head, name);
                    *names -= 1;
                }
            }
        }
        if head.is_empty() && *names > 0 {
            return None;
        }
        let words = std::mem::take(head);
        *self = Self::Past;
        Some(words)
    }

    /// The words that are held at the end of the text.
    pub(super) fn finish(self, name: &str) -> String {
        match self {
            Self::Open { head, names: 0, .. } => head,
            Self::Open { head, .. } => after_name(&head, name),
            Self::Json(json) => json,
            Self::Past => String::new(),
        }
    }
}

/// The text without the name before it. A quotation mark before the name stays.
fn after_name(head: &str, name: &str) -> String {
    let (quote, inside) = after_quote(head);
    [quote, without_name(inside, name)].concat()
}

/// The quotation mark that a text begins with, and the rest.
fn after_quote(head: &str) -> (&str, &str) {
    let inside = QUOTES.iter().find_map(|(open, _)| head.strip_prefix(*open)).unwrap_or(head);
    head.split_at(head.len() - inside.len())
}

/// Whether a text begins with a name, marks around it and a colon, as far as [`without_name`] removes them.
fn prefix(head: &str, name: &str) -> Prefix {
    if name.is_empty() {
        return Prefix::No;
    }
    let (_, inside) = after_quote(head);
    let start = inside.trim_start_matches(['*', '_', '[', '<']);
    let marks = inside[..inside.len() - start.len()].chars().filter(|c| matches!(c, '*' | '_')).count();
    let mut rest = start.chars();
    for expected in name.chars() {
        match rest.next() {
            None if marks > MOST_MARKS => return Prefix::No,
            None => return Prefix::Maybe,
            Some(found) if found == expected || found.to_lowercase().eq(expected.to_lowercase()) => {}
            Some(_) => return Prefix::No,
        }
    }
    let after = rest.as_str().trim_start_matches(['*', '_', ']', '>', ' ']);
    let Some(words) = after.strip_prefix([':', '：']) else {
        let is_long = rest.as_str().chars().count() > MOST_MARKS;
        return if after.is_empty() && !is_long { Prefix::Maybe } else { Prefix::No };
    };
    // The marks after the colon may close those before the name.
    let is_clear = words.chars().count() >= marks || words.contains(|c| !matches!(c, '*' | '_'));
    if is_clear { Prefix::Yes } else { Prefix::Maybe }
}
