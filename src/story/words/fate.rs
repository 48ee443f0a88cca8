//! What happened to a message for one companion, in words.

use super::aloud::cut_off;
use super::{cut, failed, together_with};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::Outcome;

/// It got the floor to answer the message. `is_read`: the record was read to its end.
pub(crate) fn owed(owed: &Recorded, ending: Option<&Recorded>, is_read: bool) -> (Outcome, String) {
    let together = together_with(owed.event.owed().map_or(&[], |owed| owed.messages));
    let about_to = format!("It was about to answer it{together}, but");
    match ending.map(|ending| &ending.event) {
        Some(Event::Said { message, .. }) if is_redacted(message) => {
            (Outcome::Answered, format!("It answered it{together}. The answer has been deleted since."))
        }
        Some(Event::Said { message, .. }) => {
            let aloud = if message.modality.is_text() { "" } else { " aloud" };
            let text = format!("It answered it{aloud}{together}: “{}”{}", cut(&message.text), cut_off(message));
            (Outcome::Answered, text)
        }
        Some(Event::ReplyFailed { error, .. }) => {
            let text = format!("It got the floor to answer it{together}, but posted no statement ({}).", failed(error));
            (Outcome::Failed, text)
        }
        Some(Event::Cancelled { message: None, .. }) => (Outcome::Failed, format!("{about_to} somebody pressed Stop.")),
        Some(Event::Cancelled { .. }) => (Outcome::Failed, format!("{about_to} a person asked it to stop (reply.stop_phrases).")),
        Some(Event::Deleted { .. }) => {
            (Outcome::Deleted, format!("{about_to} everything that it would have answered was deleted."))
        }
        Some(_) => (Outcome::Cleared, format!("{about_to} the reply was cancelled.")),
        None if is_read => (Outcome::Speaking, format!("It has the floor to answer it{together}, and has not spoken yet.")),
        None => (Outcome::Unknown, format!("It got the floor to answer it{together}. Later events were not searched.")),
    }
}

/// Something else happened before the message was settled. `retried_as`: the copy of a dead letter.
pub(crate) fn lost(by: &Event, was_asked: bool, retried_as: Option<Seq>) -> (Outcome, String) {
    if matches!(by, Event::Joined { .. }) {
        let text = "It joined the room later. A companion that joins reads only the newest messages.";
        return (Outcome::Absent, text.to_owned());
    }
    let (outcome, how) = if matches!(by, Event::Deleted { .. }) {
        (Outcome::Deleted, "the message was deleted")
    } else if *by == Event::Cleared {
        (Outcome::Cleared, "the room was cleared")
    } else {
        (Outcome::Left, "it left the room")
    };
    let text = match (outcome, retried_as) {
        (Outcome::Deleted, Some(again)) => {
            format!("It became a dead letter, and was retried as message {again}: ask about that one.")
        }
        _ if was_asked => format!("It was being asked about it, or about to answer it, when {how}."),
        (Outcome::Deleted, None) => "It was deleted before it was considered.".to_owned(),
        (Outcome::Cleared, _) => "The room was cleared before it was considered.".to_owned(),
        _ => "It left the room before it was considered.".to_owned(),
    };
    (outcome, text)
}
