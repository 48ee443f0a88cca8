//! Redacts events: removes their text and keeps the fact that they happened.

use std::sync::Arc;

use crate::domain::event::{Event, Recorded};
use crate::domain::id::PersonId;
use crate::domain::message::{Message, Role};
use crate::domain::tools::CONFIRMED_CALL;

/// Returns the event without any text: messages, model output, and explanations.
///
/// The author is redacted together with the text: a person's id and name become empty, so that nothing refers to the person. A
/// companion's id and name stay, because a fold needs the speaker of a statement.
pub fn redact(recorded: &Recorded) -> Recorded {
    let empty: Arc<str> = Arc::from("");
    let mut redacted = recorded.clone();
    match &mut redacted.event {
        Event::Said { message, .. } => {
            message.text = empty.clone();
            // The id of an event about a call has only the number of the call, by which the event is journaled once.
            message.id.take_if(|_| message.kind.as_deref() != Some(CONFIRMED_CALL));
            message.sender = None;
            message.recalled.clear();
            message.files_of.clear();
            message.lore.clear();
            message.calls.clear();
            message.versions = None;
            message.quoted = None;
            message.attachments.clear();
            if let Some(cut) = &mut message.cut {
                (cut.full, cut.by) = (empty.clone(), None);
            }
            if message.from.role != Role::Companion {
                message.from.id = empty.clone();
                message.from.name = empty;
            }
        }
        Event::VoiceJoined { from } | Event::VoiceLeft { from } => (from.id, from.name) = (empty.clone(), empty),
        Event::Reacted { by, emoji, .. } => (*by, *emoji) = (PersonId::from(&*empty), empty),
        Event::Chosen { by, .. } => *by = None,
        Event::Segment(segment) => {
            segment.text = empty.clone();
            (segment.from.id, segment.from.name) = (empty.clone(), empty);
        }
        Event::Edited { text, captions, .. } => {
            *text = empty;
            captions.clear();
        }
        Event::Summarised { text, .. } | Event::SentenceStarting { text, .. } => *text = empty,
        Event::Interrupted { interrupted, .. } => interrupted.who = None,
        Event::Disclosed(disclosed) => disclosed.owed.people.clear(),
        Event::Decided(decided) => {
            decided.why = None;
            if let Some(call) = &mut decided.call {
                call.answer = empty;
            }
        }
        Event::RepetitionJudged { call: Some(call), .. } => call.answer = empty,
        Event::ToolCalled(called) => (called.arguments, called.cause) = (empty, None),
        Event::ToolConfirmed(confirmed) => confirmed.by = None,
        Event::ToolAnswered(answered) => answered.answer.redact(),
        Event::Noted(note) => note.redact(),
        Event::ReminderSet(reminder) => reminder.redact(),
        Event::Deleted { .. }
        | Event::Joined { .. }
        | Event::RemindersCancelled { .. }
        | Event::Left { .. }
        | Event::Paused { .. }
        | Event::Cleared { .. }
        | Event::CaughtUp { .. }
        | Event::JitterDrawn { .. }
        | Event::LullFired { .. }
        | Event::SilenceFired { .. }
        | Event::VoiceQuiet { .. }
        | Event::EventsDeferred { .. }
        | Event::EventsReleased
        | Event::BackOffEnded { .. }
        | Event::DeadlinesExtended { .. }
        | Event::AddressRefused { .. }
        | Event::Filtered(_)
        | Event::NotesTaken(_)
        | Event::RoundOpened(_)
        | Event::Evaluated(_)
        | Event::Unanswered { .. }
        | Event::StageChanged { .. }
        | Event::RoundClosed(_)
        | Event::RepetitionAsked { .. }
        | Event::ReplyExtended { .. }
        | Event::SentencePlayed { .. }
        | Event::Replanning { .. }
        | Event::Replanned { .. }
        | Event::Cancelled { .. }
        | Event::FloorExpired { .. }
        | Event::FloorTaken { .. }
        | Event::HeldSelected { .. }
        | Event::RepetitionJudged { .. }
        | Event::ReplyOwed { .. }
        | Event::ReplyFailed { .. } => {}
    }
    redacted
}

/// Whether a message was redacted. An original message is never empty.
pub fn is_redacted(message: &Message) -> bool {
    message.text.is_empty()
}
