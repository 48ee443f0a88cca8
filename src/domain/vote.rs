//! A companion's vote in a round: how a model's answer is read, and the State that it becomes (docs/design/turn-taking.md T-4 to T-6).

mod object;
mod state;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::object::{Found, Object};
use super::answer::{self, Reading, Verdict, Words, sentence};
use super::closing::Stage;
use super::thoughts::without_thoughts;
pub use state::{MOST_IMPORTANCE, Stance, State};

/// The importance of a vote that gives none, or no number.
pub const USUAL_IMPORTANCE: f64 = 5.0;

/// At most this many bytes at the start of an answer are searched for an object.
const SEARCHED_AT_MOST: usize = 64 * 1024;

/// What a model's answer in a round says.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// What was decided.
    pub verdict: Verdict,
    /// Why, in one line of at most 500 characters; of an unreadable answer without a reason, its beginning.
    pub why: Option<String>,
    /// How much the conversation needs it now, 0 to 10.
    pub importance: f64,
    /// The previous speaker called on it, says the model.
    pub selected: bool,
    /// How near its end it sees the conversation. Counts even when the decision is unreadable.
    pub closing: Stage,
}

/// Reads the answer to a vote: the JSON object `{reason, decision, importance, selected, closing}`, wherever in the text it stands.
///
/// Of several objects those with a readable `decision` count, else the first with any, else the first. An object that only wraps
/// another stands for it, and unknown fields are ignored. A `decision` is a text that is read as a plain answer is, or `true` or `false`.
/// `importance` is a number, or one as text; it is held to its range, and 5 when there is none. `selected` is `true` or a text that says so.
/// A `closing` that is no stage is none.
///
/// A model may quote a vote that somebody wrote in the chat, so a vote that is contradicted is unreadable: by another object with a
/// readable `decision` that differs in any field but the reason, by a second value for one field, or by a sentence around the objects
/// that ends in the opposite word.
///
/// A text in which no object begins is read as a plain answer in two lines, with the usual importance. An object that does not end is read
/// as far as its fields are whole; if one of them is unknown, which it may quote, it is unreadable. What a model thought aloud does not count. Nothing inside an object is a thought, whatever tags it
/// quotes.
pub fn read(text: &str, words: Words<'_>) -> Vote {
    let found = object::find(head(text, SEARCHED_AT_MOST));
    let vote = match found.has_begun {
        false => Some(answer::read(text, words).into()),
        true if found.is_unreadable => None,
        true => decided(&found, words),
    };
    let vote = vote.filter(|vote| !found.is_contradicted_before_thought(vote, words)).unwrap_or_else(|| of_object(&Object::default(), words));
    let why = match vote.verdict {
        Verdict::Unreadable => vote.why.or_else(|| sentence(&without_thoughts(text))),
        Verdict::Yes | Verdict::No => vote.why,
    };
    Vote { why, ..vote }
}

/// The vote of the object that counts; none if it is contradicted, or if there is no object.
fn decided(found: &Found<'_>, words: Words<'_>) -> Option<Vote> {
    if found.objects.iter().any(|object| object.contradicts_itself) {
        return None;
    }
    let mut readable = found.objects.iter().map(|object| of_object(object, words)).filter(|vote| vote.verdict != Verdict::Unreadable);
    let Some(vote) = readable.next() else {
        let has_decision = found.objects.iter().find(|object| object.get("decision").is_some());
        return has_decision.or(found.objects.first()).map(|object| of_object(object, words));
    };
    let is_denied = found.prose.iter().any(|prose| vote.is_denied_by(prose, words));
    let is_contradicted = is_denied || readable.any(|other| !vote.agrees_with(&other));
    (!is_contradicted).then_some(vote)
}

impl Found<'_> {
    /// Whether what stands before the end of a thought that never began decides otherwise: it may be an answer that quotes the tag.
    fn is_contradicted_before_thought(&self, vote: &Vote, words: Words<'_>) -> bool {
        let is_other = |earlier: Vote| {
            earlier.verdict != Verdict::Unreadable
                && (earlier.verdict != vote.verdict || self.has_begun && !vote.agrees_with(&earlier))
        };
        self.before_thought.iter().any(|object| is_other(of_object(object, words)))
            || self.unopened.is_some_and(|before| answer::is_opposite_decided(before, vote.verdict, words))
    }
}

impl Vote {
    fn agrees_with(&self, other: &Self) -> bool {
        Self { why: None, ..self.clone() } == Self { why: None, ..other.clone() }
    }

    /// Whether a sentence ends in the opposite word.
    fn is_denied_by(&self, prose: &str, words: Words<'_>) -> bool {
        let sentences = prose.split(['\n', '\r', '.', '!', '?', '。', '！', '？']);
        let mut verdicts = sentences.map(|sentence| answer::verdict_at_end(sentence, words));
        verdicts.any(|verdict| verdict != Verdict::Unreadable && verdict != self.verdict)
    }
}

impl From<Reading> for Vote {
    /// An answer in two lines says nothing of importance and closing.
    fn from(reading: Reading) -> Self {
        let (verdict, why) = (reading.decision, reading.why);
        Self { verdict, why, importance: USUAL_IMPORTANCE, selected: false, closing: Stage::None }
    }
}

fn of_object(object: &Object, words: Words<'_>) -> Vote {
    let text = |name| object.get(name).and_then(Value::as_str);
    let verdict = match object.get("decision") {
        Some(Value::Bool(true)) => Verdict::Yes,
        Some(Value::Bool(false)) => Verdict::No,
        Some(Value::String(decision)) => answer::read(decision, words).decision,
        _ => Verdict::Unreadable,
    };
    let importance = object.get("importance").and_then(number).filter(|number| number.is_finite());
    let is_true = |text: &str| text.trim().eq_ignore_ascii_case("true") || answer::read(text, words).decision == Verdict::Yes;
    Vote {
        verdict,
        why: text("reason").and_then(sentence),
        // Zero is added because a negative one would show its sign.
        importance: importance.map_or(USUAL_IMPORTANCE, |number| number.clamp(0.0, MOST_IMPORTANCE) + 0.0),
        selected: object.get("selected") == Some(&Value::Bool(true)) || text("selected").is_some_and(is_true),
        closing: text("closing").and_then(Stage::named).unwrap_or_default(),
    }
}

/// A number, also where it is given as text: `"9"`, `"8.5/10"`.
fn number(value: &Value) -> Option<f64> {
    let parsed = || value.as_str()?.trim().trim_end_matches("/10").parse().ok();
    value.as_f64().or_else(parsed)
}

/// The start of a text, as far as it is read.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
