//! Votes in a round: the rules of a decision, with less willingness the longer companions talk among themselves.

use serde::Serialize;

use super::decide::{probability, reasons};
use super::dice::Dice;
use super::kind::Kind;
use super::phrases::fill;
use super::situation::Situation;
use super::temper::Temper;
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

pub(super) fn vote(trigger: Trigger, situation: &Situation, temper: Temper, dice: &mut Dice) -> String {
    let closing = stage(trigger, situation, dice);
    let speaks = dice.fraction() < inclination(trigger, situation, temper, closing);
    let reasons = closing_reasons(closing, speaks).unwrap_or_else(|| reasons(trigger, situation, temper, speaks));
    let ballot = Ballot {
        reason: fill(dice.pick(reasons), situation),
        decision: if speaks { Decision::Yes } else { Decision::No },
        importance: if speaks { importance(trigger, situation, temper, dice) } else { tenths(dice.between((0.0, 2.5))) },
        selected: trigger == Trigger::DirectAddress || situation.names_me,
        closing,
    };
    // Plain numbers and strings can always be serialised.
    serde_json::to_string(&ballot).unwrap_or_default()
}

/// The closing stage: nearer to the end with every statement that companions make in a row, and when a person left.
///
/// A companion that has said goodbye has nothing to add. One that has not can still be drawn in by others, and never ignores a person who
/// addresses it.
fn stage(trigger: Trigger, situation: &Situation, dice: &mut Dice) -> Stage {
    let is_soon = dice.fraction() < 0.12;
    match situation.streak {
        // A person's message is answered before anybody leaves.
        0 => Stage::None,
        _ if trigger == Trigger::DirectAddress => Stage::None,
        _ if situation.has_parted => Stage::Terminal,
        1 if !situation.is_left() && !situation.is_over => Stage::None,
        2 if is_soon && !situation.is_over => Stage::PreClosing,
        _ => Stage::Closing,
    }
}

/// The probability of a YES, 0 to 1.
fn inclination(trigger: Trigger, situation: &Situation, temper: Temper, closing: Stage) -> f64 {
    let appetite = temper.appetite();
    let named = if situation.names_me { 0.3 } else { 0.0 };
    match situation.streak {
        _ if trigger == Trigger::DirectAddress => probability(trigger, situation, temper),
        // One goodbye is enough.
        _ if closing == Stage::Terminal || situation.is_over => 0.0,
        0 if situation.names_me && situation.asks => 1.0,
        0 if trigger == Trigger::Turn => 0.5 + appetite * 0.5 + named,
        0 => probability(trigger, situation, temper),
        1 if situation.is_left() => 0.3 + appetite * 0.5,
        1 => 0.45 + appetite * 0.95 + named,
        // Somebody has to end it.
        2 => 0.62 + appetite * 0.5,
        3 => 0.62 + appetite * 0.45,
        // Two companions that always answer each other would never end.
        _ => 0.0,
    }
}

/// The importance of speaking, 0 to 10.
fn importance(trigger: Trigger, situation: &Situation, temper: Temper, dice: &mut Dice) -> f64 {
    let least = match situation.kind {
        _ if trigger == Trigger::DirectAddress => 8.0,
        _ if situation.names_me => 7.5,
        _ if situation.shared.is_some() => 6.0,
        Kind::Question | Kind::Help | Kind::Trouble | Kind::Joke | Kind::Request => 5.0,
        Kind::Greeting | Kind::Thanks | Kind::Goodbye | Kind::Story | Kind::Remark => 2.0 + 3.0 * temper.appetite(),
    };
    let tired = if trigger == Trigger::Turn { 0.7 * situation.streak as f64 } else { 0.0 };
    tenths((least + dice.between((0.0, 2.0)) - tired).clamp(0.0, 10.0))
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The reasons for speaking or not when the end is near.
const fn closing_reasons(closing: Stage, speaks: bool) -> Option<&'static [&'static str]> {
    match (closing, speaks) {
        (Stage::None, _) | (Stage::PreClosing, false) => None,
        (Stage::PreClosing, true) => Some(&["It is getting late; I start to wrap up.", "One more word before we part."]),
        (Stage::Closing, true) => Some(&["I do not want to leave without a goodbye.", "It is time to part, so I say so."]),
        (Stage::Closing, false) => Some(&["We have said what there was to say.", "This can end here.", "Nothing is left open."]),
        (Stage::Terminal, _) => Some(&["I have said goodbye.", "I took my leave, and I keep to it."]),
    }
}
