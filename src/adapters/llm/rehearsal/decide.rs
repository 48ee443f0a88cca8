//! Decides by a few readable rules whether a companion wants to speak.

use super::kind::Kind;
use super::situation::Situation;
use super::temper::Temper;
use crate::domain::trigger::Trigger;

/// The probability that the companion speaks, roughly 0 to 1.
pub(super) fn probability(trigger: Trigger, situation: &Situation, temper: Temper) -> f64 {
    let appetite = temper.appetite();
    let name_bonus = if situation.names_me { 0.5 } else { 0.0 };
    let shared_bonus = if situation.shared.is_some() { 0.3 } else { 0.0 };
    let kind_bonus = match situation.kind {
        Kind::Greeting | Kind::Trouble | Kind::Help => 0.3,
        Kind::Question | Kind::Joke | Kind::Request => 0.25,
        Kind::Thanks | Kind::Goodbye => -0.1,
        Kind::Story | Kind::Remark => 0.0,
    };
    match trigger {
        // Whoever is called by name with a question answers, whatever made it consider that.
        _ if situation.names_me && situation.asks && !situation.by_companion => 1.0,
        Trigger::DirectAddress if matches!(situation.kind, Kind::Thanks | Kind::Goodbye) => 0.85,
        // Whoever is asked by name answers.
        Trigger::DirectAddress | Trigger::Event => 1.0,
        Trigger::Interjection => appetite + name_bonus + shared_bonus + kind_bonus,
        // A message to the whole room seldom stays unanswered: eager companions speak first, and others can follow.
        Trigger::Lull if situation.is_for_all => (appetite * 1.7 - 0.05 + shared_bonus * 0.5).min(0.98) + name_bonus,
        // A new user should see a NO as reliably as a YES.
        Trigger::Lull if situation.is_brief => name_bonus + shared_bonus,
        Trigger::Lull => appetite * 0.9 + name_bonus + shared_bonus,
        Trigger::Silence => appetite * 0.6,
        Trigger::Turn => appetite * 0.6 + name_bonus + shared_bonus * 0.5 + kind_bonus * 0.5,
    }
}

/// Sentences that give the reason.
pub(super) fn reasons(trigger: Trigger, situation: &Situation, temper: Temper, speaks: bool) -> &'static [&'static str] {
    match (speaks, trigger) {
        (true, Trigger::DirectAddress) => {
            &["{name} is talking to me, so I answer.", "That was meant for me.", "{name} waits for a word of mine."]
        }
        (true, _) if situation.names_me => &["{name} mentioned me; I should not stay silent.", "I heard my name."],
        (true, _) if situation.shared.is_some() => {
            &["They said \"{shared}\", and that is close to me.", "I heard \"{shared}\", and there I can say something."]
        }
        (true, _) if situation.kind == Kind::Trouble => {
            &["{name} has a hard day; a kind word is the least.", "One does not leave {name} alone with that."]
        }
        (true, _) if matches!(situation.kind, Kind::Help | Kind::Joke | Kind::Request) => {
            &["{name} wants something, and I can try.", "Nobody has taken up what {name} asks for."]
        }
        (true, _) if situation.kind == Kind::Question => {
            &["{name} asked into the room, and I have an answer.", "A question is open and nobody has taken it."]
        }
        (true, _) if situation.kind == Kind::Greeting => &["{name} is here; a greeting costs nothing.", "I like to say hello."],
        (true, _) if matches!(situation.kind, Kind::Thanks | Kind::Goodbye) => {
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
        (false, Trigger::DirectAddress) => &["That needs no answer.", "Nothing is left to answer here."],
        (false, Trigger::Turn) => &["{name} said it well; I leave it there.", "I have nothing to add to {name}."],
        (false, _) if situation.kind == Kind::Question => {
            &["Somebody else knows that better than I do.", "I will wait for who knows it."]
        }
        (false, _) => match temper {
            Temper::Quiet => &["I would rather listen.", "They do well without me.", "I have no need to be heard now."],
            Temper::Dry => &["I have nothing to say about this.", "This needs no remark of mine."],
            Temper::Curious => &["I want to hear where this goes first.", "I keep listening."],
            Temper::Playful => &["I let this one pass.", "It is not my turn now."],
            Temper::Eager => &["It is hard, but I let the others talk.", "I said enough for the moment."],
            Temper::Even => &["They are fine without me.", "There is nothing for me to add."],
        },
    }
}
