//! The sentences of a story, one for each thing that happened.
//!
//! * `question`: why a question was asked.
//! * `course`: what followed from a decision.
//! * `fate`: what happened to a message for one companion.
//! * `aloud`: a spoken reply, and what of it was heard.
//! * `round`: a round, its votes and who was selected.
//! * `streak`: how many statements companions had made in a row.

mod aloud;
mod course;
pub(crate) mod fate;
mod question;
pub(crate) mod round;
mod streak;

use std::time::Duration;

use super::Subject;
use crate::domain::closing::{Cause, Stage};
use crate::domain::conversation::{INTERRUPTED, UNVOICED};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Call, Decided, Event, Recorded, Segment};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Author, Message, Role};
use crate::domain::text::shortened;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::StoryLine;
use aloud::cut_off;
pub(crate) use course::consequence;
pub(crate) use question::question_sentence;
pub(crate) use streak::in_a_row;

/// A companion's name in the room.
pub(crate) type Name<'a> = &'a dyn Fn(&CompanionId) -> String;

/// What followed a segment of speech.
#[derive(Clone, Copy)]
pub(crate) enum HandingOver {
    /// It is no message, because it counts as noise or as echo.
    Noise,
    Echo,
    /// It is in the message with this number.
    Done(Seq),
    Cleared,
    Waiting,
    /// The search ended before the record did.
    Unknown,
}

/// The number of characters after which a quotation is cut.
const QUOTED_CHARS: usize = 200;

pub(crate) fn line(recorded: &Recorded, event: &str, text: String) -> StoryLine {
    StoryLine { at: recorded.at.into(), seq: Some(recorded.seq), event: event.into(), text }
}

/// The author's name, or `Somebody` if it was deleted.
pub(crate) fn author(message: &Message) -> String {
    name_of(&message.from).to_owned()
}

fn name_of(person: &Author) -> &str {
    if person.name.is_empty() { "Somebody" } else { &person.name }
}

/// Quotes a message with its author and addressees. None if the event is no message.
pub(crate) fn quoted(recorded: &Recorded, name: Name<'_>) -> Option<StoryLine> {
    let Event::Said { message, .. } = &recorded.event else { return None };
    let text = if is_redacted(message) {
        format!("{} said something that was deleted since.", author(message))
    } else {
        let bot = if message.from.role == Role::Bot { " (not a person)" } else { "" };
        let (who, to) = (author(message), addressees(message, name));
        match &message.kind {
            Some(kind) => format!("An event ({kind}, {who}){to}: “{}”", cut(&message.text)),
            None => format!("{who}{bot} said{to}: “{}”{}", cut(&message.text), cut_off(message)),
        }
    };
    Some(line(recorded, "message", text))
}

fn addressees(message: &Message, name: Name<'_>) -> String {
    let mut names: Vec<_> = message.address.companions.iter().map(name).collect();
    if message.address.others {
        names.push("somebody else".to_owned());
    }
    if names.is_empty() { String::new() } else { format!(" to {}", listed(&names)) }
}

/// Lists names as in a sentence: `Ana, Ben and Cleo`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A question of this companion that got no answer, or an external companion's missing vote.
pub(crate) fn failure(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let Event::Unanswered { companion, trigger, error, back_off, .. } = &recorded.event else { return None };
    let name = &who.name;
    (*companion == who.id).then(|| {
        let because = trigger.occasion();
        let what = if who.is_external {
            "the program that plays it did not vote in time".to_owned()
        } else {
            match &**error {
                "circuit_open" => "its model was not asked, because it had failed several times in a row".to_owned(),
                "no_prompt" => "its model was not asked, because the prompt could not be built; see the log".to_owned(),
                error => format!("no answer came ({})", failed(error)),
            }
        };
        let text = format!("{name} was asked ({because}), and {what}; it was to be asked again after {}.", secs(*back_off));
        line(recorded, "error", text)
    })
}

/// Why there is no answer: the error's code, with an explanation if there is one.
pub(crate) fn failed(error: &str) -> String {
    match error {
        // Recorded by earlier versions.
        "fatal_answer" => {
            format!("{error}: the server had died twice while the answer to this question arrived, so it was not asked")
        }
        "no_credit" => format!("{error}: the account at the model's endpoint has no credit; add some"),
        "key_rejected" => {
            format!("{error}: the model's endpoint does not accept the API key; docs/models.md says where to put one")
        }
        "unknown_model" => format!(
            "{error}: the model's endpoint knows no such model, or has no API at this address; `tertulia models check` lists its models"
        ),
        "refused" => format!(
            "{error}: the model's endpoint does not accept such a request; the log has its words, and `tertulia models check` tries one"
        ),
        "overloaded" => format!("{error}: the model's endpoint, or the server's own queue for it, has too much to do"),
        "out_of_tokens" => format!(
            "{error}: the model spent its limit of tokens before the first word of its answer; raise prompt.max_side_answer_tokens for decisions, and \
             prompt.max_main_answer_tokens for statements"
        ),
        "only_thoughts" => format!("{error}: the model wrote only what it thinks, and no words"),
        "no_statement" => format!(
            "{error}: the model wrote a decision, a call of a tool, the lines of others or that it stays silent, and no words of its own, \
             also when it was asked again; see docs/models.md"
        ),
        INTERRUPTED => format!("{error}: it was to be spoken, and was stopped before a word of it was heard"),
        UNVOICED => format!("{error}: it was to be spoken, and no audio of it was there in time"),
        error => error.to_owned(),
    }
}

pub(crate) fn decision_sentence(name: &str, decided: &Decided) -> String {
    let answer = decided.decision;
    if decided.reason == Reason::External {
        return format!("The program that plays {name} voted {answer}{}.", vote_in_words(decided));
    }
    match (&decided.call, decided.reason) {
        (Some(call), Reason::Unreadable) => {
            let (decision, answer) =
                (answer, if call.answer.is_empty() { String::new() } else { format!(": “{}”", cut(&call.answer)) });
            format!("{} gave no readable YES or NO, also when asked again, which counts as {decision}{answer}", model(call))
        }
        (Some(call), Reason::Budget) => format!("{} answered YES, but a budget is used up: that is a NO.", model(call)),
        (Some(call), _) => match &decided.why {
            Some(why) => format!("{} answered {answer}{}: “{}”", model(call), vote_in_words(decided), cut(why)),
            None => format!("{} answered {answer}{}, without a reason.", model(call), vote_in_words(decided)),
        },
        (None, Reason::Cancelled) if decided.ticket.is_some() => {
            format!("{name} was being asked when the author asked to stop. The question was dropped: that is a {answer}.")
        }
        (None, Reason::Cancelled) => {
            format!("{name} says nothing: a person asked to stop before it had answered. That is a {answer}.")
        }
        (None, reason) => {
            let because = match reason {
                Reason::OtherAddressed => "everything was addressed to somebody else",
                Reason::Budget => "a budget is used up",
                Reason::Unpostable => "nothing can be posted here at the moment",
                Reason::LoopGuard => "the loop guard's companion streak limit was reached (turn_taking.max_companion_streak)",
                Reason::Closed => "it has ended the conversation",
                Reason::Paused => "an operator paused it",
                Reason::Overflow => "more messages waited than it can hold",
                Reason::Stale => "the messages were too old to be answered",
                Reason::Cancelled => "a person asked to stop",
                Reason::Backchannel => "somebody only showed that they were listening",
                Reason::External => "it voted itself",
                Reason::Event => "an event must be acknowledged",
                Reason::ModelYes | Reason::ModelNo | Reason::Unreadable => "the model said so",
            };
            let is_bookkeeping = reason.leaves_counters_alone();
            // Nothing triggered these decisions. The recorded trigger has no meaning.
            let trigger = if is_bookkeeping { String::new() } else { format!(" ({})", decided.trigger.occasion()) };
            format!("{name} was not asked: {because}. That is a {answer}{trigger}.")
        }
    }
}

/// A segment of speech with the person who said it.
pub(crate) fn heard(segment: &Segment) -> String {
    if segment.is_redacted() {
        return "Somebody said something in the voice call. It has been deleted since.".to_owned();
    }
    format!("{} said in the voice call: “{}”", segment.from.name, cut(&segment.text))
}

/// What became of a segment of speech.
pub(crate) fn handed_over(handing_over: HandingOver) -> (&'static str, String) {
    let (event, text) = match handing_over {
        HandingOver::Done(message) => {
            return ("handed_over", format!("It was handed over as a part of message {message}."));
        }
        HandingOver::Noise => (
            "rule",
            "It counts as noise, because it has less than 0.3 s of voice, because its recogniser takes it for no speech, or because its words are \
             such as recognisers invent (speech.noise). Noise is no message.",
        ),
        HandingOver::Echo => (
            "rule",
            "It counts as echo, because a companion had just said nearly the same aloud: the microphone heard the loudspeaker. Echo is no message; \
             headphones help.",
        ),
        HandingOver::Cleared => ("cleared", "The room was cleared before it was handed over, so it became no message."),
        HandingOver::Waiting => (
            "waiting",
            "It is not handed over yet. It becomes a message at the end of the voice lull (voice_lull_timeout), or earlier if it addresses a \
             companion (voice.address_timeout_secs).",
        ),
        HandingOver::Unknown => ("waiting", "Its message was not found in the events that follow it."),
    };
    (event, text.to_owned())
}

/// The rest of a State, besides the decision.
fn vote_in_words(decided: &Decided) -> String {
    let Some(vote) = &decided.vote else { return String::new() };
    let mut parts = Vec::new();
    if decided.decision == Decision::Yes {
        parts.push(format!("importance {}", vote.importance));
    }
    if vote.selected {
        parts.push("called upon".to_owned());
    }
    if vote.closing != Stage::None {
        parts.push(format!("closing: {}", vote.closing));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// A change of the companion's closing stage, and why.
pub(crate) fn stage_changed(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let Event::StageChanged { companion, from, to, cause } = &recorded.event else { return None };
    let name = &who.name;
    let because = match cause {
        Cause::State => "its own vote said so",
        Cause::MaxTurns if *to == Stage::Closing => "it makes the last statement that the conversation may hold (max_turns)",
        Cause::MaxTurns => "as much was said as the conversation may hold (max_turns)",
        Cause::Repetition => "the conversation repeated itself",
        Cause::DirectAddress => "it was addressed",
        Cause::Event => "it must acknowledge an event",
        Cause::ReopenAfter => "people continued talking (closing.reopen_after)",
        Cause::NewEpisode => "a new conversation began after a long quiet",
    };
    (*companion == who.id).then(|| line(recorded, "closing", format!("{name} went from {from} to {to}, because {because}.")))
}

/// That the companion was paused or resumed, joined or left, or that the room was cleared.
pub(crate) fn moved(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let name = &who.name;
    let event = &recorded.event;
    let text = if let Event::Paused { companion, paused } = event {
        let subject = if companion.is_none() { "everybody here" } else { name };
        let how = if *paused { "paused" } else { "resumed" };
        companion.as_ref().is_none_or(|id| *id == who.id).then(|| format!("An operator {how} {subject}."))
    } else if let Event::Joined { companion, .. } = event {
        (*companion == who.id).then(|| format!("{name} came into the room."))
    } else if *event == Event::Cleared {
        Some("The room was cleared: everything in progress was cancelled.".to_owned())
    } else {
        event.cancels(&who.id).then(|| format!("{name} left the room."))
    };
    text.map(|text| line(recorded, "moved", text))
}

/// That the last statements were repetitive.
pub(crate) fn repeated(recorded: &Recorded) -> Option<StoryLine> {
    let Event::RepetitionJudged { score, detections, .. } = &recorded.event else { return None };
    (*detections > 0).then(|| {
        let again = if *detections > 1 { format!(", {detections} times in a row") } else { String::new() };
        line(recorded, "repetition", format!("The last statements repeated each other ({score:.2}{again})."))
    })
}

fn model(call: &Call) -> String {
    let by = if call.provider == call.model { call.model.to_string() } else { format!("{} of {}", call.model, call.provider) };
    let took = secs(Duration::from_millis(call.model_ms));
    // A shorter time would be shown as 0.
    let waited = if call.wait_ms >= 50 {
        format!(", after waiting {} in the queue", secs(Duration::from_millis(call.wait_ms)))
    } else {
        String::new()
    };
    format!("{by} (in {took}{waited}; {} tokens read, {} written)", call.input_tokens, call.output_tokens)
}

pub(crate) fn settled(name: &str, messages: usize) -> String {
    match messages {
        0 => format!("{name} stays silent."),
        count => format!(
            "{name} stays silent; {} settled.",
            if count == 1 { "one message is".into() } else { format!("{count} messages are") }
        ),
    }
}

/// The number of other messages besides one.
pub(crate) fn together_with(messages: &[Seq]) -> String {
    match messages.len() {
        0 | 1 => String::new(),
        2 => ", together with one other message".to_owned(),
        count => format!(", together with {} other messages", count - 1),
    }
}

pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

pub(crate) fn messages_in_words(count: usize) -> String {
    if count == 1 { "one message".into() } else { format!("{count} messages") }
}

/// A span of time: in seconds, with a tenth if it is short, or in minutes, hours or days if it is long.
pub(crate) fn secs(span: Duration) -> String {
    let secs = span.as_secs_f64();
    let whole = |unit: f64| (secs / unit).round();
    let tenths = (secs * 10.0).round();
    if secs < 9.95 && tenths % 10.0 > 0.0 {
        format!("{secs:.1} s")
    } else if secs < 600.0 {
        format!("{secs:.0} s")
    } else if secs < 2.0 * 3_600.0 {
        format!("{} min", whole(60.0))
    } else if secs < 48.0 * 3_600.0 {
        format!("{} h", whole(3_600.0))
    } else {
        format!("{} days", whole(86_400.0))
    }
}

pub(crate) fn cut(text: &str) -> String {
    shortened(text, QUOTED_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_only_earlier_versions_recorded_is_explained() {
        assert!(failed("fatal_answer").contains("the server had died twice"), "{}", failed("fatal_answer"));
    }

    #[test]
    fn a_span_is_shown_in_a_fitting_unit() {
        let spans = [0.0, 0.26, 3.0, 8.98, 9.97, 59.4, 599.0, 600.0, 5_400.0, 7_200.0, 90_000.0, 400_000.0];

        assert_eq!(
            spans.map(|span| secs(Duration::from_secs_f64(span))),
            ["0 s", "0.3 s", "3 s", "9 s", "10 s", "59 s", "599 s", "10 min", "90 min", "2 h", "25 h", "5 days"]
        );
    }

    #[test]
    fn messages_that_are_decided_together_count_the_others() {
        let seqs = |count: u64| (1..=count).map(Seq).collect::<Vec<_>>();

        assert_eq!(
            [0, 1, 2, 5].map(|count| together_with(&seqs(count))),
            ["", "", ", together with one other message", ", together with 4 other messages"]
        );
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        let names = ["Ana", "Ben", "Cleo"].map(str::to_owned);

        assert_eq!([0, 1, 2, 3].map(|count| listed(&names[..count])), ["", "Ana", "Ana and Ben", "Ana, Ben and Cleo"]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut(&"ü".repeat(200)).chars().count(), 200);
        assert!(cut(&"ü".repeat(201)).ends_with("ü…"));
    }
}
