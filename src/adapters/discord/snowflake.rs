//! Discord's ids: conversions to the time and shard that they encode, and to our ids of guilds, channels and people.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::id::{ChannelId, GuildId, PersonId};
use crate::domain::moment::Moment;

/// Discord's epoch, in Unix milliseconds: the start of 2015.
const EPOCH_MS: u64 = 1_420_070_400_000;
/// The prefix of our ids for Discord's guilds, channels and people.
const PREFIX: &str = "discord:";
/// The prefix of our guild id for a direct message.
const DIRECT_PREFIX: &str = "dm:discord:";

/// A Discord id of a message, user, channel, guild, webhook, role or emoji. Never 0.
///
/// Message ids increase with time, so they order the messages of a channel. In JSON they are strings, as in Discord's API; numbers are accepted,
/// too. The format is described in Discord's documentation, "API Reference", "Snowflakes".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snowflake(NonZeroU64);

/// The text is not a Discord id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an id of Discord's; those are numbers from 1 to 18446744073709551615 without sign, spaces or leading zeros")]
pub struct NotASnowflake;

impl Snowflake {
    /// The largest possible id. It is newer than all others.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// The id with this number. `None` for 0.
    pub const fn new(id: u64) -> Option<Self> {
        match NonZeroU64::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The smallest id of this moment. All earlier ids are smaller.
    pub const fn at(moment: Moment) -> Self {
        let since_epoch_ms = (moment.as_micros() / 1_000).saturating_sub(EPOCH_MS);
        // Forty-two bits hold the time until the year 2154.
        let at = if since_epoch_ms >= 1 << 42 { u64::MAX } else { since_epoch_ms << 22 };
        match Self::new(at) {
            Some(id) => id,
            None => Self(NonZeroU64::MIN),
        }
    }

    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The creation time, in whole milliseconds.
    pub const fn time(self) -> Moment {
        Moment::from_micros(((self.get() >> 22) + EPOCH_MS) * 1_000)
    }

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The id before this one. 1 for the first id.
    pub fn previous(self) -> Self {
        Self(NonZeroU64::new(self.0.get() - 1).unwrap_or(self.0))
    }

    /// The shard that receives the events of the guild with this id: `(guild_id >> 22) mod shards`.
    ///
    /// Direct messages are sent only to shard 0.
    pub const fn shard(self, shards: NonZeroU32) -> u32 {
        // The remainder of a division by a u32 fits into a u32.
        ((self.get() >> 22) % shards.get() as u64) as u32
    }

    /// The guild with this id.
    pub fn guild(self) -> GuildId {
        format!("{PREFIX}{self}").into()
    }

    /// The channel, or thread, with this id.
    pub fn channel(self) -> ChannelId {
        format!("{PREFIX}{self}").into()
    }

    /// The guild that represents the direct message channel with this id.
    pub fn direct_guild(self) -> GuildId {
        format!("{DIRECT_PREFIX}{self}").into()
    }

    /// The user with this id. It cannot equal a companion's id, because companions' ids contain no colon.
    pub fn person(self) -> PersonId {
        format!("{PREFIX}{self}").into()
    }

    /// Whether a channel is on Discord.
    pub fn is_of_discord(channel: &ChannelId) -> bool {
        channel.as_str().starts_with(PREFIX)
    }

    /// The Discord id of a channel. `None` if the channel is on another platform.
    pub fn of_channel(channel: &ChannelId) -> Option<Self> {
        channel.as_str().strip_prefix(PREFIX)?.parse().ok()
    }

    /// The Discord id of a guild. `None` if the guild is on another platform or represents a direct message.
    pub fn of_guild(guild: &GuildId) -> Option<Self> {
        guild.as_str().strip_prefix(PREFIX)?.parse().ok()
    }

    /// The Discord id of the direct message channel that a guild represents. `None` for any other guild.
    pub fn of_direct_guild(guild: &GuildId) -> Option<Self> {
        guild.as_str().strip_prefix(DIRECT_PREFIX)?.parse().ok()
    }

    /// The Discord id of a person. `None` if the person is on another platform.
    pub fn of_person(person: &str) -> Option<Self> {
        person.strip_prefix(PREFIX)?.parse().ok()
    }
}

impl FromStr for Snowflake {
    type Err = NotASnowflake;

    fn from_str(text: &str) -> Result<Self, NotASnowflake> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        text.parse().ok().filter(|_| is_plain).and_then(Self::new).ok_or(NotASnowflake)
    }
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Snowflake {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SnowflakeVisitor)
    }
}

/// Parses an id that is a string, as documented. Numbers are rejected.
pub fn documented<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Snowflake, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::invalid_type(Unexpected::Other("a text"), &"a Discord id as a string"))
}

struct SnowflakeVisitor;

impl Visitor<'_> for SnowflakeVisitor {
    type Value = Snowflake;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Discord id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Snowflake, E> {
        // The error does not quote the value, which may be text written by a person.
        text.parse().map_err(|_| E::invalid_type(Unexpected::Other("a text"), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Snowflake, E> {
        Snowflake::new(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// The id with this number, in tests.
#[cfg(any(test, feature = "samples"))]
pub const fn id(number: u64) -> Snowflake {
    Snowflake::new(number).expect("ids are not 0")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::id::Ward;

    #[test]
    fn an_id_is_a_plain_positive_number() {
        for text in ["1", "175928847299117063", "18446744073709551615"] {
            assert_eq!(text.parse::<Snowflake>().unwrap().to_string(), text);
        }
        for text in ["", "0", "01", "+1", "-1", " 1", "1 ", "1_0", "x", "18446744073709551616", "٣"] {
            assert_eq!(text.parse::<Snowflake>(), Err(NotASnowflake), "{text:?}");
        }
    }

    #[test]
    fn it_encodes_its_creation_time() {
        let id = super::id(175_928_847_299_117_063);

        assert_eq!(id.time(), Moment::from_micros(1_462_015_105_796_000));
        assert_eq!(Snowflake::at(id.time()).get(), id.get() >> 22 << 22);
    }

    #[test]
    fn times_that_ids_cannot_encode_give_the_nearest_id() {
        assert_eq!(Snowflake::at(Moment::ZERO), super::id(1));
        assert_eq!(Snowflake::at(Moment::from_micros(u64::MAX)), Snowflake::MAX);
        assert_eq!(Snowflake::MAX.next(), Snowflake::MAX);
    }

    #[test]
    fn it_converts_to_guild_channel_and_person_ids_and_back() {
        let id = super::id(42);

        assert_eq!(id.guild().as_str(), "discord:42");
        assert_eq!(id.channel().as_str(), "discord:42");
        assert_eq!(id.direct_guild().as_str(), "dm:discord:42");
        assert_eq!(id.person().as_str(), "discord:42");
        assert_eq!(Snowflake::of_channel(&id.channel()), Some(id));
        assert_eq!(Snowflake::of_guild(&id.guild()), Some(id));
        assert_eq!(Snowflake::of_guild(&id.direct_guild()), None);
        assert_eq!(Snowflake::of_direct_guild(&id.direct_guild()), Some(id));
        assert_eq!(Snowflake::of_direct_guild(&id.guild()), None);
        assert_eq!(Snowflake::of_person("discord:42"), Some(id));
        assert_eq!(Snowflake::of_channel(&"console:42".into()), None);
        assert_eq!(Snowflake::of_person("aria"), None);
    }

    #[test]
    fn it_is_a_string_in_json() {
        let id = super::id(u64::MAX);

        let json = serde_json::to_string(&id).unwrap();

        assert_eq!(json, "\"18446744073709551615\"");
        assert_eq!(serde_json::from_str::<Snowflake>(&json).unwrap(), id);
    }

    #[test]
    fn an_id_is_a_string_or_a_number_and_other_values_are_not_quoted() {
        let read = |text: &str| serde_json::from_str::<Snowflake>(text);

        assert_eq!((read("\"7\"").unwrap(), read("7").unwrap()), (id(7), id(7)));
        for odd in ["0", "\"0\"", "-7", "7.5", "\"secret\"", "null", "[]", "{}", "true"] {
            let error = read(odd).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_guilds_shard_and_ward_use_the_same_bits(id in 1..=u64::MAX) {
            let id = super::id(id);

            prop_assert_eq!(id.shard(NonZeroU32::new(256).unwrap()), u32::from(Ward::of(&id.guild()).0));
            prop_assert_eq!(id.shard(NonZeroU32::MIN), 0);
            prop_assert_eq!(Ward::of(&id.direct_guild()), Ward(0));
        }

        #[test]
        fn later_ids_are_larger(earlier in 0..1u64 << 42, later in 0..1u64 << 42) {
            let moment = |ms: u64| Moment::from_micros((EPOCH_MS + ms) * 1_000);

            prop_assert_eq!(earlier < later, Snowflake::at(moment(earlier)) < Snowflake::at(moment(later)));
        }
    }
}
