//! Votes by a few readable rules. The willingness to speak decreases the longer companions talk among themselves.

use serde::Serialize;

use super::dice::Dice;
use super::kind::Kind;
use super::phrases::fill;
use super::situation::Situation;
use crate::domain::closing::Stage;
use crate::domain::decision::Decision;
use crate::domain::trigger::Trigger;

/// The fields of a vote, in the order in which the prompt asks for them.
#[derive(Serialize)]
struct Ballot {
    reason: String,
    decision: Decision,
    importance: f64,
    selected: bool,
    closing: Stage,
}

pub(super) fn vote(trigger: Trigger, situation: &Situation, dice: &mut Dice) -> String {
    let speaks = dice.fraction() < inclination(trigger, situation);
    let ballot = Ballot {
        reason: fill(dice.pick(reasons(trigger, situation, speaks)), situation),
        decision: if speaks { Decision::Yes } else { Decision::No },
        importance: if speaks { importance(trigger, situation, dice) } else { tenths(dice.between((0.0, 2.5))) },
        selected: trigger == Trigger::DirectAddress || situation.names_me,
        // Closes the conversation only in reply to a goodbye.
        closing: if situation.is_over && trigger != Trigger::DirectAddress { Stage::Closing } else { Stage::None },
    };
    // Plain numbers and strings can always be serialised.
    serde_json::to_string(&ballot).unwrap_or_default()
}

/// The probability of a YES, roughly 0 to 1.
fn inclination(trigger: Trigger, situation: &Situation) -> f64 {
    let named = if situation.names_me { 0.3 } else { 0.0 };
    let kind = match situation.kind {
        Kind::Thanks | Kind::Goodbye => -0.1,
        Kind::Remark => 0.0,
        _ => 0.3,
    };
    match (trigger, situation.streak) {
        // A companion that is called by name with a question answers, whatever the trigger is.
        _ if situation.names_me && situation.asks && !situation.by_companion => 1.0,
        (Trigger::DirectAddress, _) if matches!(situation.kind, Kind::Thanks | Kind::Goodbye) => 0.85,
        (Trigger::DirectAddress | Trigger::Event, _) => 1.0,
        // One goodbye is enough.
        _ if situation.is_over => 0.0,
        (Trigger::Turn, 0) => 0.75 + named,
        (Trigger::Interjection, 0) => 0.5 + named + kind,
        // A message to the whole room seldom stays unanswered.
        (Trigger::Lull, 0) if situation.is_for_all => 0.85,
        // A new user should see a NO as reliably as a YES.
        (Trigger::Lull, 0) if situation.is_brief => named,
        (Trigger::Lull, 0) => 0.45 + named,
        (Trigger::Silence, 0) => 0.3,
        (_, 1) => 0.92 + named,
        (_, 2) => 0.32,
        (_, 3) => 0.12,
        // Two companions that always answer each other would never end.
        _ => 0.0,
    }
}

/// The importance of speaking, 0 to 10.
fn importance(trigger: Trigger, situation: &Situation, dice: &mut Dice) -> f64 {
    let least = match situation.kind {
        _ if trigger == Trigger::DirectAddress => 8.0,
        _ if situation.names_me => 7.5,
        kind if kind.asks() || kind == Kind::Trouble => 5.0,
        _ => 3.5,
    };
    let tired = if trigger == Trigger::Turn { 0.7 * situation.streak as f64 } else { 0.0 };
    tenths((least + dice.between((0.0, 2.0)) - tired).clamp(0.0, 10.0))
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Sentences that give the reason.
fn reasons(trigger: Trigger, situation: &Situation, speaks: bool) -> &'static [&'static str] {
    match (speaks, trigger, situation.kind) {
        (true, Trigger::DirectAddress, _) => match situation.caller {
            Some(_) => &["{caller} is talking to me, so I answer.", "{caller} waits for my answer."],
            None => &["I was spoken to, so I answer."],
        },
        (true, ..) if situation.names_me => &["{name} mentioned me; I should not stay silent.", "I heard my name."],
        (true, Trigger::Turn, _) => &["I want to add something to what {name} said.", "I can add something to what {name} said."],
        (true, _, Kind::Trouble) => &["{name} has a hard day; a kind word is the least."],
        (true, _, Kind::Help | Kind::Joke | Kind::Request) => &["{name} wants something, and I can try."],
        (true, _, Kind::Question) => &["{name} asked into the room, and nobody has answered yet."],
        (true, _, Kind::Greeting) => &["{name} is here; a greeting costs nothing."],
        (true, ..) => &["This is a good moment to join in.", "I have something to add.", "I would like to know more about this."],
        (false, ..) if situation.is_over => &["We have said goodbye.", "Nothing is left open."],
        (false, Trigger::Turn, _) => &["{name} said it well; I leave it there.", "I have nothing to add to {name}."],
        (false, _, Kind::Question) => &["Somebody else knows that better than I do."],
        (false, ..) => &["I would rather listen.", "They do well without me.", "I want to hear first where this goes."],
    }
}
