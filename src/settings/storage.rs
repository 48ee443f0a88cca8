//! Settings of the store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{Problem, within};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;

const HOUR_MICROS: u64 = 60 * 60 * 1_000_000;

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
    /// Days after which deleted words are removed from the store's file, by compacting it (1 to 36,500); 0: only when somebody compacts it.
    pub compact_after_days: u32,
    /// The hour of the day, 0 to 23 in UTC, in which a running server stops its work to compact.
    pub compact_hour: u32,
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

    /// Whether words that were erased at this moment are in the store's file for too long now.
    pub fn is_compaction_due(&self, erased: Moment, now: Moment) -> bool {
        self.compacts() && day(now) >= day(erased).saturating_add(self.compact_after_days.into())
    }

    /// Whether this is the hour in which a running server compacts.
    pub fn is_compact_hour(&self, now: Moment) -> bool {
        now.as_micros() / HOUR_MICROS % 24 == u64::from(self.compact_hour)
    }

    /// The end of the hour in which words that are erased now are removed from the store's file at the latest; none: somebody has to compact it.
    pub fn compacted_by(&self, now: Moment) -> Option<Moment> {
        let hours = (day(now) + u64::from(self.compact_after_days)) * 24 + u64::from(self.compact_hour) + 1;
        self.compacts().then(|| Moment::from_micros(hours.saturating_mul(HOUR_MICROS)))
    }

    /// Whether the server compacts the store by itself.
    pub fn compacts(&self) -> bool {
        self.compact_after_days > 0
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
        within("compact_after_days", self.compact_after_days, 0..=MOST_DAYS)?;
        within("compact_hour", self.compact_hour, 0..=23)
    }
}

fn day(moment: Moment) -> u64 {
    moment.as_micros() / HOUR_MICROS / 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(days: u32, hour: u32) -> Storage {
        Storage {
            path: "data".into(),
            retention_days: None,
            guild_retention_days: BTreeMap::new(),
            compact_after_days: days,
            compact_hour: hour,
        }
    }

    fn hours(hours: u64) -> Moment {
        Moment::from_micros(hours * HOUR_MICROS)
    }

    #[test]
    fn erased_words_are_removed_in_the_hour_that_is_named_after_so_many_days() {
        let storage = storage(7, 4);
        let erased = hours(20 * 24 + 23);

        let by = storage.compacted_by(erased);

        assert_eq!(by, Some(hours(27 * 24 + 5)));
        assert!(!storage.is_compaction_due(erased, hours(27 * 24 - 1)));
        assert!(storage.is_compaction_due(erased, hours(27 * 24 + 4)));
        let is_the_hour = [3, 4, 5].map(|hour| storage.is_compact_hour(hours(27 * 24 + hour)));
        assert_eq!(is_the_hour, [false, true, false]);
    }

    #[test]
    fn with_0_days_nothing_is_compacted_by_itself() {
        let storage = storage(0, 4);

        assert_eq!(storage.compacted_by(hours(1)), None);
        assert!(!storage.is_compaction_due(Moment::ZERO, hours(1_000_000)));
    }

    #[test]
    fn an_hour_that_no_day_has_is_refused() {
        let refused = storage(7, 24).check().unwrap_err().to_string();

        assert!(refused.contains("compact_hour") && refused.contains("23"), "{refused}");
    }
}
