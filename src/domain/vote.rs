//! A companion's vote in a round: how a model's answer is read, and the State that it becomes (docs/design/turn-taking.md T-4 to T-6).

mod object;
mod state;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::object::{Found, Object};
use super::answer::{self, Reading, Verdict, sentence};
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
/// another stands for it, and unknown fields are ignored. A `decision` is read as the last word of a plain answer is; one that is no text
/// is unreadable. `importance` is held to its range, and 5 when it is missing or no number; `selected` is true for `true` alone; a
/// `closing` that is no stage is none.
///
/// A model may quote a vote that somebody wrote in the chat, so a vote that is contradicted is unreadable: by another object with a
/// readable `decision` that differs in any field but the reason, by a second value for one field, or by a sentence around the objects
/// that ends in the opposite word.
///
/// A text in which no object begins is read as a plain answer in two lines, with the usual importance. One in which an object begins
/// that does not end is unreadable. What a model thought aloud does not count. Nothing inside an object is a thought, whatever tags it
/// quotes.
pub fn read(text: &str) -> Vote {
    let found = object::find(head(text, SEARCHED_AT_MOST));
    let vote = match found.has_begun {
        false => Some(answer::read(text).into()),
        true if found.is_cut => None,
        true => decided(&found),
    };
    let vote = vote.filter(|vote| !found.is_contradicted_before_thought(vote)).unwrap_or_else(|| of_object(&Object::default()));
    let why = match vote.verdict {
        Verdict::Unreadable => vote.why.or_else(|| sentence(&without_thoughts(text))),
        Verdict::Yes | Verdict::No => vote.why,
    };
    Vote { why, ..vote }
}

/// The vote of the object that counts; none if it is contradicted, or if there is no object.
fn decided(found: &Found<'_>) -> Option<Vote> {
    if found.whole.iter().any(|object| object.contradicts_itself) {
        return None;
    }
    let mut readable = found.whole.iter().map(of_object).filter(|vote| vote.verdict != Verdict::Unreadable);
    let Some(vote) = readable.next() else {
        let has_decision = found.whole.iter().find(|object| object.get("decision").is_some());
        return has_decision.or(found.whole.first()).map(of_object);
    };
    let is_denied = found.prose.iter().any(|prose| vote.is_denied_by(prose));
    let is_contradicted = is_denied || readable.any(|other| !vote.agrees_with(&other));
    (!is_contradicted).then_some(vote)
}

impl Found<'_> {
    /// Whether what stands before the end of a thought that never began decides otherwise: it may be an answer that quotes the tag.
    fn is_contradicted_before_thought(&self, vote: &Vote) -> bool {
        let is_other = |earlier: Vote| {
            earlier.verdict != Verdict::Unreadable
                && (earlier.verdict != vote.verdict || self.has_begun && !vote.agrees_with(&earlier))
        };
        self.before_thought.iter().any(|object| is_other(of_object(object)))
            || self.unopened.is_some_and(|before| answer::is_opposite_decided(before, vote.verdict))
    }
}

impl Vote {
    fn agrees_with(&self, other: &Self) -> bool {
        Self { why: None, ..self.clone() } == Self { why: None, ..other.clone() }
    }

    /// Whether a sentence ends in the opposite word.
    fn is_denied_by(&self, prose: &str) -> bool {
        let sentences = prose.split(['\n', '\r', '.', '!', '?', '。', '！', '？']);
        let mut words = sentences.map(|sentence| answer::read(sentence).decision);
        words.any(|word| word != Verdict::Unreadable && word != self.verdict)
    }
}

impl From<Reading> for Vote {
    /// An answer in two lines says nothing of importance and closing.
    fn from(reading: Reading) -> Self {
        let (verdict, why) = (reading.decision, reading.why);
        Self { verdict, why, importance: USUAL_IMPORTANCE, selected: false, closing: Stage::None }
    }
}

fn of_object(object: &Object) -> Vote {
    let text = |name| object.get(name).and_then(Value::as_str);
    let verdict = text("decision").map_or(Verdict::Unreadable, |decision| answer::read(decision).decision);
    let importance = object.get("importance").and_then(Value::as_f64).filter(|number| number.is_finite());
    Vote {
        verdict,
        why: text("reason").and_then(sentence),
        // Zero is added because a negative one would show its sign.
        importance: importance.map_or(USUAL_IMPORTANCE, |number| number.clamp(0.0, MOST_IMPORTANCE) + 0.0),
        selected: object.get("selected") == Some(&Value::Bool(true)),
        closing: text("closing").map_or(Stage::None, stage),
    }
}

fn stage(name: &str) -> Stage {
    Stage::ALL.into_iter().find(|stage| name.trim().eq_ignore_ascii_case(stage.as_str())).unwrap_or_default()
}

/// The start of a text, as far as it is read.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
