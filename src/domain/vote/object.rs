//! Finds the JSON objects in a model's answer, whatever surrounds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::vote_fields::{DECIDING, begins_with_field, is_field};

/// The objects of a text.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// The valid objects, in order. A truncated object has its complete fields. Objects inside an object are not listed.
    pub objects: Vec<Object>,
    /// The text before each of these objects, back to the end of the previous object.
    pub before: Vec<&'a str>,
    /// The text around all beginnings of objects.
    pub prose: Vec<&'a str>,
    /// Whether an object begins anywhere, complete or not.
    pub has_begun: bool,
    /// Whether an object begins that is unreadable.
    pub is_unreadable: bool,
}

impl Found<'_> {
    /// Replaces each object that only wraps another one by the inner one.
    pub fn unwrapped(self) -> Self {
        Self { objects: self.objects.into_iter().map(Object::unwrapped).collect(), ..self }
    }
}

/// One object, with its fields by their names in lower case.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Object {
    pub fields: BTreeMap<String, Field>,
    /// The fields that occur twice with different values.
    pub contradicting: BTreeSet<String>,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum Field {
    Object(Object),
    List(Vec<Field>),
    Other(Value),
}

impl Object {
    /// The value of a field. Null if the field is an object or a list.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self.fields.get(name)? {
            Field::Object(_) | Field::List(_) => Some(&Value::Null),
            Field::Other(value) => Some(value),
        }
    }

    /// Whether one of the deciding fields occurs twice with different values.
    pub fn contradicts_itself(&self) -> bool {
        DECIDING.iter().any(|name| self.contradicting.contains(*name))
    }

    /// Whether all its fields are those of a vote.
    fn has_known_fields_only(&self) -> bool {
        self.fields.keys().all(|name| is_field(name))
    }

    /// The innermost object, if each object contains only the next one: `{"vote": {…}}`.
    fn unwrapped(mut self) -> Self {
        while self.fields.len() == 1
            && !self.contradicts_itself()
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
                    if object.fields.get(&name).is_some_and(|before| *before != value) {
                        object.contradicting.insert(name.clone());
                    }
                    object.fields.insert(name, value);
                }
                Ok(object)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Finds the objects of a text in one pass.
///
/// An object begins with a brace and a quotation mark or the name of a vote's field, because a brace alone is common in prose.
/// Frequent mistakes of models are tolerated: other quotation marks or none, a quotation mark inside a text, a comment, an extra
/// comma, a line break inside a text, a bare word, Python's `True`, or a number out of range. A bare word and a number out of
/// range count as text.
pub(super) fn find(text: &str) -> Found<'_> {
    let mut found = Found::default();
    let (mut from, mut at) = (0, 0);
    while let Some(next) = text[at..].find('{') {
        at += next;
        let inside = without_comments(&text[at + 1..]);
        let is_vote = begins_with_field(inside);
        if !is_vote && !inside.starts_with('"') {
            at += 1;
            continue;
        }
        found.has_begun = true;
        let before = &text[from..at];
        found.prose.push(before);
        match StrictWriter::run(&text[at..]) {
            Rewritten::Complete { output, end } => {
                match serde_json::from_str::<Object>(&output) {
                    Ok(object) => {
                        found.objects.push(object);
                        found.before.push(before);
                    }
                    // A quotation inside an unreadable vote must not be parsed instead of the vote.
                    Err(_) if is_vote && !inside.starts_with('"') => {
                        found.is_unreadable = true;
                        return found;
                    }
                    // An object that is too deep for the parser is ignored.
                    Err(_) => {}
                }
                at += end;
                from = at;
            }
            Rewritten::Cut(outputs) => {
                let object = outputs.iter().find_map(|output| serde_json::from_str::<Object>(output).ok());
                found.is_unreadable = object.as_ref().is_none_or(|object| !object.has_known_fields_only());
                found.before.extend(object.is_some().then_some(before));
                found.objects.extend(object);
                return found;
            }
        }
    }
    found.prose.push(&text[from..]);
    found
}

/// Removes comments and white space at the beginning of a text.
fn without_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(length) = comment(text) {
        text = text[length..].trim_start();
    }
    text
}

/// The length of the comment at the beginning of a text. `None` if there is none.
fn comment(text: &str) -> Option<usize> {
    let end = match text.as_bytes() {
        [b'/', b'/', ..] | [b'#', ..] => text.find('\n'),
        [b'/', b'*', ..] => text.find("*/").map(|end| end + 2),
        _ => return None,
    };
    Some(end.unwrap_or(text.len()))
}

/// One object as strict JSON.
enum Rewritten {
    /// The object is complete.
    Complete {
        output: String,
        /// The end of the object in the text, in bytes.
        end: usize,
    },
    /// The object is truncated: first with all of its text, then with only its complete fields.
    Cut([String; 2]),
}

/// Rewrites one object as strict JSON.
struct StrictWriter<'a> {
    text: &'a str,
    /// The number of bytes that are processed.
    at: usize,
    output: String,
    /// The length of the output up to the last complete field.
    complete: usize,
    depth: usize,
    /// Whether a comma must precede the next value.
    comma: bool,
    /// The start of bare words, while inside of them.
    words: Option<usize>,
}

impl<'a> StrictWriter<'a> {
    /// Rewrites the object at the beginning of a text.
    fn run(text: &'a str) -> Rewritten {
        let mut writer = Self { text, at: 0, output: String::new(), complete: 0, depth: 0, comma: false, words: None };
        while let Some(c) = writer.rest().chars().next() {
            if let Some(length) = comment(writer.rest()) {
                writer.end_words();
                writer.at += length;
            } else if let Some(closing) = closing(c).filter(|_| writer.words.is_none() || c == '"') {
                writer.end_words();
                writer.at += c.len_utf8();
                writer.begin();
                if !writer.quote(closing) {
                    break;
                }
            } else if writer.process_char(c) {
                return Rewritten::Complete { output: writer.output, end: writer.at };
            }
        }
        writer.end_words();
        let complete = writer.output.get(..writer.complete).filter(|complete| !complete.is_empty()).unwrap_or("{");
        Rewritten::Cut([format!("{}}}", writer.output), format!("{complete}}}")])
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Processes a character outside texts. Returns whether the object ends with it.
    fn process_char(&mut self, c: char) -> bool {
        let is_structure = matches!(c, ',' | ':' | ';' | '{' | '}' | '[' | ']' | '\n' | '\r');
        let is_word = c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        if is_word || self.words.is_some() && !is_structure {
            self.words.get_or_insert(self.at);
            self.at += c.len_utf8();
            return false;
        }
        self.end_words();
        self.at += c.len_utf8();
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

    fn end_words(&mut self) {
        let Some(from) = self.words.take() else { return };
        self.begin();
        let words = self.text[from..self.at].trim_end();
        let number = words.parse().ok().and_then(serde_json::Number::from_f64);
        let literal = ["true", "false", "null"].into_iter().find(|literal| words.eq_ignore_ascii_case(literal));
        match (literal.or((words == "None").then_some("null")), number) {
            (Some(literal), _) => self.output.push_str(literal),
            (None, Some(number)) => self.output.push_str(&number.to_string()),
            (None, None) => {
                self.output.push('"');
                words.chars().for_each(|c| self.write(c));
                self.output.push('"');
            }
        }
    }

    /// Copies a text up to its end: a quotation mark followed by more of the object. Returns false if the text is truncated.
    fn quote(&mut self, closing: &[char]) -> bool {
        self.output.push('"');
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            if closing.contains(&c) {
                let after = self.rest().trim_start();
                if after.is_empty() || after.starts_with([',', ':', '}', ']', ';']) {
                    self.output.push('"');
                    return true;
                }
            }
            match (c, self.rest().chars().next()) {
                ('\\', Some(escaped)) => {
                    self.at += escaped.len_utf8();
                    if matches!(escaped, 'b' | 'f' | 'n' | 'r' | 't' | 'u' | '/') {
                        self.output.push('\\');
                        self.output.push(escaped);
                    } else {
                        self.write(escaped);
                    }
                }
                (c, _) => self.write(c),
            }
        }
        false
    }

    /// Writes a character of a text.
    fn write(&mut self, c: char) {
        match c {
            '"' | '\\' => self.output.extend(['\\', c]),
            c if c.is_ascii_control() => self.output.push(' '),
            c => self.output.push(c),
        }
    }
}

/// The quotation marks that can close a text which `open` opens.
const fn closing(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\'' | '‘' | '’' => Some(&['\'', '‘', '’']),
        '“' | '”' | '„' => Some(&['“', '”', '"']),
        _ => None,
    }
}
