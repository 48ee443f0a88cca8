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
    /// Those that can be read, in order; one that does not end has the fields that are whole. Objects inside an object are not searched for.
    pub objects: Vec<Object>,
    /// The text around the objects, without thoughts.
    pub prose: Vec<&'a str>,
    /// The text before the end of a thought that never began.
    pub unopened: Option<&'a str>,
    /// The objects in that text.
    pub before_thought: Vec<Object>,
    /// An object begins somewhere, whole or not.
    pub has_begun: bool,
    /// An object begins that cannot be read.
    pub is_unreadable: bool,
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

    /// Whether it has only fields of a vote.
    fn is_of_known_fields(&self) -> bool {
        self.fields.keys().all(|name| name == "reason" || DECIDING.contains(&&**name))
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
                        before_thought.append(&mut found.objects);
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
            found.is_unreadable = true;
            return found;
        } else if is_thinking || !text[at + 1..].trim_start().starts_with('"') {
            at += 1;
        } else {
            found.has_begun = true;
            found.prose.push(&text[from..at]);
            match Tidying::run(&text[at..]) {
                Tidied::Whole { tidy, end } => {
                    // Too deep for the parser is as good as unreadable.
                    found.objects.extend(serde_json::from_str::<Object>(&tidy).map(Object::unwrapped));
                    at += end;
                    from = at;
                }
                Tidied::Cut(tidy) => {
                    let object = tidy.iter().find_map(|tidy| serde_json::from_str::<Object>(tidy).ok());
                    found.is_unreadable = object.as_ref().is_none_or(|object| !object.is_of_known_fields());
                    found.objects.extend(object);
                    return found;
                }
            }
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

/// One object as strict JSON.
enum Tidied {
    /// It ends.
    Whole {
        tidy: String,
        /// Where it ends in the text, in bytes.
        end: usize,
    },
    /// It does not end: with all that is there, and with its whole fields alone.
    Cut([String; 2]),
}

/// Copies one object as strict JSON.
struct Tidying<'a> {
    text: &'a str,
    tidy: String,
    /// The length of `tidy` up to which the object's fields are whole.
    whole: usize,
    depth: usize,
    /// A comma that is due before the next value.
    comma: bool,
    /// Where a bare word began.
    word: Option<usize>,
}

impl<'a> Tidying<'a> {
    /// The object that a text begins with.
    fn run(text: &'a str) -> Tidied {
        let mut tidying = Self { text, tidy: String::new(), whole: 0, depth: 0, comma: false, word: None };
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '"' {
                tidying.end_word(at);
                tidying.begin();
                if tidying.quote(&mut chars).is_none() {
                    break;
                }
            } else if tidying.take(at, c) {
                return Tidied::Whole { tidy: tidying.tidy, end: at + c.len_utf8() };
            }
        }
        tidying.end_word(text.len());
        let whole = tidying.tidy.get(..tidying.whole).filter(|whole| !whole.is_empty()).unwrap_or("{");
        Tidied::Cut([format!("{}}}", tidying.tidy), format!("{whole}}}")])
    }

    /// Takes a character outside of texts, and tells whether the object ends with it.
    fn take(&mut self, at: usize, c: char) -> bool {
        if c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_') {
            self.word.get_or_insert(at);
            return false;
        }
        self.end_word(at);
        match c {
            ',' => {
                self.comma = true;
                if self.depth == 1 {
                    self.whole = self.tidy.len();
                }
            }
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
