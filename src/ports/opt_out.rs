//! Opt-outs: people who do not want companions to read what they say.

use async_trait::async_trait;

use super::backend::refused::Refused;
use crate::domain::id::{GuildId, PersonId};

/// The opt-outs of each guild. No companion reads, counts or answers what a person says, until the person withdraws the opt-out.
#[async_trait]
pub trait OptOut: Send + Sync + 'static {
    /// Whether a person has opted out in a guild.
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool;

    /// Stores or withdraws an opt-out. It is committed when this returns. True if that changed anything.
    ///
    /// # Errors
    /// The change could not be stored.
    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused>;
}
