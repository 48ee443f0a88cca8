//! A companion's vote in a round: parses a model's answer and converts it to a State (docs/design/turn-taking.md T-4 to T-6).

mod object;
mod state;
#[cfg(test)]
mod tests;
pub mod together;

use serde_json::Value;

use self::object::{Found, Object};
use super::answer::{self, Reading, Verdict, Words, sentence};
use super::closing::Stage;
use super::raw_answer;
use super::text::first_bytes;
pub use state::{MOST_IMPORTANCE, MOST_MOOD, Stance, State, is_usual};

/// The importance if the answer has no valid one.
pub const USUAL_IMPORTANCE: f64 = 5.0;

/// The part of an answer that is searched for objects: the first 64 KiB.
const MAX_SEARCHED_BYTES: usize = 64 * 1024;

/// A parsed answer of a model in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// The decision: YES, NO, or unreadable.
    pub verdict: Verdict,
    /// The reason, in one line of at most 500 characters. If the answer is unreadable and has no reason, its beginning.
    pub why: Option<String>,
    /// How urgently the conversation needs the statement, 0 to 10.
    pub importance: f64,
    /// Whether the previous speaker called on the companion, according to the model.
    pub selected: bool,
    /// The closing stage. It counts even if the decision is unreadable.
    pub closing: Stage,
    /// How much more than usual the companion tolerates interruptions, −0.2 to 0.2.
    pub mood: f64,
    /// Whether a person is at risk. `None` if the model was not asked, or did not answer that.
    pub risk: Option<bool>,
}

impl Vote {
    /// A YES without a reason, by a companion that was called upon.
    pub fn yes() -> Self {
        Self { verdict: Verdict::Yes, selected: true, ..Self::no(None) }
    }

    /// A NO.
    pub const fn no(why: Option<String>) -> Self {
        Self {
            verdict: Verdict::No,
            why,
            importance: USUAL_IMPORTANCE,
            selected: false,
            closing: Stage::None,
            mood: 0.0,
            risk: None,
        }
    }
}

/// Parses the answer to a vote: the JSON object `{reason, decision, importance, selected, closing}`, anywhere in the text.
///
/// If there are several objects, those with a readable `decision` count, else the first with any `decision`, else the first. An
/// object that only wraps another one is replaced by the inner one. Unknown fields are ignored. A `decision` is a text that is
/// parsed like a plain answer, `true` or `false`, or 1 or 0. `importance` is a number, or a text with one. It is clamped to its
/// range, and defaults to 5. `selected` is `true`, or a text that means so. An unknown `closing` counts as none. `mood`, which is
/// requested only in calls, is parsed like `importance` and defaults to 0. `risk`, which is requested if a person may be at risk,
/// is parsed like `selected`.
///
/// A model may quote a vote that a person wrote in the chat. So a contradictory answer is unreadable:
///
/// * another object with a readable `decision` that differs in any field but the reason, the mood and the risk,
/// * a second value for one field,
/// * a sentence around the objects that ends in the opposite word.
///
/// A text without the beginning of an object is parsed as a plain answer in two lines, with the usual importance. Of a truncated
/// object, the complete fields are read. If one of them is unknown, the object may be a quotation, and the answer is unreadable.
/// The model's thoughts are ignored. Tags inside an object do not open a thought.
pub fn read(text: &str, words: Words<'_>) -> Vote {
    let seen = raw_answer::decision(first_bytes(text, MAX_SEARCHED_BYTES));
    let found = object::find(&seen.text).unwrapped();
    let vote = match found.has_begun {
        false => Some(answer::read(text, words).into()),
        true if found.is_unreadable => None,
        true => deciding_vote(&found, words),
    };
    let is_contradicted =
        |vote: &Vote| seen.unopened.is_some_and(|before| is_contradicted_by(before, vote, found.has_begun, words));
    let vote = vote.filter(|vote| !is_contradicted(vote));
    let vote = vote.unwrap_or_else(|| vote_of(&Object::default(), words));
    let why = match vote.verdict {
        Verdict::Unreadable => vote.why.or_else(|| sentence(&seen.text)),
        // A reason without words is the placeholder of the requested form.
        Verdict::Yes | Verdict::No => vote.why.filter(|why| why.contains(char::is_alphanumeric)),
    };
    Vote { why, ..vote }
}

/// The vote of the object that counts. `None` if it is contradicted, or if there is no object.
fn deciding_vote(found: &Found<'_>, words: Words<'_>) -> Option<Vote> {
    if found.objects.iter().any(Object::contradicts_itself) {
        return None;
    }
    let votes = found.objects.iter().map(|object| vote_of(object, words));
    let mut readable = votes.filter(|vote| vote.verdict != Verdict::Unreadable);
    let Some(vote) = readable.next() else {
        let has_decision = found.objects.iter().find(|object| object.get("decision").is_some());
        return has_decision.or(found.objects.first()).map(|object| vote_of(object, words));
    };
    let is_denied = found.prose.iter().any(|prose| vote.is_denied_by(prose, words));
    let is_contradicted = is_denied || readable.any(|other| !vote.agrees_with(&other));
    (!is_contradicted).then_some(vote)
}

/// Whether the text before an unopened thought's closing marker decides otherwise. That text may be an answer that quotes the
/// marker.
fn is_contradicted_by(before: &str, vote: &Vote, is_object: bool, words: Words<'_>) -> bool {
    let differs = |earlier: Vote| {
        earlier.verdict != Verdict::Unreadable && (earlier.verdict != vote.verdict || is_object && !vote.agrees_with(&earlier))
    };
    object::find(before).unwrapped().objects.iter().any(|object| differs(vote_of(object, words)))
        || answer::is_opposite_decided(before, vote.verdict, words)
}

impl Vote {
    fn agrees_with(&self, other: &Self) -> bool {
        Self { why: None, mood: other.mood, risk: other.risk, ..self.clone() } == Self { why: None, ..other.clone() }
    }

    /// Whether any sentence of a text ends with the opposite verdict.
    fn is_denied_by(&self, prose: &str, words: Words<'_>) -> bool {
        let sentences = prose.split(['\n', '\r', '.', '!', '?', '。', '！', '？']);
        let mut verdicts = sentences.map(|sentence| answer::verdict_at_end(sentence, words));
        verdicts.any(|verdict| verdict != Verdict::Unreadable && verdict != self.verdict)
    }
}

impl From<Reading> for Vote {
    /// An answer in two lines has no importance and no closing stage.
    fn from(reading: Reading) -> Self {
        let (verdict, why) = (reading.decision, reading.why);
        Self { verdict, why, importance: USUAL_IMPORTANCE, selected: false, closing: Stage::None, mood: 0.0, risk: None }
    }
}

fn vote_of(object: &Object, words: Words<'_>) -> Vote {
    let text = |name| object.get(name).and_then(Value::as_str);
    let verdict = match object.get("decision") {
        Some(Value::Bool(decision)) => verdict_of(*decision),
        Some(Value::Number(number)) if number.as_f64() == Some(1.0) => Verdict::Yes,
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => Verdict::No,
        Some(Value::String(decision)) => match decision.trim().to_ascii_lowercase().parse() {
            Ok(decision) => verdict_of(decision),
            Err(_) => answer::read(decision, words).decision,
        },
        _ => Verdict::Unreadable,
    };
    let given = |name| object.get(name).and_then(number).filter(|number| number.is_finite());
    let is_true = |text: &str| text.trim().eq_ignore_ascii_case("true") || answer::read(text, words).decision == Verdict::Yes;
    Vote {
        verdict,
        why: text("reason").and_then(sentence),
        // Adding zero turns −0 into 0, because −0 would be shown with its sign.
        importance: given("importance").map_or(USUAL_IMPORTANCE, |number| number.clamp(0.0, MOST_IMPORTANCE) + 0.0),
        selected: object.get("selected") == Some(&Value::Bool(true)) || text("selected").is_some_and(is_true),
        closing: text("closing").and_then(Stage::named).unwrap_or_default(),
        risk: match object.get("risk") {
            Some(Value::Bool(risk)) => Some(*risk),
            Some(Value::String(risk)) => Some(is_true(risk)),
            _ => None,
        },
        mood: given("mood").map_or(0.0, |number| number.clamp(-MOST_MOOD, MOST_MOOD) + 0.0),
    }
}

const fn verdict_of(decision: bool) -> Verdict {
    if decision { Verdict::Yes } else { Verdict::No }
}

/// A number, also in a text: `"9"`, `"8.5/10"`.
fn number(value: &Value) -> Option<f64> {
    let parsed = || value.as_str()?.trim().trim_end_matches("/10").parse().ok();
    value.as_f64().or_else(parsed)
}
