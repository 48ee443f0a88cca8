//! What followed from a decision, in words.

use super::{aloud, author, cut, failed, line, listed, messages_in_words, moved, name_of, secs};
use crate::domain::conversation::DELETED;
use crate::domain::event::{Event, Recorded, RoundClosed};
use crate::domain::message::Message;
use crate::domain::turn::bid::{Phase, What};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::StoryLine;
use crate::story::Subject;
use crate::story::course::{Consequence, Course};

/// What an event meant for the companion.
pub(crate) fn consequence(recorded: &Recorded, consequence: Consequence, course: &Course, who: &Subject) -> Option<StoryLine> {
    let name = &who.name;
    let what = match consequence {
        Consequence::Change(what) => Some(what),
        Consequence::HeldBack | Consequence::Next => None,
    };
    let (kind, text) = match (what, &recorded.event) {
        (_, Event::Cleared | Event::Left { .. }) if course.leaves_statement() => return moved(recorded, who),
        (Some(What::Now(Phase::Held)), _) => {
            ("held", format!("{name} wants to speak while another companion does: it waits until the floor is free."))
        }
        (Some(What::Now(Phase::Selected)), Event::RoundClosed(closed)) => {
            let delay = closed.speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero())?;
            let text = format!(
                "{name} waits {} before it speaks (turn_taking.turn_delay_secs); messages of that time are answered, too.",
                secs(delay)
            );
            ("turn", text)
        }
        (Some(What::Now(Phase::Lost)), Event::RoundClosed(RoundClosed { others, .. }) | Event::HeldSelected { others, .. }) => {
            let lost = others.iter().find(|other| other.companion == who.id);
            let due = lost
                .and_then(|lost| lost.next_interjection_at)
                .map(|next| format!("; by its count of messages alone it would be asked again at {next}"))
                .unwrap_or_default();
            let text =
                format!("{name} did not get the floor. Nothing settles for it, and its wish is kept for the next round{due}.");
            ("floor_lost", text)
        }
        (_, Event::Said { message, .. }) => {
            let text = match &course.spoken {
                _ if is_redacted(message) => format!("{name} said something that was deleted since."),
                Some(spoken) => aloud::statement(message, &spoken.words, name),
                None => format!("{name} said: “{}”", cut(&message.text)),
            };
            let is_truncated = message.truncated && !is_redacted(message);
            let why = if is_truncated {
                " The model reached its limit of tokens there, so the end is missing (prompt.max_main_answer_tokens)."
            } else {
                ""
            };
            let text = text + why;
            ("statement", text)
        }
        (_, Event::ReplyExtended { messages, .. }) => {
            let quote = |message: &Message| format!("{}: “{}”", author(message), cut(&message.text));
            let quoted: Vec<_> = course.spoken.as_ref()?.said(&course.newly_answered).map(quote).collect();
            let because = if quoted.is_empty() { String::new() } else { format!(" ({})", listed(&quoted)) };
            let answers = messages_in_words(messages.len());
            let text = format!("More was said before {name} began to speak{because}, so it begins again, and answers {answers}.");
            ("extended", text)
        }
        (_, Event::Interrupted { interrupted, .. }) => {
            let by = interrupted.who.as_ref().and_then(|who| course.people.name(who));
            ("interrupted", aloud::interrupted(interrupted, by.as_deref(), name))
        }
        (_, Event::ReplyOwed { messages, modality, .. }) => {
            let answers = messages_in_words(messages.len());
            let aloud = if modality.is_text() { "" } else { " aloud" };
            let text = if what == Some(What::TookOver) {
                format!(
                    "The companion that was selected before it made no statement, so {name} took over, and answers {answers}{aloud}."
                )
            } else if messages.is_empty() {
                format!("{name} got the floor, with nothing left to answer.")
            } else {
                format!("{name} got the floor, and answers {answers}{aloud}.")
            };
            ("respond", text)
        }
        (_, Event::Segment(segment)) => {
            ("held_back", format!("{} talked before {name} began to speak, and held it back.", name_of(&segment.from)))
        }
        (_, Event::SentenceStarting { .. }) => ("speaking", format!("{name} began to speak.")),
        (_, Event::SentencePlayed { .. }) => {
            let text =
                format!("The voice of {name} stalled, and the rest of a sentence was left out (voice.stall_timeout_secs).");
            ("stalled", text)
        }
        (_, Event::Replanning { .. }) => {
            let text = format!("More was said that concerns it, so {name} stopped and begins again once nobody says more.");
            ("replanning", text)
        }
        (_, Event::Replanned { messages, .. }) => {
            ("replanned", format!("{name} begins again, and answers {}.", messages_in_words(messages.len())))
        }
        (_, Event::FloorExpired { .. }) => {
            let text = format!(
                "{name} wrote for too long and lost the floor to others (turn_taking.floor_timeout_secs). Its statement follows when it is ready."
            );
            ("late", text)
        }
        (_, Event::FloorTaken { .. }) => ("respond", format!("The floor is free, and {name} posts its late statement.")),
        (_, Event::Decided(decided)) => {
            let (decision, reason, seq) = (decided.decision, decided.reason, recorded.seq);
            ("next", format!("{name} was considered again, with the answer {decision} ({reason}): decision {seq}."))
        }
        (_, Event::Deleted { .. }) => {
            ("dropped", format!("All messages that it was about were deleted, and with them what {name} had not said yet."))
        }
        (_, Event::Cancelled { message: Some(_), .. }) => {
            ("failed", "A person asked it to stop, so nothing was said (reply.stop_phrases).".to_owned())
        }
        (_, Event::Cancelled { message: None, .. }) => ("failed", "Somebody pressed Stop, so nothing was said.".to_owned()),
        (_, Event::ReplyFailed { error, .. }) if **error == *DELETED => {
            ("failed", "All messages that it would have answered were deleted, so nothing was said.".to_owned())
        }
        (_, Event::ReplyFailed { error, .. }) => {
            let error = failed(error);
            ("failed", format!("No statement was made ({error}). The messages are in the history all the same."))
        }
        (_, Event::Cleared) => ("cleared", "The room was cleared before anything was said.".to_owned()),
        (_, Event::Left { .. }) => ("moved", format!("{name} left the room before anything was said.")),
        (_, Event::Paused { .. }) => ("moved", format!("An operator paused {name} before it spoke.")),
        _ => return None,
    };
    Some(line(recorded, kind, text))
}
