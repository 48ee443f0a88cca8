//! Explains which row of the gate's table applied (docs/design/gate.md G-4).

use std::time::Duration;

use super::{Told, author, span};
use crate::domain::event::{Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Message, Modality};
use crate::domain::names::Names;
use crate::domain::trigger::Trigger;
use crate::ports::backend::decisions::StoryLine;
use crate::settings::companion::Companion;
use crate::story::Subject;

/// A question that comes this long after its message had to wait for a round or a statement.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Why a question was asked. `before` are the events before it, oldest first.
pub(crate) fn question_line(who: &Subject, asked: &Recorded, evaluated: &Evaluated, before: &[Recorded]) -> StoryLine {
    let message = find_message(before, evaluated.message);
    let speaker = message.map_or_else(|| who.say("why.somebody", &[]), |(message, _)| author(message, who.language));
    let since = |seq: Seq| {
        let earlier = before.iter().rev().find(|recorded| recorded.seq == seq);
        earlier.map_or(Duration::ZERO, |earlier| asked.at.since(earlier.at))
    };
    let quiet = since(if !evaluated.trigger.needs_a_message() { evaluated.message } else { evaluated.upto });
    let is_spoken = |(message, _): (&Message, _)| message.modality == Modality::Voice && message.lull_endpoint;
    let key = match evaluated.trigger {
        Trigger::DirectAddress => addressed(who, message, before),
        Trigger::Event => "why.asked.event",
        // No question has this trigger.
        Trigger::Chosen => "why.by_hand",
        Trigger::Interjection => "why.asked.interjection",
        Trigger::Turn => "why.asked.turn",
        Trigger::Silence => "why.asked.silence",
        Trigger::Lull if message.is_some_and(is_spoken) => "why.asked.voice_pause",
        Trigger::Lull => "why.asked.lull",
    };
    let time = span(quiet, who.language);
    let told = who.sentence(key, &[("who", &speaker), ("time", &time), ("count", &evaluated.message_count)]);
    let waited = since(evaluated.message);
    let is_late = evaluated.trigger == Trigger::DirectAddress && waited >= AT_ONCE;
    let late = || who.sentence("why.asked.later", &[("time", &span(waited, who.language))]);
    let next = repetition(who, evaluated, asked.seq, before).or_else(|| is_late.then(late));
    told.and(next).line(asked, "evaluate")
}

/// The message with this number, and the number of the message that it answers.
fn find_message(before: &[Recorded], seq: Seq) -> Option<(&Message, Option<Seq>)> {
    let at = before.binary_search_by_key(&seq, |recorded| recorded.seq).ok()?;
    let Event::Said { message, reply_to, .. } = &before[at].event else { return None };
    Some((message, *reply_to))
}

fn addressed(who: &Subject, message: Option<(&Message, Option<Seq>)>, before: &[Recorded]) -> &'static str {
    let Some((message, reply_to)) = message else { return "why.asked.addressed" };
    let is_answer = reply_to.and_then(|seq| find_message(before, seq)).is_some_and(|(answered, _)| answered.is_by(&who.id));
    if is_answer {
        "why.asked.answered"
    } else if who.settings.as_ref().is_some_and(|settings| is_named(&who.id, settings, &message.text)) {
        "why.asked.named"
    } else {
        "why.asked.addressed"
    }
}

fn is_named(id: &CompanionId, settings: &Companion, text: &str) -> bool {
    let names = Names::new([(id.clone(), settings.names().collect::<Vec<_>>())]);
    names.is_ok_and(|names| !names.find(text).is_empty())
}

/// The sentence for a repeated question. `None` for a new one.
fn repetition(who: &Subject, evaluated: &Evaluated, asked: Seq, before: &[Recorded]) -> Option<Told> {
    let earlier = before.iter().rev().filter(|recorded| recorded.seq < asked);
    for recorded in earlier.take_while(|recorded| recorded.seq > evaluated.message) {
        let event = &recorded.event;
        if matches!(event, Event::Unanswered { companion, .. } if *companion == who.id) {
            return Some(who.sentence("why.asked.again", &[]));
        }
        if matches!(event, Event::RoundClosed(closed) if closed.others.iter().any(|other| other.companion == who.id)) {
            return Some(who.sentence("why.asked.kept", &[]));
        }
        if matches!(event, Event::Cleared { .. }) {
            return None;
        }
    }
    None
}
