//! Notes that a platform stores across restarts: sessions, and how far channels were read.

use async_trait::async_trait;

use crate::domain::id::GuildId;

/// A note that could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a note cannot be read or written: {0}")]
pub struct NoteError(pub String);

/// Small notes by name. The notes of a guild are stored with the guild.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Reads the note of this name; `None` if there is none.
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, NoteError>;

    /// All notes of a guild whose names have this prefix, with their names, ordered by name.
    async fn all(&self, guild: Option<&GuildId>, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, NoteError>;

    /// Replaces notes. `None` as the value deletes the note. Committed when this returns.
    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), NoteError>;
}
