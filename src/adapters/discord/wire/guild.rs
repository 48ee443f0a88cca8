//! Guilds, their channels, threads, roles and emojis.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::snowflake::Snowflake;
use super::lenient::{Id, is_true, list, maybe};
use super::message::User;
use crate::domain::moment::Moment;
use crate::domain::text::one_line;

/// The longest name of a channel, in characters.
const MAX_NAME_CHARS: usize = 100;

/// The flag of a channel whose details Discord hides from a bot that may not view it ("Channel Object", "Obfuscated Channels").
const IS_OBFUSCATED: u64 = 1 << 17;

/// READY: a new session started.
#[derive(Debug, Deserialize)]
pub struct Ready {
    user: IdOnly,
    #[serde(default, deserialize_with = "maybe")]
    application: Option<IdOnly>,
    /// The guilds of this shard; none if one of them cannot be parsed.
    #[serde(default, deserialize_with = "maybe")]
    guilds: Option<Vec<IdOnly>>,
}

/// An object of which only the id is read.
#[derive(Debug, Deserialize)]
struct IdOnly {
    id: Id,
}

impl Ready {
    pub const fn user(&self) -> Snowflake {
        self.user.id.0
    }

    /// The application. Since 2016 it has the same id as the bot's user.
    pub fn application(&self) -> Snowflake {
        self.application.as_ref().map_or(self.user.id.0, |application| application.id.0)
    }

    /// The guilds of this shard, if all of them could be parsed. The bot has left any guild that is missing here.
    pub fn guilds(&self) -> Option<impl Iterator<Item = Snowflake> + '_> {
        Some(self.guilds.as_ref()?.iter().map(|guild| guild.id.0))
    }
}

/// A guild: GUILD_CREATE with its channels and active threads, GUILD_UPDATE without.
#[derive(Debug, Deserialize)]
pub struct Guild {
    pub id: Id,
    /// Whether it is in an outage: Discord reports nothing about it.
    #[serde(default, deserialize_with = "is_true")]
    pub unavailable: bool,
    #[serde(default, deserialize_with = "maybe")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "list")]
    pub roles: Vec<Role>,
    #[serde(default, deserialize_with = "list")]
    pub emojis: Vec<Emoji>,
    #[serde(default, deserialize_with = "list")]
    pub channels: Vec<Channel>,
    #[serde(default, deserialize_with = "list")]
    pub threads: Vec<Channel>,
    /// When the bot was invited. Only GUILD_CREATE has it.
    #[serde(default, deserialize_with = "maybe")]
    joined_at: Option<String>,
}

impl Guild {
    /// When the bot was invited, if the event has it.
    pub fn joined_at(&self) -> Option<Moment> {
        let joined_at: Timestamp = self.joined_at.as_ref()?.parse().ok()?;
        Some(Moment::from_micros(u64::try_from(joined_at.as_microsecond()).ok()?))
    }
}

/// GUILD_DELETE.
#[derive(Debug, Deserialize)]
pub struct GuildDeleted {
    pub id: Id,
    /// If it is absent or false, the bot was removed.
    #[serde(default)]
    unavailable: Unavailable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Unavailable {
    #[default]
    Absent,
    Given(bool),
    Malformed(IgnoredAny),
}

impl GuildDeleted {
    /// Whether this is an outage and not a removal. A malformed value counts as an outage, because that deletes nothing.
    pub const fn is_outage(&self) -> bool {
        matches!(self.unavailable, Unavailable::Given(true) | Unavailable::Malformed(_))
    }
}

/// A channel or a thread.
#[derive(Debug, Deserialize)]
pub struct Channel {
    pub id: Id,
    /// Its guild. It is absent within GUILD_CREATE.
    #[serde(default, deserialize_with = "maybe")]
    pub guild_id: Option<Id>,
    /// The channel type ("Channel Types").
    #[serde(default, rename = "type", deserialize_with = "maybe")]
    kind: Option<u64>,
    #[serde(default, deserialize_with = "maybe")]
    name: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    parent_id: Option<Id>,
    #[serde(default, deserialize_with = "maybe")]
    last_message_id: Option<Id>,
    #[serde(default, deserialize_with = "maybe")]
    flags: Option<u64>,
    #[serde(default, deserialize_with = "maybe")]
    thread_metadata: Option<ThreadMetadata>,
    #[serde(default, deserialize_with = "list")]
    recipients: Vec<User>,
}

#[derive(Debug, Deserialize)]
struct ThreadMetadata {
    #[serde(default, deserialize_with = "is_true")]
    archived: bool,
}

impl Channel {
    /// Whether it is a thread: announcement, public or private.
    pub const fn is_thread(&self) -> bool {
        matches!(self.kind, Some(10..=12))
    }

    pub const fn is_direct(&self) -> bool {
        matches!(self.kind, Some(1))
    }

    /// Whether its type is known, so that it is known whether it is a thread.
    pub const fn has_kind(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether it is an archived thread. A new message there would reopen it.
    pub fn is_archived(&self) -> bool {
        self.thread_metadata.as_ref().is_some_and(|thread| thread.archived)
    }

    /// The channel that a thread is in.
    pub fn parent(&self) -> Option<Snowflake> {
        self.parent_id.filter(|_| self.is_thread()).map(|id| id.0)
    }

    /// Its name in one line. For a direct message: the name of the person.
    pub fn name(&self) -> Option<String> {
        if self.is_obfuscated() {
            return None;
        }
        let recipient = || self.recipients.first().map(|user| user.as_incoming(None).shown());
        let name = self.name.clone().filter(|_| !self.is_direct()).or_else(recipient);
        name.map(|name| one_line(&name, MAX_NAME_CHARS)).filter(|name| !name.is_empty())
    }

    /// Its newest message. None for a forum, gallery or category: there, Discord's `last_message_id` is a thread.
    pub fn newest(&self) -> Option<Snowflake> {
        let holds_messages = !matches!(self.kind, Some(4 | 14 | 15 | 16));
        self.last_message_id.filter(|_| holds_messages && !self.is_obfuscated()).map(|id| id.0)
    }

    fn is_obfuscated(&self) -> bool {
        self.flags.is_some_and(|flags| flags & IS_OBFUSCATED != 0)
    }
}

/// CHANNEL_DELETE, THREAD_DELETE.
#[derive(Debug, Deserialize)]
pub struct ChannelDeleted {
    pub id: Id,
    #[serde(default)]
    pub guild_id: Option<Id>,
}

/// THREAD_LIST_SYNC: the bot gained access to channels.
#[derive(Debug, Deserialize)]
pub struct Threads {
    pub guild_id: Id,
    /// The channels; empty means all of the guild.
    #[serde(default, deserialize_with = "list")]
    pub channel_ids: Vec<Id>,
    /// The active threads in these channels.
    #[serde(default, deserialize_with = "list")]
    pub threads: Vec<Channel>,
}

#[derive(Debug, Deserialize)]
pub struct Role {
    pub id: Id,
    #[serde(default, deserialize_with = "maybe")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    tags: Option<Tags>,
}

#[derive(Debug, Deserialize)]
struct Tags {
    #[serde(default, deserialize_with = "maybe")]
    bot_id: Option<Id>,
}

impl Role {
    /// The bot that this role belongs to: Discord created it for the bot's invitation, and nobody else has it.
    pub fn bot(&self) -> Option<Snowflake> {
        self.tags.as_ref()?.bot_id.map(|id| id.0)
    }
}

/// GUILD_ROLE_CREATE, GUILD_ROLE_UPDATE.
#[derive(Debug, Deserialize)]
pub struct RoleChanged {
    pub guild_id: Id,
    /// The role after the change.
    pub role: Role,
}

/// GUILD_ROLE_DELETE.
#[derive(Debug, Deserialize)]
pub struct RoleDeleted {
    pub guild_id: Id,
    pub role_id: Id,
}

/// Any event about a guild or a channel; only the ids are read.
#[derive(Debug, Deserialize)]
pub struct Changed {
    /// The guild, unless the event is about the guild itself (`id`).
    #[serde(default)]
    pub guild_id: Option<Id>,
    /// The channel, unless the event is about the channel itself (`id`).
    #[serde(default)]
    pub channel_id: Option<Id>,
    /// The guild or channel that the event is about.
    #[serde(default)]
    pub id: Option<Id>,
}

/// GUILD_EMOJIS_UPDATE.
#[derive(Debug, Deserialize)]
pub struct Emojis {
    pub guild_id: Id,
    #[serde(default, deserialize_with = "list")]
    pub emojis: Vec<Emoji>,
}

#[derive(Debug, Deserialize)]
pub struct Emoji {
    pub id: Id,
    pub name: String,
    /// Whether it is animated.
    #[serde(default, deserialize_with = "is_true")]
    pub animated: bool,
    #[serde(default, deserialize_with = "maybe")]
    available: Option<bool>,
}

impl Emoji {
    /// Whether it can be used. A guild that lost its boosts keeps emojis that cannot.
    pub fn is_usable(&self) -> bool {
        self.available.unwrap_or(true)
    }
}

/// WEBHOOKS_UPDATE.
#[derive(Debug, Deserialize)]
pub struct WebhooksChanged {
    /// The channel whose webhooks changed.
    pub channel_id: Id,
}
