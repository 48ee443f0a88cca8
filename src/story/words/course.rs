//! Sentences about the consequences of a decision.

use super::{Told, aloud, author, cut, moved, name_of, span, statement_failed};
use crate::domain::conversation::DELETED;
use crate::domain::event::{Event, Recorded, RoundClosed};
use crate::domain::id::Ticket;
use crate::domain::message::Message;
use crate::domain::turn::bid::{Phase, What};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::StoryLine;
use crate::story::Subject;
use crate::story::course::{Consequence, Course};

/// The line for the consequence of an event. `None` if there is none.
pub(crate) fn consequence(recorded: &Recorded, consequence: Consequence, course: &Course, who: &Subject) -> Option<StoryLine> {
    let what = match consequence {
        Consequence::Change(what) => Some(what),
        Consequence::HeldBack | Consequence::Next => None,
    };
    let (kind, key) = match (what, &recorded.event) {
        (_, Event::Cleared { .. } | Event::Left { .. }) if course.leaves_statement() => return moved(recorded, who),
        (Some(What::Now(Phase::Held)), _) => ("held", "why.course.held"),
        (Some(What::Now(Phase::Selected)), Event::RoundClosed(RoundClosed { speak_at, .. })) => {
            let delay = speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero())?;
            return Some(who.sentence("why.course.pause", &[("time", &span(delay, who.language))]).line(recorded, "turn"));
        }
        (Some(What::Now(Phase::Lost)), Event::RoundClosed(_) | Event::HeldSelected { .. }) => ("floor_lost", "why.course.lost"),
        (_, Event::Said { message, .. }) => return Some(statement(message, course, who).line(recorded, "statement")),
        (_, Event::ReplyExtended { .. }) => return Some(extended(course, who)?.line(recorded, "extended")),
        (_, Event::Interrupted { interrupted, .. }) => {
            let by = interrupted.who.as_ref().and_then(|who| course.people.name(who));
            return Some(aloud::interrupted(interrupted, by.as_deref(), who).line(recorded, "interrupted"));
        }
        (Some(What::TookOver), Event::ReplyOwed { .. }) => ("respond", "why.course.took_over"),
        (_, Event::ReplyOwed { messages, .. }) if messages.is_empty() => ("respond", "why.course.needless"),
        (_, Event::ReplyOwed { modality, .. }) if modality.is_text() => ("respond", "why.course.writes"),
        (_, Event::ReplyOwed { .. }) => ("respond", "why.course.speaks"),
        (_, Event::Segment(segment)) => {
            let by = name_of(&segment.from, who.language);
            return Some(who.sentence("why.course.held_back", &[("who", &by)]).line(recorded, "held_back"));
        }
        (_, Event::SentenceStarting { .. }) => ("speaking", "why.course.speaking"),
        (_, Event::SentencePlayed { .. }) => ("stalled", "why.course.stalled"),
        (_, Event::Replanning { .. }) => ("replanning", "why.course.replanning"),
        (_, Event::Replanned { .. }) => ("replanned", "why.course.replanned"),
        (_, Event::FloorExpired { .. }) => ("late", "why.course.late"),
        (_, Event::FloorTaken { .. }) => ("respond", "why.course.late_posted"),
        (_, Event::Decided(_)) => {
            return Some(who.sentence("why.course.next", &[("seq", &recorded.seq)]).line(recorded, "next"));
        }
        (_, Event::Deleted { .. }) => ("dropped", "why.course.deleted"),
        (_, Event::Cancelled { message: Some(_), .. }) => ("failed", "why.course.asked_to_stop"),
        (_, Event::Cancelled { message: None, .. }) => ("failed", "why.course.stopped"),
        (_, Event::ReplyFailed { error, .. }) if **error == *DELETED => ("failed", "why.course.deleted"),
        (_, Event::ReplyFailed { error, category, .. }) => {
            return Some(statement_failed(who, error, category.as_deref()).line(recorded, "failed"));
        }
        (_, Event::Cleared { .. }) => ("cleared", "why.course.cleared"),
        (_, Event::Left { .. }) => ("moved", "why.course.left"),
        (_, Event::Paused { .. }) => ("moved", "why.course.paused"),
        _ => return None,
    };
    Some(who.sentence(key, &[]).line(recorded, kind))
}

/// The line for a disclosure with the statement of this reply. `None` for other events.
pub(crate) fn disclosed(recorded: &Recorded, reply: Option<Ticket>, who: &Subject) -> Option<StoryLine> {
    let Event::Disclosed(disclosed) = &recorded.event else { return None };
    (Some(disclosed.ticket) == reply).then(|| who.sentence("why.course.disclosed", &[]).line(recorded, "disclosed"))
}

fn statement(message: &Message, course: &Course, who: &Subject) -> Told {
    if is_redacted(message) {
        return Told::new(who.language, "why.message.gone", &[("who", &who.name)]);
    }
    let told = match &course.spoken {
        Some(spoken) => aloud::statement(message, &spoken.words, who),
        None => who.sentence("why.course.said", &[("text", &cut(&message.text))]),
    };
    let setting = message.truncated.then_some("prompt.max_main_answer_tokens");
    Told { setting, ..told.and(message.truncated.then(|| who.sentence("why.course.truncated", &[]))) }
}

/// The reply was extended because people said more before it began to be spoken.
fn extended(course: &Course, who: &Subject) -> Option<Told> {
    let quote = |message: &Message| {
        Told::new(who.language, "why.message.said", &[("who", &author(message, who.language)), ("text", &cut(&message.text))])
    };
    let said = course.spoken.as_ref()?.said(&course.newly_answered).map(quote);
    Some(said.fold(who.sentence("why.course.extended", &[]), |told, said| told.and(Some(said))))
}
