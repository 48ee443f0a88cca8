//! Guilds, their channels, threads, roles and emojis.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::snowflake::Snowflake;
use super::lenient::{Id, is_true, list, maybe};
use super::message::User;
use crate::domain::moment::Moment;
use crate::domain::text::one_line;

/// No name of a channel has more characters.
const LONGEST_NAME: usize = 100;

/// The flag of a channel of which a bot that may not view it is told nothing ("Channel Object", "Obfuscated Channels").
const IS_OBFUSCATED: u64 = 1 << 17;

/// READY: a new session.
#[derive(Debug, Deserialize)]
pub struct Ready {
    user: IdOnly,
    #[serde(default, deserialize_with = "maybe")]
    application: Option<IdOnly>,
    /// The guilds of this shard; none if one of them cannot be read.
    #[serde(default, deserialize_with = "maybe")]
    guilds: Option<Vec<IdOnly>>,
}

/// Something of which only the id is read.
#[derive(Debug, Deserialize)]
struct IdOnly {
    id: Id,
}

impl Ready {
    /// The bot's user.
    pub const fn user(&self) -> Snowflake {
        self.user.id.0
    }

    /// The application; since 2016 both have the same id.
    pub fn application(&self) -> Snowflake {
        self.application.as_ref().map_or(self.user.id.0, |application| application.id.0)
    }

    /// The guilds of this shard, if all of them could be read: whoever is missing in it is gone.
    pub fn guilds(&self) -> Option<impl Iterator<Item = Snowflake> + '_> {
        Some(self.guilds.as_ref()?.iter().map(|guild| guild.id.0))
    }
}

/// A guild: GUILD_CREATE with its channels and active threads, GUILD_UPDATE without.
#[derive(Debug, Deserialize)]
pub struct Guild {
    /// Its id.
    pub id: Id,
    /// Discord has trouble with it, and tells nothing of it.
    #[serde(default, deserialize_with = "is_true")]
    pub unavailable: bool,
    /// Its name.
    #[serde(default, deserialize_with = "maybe")]
    pub name: Option<String>,
    /// Its roles.
    #[serde(default, deserialize_with = "list")]
    pub roles: Vec<Role>,
    /// Its emojis.
    #[serde(default, deserialize_with = "list")]
    pub emojis: Vec<Emoji>,
    /// Its channels.
    #[serde(default, deserialize_with = "list")]
    pub channels: Vec<Channel>,
    /// Its active threads.
    #[serde(default, deserialize_with = "list")]
    pub threads: Vec<Channel>,
    /// When the bot was invited; GUILD_CREATE alone tells.
    #[serde(default, deserialize_with = "maybe")]
    joined_at: Option<String>,
}

impl Guild {
    /// When the bot was invited, if that is told.
    pub fn joined_at(&self) -> Option<Moment> {
        let joined_at: Timestamp = self.joined_at.as_ref()?.parse().ok()?;
        Some(Moment::from_micros(u64::try_from(joined_at.as_microsecond()).ok()?))
    }
}

/// GUILD_DELETE.
#[derive(Debug, Deserialize)]
pub struct GuildDeleted {
    /// Which one.
    pub id: Id,
    /// Absent, or false: the bot was removed.
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
    /// Whether Discord only has trouble with it. What cannot be read is taken for that, since it costs nothing.
    pub const fn is_outage(&self) -> bool {
        matches!(self.unavailable, Unavailable::Given(true) | Unavailable::Malformed(_))
    }
}

/// A channel or a thread.
#[derive(Debug, Deserialize)]
pub struct Channel {
    /// Its id.
    pub id: Id,
    /// Its guild; in GUILD_CREATE it is left out.
    #[serde(default, deserialize_with = "maybe")]
    pub guild_id: Option<Id>,
    /// What it is ("Channel Types").
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
    /// Whether it is a thread: announcement, public, private.
    pub const fn is_thread(&self) -> bool {
        matches!(self.kind, Some(10..=12))
    }

    /// Whether it is a direct message.
    pub const fn is_direct(&self) -> bool {
        matches!(self.kind, Some(1))
    }

    /// Whether its kind was told, so that it is known to be a thread or none.
    pub const fn has_kind(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether it is an archived thread: a message there would bring it back.
    pub fn is_archived(&self) -> bool {
        self.thread_metadata.as_ref().is_some_and(|thread| thread.archived)
    }

    /// The channel that a thread is in.
    pub fn parent(&self) -> Option<Snowflake> {
        self.parent_id.filter(|_| self.is_thread()).map(|id| id.0)
    }

    /// Its name, in one line; of a direct message, that of the person.
    pub fn name(&self) -> Option<String> {
        if self.is_obfuscated() {
            return None;
        }
        let person = || self.recipients.first().map(|user| user.as_incoming(None).shown());
        let name = self.name.clone().filter(|_| !self.is_direct()).or_else(person);
        name.map(|name| one_line(&name, LONGEST_NAME)).filter(|name| !name.is_empty())
    }

    /// Its newest message; none of what holds threads alone (a forum, a gallery) or channels (a category), where it would be a thread.
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
    /// Which one.
    pub id: Id,
    /// Its guild.
    #[serde(default)]
    pub guild_id: Option<Id>,
}

/// THREAD_LIST_SYNC: the bot was let into channels.
#[derive(Debug, Deserialize)]
pub struct Threads {
    /// The guild.
    pub guild_id: Id,
    /// The channels; none: all of the guild.
    #[serde(default, deserialize_with = "list")]
    pub channel_ids: Vec<Id>,
    /// The active threads in them.
    #[serde(default, deserialize_with = "list")]
    pub threads: Vec<Channel>,
}

/// A role.
#[derive(Debug, Deserialize)]
pub struct Role {
    /// Its id.
    pub id: Id,
    /// Its name.
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
    /// The bot whose own role it is: made when that was invited, and borne by nobody else.
    pub fn bot(&self) -> Option<Snowflake> {
        self.tags.as_ref()?.bot_id.map(|id| id.0)
    }
}

/// GUILD_ROLE_CREATE, GUILD_ROLE_UPDATE.
#[derive(Debug, Deserialize)]
pub struct RoleChanged {
    /// The guild.
    pub guild_id: Id,
    /// The role as it is now.
    pub role: Role,
}

/// GUILD_ROLE_DELETE.
#[derive(Debug, Deserialize)]
pub struct RoleDeleted {
    /// The guild.
    pub guild_id: Id,
    /// The role.
    pub role_id: Id,
}

/// Any event about a guild or a channel, as far as it tells which.
#[derive(Debug, Deserialize)]
pub struct Changed {
    /// The guild, unless it is what the event is about.
    #[serde(default)]
    pub guild_id: Option<Id>,
    /// The channel that something belongs to.
    #[serde(default)]
    pub channel_id: Option<Id>,
    /// What the event is about: a guild or a channel.
    #[serde(default)]
    pub id: Option<Id>,
}

/// GUILD_EMOJIS_UPDATE.
#[derive(Debug, Deserialize)]
pub struct Emojis {
    /// The guild.
    pub guild_id: Id,
    /// All of them.
    #[serde(default, deserialize_with = "list")]
    pub emojis: Vec<Emoji>,
}

/// An emoji of a guild.
#[derive(Debug, Deserialize)]
pub struct Emoji {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// Whether it moves.
    #[serde(default, deserialize_with = "is_true")]
    pub animated: bool,
    #[serde(default, deserialize_with = "maybe")]
    available: Option<bool>,
}

impl Emoji {
    /// Whether it can be used: a guild that lost its boosts keeps some that cannot.
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
