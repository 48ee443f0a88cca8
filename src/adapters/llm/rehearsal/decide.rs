//! Answers "do you want to speak?" by a few readable rules.

use super::dice::Dice;
use super::hearing::Hearing;
use super::kind::Kind;
use super::phrases::fill;
use super::temper::Temper;
use crate::domain::trigger::Trigger;

/// A sentence of why, and YES or NO on a line of its own.
pub(super) fn decision(trigger: Trigger, hearing: &Hearing, temper: Temper, dice: &mut Dice) -> String {
    let speaks = dice.fraction() < wish(trigger, hearing, temper);
    let reasons = reasons(trigger, hearing, temper, speaks);
    let reason = fill(dice.pick(reasons), hearing);
    format!("{reason}\n{}", if speaks { "YES" } else { "NO" })
}

/// How likely it is to speak, from 0 to 1.
pub(super) fn wish(trigger: Trigger, hearing: &Hearing, temper: Temper) -> f64 {
    let appetite = temper.appetite();
    let called = if hearing.names_me { 0.5 } else { 0.0 };
    let touched = if hearing.shared.is_some() { 0.3 } else { 0.0 };
    let invited = match hearing.kind {
        Kind::Greeting | Kind::Trouble | Kind::Help => 0.3,
        Kind::Question | Kind::Joke | Kind::Request => 0.25,
        Kind::Thanks | Kind::Goodbye => -0.1,
        Kind::Story | Kind::Remark => 0.0,
    };
    match trigger {
        Trigger::DirectAddress if matches!(hearing.kind, Kind::Thanks | Kind::Goodbye) => 0.85,
        Trigger::DirectAddress => 0.98,
        Trigger::Interjection => appetite + called + touched + invited,
        // Whoever speaks to the room is seldom left alone: the eager come first, and others find their turn.
        Trigger::Lull if hearing.is_for_all => (appetite * 1.7 - 0.05 + touched * 0.5).min(0.98) + called,
        // So that a newcomer sees a NO as surely as a YES.
        Trigger::Lull if hearing.is_brief => called + touched,
        Trigger::Lull => appetite * 0.9 + called + touched,
        Trigger::Turn => appetite * 0.6 + called + touched * 0.5 + invited * 0.5,
    }
}

/// Sentences that say why.
pub(super) fn reasons(trigger: Trigger, hearing: &Hearing, temper: Temper, speaks: bool) -> &'static [&'static str] {
    match (speaks, trigger) {
        (true, Trigger::DirectAddress) => {
            &["{name} is talking to me, so I answer.", "That was meant for me.", "{name} waits for a word of mine."]
        }
        (true, _) if hearing.names_me => &["{name} mentioned me; I should not stay silent.", "I heard my name."],
        (true, _) if hearing.shared.is_some() => {
            &["They said \"{shared}\", and that is close to me.", "I heard \"{shared}\", and there I can say something."]
        }
        (true, _) if hearing.kind == Kind::Trouble => {
            &["{name} has a hard day; a kind word is the least.", "One does not leave {name} alone with that."]
        }
        (true, _) if matches!(hearing.kind, Kind::Help | Kind::Joke | Kind::Request) => {
            &["{name} wants something, and I can try.", "Nobody has taken up what {name} asks for."]
        }
        (true, _) if hearing.kind == Kind::Question => {
            &["{name} asked into the room, and I have an answer.", "A question is open and nobody has taken it."]
        }
        (true, _) if hearing.kind == Kind::Greeting => &["{name} is here; a greeting costs nothing.", "I like to say hello."],
        (true, _) if matches!(hearing.kind, Kind::Thanks | Kind::Goodbye) => {
            &["It would be rude to leave {name} without a word.", "A kind word more does no harm."]
        }
        (true, Trigger::Turn) => &["I want to add something to what {name} said.", "{name} left me an opening."],
        (true, _) => match temper {
            Temper::Quiet => &["For once I do have something to say."],
            Temper::Dry => &["Somebody has to say it.", "This needs a remark."],
            Temper::Curious => &["I would like to know more about this.", "There is something here I want to ask."],
            Temper::Playful => &["I cannot let that one go by.", "This is too good to stay silent."],
            Temper::Eager => &["I have been waiting to join in!", "I am right here and want to talk."],
            Temper::Even => &["This is a good moment to join in.", "I have something to add."],
        },
        (false, Trigger::DirectAddress) => &["Nothing is left to answer here.", "A nod is enough."],
        (false, Trigger::Turn) => &["{name} said it well; I leave it there.", "I have nothing to add to {name}."],
        (false, _) if hearing.kind == Kind::Question => {
            &["Somebody else knows that better than I do.", "I will wait for who knows it."]
        }
        (false, _) => match temper {
            Temper::Quiet => &["I would rather listen.", "They do well without me.", "I have no need to be heard now."],
            Temper::Dry => &["I have heard worse, and better.", "Not worth a word."],
            Temper::Curious => &["I want to hear where this goes first.", "I keep listening."],
            Temper::Playful => &["I save my joke for later.", "Not my turn to be funny."],
            Temper::Eager => &["It is hard, but I let the others talk.", "I said enough for the moment."],
            Temper::Even => &["They are fine without me.", "There is nothing for me to add."],
        },
    }
}
