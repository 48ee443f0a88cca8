//! Identifiers. Each kind has its own type, so that they cannot be confused.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::model_role::ModelRole;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Arc<str>);

        // Most compared ids share the same text.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The id as shared text.
            pub const fn as_shared(&self) -> &Arc<str> {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A community, the unit of tenancy. A direct message is a guild of its own, `dm:<channel>`.
    GuildId
}
name! {
    /// A channel. The id begins with its platform: `console:lobby`.
    ChannelId
}
name! {
    /// An AI character. The id is the stem of its file in `config/companions/`.
    CompanionId
}
name! {
    /// A person or a foreign bot. The id is that of its platform.
    PersonId
}
name! {
    /// The name of a model in the settings: `main`, `side`, or one that the operator chose (`[models.NAME]`).
    ModelName
}

impl PersonId {
    /// Somebody elsewhere whose messages a bridge relays under this name.
    pub fn behind(bridge: &Self, name: &str) -> Self {
        Self::from(format!("{BEHIND}{bridge}:{name}").as_str())
    }

    /// Whether a bridge relays the messages of this person, who then cannot use commands here.
    pub fn is_behind_bridge(&self) -> bool {
        self.0.starts_with(BEHIND)
    }
}

/// The beginning of the ids of people behind bridges.
const BEHIND: &str = "bridge:";

impl From<ModelRole> for ModelName {
    /// The default model of a role, unless a companion's file names another one.
    fn from(role: ModelRole) -> Self {
        role.as_str().into()
    }
}

impl GuildId {
    /// Whether it is a direct message.
    pub fn is_direct(&self) -> bool {
        self.0.starts_with("dm:")
    }
}

/// The number of an event in its channel, from 1, without gaps. A message's `seq` is its event's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const NONE: Self = Self(0);

    /// The number after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a question or reply in one channel, from 1. It identifies late answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Ticket(pub u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a turn. A turn lasts from the questions of one trigger, or of several at once, until silence or one statement.
///
/// It is random, and the trace id of the turn is derived from it. It is serialised as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u128);

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnId({self})")
    }
}

/// The error that a text is not a turn's id of 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a turn is 32 hexadecimal digits, not \"{0}\"")]
pub struct NotATurnId(String);

impl FromStr for TurnId {
    type Err = NotATurnId;

    fn from_str(text: &str) -> Result<Self, NotATurnId> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(bits) if is_hex => Ok(Self(bits)),
            _ => Err(NotATurnId(text.chars().take(40).collect())),
        }
    }
}

impl Serialize for TurnId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TurnId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// One of the 256 fixed parts of all guilds. Each has one writer. With several nodes, the active one owns all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ward(pub u8);

impl Ward {
    /// The ward of a guild: a fixed hash (64-bit FNV-1a, folded to eight bits) of its id.
    ///
    /// The ward of a Discord guild depends on its snowflake instead: `(guild_id >> 22) mod 256`. That of a direct message on Discord is 0.
    pub fn of(guild: &GuildId) -> Self {
        if let Some(snowflake) = guild.as_str().strip_prefix("discord:").and_then(|id| id.parse::<u64>().ok()) {
            return Self((snowflake >> 22) as u8);
        }
        if guild.as_str().starts_with("dm:discord:") {
            return Self(0);
        }
        let hash = guild
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(hash.to_be_bytes().into_iter().fold(0, |folded, byte| folded ^ byte))
    }
}

/// Derives an id from a title in any script: its letters in ASCII, with at most `most_chars` characters, plus a number if the id is taken. If the
/// title has no such letters, the id is `otherwise`.
pub fn id_of_title(title: &str, most_chars: usize, otherwise: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let ascii = any_ascii::any_ascii(title).to_lowercase();
    let words = ascii.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let id = words.collect::<Vec<_>>().join("-");
    // Leaves room for a number of up to six digits.
    let id = id.get(..most_chars - 7).unwrap_or(&id).trim_end_matches('-');
    let id = if id.is_empty() { otherwise } else { id };
    let numbered = (2..).map(|number: u32| format!("{id}-{number}"));
    let mut ids = std::iter::once(id.to_owned()).chain(numbered);
    ids.find(|id| !is_taken(id)).unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_id_can_be_parsed_from_its_text() {
        let turn = TurnId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

        assert_eq!(turn.to_string(), "0123456789abcdef0011223344556677");
        assert_eq!(turn.to_string().parse(), Ok(turn));
    }

    #[test]
    fn an_invalid_turn_id_is_refused() {
        for text in ["", "12", "+123456789abcdef0011223344556677", "0123456789abcdef001122334455667ä"] {
            assert!(text.parse::<TurnId>().is_err(), "{text}");
        }
    }
}
