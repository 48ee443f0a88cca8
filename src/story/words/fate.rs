//! Sentences about the outcome of a message for one companion.

use super::aloud::cut_off;
use super::{Told, cut, statement_failed};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::{Outcome, StoryLine};
use crate::story::Subject;
use crate::texts::Language;

/// The companion owed an answer to the message. `is_read`: the record was read to its end.
pub(crate) fn owed(who: &Subject, ending: Option<&Recorded>, is_read: bool) -> (Outcome, String) {
    let (outcome, key) = match ending.map(|ending| &ending.event) {
        Some(Event::Said { message, .. }) if is_redacted(message) => (Outcome::Answered, "why.fate.answer_deleted"),
        Some(Event::Said { message, .. }) => {
            let key = if message.modality.is_text() { "why.fate.answered" } else { "why.fate.answered_aloud" };
            let told = who.sentence(key, &[("text", &cut(&message.text))]);
            return (Outcome::Answered, told.and(cut_off(message, who.language)).text);
        }
        Some(Event::ReplyFailed { error, category, .. }) => {
            return (Outcome::Failed, statement_failed(who, error, category.as_deref()).text);
        }
        Some(Event::Cancelled { message: None, .. }) => (Outcome::Failed, "why.fate.stopped"),
        Some(Event::Cancelled { .. }) => (Outcome::Failed, "why.fate.asked_to_stop"),
        Some(Event::Deleted { .. }) => (Outcome::Deleted, "why.fate.unneeded"),
        Some(_) => (Outcome::Cleared, "why.fate.cancelled"),
        None if is_read => (Outcome::Speaking, "why.fate.speaking"),
        None => (Outcome::Unknown, "why.fate.unsearched"),
    };
    (outcome, who.say(key, &[]))
}

/// The answer to the message was replaced. `text` is what stands in its place.
pub(crate) fn replaced(who: &Subject, text: &str) -> String {
    who.say("why.fate.replaced", &[("text", &cut(text))])
}

/// The line for an edit, a deletion, or the retry of a dead letter. `None` if the message was edited to an empty text.
pub(crate) fn changed(recorded: &Recorded, retried_as: Option<Seq>, language: Language) -> Option<StoryLine> {
    let told = match (&recorded.event, retried_as) {
        (Event::Edited { text, .. }, _) if text.is_empty() => return None,
        (Event::Edited { captions, .. }, _) if !captions.is_empty() => {
            let captions: Vec<_> = captions.iter().map(|caption| cut(&caption.text)).collect();
            Told::new(language, "why.message.captioned", &[("text", &captions.join(" · "))])
        }
        (Event::Edited { version: Some(version), text, .. }, _) => {
            Told::new(language, "why.message.version", &[("number", &(version.index + 1)), ("text", &cut(text))])
        }
        (Event::Edited { text, .. }, _) => Told::new(language, "why.message.edited", &[("text", &cut(text))]),
        (_, Some(again)) => Told::new(language, "why.message.retried", &[("again", &again)]),
        (_, None) => Told::new(language, "why.message.deleted", &[]),
    };
    Some(told.line(recorded, "changed"))
}

/// Another event came before the message was settled. `retried_as` is the copy of a dead letter.
pub(crate) fn lost(who: &Subject, by: &Event, was_asked: bool, retried_as: Option<Seq>) -> (Outcome, String) {
    let (outcome, key) = match (by, retried_as) {
        (Event::Joined { .. }, _) => (Outcome::Absent, "why.fate.late"),
        (Event::Deleted { .. }, Some(again)) => {
            return (Outcome::Deleted, who.say("why.fate.retried", &[("again", &again)]));
        }
        (Event::Deleted { .. }, None) if was_asked => (Outcome::Deleted, "why.fate.deleted_thinking"),
        (Event::Deleted { .. }, None) => (Outcome::Deleted, "why.fate.deleted"),
        (Event::Cleared { .. }, _) if was_asked => (Outcome::Cleared, "why.fate.cleared_thinking"),
        (Event::Cleared { .. }, _) => (Outcome::Cleared, "why.fate.cleared"),
        (_, _) if was_asked => (Outcome::Left, "why.fate.left_thinking"),
        (_, _) => (Outcome::Left, "why.fate.left"),
    };
    (outcome, who.say(key, &[]))
}
