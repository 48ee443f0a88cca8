//! What the record says, for people: pure code that takes events and gives facts, and words for them. What reads the store and asks actors is in
//! `backend`.
//!
//! * `rounds`: how rounds go.
//! * `course`: what each event after a decision means for it.
//! * `aloud`: what happened to a spoken reply, and what of it was heard.
//! * `fates`: what happened to a message, for every companion.
//! * `script`: the replay script of a room; `losses`: what it cannot represent.
//! * `chat`: a room's messages as group chat for `tertulia evaluate`.
//! * `transcript`: a room's messages as a document.
//! * `words`: one sentence for each thing that happened.

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

/// The companion that a story is about, and the language of the story.
pub(crate) struct Subject {
    pub(crate) id: CompanionId,
    pub(crate) name: Arc<str>,
    /// Its current settings in the room, if it is configured or external.
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
