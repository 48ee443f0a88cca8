//! Finds the JSON objects in a model's answer, whatever surrounds them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::domain::vote_fields::{DECIDING, begins_without_quotes};

/// The objects of a text.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// The valid objects, in order. An object that has no end has its complete fields. Objects inside an object are not searched for.
    pub objects: Vec<Object>,
    /// The text around the objects.
    pub prose: Vec<&'a str>,
    /// Whether an object begins anywhere, complete or not.
    pub has_begun: bool,
    /// Whether an object begins that cannot be read.
    pub is_unreadable: bool,
}

/// One object, with its fields by their names in lower case.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Object {
    fields: BTreeMap<String, Field>,
    /// Whether one of the deciding fields occurs twice, with different values.
    pub contradicts_itself: bool,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Field {
    Object(Object),
    Other(Value),
}

impl Object {
    /// The value of a field. A field that holds an object gives null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self.fields.get(name)? {
            Field::Object(_) => Some(&Value::Null),
            Field::Other(value) => Some(value),
        }
    }

    /// Whether all its fields are those of a vote.
    fn has_known_fields_only(&self) -> bool {
        self.fields.keys().all(|name| ["reason", "mood"].contains(&&**name) || DECIDING.contains(&&**name))
    }

    /// The innermost object, if each object holds only the next one: `{"vote": {…}}`.
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
/// An object begins with a brace and a quotation mark, because a brace alone may be anything in prose. Frequent mistakes of models are tolerated: an
/// extra comma, a line break inside a text, a bare word, or a number out of range. The last two count as text.
pub(super) fn find(text: &str) -> Found<'_> {
    let mut found = Found::default();
    let (mut from, mut at) = (0, 0);
    while let Some(next) = text[at..].find('{') {
        at += next;
        if begins_without_quotes(&text[at + 1..]) {
            // This is no JSON, and its quotes must not be read as a plain answer.
            found.has_begun = true;
            found.is_unreadable = true;
            return found;
        }
        if !text[at + 1..].trim_start().starts_with('"') {
            at += 1;
            continue;
        }
        found.has_begun = true;
        found.prose.push(&text[from..at]);
        match StrictWriter::run(&text[at..]) {
            Rewritten::Complete { output, end } => {
                // An object that is too deep for the parser is ignored.
                found.objects.extend(serde_json::from_str::<Object>(&output).map(Object::unwrapped));
                at += end;
                from = at;
            }
            Rewritten::Cut(outputs) => {
                let object = outputs.iter().find_map(|output| serde_json::from_str::<Object>(output).ok());
                found.is_unreadable = object.as_ref().is_none_or(|object| !object.has_known_fields_only());
                found.objects.extend(object);
                return found;
            }
        }
    }
    found.prose.push(&text[from..]);
    found
}

/// One object as strict JSON.
enum Rewritten {
    /// The object has an end.
    Complete {
        output: String,
        /// The end of the object in the text, in bytes.
        end: usize,
    },
    /// The object has no end: first with everything that is there, then with its complete fields only.
    Cut([String; 2]),
}

/// Rewrites one object as strict JSON.
struct StrictWriter<'a> {
    text: &'a str,
    output: String,
    /// The length of the output that ends with a complete field.
    complete: usize,
    depth: usize,
    /// Whether a comma must precede the next value.
    comma: bool,
    /// The start of a bare word, while inside one.
    word: Option<usize>,
}

impl<'a> StrictWriter<'a> {
    /// The object that a text begins with.
    fn run(text: &'a str) -> Rewritten {
        let mut writer = Self { text, output: String::new(), complete: 0, depth: 0, comma: false, word: None };
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '"' {
                writer.end_word(at);
                writer.begin();
                if writer.quote(&mut chars).is_none() {
                    break;
                }
            } else if writer.take(at, c) {
                return Rewritten::Complete { output: writer.output, end: at + c.len_utf8() };
            }
        }
        writer.end_word(text.len());
        let complete = writer.output.get(..writer.complete).filter(|complete| !complete.is_empty()).unwrap_or("{");
        Rewritten::Cut([format!("{}}}", writer.output), format!("{complete}}}")])
    }

    /// Handles a character outside texts. Returns whether the object ends with it.
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
                    self.complete = self.output.len();
                }
            }
            '{' | '[' => {
                self.begin();
                self.depth += 1;
                self.output.push(c);
            }
            '}' | ']' => {
                self.comma = false;
                self.depth = self.depth.saturating_sub(1);
                self.output.push(c);
            }
            c if c.is_whitespace() => {}
            c => self.output.push(c),
        }
        self.depth == 0
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.output.push(',');
        }
    }

    fn end_word(&mut self, at: usize) {
        let Some(from) = self.word.take() else { return };
        self.begin();
        let word = &self.text[from..at];
        let number = word.parse().ok().and_then(serde_json::Number::from_f64);
        match (word, number) {
            ("true" | "false" | "null", _) => self.output.push_str(word),
            (_, Some(number)) => self.output.push_str(&number.to_string()),
            (_, None) => self.output.extend(["\"", word, "\""]),
        }
    }

    /// Copies a text up to its end. None if it has no end.
    fn quote(&mut self, chars: &mut std::str::CharIndices<'a>) -> Option<()> {
        self.output.push('"');
        loop {
            match chars.next()?.1 {
                '"' => break,
                '\\' => self.output.extend(['\\', chars.next()?.1]),
                c if c.is_ascii_control() => self.output.push(' '),
                c => self.output.push(c),
            }
        }
        self.output.push('"');
        Some(())
    }
}
