//! Explains which row of the gate's table applied, and with which numbers (docs/design/gate.md G-4).

use std::time::Duration;

use super::{author, messages_in_words, secs, times};
use crate::domain::event::{Evaluated, Event, Recorded};
use crate::domain::gate::MOST_JITTER;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Message, Modality};
use crate::domain::names::Names;
use crate::domain::trigger::Trigger;
use crate::settings::companion::Companion;
use crate::story::Subject;

/// If a question comes this long after its message, it had to wait for a round or a statement.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Why a question was asked, and about how many messages. `before` are the events before it, oldest first.
pub(crate) fn question_sentence(who: &Subject, asked: &Recorded, evaluated: &Evaluated, before: &[Recorded]) -> String {
    let name = &who.name;
    let message = find_message(before, evaluated.message);
    let row = match evaluated.trigger {
        Trigger::DirectAddress | Trigger::Event => addressed(who, evaluated, before),
        Trigger::Interjection => counted(who, evaluated),
        Trigger::Turn => {
            let speaker = message.map_or_else(|| "A companion".to_owned(), |(message, _)| author(message));
            format!("{speaker} had just spoken")
        }
        Trigger::Silence => {
            let newest = before.iter().rev().find(|recorded| recorded.seq == evaluated.message);
            let silence = newest.map(|newest| format!(" for {}", secs(asked.at.since(newest.at)))).unwrap_or_default();
            format!("Nobody had said anything{silence}, and {name} may start a conversation then (starts_after)")
        }
        Trigger::Lull => match message {
            Some((message, _)) if message.modality == Modality::Voice && message.lull_endpoint => {
                format!("What {} said ended a pause in the talk", author(message))
            }
            _ => match quiet(asked, evaluated, before) {
                Some(quiet) => format!("It had been quiet for {}", secs(quiet)),
                None => "It had become quiet".to_owned(),
            },
        },
    };
    // A silence is about no message.
    let is_about_none = evaluated.trigger == Trigger::Silence;
    let about = if is_about_none { String::new() } else { format!(", about {}", messages_in_words(evaluated.messages.len())) };
    let addressee = if who.is_external { format!("the program that plays {name}") } else { name.to_string() };
    let repeated = repetition(who, evaluated, asked.seq, before);
    let at_once = if evaluated.trigger == Trigger::DirectAddress && repeated.is_none() {
        match before.iter().find(|message| message.seq == evaluated.message).map(|message| asked.at.since(message.at)) {
            Some(after) if after >= AT_ONCE => format!(" {} later, when nothing else was in progress", secs(after)),
            _ => " at once".to_owned(),
        }
    } else {
        String::new()
    };
    format!("{row}, so {addressee} was asked{at_once}{about}.{}", repeated.unwrap_or_default())
}

/// The message of this number, and the number of the message that it answers.
fn find_message(before: &[Recorded], seq: Seq) -> Option<(&Message, Option<Seq>)> {
    let at = before.binary_search_by_key(&seq, |recorded| recorded.seq).ok()?;
    let Event::Said { message, reply_to, .. } = &before[at].event else { return None };
    Some((message, *reply_to))
}

fn addressed(who: &Subject, evaluated: &Evaluated, before: &[Recorded]) -> String {
    let name = &who.name;
    let Some((message, reply_to)) = find_message(before, evaluated.message) else {
        return format!("{name} was addressed directly");
    };
    let speaker = author(message);
    let is_answer = reply_to.and_then(|seq| find_message(before, seq)).is_some_and(|(answered, _)| answered.is_by(&who.id));
    if is_answer {
        format!("{speaker} answered something that {name} had said")
    } else if who.settings.as_ref().is_some_and(|settings| is_named(&who.id, settings, &message.text)) {
        format!("{speaker} named {name}")
    } else {
        format!("{speaker} addressed {name} directly")
    }
}

fn is_named(id: &CompanionId, settings: &Companion, text: &str) -> bool {
    let names = Names::new([(id.clone(), settings.names().collect::<Vec<_>>())]);
    names.is_ok_and(|names| !names.find(text).is_empty())
}

fn counted(who: &Subject, evaluated: &Evaluated) -> String {
    let Evaluated { message_count, threshold, check_count, .. } = evaluated;
    let due = threshold.unwrap_or(*message_count);
    let policy = who.settings.as_ref().filter(|_| *check_count == 0).and_then(|settings| {
        let interval = settings.policy().starting_interval;
        // The companion may have had another interjection level then.
        let is_current = due.abs_diff(interval) <= u64::from(MOST_JITTER.unsigned_abs());
        let policy = settings.interjection.as_str();
        is_current.then(|| format!(" (its interjection level, {policy}: {interval}, give or take {MOST_JITTER})"))
    });
    let declined = if *check_count > 0 {
        format!(" (sooner than at first: it had declined {})", times(*check_count))
    } else {
        String::new()
    };
    format!(
        "{} had counted {} since it spoke last, and considers an interjection from {due} on{}{declined}",
        who.name,
        messages_in_words(usize::try_from(*message_count).unwrap_or(usize::MAX)),
        policy.unwrap_or_default()
    )
}

/// How long it had been quiet before the question.
fn quiet(asked: &Recorded, evaluated: &Evaluated, before: &[Recorded]) -> Option<Duration> {
    let at = before.binary_search_by_key(&evaluated.upto, |recorded| recorded.seq).ok()?;
    Some(asked.at.since(before[at].at))
}

/// Why a question repeats an earlier one, if it does.
fn repetition(who: &Subject, evaluated: &Evaluated, asked: Seq, before: &[Recorded]) -> Option<String> {
    let earlier = before.iter().rev().filter(|recorded| recorded.seq < asked);
    for recorded in earlier.take_while(|recorded| recorded.seq > evaluated.message) {
        let event = &recorded.event;
        if matches!(event, Event::Unanswered { companion, .. } if *companion == who.id) {
            return Some(" It was asked once more, because no answer had come before.".to_owned());
        }
        if matches!(event, Event::RoundClosed(closed) if closed.others.iter().any(|other| other.companion == who.id)) {
            let name = &who.name;
            return Some(format!(" {name} had wanted to speak before and did not get the floor; its wish had been kept."));
        }
        if *event == Event::Cleared {
            return None;
        }
    }
    None
}
