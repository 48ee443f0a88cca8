//! Takes the words out of an event, and leaves that it happened.

use std::sync::Arc;

use crate::domain::event::{Event, Recorded};
use crate::domain::message::{Message, Role};

/// The same event at the same place, without anything that somebody said, wrote, or thought about it.
///
/// Who said it goes with the words: a person's id and name become empty, so that nothing leads back to them. A companion's stay: a fold
/// has to know whose statement it was.
pub fn redact(recorded: &Recorded) -> Recorded {
    let nothing: Arc<str> = Arc::from("");
    let mut bare = recorded.clone();
    match &mut bare.event {
        Event::Said { message, .. } => {
            message.text = nothing.clone();
            message.id = None;
            if message.from.role != Role::Companion {
                message.from.id = nothing.clone();
                message.from.name = nothing;
            }
        }
        Event::Edited { text, .. } | Event::Summarised { text, .. } => *text = nothing,
        Event::Decided(decided) => {
            decided.why = None;
            if let Some(call) = &mut decided.call {
                call.answer = nothing;
            }
        }
        Event::RepetitionJudged { call: Some(call), .. } => call.answer = nothing,
        Event::Deleted { .. }
        | Event::Joined { .. }
        | Event::Left { .. }
        | Event::Paused { .. }
        | Event::Cleared
        | Event::CaughtUp { .. }
        | Event::JitterDrawn { .. }
        | Event::LullFired { .. }
        | Event::BackOffEnded { .. }
        | Event::DeadlinesExtended { .. }
        | Event::AddressRefused { .. }
        | Event::RoundOpened(_)
        | Event::Evaluated(_)
        | Event::Unanswered { .. }
        | Event::StageChanged { .. }
        | Event::RoundClosed(_)
        | Event::RepetitionAsked { .. }
        | Event::RepetitionJudged { .. }
        | Event::ReplyOwed { .. }
        | Event::ReplyFailed { .. } => {}
    }
    bare
}

/// Whether a message's words were taken out. Nobody can say nothing.
pub fn is_redacted(message: &Message) -> bool {
    message.text.is_empty()
}
