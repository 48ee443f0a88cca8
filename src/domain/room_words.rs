//! The words of a room itself: instructions for all companions in it, its style, and a note that stands within the talk.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named::named;

/// The longest instructions of a room, in characters.
pub const MOST_INSTRUCTIONS: usize = 4_000;
/// The longest note of a room, in characters.
pub const MOST_NOTE: usize = 1_000;
/// The most messages after the note.
pub const MOST_DEPTH: u8 = 100;
/// The longest description that a person writes of themselves, in characters.
pub const MOST_DESCRIPTION: usize = 1_000;
/// The most people of a room who describe themselves.
pub const MOST_DESCRIBED: usize = 100;

/// The number of messages after the note, if none is set.
const USUAL_DEPTH: u8 = 4;

named! {
    /// How companions write in a room.
    #[derive(Default, JsonSchema)]
    pub enum Style {
        /// As in a chat: only what they say.
        #[default]
        Chat = "chat",
        /// As in a story: what they do, between asterisks, and what they say, in up to three paragraphs.
        RolePlay = "role-play",
    }
}

/// The words that operators wrote for a room. An empty text means none, also where the settings have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoomWords {
    /// Instructions for all companions in the room, at most 4,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// A note to the companions that stands within the talk in each prompt of a statement, at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
    /// The number of messages after the note: 0 to 100, usually 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note_depth: Option<u8>,
}

impl RoomWords {
    pub const NONE: Self = Self { instructions: None, style: None, note: None, note_depth: None };

    /// Whether nothing is set.
    pub fn are_unset(&self) -> bool {
        *self == Self::NONE
    }

    /// These words, and those of the settings where nothing is set.
    #[must_use]
    pub fn or(self, settings: Self) -> Self {
        Self {
            instructions: self.instructions.or(settings.instructions),
            style: self.style.or(settings.style),
            note: self.note.or(settings.note),
            note_depth: self.note_depth.or(settings.note_depth),
        }
    }

    pub fn instructions(&self) -> &str {
        self.instructions.as_deref().unwrap_or_default().trim()
    }

    pub fn note(&self) -> &str {
        self.note.as_deref().unwrap_or_default().trim()
    }

    /// The number of messages after the note.
    pub fn depth(&self) -> usize {
        self.note_depth.unwrap_or(USUAL_DEPTH).into()
    }

    pub fn is_role_play(&self) -> bool {
        self.style == Some(Style::RolePlay)
    }
}
