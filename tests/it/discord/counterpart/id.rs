//! Discord's ids (snowflakes): milliseconds since 2015 in the upper 42 bits. The other bits distinguish ids of the same millisecond.
//!
//! <https://docs.discord.com/developers/reference#snowflakes>

use std::fmt;

use serde::{Serialize, Serializer};

/// The first second of 2015, from which ids count, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_420_070_400_000;
/// Guild ids start here and are one millisecond apart, so that consecutive guilds are on consecutive shards.
const FIRST_GUILD_MS: u64 = EPOCH_MS + 315_360_000_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

impl Id {
    /// The time in the id, in milliseconds since 1970.
    pub fn made_at_ms(self) -> u64 {
        (self.0 >> 22) + EPOCH_MS
    }

    /// The shard, out of so many, that receives the events of the guild with this id.
    ///
    /// <https://docs.discord.com/developers/events/gateway#sharding>
    pub fn shard(self, of: u64) -> u64 {
        (self.0 >> 22) % of
    }

    /// Parses an id in JSON: a string of digits.
    pub fn read(value: &serde_json::Value) -> Option<Self> {
        Self::parse(value.as_str()?)
    }

    /// Parses an id in a path.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|id| *id != 0).map(Self)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Always a string, because JavaScript loses digits of a number this long.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Default)]
pub struct Ids {
    last: u64,
    guilds: u64,
}

impl Ids {
    /// An id that is newer than all before.
    pub fn next(&mut self, now_ms: u64) -> Id {
        self.last = (now_ms.saturating_sub(EPOCH_MS) << 22).max(self.last + 1);
        Id(self.last)
    }

    /// An id for a guild. Consecutive ids are on consecutive shards.
    pub fn next_guild(&mut self) -> Id {
        self.guilds += 1;
        Id((FIRST_GUILD_MS - EPOCH_MS + self.guilds) << 22)
    }
}
