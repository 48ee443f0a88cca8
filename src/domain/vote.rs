//! A companion's vote in a round: how a model's answer is read, and the State that it becomes (seed 000).

mod object;
mod state;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::answer::{self, Reading, Verdict, sentence};
use super::closing::Stage;
use super::thoughts::{after_first_thought, without_thoughts};
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
/// Of several objects the first with a readable `decision` counts, else the first with any, else the first. One that only wraps
/// another stands for it; fields that are not known are ignored, and of two with one name the later counts. A `decision` is read as the
/// last word of a plain answer is; one that is no text is unreadable. `importance` is held to its range, and 5 when it is missing or no
/// number; `selected` is true for `true` alone; a `closing` that is no stage is none.
///
/// A text in which no object begins is read as a plain answer in two lines, with the usual importance. One in which an object begins
/// never is: half an object is unreadable, because what its reason quotes must not decide. What a model thought aloud does not count.
///
/// In a text that is one object from its first character to its last, with or without a thought before it, nothing is a thought: what
/// looks like the end of one is quoted there, and must not decide either.
pub fn read(text: &str) -> Vote {
    let alone = [Some(text), after_first_thought(text)].into_iter().flatten();
    let alone = alone.map(|said| head(said, SEARCHED_AT_MOST)).find_map(|said| Some((object::alone(said)?, said)));
    if let Some((object, said)) = alone {
        return of_object(&unwrapped(object), said);
    }
    let answer = without_thoughts(text);
    let found = object::find(head(&answer, SEARCHED_AT_MOST));
    if !found.has_begun {
        return plain(&answer);
    }
    let (mut chosen, mut best) = (None, 0);
    for object in found.whole.into_iter().map(unwrapped) {
        let vote = of_object(&object, &answer);
        let rank = match (field(&object, "decision"), vote.verdict) {
            (None, _) => 1,
            (Some(_), Verdict::Unreadable) => 2,
            (Some(_), Verdict::Yes | Verdict::No) => 3,
        };
        if rank > best {
            (chosen, best) = (Some(vote), rank);
        }
    }
    chosen.unwrap_or_else(|| of_object(&Map::new(), &answer))
}

fn plain(answer: &str) -> Vote {
    answer::read(answer).into()
}

impl From<Reading> for Vote {
    /// An answer in two lines says nothing of importance and closing.
    fn from(reading: Reading) -> Self {
        let (verdict, why) = (reading.decision, reading.why);
        Self { verdict, why, importance: USUAL_IMPORTANCE, selected: false, closing: Stage::None }
    }
}

fn of_object(object: &Map<String, Value>, answer: &str) -> Vote {
    let text = |name| field(object, name).and_then(Value::as_str);
    let verdict = text("decision").map_or(Verdict::Unreadable, |decision| answer::read(decision).decision);
    let reason = text("reason").and_then(sentence);
    let importance = field(object, "importance").and_then(Value::as_f64).filter(|number| number.is_finite());
    Vote {
        verdict,
        why: if verdict == Verdict::Unreadable { reason.or_else(|| sentence(answer)) } else { reason },
        // Zero is added because a negative one would show its sign.
        importance: importance.map_or(USUAL_IMPORTANCE, |number| number.clamp(0.0, MOST_IMPORTANCE) + 0.0),
        selected: field(object, "selected") == Some(&Value::Bool(true)),
        closing: text("closing").map_or(Stage::None, stage),
    }
}

/// The innermost object where each holds the next and nothing else: `{"vote": {…}}`.
fn unwrapped(mut object: Map<String, Value>) -> Map<String, Value> {
    while object.len() == 1
        && let Some(Value::Object(inner)) = object.values_mut().next()
    {
        object = std::mem::take(inner);
    }
    object
}

/// A field by its name, in any case where it is not there as it should be.
fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let in_any_case = || object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    object.get(name).or_else(in_any_case)
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
