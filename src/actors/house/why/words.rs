//! The words of a story: one sentence for each thing that happened.

use std::time::Duration;

use super::{QUOTED_CHARS, StoryLine};
use crate::domain::closing::{Cause, Stage};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Call, Decided, Evaluated, Event, Recorded};
use crate::domain::id::CompanionId;
use crate::domain::message::Role;
use crate::domain::trigger::Trigger;
use crate::ports::house::messages::HistoryMessage;

pub(super) fn line(recorded: &Recorded, event: &str, text: String) -> StoryLine {
    StoryLine { at: recorded.at.into(), seq: Some(recorded.seq), event: event.into(), text }
}

pub(super) fn quoted(message: &HistoryMessage) -> StoryLine {
    let verb = if message.role == Role::Person { "said" } else { "said (not a person)" };
    let text = format!("{} {verb}: “{}”", message.from, cut(&message.text));
    StoryLine { at: message.at, seq: Some(message.seq), event: "message".into(), text }
}

/// An attempt that came to nothing; one that a program outside plays is not asked through a model.
pub(super) fn failure(recorded: &Recorded, whose: &CompanionId, name: &str, is_external: bool) -> Option<StoryLine> {
    let Event::Unanswered { companion, trigger, error, back_off, .. } = &recorded.event else { return None };
    (companion == whose).then(|| {
        let because = trigger_in_words(*trigger);
        let what = if is_external {
            "the program that plays it did not vote in time".to_owned()
        } else {
            format!("no answer came ({error})")
        };
        let text = format!("{name} was asked ({because}), and {what}; it waited {} to ask again.", secs(*back_off));
        line(recorded, "error", text)
    })
}

pub(super) fn asked_because(name: &str, evaluated: &Evaluated) -> String {
    let Evaluated { message_count, threshold, check_count, .. } = evaluated;
    let why = match evaluated.trigger {
        Trigger::DirectAddress => format!("{name} was addressed directly, so it was asked at once"),
        Trigger::Interjection => format!(
            "{} had been said without {name}, and it looks after {}{}, so it was asked",
            messages_in_words(*message_count as usize),
            threshold.unwrap_or(*message_count),
            if *check_count > 0 { format!(" (it had declined {check_count} times)") } else { String::new() }
        ),
        Trigger::Lull => format!("It had become quiet, so {name} was asked"),
        Trigger::Turn => format!("A companion had just spoken, so {name} was asked"),
    };
    format!("{why}, about {}.", messages_in_words(evaluated.messages.len()))
}

pub(super) fn decided_because(name: &str, decided: &Decided) -> String {
    let answer = decided.decision;
    if decided.reason == Reason::External {
        return format!("The program that plays {name} voted {answer}{}.", vote_in_words(decided));
    }
    match (&decided.call, decided.reason) {
        (Some(call), Reason::Unreadable) => format!("{} gave no readable YES or NO, which counts as NO.", model(call)),
        (Some(call), _) => match &decided.why {
            Some(why) => format!("{} answered {answer}{}: “{}”", model(call), vote_in_words(decided), cut(why)),
            None => format!("{} answered {answer}{}, without a reason.", model(call), vote_in_words(decided)),
        },
        (None, reason) => {
            let because = match reason {
                Reason::OtherAddressed => "everything was addressed to somebody else",
                Reason::Budget => "a budget is used up",
                Reason::LoopGuard => {
                    "companions have spoken as often in a row as they may without a human (turn_taking.max_companion_streak)"
                }
                Reason::Closed => "it has ended the conversation",
                Reason::Paused => "an operator paused it",
                Reason::Overflow => "more messages waited than it can hold",
                Reason::Stale => "the messages were too old to be answered",
                Reason::External => "it voted itself",
                Reason::ModelYes | Reason::ModelNo | Reason::Unreadable => "the model said so",
            };
            let is_bookkeeping = matches!(reason, Reason::Closed | Reason::Paused | Reason::Overflow | Reason::Stale);
            // Nothing triggered these: the trigger on record is a formality.
            let trigger = if is_bookkeeping { String::new() } else { format!(" ({})", trigger_in_words(decided.trigger)) };
            format!("{name} was not asked: {because}. That is a {answer}{trigger}.")
        }
    }
}

/// What a State says besides the decision.
fn vote_in_words(decided: &Decided) -> String {
    let Some(vote) = &decided.vote else { return String::new() };
    let mut said = Vec::new();
    if decided.decision == Decision::Yes {
        said.push(format!("importance {}", vote.importance));
    }
    if vote.selected {
        said.push("called upon".to_owned());
    }
    if vote.closing != Stage::None {
        said.push(format!("closing: {}", vote.closing));
    }
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}

/// A stage that changed, and why.
pub(super) fn stage_changed(recorded: &Recorded, whose: &CompanionId, name: &str) -> Option<StoryLine> {
    let Event::StageChanged { companion, from, to, cause } = &recorded.event else { return None };
    let because = match cause {
        Cause::State => "its own vote said so",
        Cause::MaxTurns => "companions have said as much as one conversation may hold (turn_taking.max_turns)",
        Cause::Repetition => "the conversation repeated itself",
        Cause::DirectAddress => "it was addressed",
        Cause::ReopenAfter => "people went on talking (closing.reopen_after)",
        Cause::NewEpisode => "a new conversation began after a long quiet",
    };
    (companion == whose).then(|| line(recorded, "closing", format!("{name} went from {from} to {to}, because {because}.")))
}

/// Talk that goes in circles.
pub(super) fn repeated(recorded: &Recorded) -> Option<StoryLine> {
    let Event::RepetitionJudged { score, detections, .. } = &recorded.event else { return None };
    (*detections > 0).then(|| {
        let again = if *detections > 1 { format!(", {detections} times in a row") } else { String::new() };
        line(recorded, "repetition", format!("The last messages repeated each other ({score:.2}{again})."))
    })
}

fn model(call: &Call) -> String {
    let by = if call.provider == call.model { call.model.to_string() } else { format!("{} of {}", call.model, call.provider) };
    let took = secs(Duration::from_millis(call.model_ms));
    let waited = if call.wait_ms > 0 {
        format!(", after waiting {} for a place", secs(Duration::from_millis(call.wait_ms)))
    } else {
        String::new()
    };
    format!("{by} (in {took}{waited}; {} tokens read, {} written)", call.input_tokens, call.output_tokens)
}

pub(super) fn settled(name: &str, messages: usize) -> String {
    match messages {
        0 => format!("{name} stays silent."),
        count => format!(
            "{name} stays silent; {} settled.",
            if count == 1 { "one message is".into() } else { format!("{count} messages are") }
        ),
    }
}

fn trigger_in_words(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::DirectAddress => "it was addressed",
        Trigger::Turn => "a companion had spoken",
        Trigger::Interjection => "enough was said without it",
        Trigger::Lull => "it was quiet",
    }
}

pub(super) fn messages_in_words(count: usize) -> String {
    if count == 1 { "one message".into() } else { format!("{count} messages") }
}

/// Seconds, to a tenth where that says something.
pub(super) fn secs(span: Duration) -> String {
    let secs = span.as_secs_f64();
    if secs < 10.0 && span.subsec_millis() > 0 { format!("{secs:.1} s") } else { format!("{secs:.0} s") }
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
