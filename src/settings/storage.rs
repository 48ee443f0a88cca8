//! Settings of the store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{Problem, within};
use crate::domain::id::GuildId;

/// A hundred years: for how long talk is kept at most, where it is not kept for good.
pub const MOST_DAYS: u32 = 36_500;

/// Section `storage`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The folder of the histories; a relative one begins where the server was started.
    pub path: PathBuf,
    /// Days after which what was said and decided is deleted (1 to 36,500); none: it is kept for good.
    pub retention_days: Option<u32>,
    /// The same for single guilds, by id; 0: it is kept for good there.
    pub guild_retention_days: BTreeMap<GuildId, u32>,
}

impl Storage {
    /// For how long a guild's talk is kept; none: for good.
    pub fn retention_of(&self, guild: &GuildId) -> Option<Duration> {
        let days = self.guild_retention_days.get(guild).copied().or(self.retention_days).filter(|days| *days > 0)?;
        Some(Duration::from_secs(u64::from(days) * 24 * 60 * 60))
    }

    /// Whether nothing is ever deleted for its age.
    pub fn keeps_everything(&self) -> bool {
        self.retention_days.is_none() && self.guild_retention_days.values().all(|days| *days == 0)
    }

    /// Holds every value to its range.
    pub fn check(&self) -> Result<(), Problem> {
        if self.path.as_os_str().is_empty() {
            return Err(Problem::new("path", "is empty, must name a folder, for example data"));
        }
        if let Some(days) = self.retention_days {
            within("retention_days", days, 1..=MOST_DAYS)?;
        }
        for (guild, days) in &self.guild_retention_days {
            within(&format!("guild_retention_days.{guild}"), *days, 0..=MOST_DAYS)?;
        }
        Ok(())
    }
}
