//! The calls of tools in a statement's prompt, as data.

use super::data::{cut_middle, escape_into, escaped_weight, weight};
use super::frame::{block, paragraphs};
use super::texts::EARLIER_CALLS;
use crate::moment::Moment;
use crate::tools::{CallOutcome, KnownCall, Refusal};

/// The most tokens of one answer.
const MOST_TOKENS: usize = 1_500;

/// What became of a call, as one JSON object of at most so many tokens (docs/design/tools.md X-17).
pub fn call_end(call: &KnownCall, now: Moment, tokens: usize) -> String {
    line(call, now, false, tokens.min(MOST_TOKENS) * 4)
}

/// The section about earlier calls of the companion, in at most so many tokens. Empty if there are none.
pub fn earlier_calls(calls: &[&KnownCall], now: Moment, tokens: usize) -> String {
    let most = (tokens * 4).saturating_sub(weight(EARLIER_CALLS)) / calls.len().max(1);
    let lines: String = calls.iter().map(|call| line(call, now, true, most.min(MOST_TOKENS * 4)) + "\n").collect();
    if lines.is_empty() { lines } else { paragraphs(&[EARLIER_CALLS, &block("calls", &lines)]) }
}

fn line(call: &KnownCall, now: Moment, with_arguments: bool, most: usize) -> String {
    let mut line = "{\"tool\":\"".to_owned();
    escape_into(&mut line, &call.called.tool);
    if with_arguments {
        line.push_str("\",\"arguments\":\"");
        escape_into(&mut line, &cut_middle(&call.called.arguments, most / 3, escaped_weight));
    }
    line.push_str("\",\"outcome\":\"");
    line.push_str(outcome(call, now));
    if let Some(answer) = call.answer.as_ref().filter(|answer| !answer.text.is_empty()) {
        line.push_str(if call.called.is_external { "\",\"text_from_outside\":\"" } else { "\",\"text\":\"" });
        let room = most.saturating_sub(weight(&line) + 2);
        escape_into(&mut line, &cut_middle(&answer.text, room, escaped_weight));
    }
    line.push_str("\"}");
    line
}

/// How a call ended, in words for a model.
fn outcome(call: &KnownCall, now: Moment) -> &'static str {
    if let Some(refusal) = call.called.refused {
        return match refusal {
            Refusal::NotOffered => "not made: there is no such tool for you",
            Refusal::NotAllowed => "not made: those whose messages you answer have no right to it",
            Refusal::NoCause => "not made: nobody in particular asked for it",
            Refusal::AfterOutside => "not made: after an answer from outside, only tools that read may be called",
            Refusal::TooMany => "not made: you have made all your calls",
            Refusal::BadArguments => "not made: the arguments are no JSON object that fits",
            Refusal::Repeated => "not made again: the same call, or a poll, is above",
            Refusal::UsedUp => "not made: the calls that are allowed in a day are used up",
        };
    }
    match (&call.answer, call.confirmed) {
        (Some(answer), _) => match answer.outcome {
            CallOutcome::Answered => "answered",
            CallOutcome::Failed => "the tool says that it failed",
            CallOutcome::NotMade => "not made",
            CallOutcome::TimedOut => "no answer in time; it is unknown whether it had an effect",
            CallOutcome::Unknown => "it is unknown whether it had an effect",
        },
        (None, Some(false)) => "not made: it was declined",
        (None, Some(true)) => "being made",
        (None, None) if call.is_open(now) => "not made yet: it waits to be confirmed",
        (None, None) if call.called.until.is_some() => "not made: nobody has confirmed it",
        (None, None) => "being made",
    }
}
