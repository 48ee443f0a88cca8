//! Redacts events: removes their words and keeps the fact that they happened.

use std::sync::Arc;

use crate::domain::event::{Event, Recorded};
use crate::domain::message::{Message, Role};

/// Returns the event without any text that somebody said, that a model wrote, or that explains it.
///
/// The author is redacted with the text: a person's id and name become empty, so that nothing leads back to the person. A companion's id
/// and name stay, because a fold has to know whose statement it was.
pub fn redact(recorded: &Recorded) -> Recorded {
    let empty: Arc<str> = Arc::from("");
    let mut redacted = recorded.clone();
    match &mut redacted.event {
        Event::Said { message, .. } => {
            message.text = empty.clone();
            message.id = None;
            message.recalled.clear();
            message.quoted = None;
            if let Some(cut) = &mut message.cut {
                (cut.full, cut.by) = (empty.clone(), None);
            }
            if message.from.role != Role::Companion {
                message.from.id = empty.clone();
                message.from.name = empty;
            }
        }
        Event::VoiceJoined { from } | Event::VoiceLeft { from } => (from.id, from.name) = (empty.clone(), empty),
        Event::Segment(segment) => {
            segment.text = empty.clone();
            (segment.from.id, segment.from.name) = (empty.clone(), empty);
        }
        Event::Edited { text, .. } | Event::Summarised { text, .. } | Event::SentenceStarting { text, .. } => *text = empty,
        Event::Interrupted { interrupted, .. } => interrupted.who = None,
        Event::Disclosed(disclosed) => disclosed.owed.people.clear(),
        Event::Decided(decided) => {
            decided.why = None;
            if let Some(call) = &mut decided.call {
                call.answer = empty;
            }
        }
        Event::RepetitionJudged { call: Some(call), .. } => call.answer = empty,
        Event::Deleted { .. }
        | Event::Joined { .. }
        | Event::Left { .. }
        | Event::Paused { .. }
        | Event::Cleared
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
