//! What a platform has to remember over restarts: sessions, and how far channels were heard.

use async_trait::async_trait;

use crate::domain::id::GuildId;

/// A note that could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a note cannot be kept: {0}")]
pub struct Unkept(pub String);

/// Small notes by name. Those of a guild lie with the guild.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// The note of this name.
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, Unkept>;

    /// Every note of a guild whose name begins so, with its name, in the order of names.
    async fn all(&self, guild: Option<&GuildId>, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, Unkept>;

    /// Writes notes, each whole; none in place of a value takes it away. Committed when this returns.
    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), Unkept>;
}
