//! Finds the JSON objects in what a model sends, whatever stands around them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::domain::thoughts::{Tag, tag_at};

/// The fields of a vote that decide something.
const DECIDING: [&str; 4] = ["decision", "importance", "selected", "closing"];

/// The objects of a text.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// Those that are whole and can be read, in order. Objects inside an object are not searched for.
    pub whole: Vec<Object>,
    /// The text around the objects, without thoughts.
    pub prose: Vec<&'a str>,
    /// The text before the end of a thought that never began.
    pub unopened: Option<&'a str>,
    /// The objects in that text.
    pub before_thought: Vec<Object>,
    /// An object begins somewhere, whole or not.
    pub has_begun: bool,
    /// The last object that begins does not end.
    pub is_cut: bool,
}

/// One object, its fields by their names in lower case.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Object {
    fields: BTreeMap<String, Field>,
    /// One of the deciding fields stands in it twice, with two values.
    pub contradicts_itself: bool,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Field {
    Object(Object),
    Other(Value),
}

impl Object {
    /// The value of a field that is no object itself.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self.fields.get(name)? {
            Field::Object(_) => Some(&Value::Null),
            Field::Other(value) => Some(value),
        }
    }

    /// The innermost object where each holds the next and nothing else: `{"vote": {…}}`.
    pub fn unwrapped(mut self) -> Self {
        while self.fields.len() == 1
            && !self.contradicts_itself
            && let Some(Field::Object(inner)) = self.fields.values_mut().next()
        {
            self = std::mem::take(inner);
        }
        self
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = Object::default();
                while let Some((name, value)) = map.next_entry::<String, Field>()? {
                    let name = name.to_ascii_lowercase();
                    let before = object.fields.get(&name);
                    object.contradicts_itself |=
                        before.is_some_and(|before| *before != value) && DECIDING.contains(&name.as_str());
                    object.fields.insert(name, value);
                }
                Ok(object)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Searches a text once, from its start.
///
/// An object begins with a brace and a quotation mark: a brace alone may be anything in prose. What models often get wrong is
/// forgiven: a comma too many, a line break inside a text, a bare word or a number out of all bounds, which both count as text.
///
/// A thought is left out, as [`without_thoughts`](crate::domain::thoughts::without_thoughts) does it. A tag inside an object is text
/// that the object quotes: it neither begins nor ends a thought.
pub(super) fn find(text: &str) -> Found<'_> {
    let mut found = Found::default();
    let (mut from, mut at, mut is_thinking) = (0, 0, false);
    while let Some(next) = text[at..].find(['{', '<']) {
        at += next;
        if text[at..].starts_with('<') {
            let tag = tag_at(text, at);
            at += 1;
            match tag {
                Some((Tag::Close, end)) => {
                    if !is_thinking {
                        let mut before_thought = found.before_thought;
                        before_thought.append(&mut found.whole);
                        found = Found { unopened: Some(&text[..at - 1]), before_thought, ..Found::default() };
                    }
                    (from, at, is_thinking) = (end, end, false);
                }
                Some((Tag::Open, end)) if !is_thinking => {
                    found.prose.push(&text[from..at - 1]);
                    (from, at, is_thinking) = (end, end, true);
                }
                _ => {}
            }
        } else if !is_thinking && begins_vote_without_quotes(&text[at + 1..]) {
            // It is no JSON, and what it quotes must not be taken for a plain answer.
            found.has_begun = true;
            found.is_cut = true;
            return found;
        } else if is_thinking || !text[at + 1..].trim_start().starts_with('"') {
            at += 1;
        } else {
            found.has_begun = true;
            found.prose.push(&text[from..at]);
            let Some((tidy, end)) = Tidying::run(&text[at..]) else {
                found.is_cut = true;
                return found;
            };
            // Too deep for the parser is as good as unreadable.
            found.whole.extend(serde_json::from_str::<Object>(&tidy).map(Object::unwrapped));
            at += end;
            from = at;
        }
    }
    if !is_thinking {
        found.prose.push(&text[from..]);
    }
    found
}

/// Whether what follows a brace is a field of a vote, in single quotation marks or in none.
fn begins_vote_without_quotes(rest: &str) -> bool {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('\'').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let is_field = name.eq_ignore_ascii_case("reason") || DECIDING.iter().any(|field| name.eq_ignore_ascii_case(field));
    is_field && rest.strip_prefix('\'').unwrap_or(rest).trim_start().starts_with(':')
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
