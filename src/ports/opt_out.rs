//! Opt-outs: people who do not want companions to read their messages.

use async_trait::async_trait;

use super::backend::refused::Refused;
use crate::domain::id::{GuildId, PersonId};

/// The opt-outs of each guild. While an opt-out is in force, no companion reads, counts or answers the person's messages.
#[async_trait]
pub trait OptOut: Send + Sync + 'static {
    /// Whether a person has opted out in a guild.
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool;

    /// Stores or withdraws an opt-out. It is committed when this returns. Returns whether the call changed anything.
    ///
    /// # Errors
    /// Returns an error if the change could not be stored.
    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused>;
}
