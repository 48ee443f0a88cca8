//! Explains the recorded events of a room to people. This module is pure code that derives facts from events and describes them
//! in sentences. `backend` reads the store and queries the actors.
//!
//! * `rounds`: the progress of rounds.
//! * `course`: the consequences of each event after a decision.
//! * `aloud`: the progress of a spoken reply, and the part that was played.
//! * `fates`: the outcome of a message for every companion.
//! * `script`: a replay script of a room; `losses`: the events that it cannot represent.
//! * `chat`: a room's messages as group chat for `tertulia-lab evaluate`.
//! * `transcript`: a room's messages as a document.
//! * `words`: the sentence for each event.

#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod aloud;
pub(crate) mod chat;
pub(crate) mod course;
pub(crate) mod fates;
mod losses;
pub(crate) mod rounds;
pub(crate) mod script;
pub(crate) mod transcript;
pub(crate) mod words;

use std::sync::Arc;

use crate::domain::id::CompanionId;
use crate::settings::companion::Companion;
use crate::texts::Language;

/// The companion whose story is written, and the language of the story.
pub(crate) struct Subject {
    pub(crate) id: CompanionId,
    pub(crate) name: Arc<str>,
    /// Its current settings in the room. `None` if it is neither configured nor external.
    pub(crate) settings: Option<Companion>,
    pub(crate) is_external: bool,
    pub(crate) language: Language,
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    pub(crate) fn aria() -> Subject {
        Subject { id: "aria".into(), name: "Aria".into(), settings: None, is_external: false, language: Language::English }
    }
}
