//! People who do not want to be heard.

use async_trait::async_trait;

use super::backend::Refused;
use crate::domain::id::{GuildId, PersonId};

/// Who in a guild is not to be heard: no companion reads, counts or answers what they say, until they take it back.
#[async_trait]
pub trait OptOut: Send + Sync + 'static {
    /// Whether a person is not to be heard in a guild.
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool;

    /// Changes it, lastingly: committed when this returns. True if it was otherwise before.
    ///
    /// # Errors
    /// It could not be put on record.
    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused>;
}
