//! Votes in a round: the rules of a decision, and fewer words the longer companions talk among themselves.

use serde::Serialize;

use super::decide::{reasons, wish};
use super::dice::Dice;
use super::hearing::Hearing;
use super::kind::Kind;
use super::phrases::fill;
use super::temper::Temper;
use crate::domain::closing::Stage;
use crate::domain::decision::Decision;
use crate::domain::trigger::Trigger;

/// What is asked for, in the order in which it is asked for.
#[derive(Serialize)]
struct Ballot {
    reason: String,
    decision: Decision,
    importance: f64,
    selected: bool,
    closing: Stage,
}

/// A vote as one JSON object.
pub(super) fn vote(trigger: Trigger, hearing: &Hearing, temper: Temper, dice: &mut Dice) -> String {
    let closing = stage(trigger, hearing, dice);
    let speaks = dice.fraction() < inclination(trigger, hearing, temper, closing);
    let reasons = farewell(closing, speaks).unwrap_or_else(|| reasons(trigger, hearing, temper, speaks));
    let ballot = Ballot {
        reason: fill(dice.pick(reasons), hearing),
        decision: if speaks { Decision::Yes } else { Decision::No },
        importance: if speaks { importance(trigger, hearing, temper, dice) } else { tenths(dice.between((0.0, 2.5))) },
        selected: trigger == Trigger::DirectAddress || hearing.names_me,
        closing,
    };
    // Plain numbers and texts always have their JSON.
    serde_json::to_string(&ballot).unwrap_or_default()
}

/// How near its end the conversation is: nearer with every statement that companions make in a row, and
/// when a person left.
///
/// One that has said goodbye has nothing to add. One that has not stays within reach of whoever goes on talking, and a person who
/// addresses one is not turned away.
fn stage(trigger: Trigger, hearing: &Hearing, dice: &mut Dice) -> Stage {
    let is_soon = dice.fraction() < 0.12;
    match hearing.streak {
        // What a person said is answered before anybody leaves.
        0 => Stage::None,
        _ if trigger == Trigger::DirectAddress => Stage::None,
        _ if hearing.has_parted => Stage::Terminal,
        1 if !hearing.is_left() && !hearing.is_over => Stage::None,
        2 if is_soon && !hearing.is_over => Stage::PreClosing,
        _ => Stage::Closing,
    }
}

/// How likely it is to speak, from 0 to 1.
fn inclination(trigger: Trigger, hearing: &Hearing, temper: Temper, closing: Stage) -> f64 {
    let appetite = temper.appetite();
    let named = if hearing.names_me { 0.3 } else { 0.0 };
    match hearing.streak {
        _ if trigger == Trigger::DirectAddress => wish(trigger, hearing, temper),
        // A goodbye is enough: the others listen.
        _ if closing == Stage::Terminal || hearing.is_over => 0.0,
        0 if trigger == Trigger::Turn => 0.5 + appetite * 0.5 + named,
        0 => wish(trigger, hearing, temper),
        1 if hearing.is_left() => 0.3 + appetite * 0.5,
        1 => 0.45 + appetite * 0.95 + named,
        // Somebody has to end it.
        2 => 0.62 + appetite * 0.5,
        3 => 0.62 + appetite * 0.45,
        // Two who always answer each other would never end.
        _ => 0.0,
    }
}

/// How much the conversation needs it, 0 to 10.
fn importance(trigger: Trigger, hearing: &Hearing, temper: Temper, dice: &mut Dice) -> f64 {
    let least = match hearing.kind {
        _ if trigger == Trigger::DirectAddress => 8.0,
        _ if hearing.names_me => 7.5,
        _ if hearing.shared.is_some() => 6.0,
        Kind::Question | Kind::Help | Kind::Trouble | Kind::Joke | Kind::Request => 5.0,
        Kind::Greeting | Kind::Thanks | Kind::Goodbye | Kind::Story | Kind::Remark => 2.0 + 3.0 * temper.appetite(),
    };
    let tired = if trigger == Trigger::Turn { 0.7 * hearing.streak as f64 } else { 0.0 };
    tenths((least + dice.between((0.0, 2.0)) - tired).clamp(0.0, 10.0))
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Why it speaks or not when the end is near.
const fn farewell(closing: Stage, speaks: bool) -> Option<&'static [&'static str]> {
    match (closing, speaks) {
        (Stage::None, _) | (Stage::PreClosing, false) => None,
        (Stage::PreClosing, true) => Some(&["It is getting late; I start to wrap up.", "One more word before we part."]),
        (Stage::Closing, true) => Some(&["I do not want to leave without a goodbye.", "It is time to part, so I say so."]),
        (Stage::Closing, false) => Some(&["We have said what there was to say.", "This can end here.", "Nothing is left open."]),
        (Stage::Terminal, _) => Some(&["I have said goodbye.", "I took my leave, and I keep to it."]),
    }
}
