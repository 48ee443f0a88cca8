//! Finds the JSON objects in what a model sends, whatever stands around them.

use serde_json::{Map, Value};

/// The objects of a text.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those that are whole and can be read, in order. What is inside of one is not searched.
    pub whole: Vec<Map<String, Value>>,
    /// An object begins somewhere, whole or not.
    pub has_begun: bool,
}

/// Searches a text once, from its start.
///
/// An object begins with a brace and a quotation mark: a brace alone may be anything in prose. What models often get wrong is
/// forgiven: a comma too many, a line break inside a text, a bare word or a number out of all bounds, which both count as text.
pub(super) fn find(text: &str) -> Found {
    let mut found = Found::default();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        rest = &rest[at..];
        if !rest[1..].trim_start().starts_with('"') {
            rest = &rest[1..];
            continue;
        }
        found.has_begun = true;
        // Cut off: what is inside of it are no objects of their own.
        let Some((tidy, end)) = Tidying::run(rest) else { break };
        // Too deep for the parser is as good as unreadable.
        found.whole.extend(serde_json::from_str::<Map<String, Value>>(&tidy));
        rest = &rest[end..];
    }
    found
}

/// The object that a text is, and nothing else: but for white space, and the fence of a code block, around it.
pub(super) fn alone(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = inside.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside).trim());
    if !text.starts_with('{') {
        return None;
    }
    let (tidy, end) = Tidying::run(text)?;
    if end == text.len() { serde_json::from_str(&tidy).ok() } else { None }
}

/// Copies one object as strict JSON.
struct Tidying<'a> {
    text: &'a str,
    tidy: String,
    depth: usize,
    /// A comma that is due before the next value.
    comma: bool,
    /// Where a bare word began.
    word: Option<usize>,
}

impl<'a> Tidying<'a> {
    /// The object that a text begins with, and where it ends; none if it does not end.
    fn run(text: &'a str) -> Option<(String, usize)> {
        let mut tidying = Self { text, tidy: String::new(), depth: 0, comma: false, word: None };
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '"' {
                tidying.end_word(at);
                tidying.begin();
                tidying.quote(&mut chars)?;
            } else if tidying.take(at, c) {
                return Some((tidying.tidy, at + c.len_utf8()));
            }
        }
        None
    }

    /// Takes a character outside of texts, and tells whether the object ends with it.
    fn take(&mut self, at: usize, c: char) -> bool {
        if c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_') {
            self.word.get_or_insert(at);
            return false;
        }
        self.end_word(at);
        match c {
            ',' => self.comma = true,
            '{' | '[' => {
                self.begin();
                self.depth += 1;
                self.tidy.push(c);
            }
            '}' | ']' => {
                self.comma = false;
                self.depth = self.depth.saturating_sub(1);
                self.tidy.push(c);
            }
            c if c.is_whitespace() => {}
            c => self.tidy.push(c),
        }
        self.depth == 0
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.tidy.push(',');
        }
    }

    fn end_word(&mut self, at: usize) {
        let Some(from) = self.word.take() else { return };
        self.begin();
        let word = &self.text[from..at];
        let number = word.parse().ok().and_then(serde_json::Number::from_f64);
        match (word, number) {
            ("true" | "false" | "null", _) => self.tidy.push_str(word),
            (_, Some(number)) => self.tidy.push_str(&number.to_string()),
            (_, None) => self.tidy.extend(["\"", word, "\""]),
        }
    }

    /// Copies a text up to its end; none if it does not end.
    fn quote(&mut self, chars: &mut std::str::CharIndices<'a>) -> Option<()> {
        self.tidy.push('"');
        loop {
            match chars.next()?.1 {
                '"' => break,
                '\\' => self.tidy.extend(['\\', chars.next()?.1]),
                c if c.is_ascii_control() => self.tidy.push(' '),
                c => self.tidy.push(c),
            }
        }
        self.tidy.push('"');
        Some(())
    }
}
