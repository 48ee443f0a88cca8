//! Notes about people and rooms (docs/design/memory.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;

use super::keeping::Person;
use super::refused::Refused;
use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::id::{GuildId, PersonId, Seq};
use crate::domain::message::Role;

/// Shows, corrects and erases notes, and turns them on and off.
#[async_trait]
pub trait MemoryService: Send + Sync + 'static {
    /// The notes of a room, and what came of the last times that notes were taken.
    async fn notes(&self, room: &RoomId) -> Result<Notes, Refused>;

    /// The notes by and about a person in a guild.
    async fn notes_about(&self, person: Person) -> Result<NotesAbout, Refused>;

    /// Replaces the text of a note by a person's own words.
    async fn correct_note(&self, room: &RoomId, note: Seq, text: Arc<str>) -> Result<(), Refused>;

    /// Erases a note.
    async fn erase_note(&self, room: &RoomId, note: Seq) -> Result<(), Refused>;

    /// Turns notes on or off for a guild, or for one of its people, whose notes are then erased.
    async fn switch_notes(&self, guild: GuildId, person: Option<PersonId>, on: bool) -> Result<(), Refused>;

    /// Sets whether notes of a guild are used in other rooms than their own. Notes must be turned on.
    async fn use_notes_across_rooms(&self, guild: GuildId, across_rooms: bool) -> Result<(), Refused>;
}

/// The notes of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notes {
    /// The guild of the room, for which notes are turned on and off.
    pub guild: Arc<str>,
    /// Whether notes are taken. Absent: nobody has decided, and none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    /// Whether notes are used in other rooms of the guild, too.
    pub across_rooms: bool,
    /// Whether the settings (`memory.notes`) allow notes.
    pub allowed: bool,
    /// The notes, oldest first.
    pub notes: Vec<NoteView>,
    /// What came of the last times that notes were taken, oldest first.
    pub taken: Vec<TakenView>,
}

/// The notes by and about a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotesAbout {
    /// Whether notes may be taken of the person.
    pub on: bool,
    /// The notes, room by room, oldest first.
    pub notes: Vec<NoteView>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoteView {
    pub room: Arc<str>,
    /// Its number in the room.
    pub seq: Seq,
    /// The name of the person or companion that it is about. Absent: the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
    /// The id of that person or companion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about_id: Option<Arc<str>>,
    /// The name, the id and the role of the author of its sources.
    pub said_by: Arc<str>,
    pub said_by_id: Arc<str>,
    pub said_by_role: Role,
    pub text: Arc<str>,
    /// The numbers of the messages that it was made from.
    pub sources: Vec<Seq>,
    /// When the newest of them was said.
    pub at: Stamp,
    /// When it stops to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// Whether its author asked a companion to remember it, or somebody corrected it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The number of the later note that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Seq>,
}

/// What came of one time that notes were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TakenView {
    pub at: Stamp,
    /// The number of messages that were read. 0: a person's request to remember something was refused.
    pub messages: u64,
    /// The number of notes that were made.
    pub made: u32,
    /// The number of proposed notes that were dropped, by reason: `length`, `sources`, `subject`, `unsupported`, `instruction`, `secret`, `sensitive`,
    /// `known`, `too_many`.
    pub dropped: BTreeMap<Arc<str>, u32>,
}
