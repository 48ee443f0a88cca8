//! Guilds, their channels, threads, roles and emojis.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use twilight_model::channel::permission_overwrite::PermissionOverwrite;
use twilight_model::channel::{ChannelFlags, ChannelType};
use twilight_model::guild::Permissions;

use super::super::permissions::{Readers, is_voice};
use super::super::snowflake::Snowflake;
use super::lenient::{list, maybe, maybe_kind};
use super::message::User;
use super::voice::{VoiceMember, VoiceState};
use crate::domain::moment::Moment;
use crate::domain::text::one_line;
use crate::ports::backend::stamp::from_rfc3339;

/// The length limit of a channel's name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// The length limit of a stored topic, in characters.
const MAX_TOPIC_CHARS: usize = 300;

/// A guild. GUILD_CREATE includes its channels and active threads, GUILD_UPDATE does not.
#[derive(Debug, Deserialize)]
pub struct Guild {
    pub id: Snowflake,
    /// Whether the guild is in an outage. Then Discord reports nothing else about it.
    #[serde(default, deserialize_with = "maybe")]
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
    /// The users in voice channels. Only in GUILD_CREATE.
    #[serde(default, deserialize_with = "list")]
    voice_states: Vec<VoiceState>,
    /// Members, at least those in voice channels. Only in GUILD_CREATE.
    #[serde(default, deserialize_with = "list")]
    members: Vec<VoiceMember>,
    /// The channel for Discord's own messages, such as those about new members.
    #[serde(default, deserialize_with = "maybe")]
    pub system_channel_id: Option<Snowflake>,
    /// The guild's language. English unless its managers chose another.
    #[serde(default, deserialize_with = "maybe")]
    pub preferred_locale: String,
    /// When the bot was invited. Only in GUILD_CREATE.
    #[serde(default, deserialize_with = "maybe")]
    joined_at: Option<String>,
}

impl Guild {
    /// The voice states, with names added from the members, because GUILD_CREATE lists both separately.
    pub fn in_voice(self) -> Vec<VoiceState> {
        let named = self.members.into_iter().filter_map(|member| Some((member.user.as_ref()?.id, member)));
        let mut members: BTreeMap<_, _> = named.collect();
        let mut states = self.voice_states;
        for state in states.iter_mut().filter(|state| state.member.user.is_none()) {
            state.member = members.remove(&state.user_id).unwrap_or_default();
        }
        states
    }

    /// When the bot was invited, if the event includes it.
    pub fn joined_at(&self) -> Option<Moment> {
        from_rfc3339(self.joined_at.as_ref()?)
    }
}

/// GUILD_DELETE.
#[derive(Debug, Deserialize)]
pub struct GuildDeleted {
    pub id: Snowflake,
    /// Absent or false: the bot was removed.
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
    /// Whether this is an outage, not a removal. A malformed value counts as an outage, because an outage deletes nothing.
    pub const fn is_outage(&self) -> bool {
        matches!(self.unavailable, Unavailable::Given(true) | Unavailable::Malformed(_))
    }
}

/// A channel or a thread.
#[derive(Debug, Deserialize)]
pub struct Channel {
    pub id: Snowflake,
    /// Its guild. Absent in GUILD_CREATE.
    #[serde(default, deserialize_with = "maybe")]
    pub guild_id: Option<Snowflake>,
    #[serde(default, rename = "type", deserialize_with = "maybe_kind")]
    pub kind: Option<ChannelType>,
    #[serde(default, deserialize_with = "maybe")]
    name: Option<String>,
    /// The topic. For a forum, its guidelines.
    #[serde(default, deserialize_with = "maybe")]
    topic: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    parent_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    last_message_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    flags: Option<ChannelFlags>,
    #[serde(default, deserialize_with = "maybe")]
    thread_metadata: ThreadMetadata,
    /// Whether it has an age limit.
    #[serde(default, deserialize_with = "maybe")]
    nsfw: bool,
    /// Absent in threads.
    #[serde(default, deserialize_with = "maybe")]
    permission_overwrites: Option<Vec<PermissionOverwrite>>,
    #[serde(default, deserialize_with = "list")]
    recipients: Vec<User>,
    /// The permissions of a command's user in the channel. Only in interactions.
    #[serde(default, deserialize_with = "maybe")]
    pub permissions: Option<Permissions>,
    /// The permissions of the bot in the channel. Only in interactions.
    #[serde(default, deserialize_with = "maybe")]
    pub app_permissions: Option<Permissions>,
}

#[derive(Debug, Default, Deserialize)]
struct ThreadMetadata {
    #[serde(default, deserialize_with = "maybe")]
    archived: bool,
    #[serde(default, deserialize_with = "maybe")]
    locked: bool,
}

impl Channel {
    pub fn is_thread(&self) -> bool {
        self.kind.is_some_and(ChannelType::is_thread)
    }

    pub const fn is_direct(&self) -> bool {
        matches!(self.kind, Some(ChannelType::Private))
    }

    /// Whether this is an archived thread. A new message in it would reopen it.
    pub const fn is_archived(&self) -> bool {
        self.thread_metadata.archived
    }

    /// Whether only moderators may write in the thread.
    pub const fn is_locked(&self) -> bool {
        self.thread_metadata.locked
    }

    /// Who can read it and its earlier messages.
    pub fn readers(&self, guild: Option<Snowflake>) -> Readers {
        use ChannelType as Kind;
        let (Some(kind), Some(guild)) = (self.kind, guild) else { return Readers::Few };
        match (kind, &self.permission_overwrites) {
            _ if self.nsfw || self.is_obfuscated() => Readers::Few,
            (Kind::PublicThread | Kind::AnnouncementThread, _) => Readers::OfParent,
            (
                Kind::GuildText
                | Kind::GuildAnnouncement
                | Kind::GuildForum
                | Kind::GuildMedia
                | Kind::GuildVoice
                | Kind::GuildStageVoice,
                Some(overwrites),
            ) => {
                let everyone = overwrites.iter().find(|overwrite| overwrite.id == guild.get());
                let [denied, allowed] = everyone.map_or([Permissions::empty(); 2], |overwrite| [overwrite.deny, overwrite.allow]);
                Readers::With { denied, allowed, is_voice: is_voice(kind) }
            }
            _ => Readers::Few,
        }
    }

    /// The parent channel of a thread. `None` for other channels, whose parent is a category.
    pub fn parent(&self) -> Option<Snowflake> {
        self.parent_id.filter(|_| self.is_thread())
    }

    /// The name in one line. For a direct message, the person's name.
    pub fn name(&self) -> Option<String> {
        if self.is_obfuscated() {
            return None;
        }
        let recipient = || self.recipients.first().map(|user| user.shown(None));
        let name = self.name.clone().filter(|_| !self.is_direct()).or_else(recipient);
        name.map(|name| one_line(&name, MAX_NAME_CHARS)).filter(|name| !name.is_empty())
    }

    /// The topic in one line.
    pub fn topic(&self) -> Option<String> {
        let topic = self.topic.as_deref().filter(|_| !self.is_obfuscated())?;
        Some(one_line(topic, MAX_TOPIC_CHARS)).filter(|topic| !topic.is_empty())
    }

    /// The newest message. `None` for a forum, media channel or category, where Discord's `last_message_id` is a thread.
    pub fn newest(&self) -> Option<Snowflake> {
        let holds_messages = !matches!(
            self.kind,
            Some(ChannelType::GuildCategory | ChannelType::GuildDirectory | ChannelType::GuildForum | ChannelType::GuildMedia)
        );
        self.last_message_id.filter(|_| holds_messages && !self.is_obfuscated())
    }

    /// Whether Discord hides the channel's details, because the bot may not view it ("Channel Object", "Obfuscated Channels").
    fn is_obfuscated(&self) -> bool {
        self.flags.is_some_and(|flags| flags.contains(ChannelFlags::CHANNEL_OBFUSCATED))
    }
}

/// CHANNEL_DELETE, THREAD_DELETE.
#[derive(Debug, Deserialize)]
pub struct ChannelDeleted {
    pub id: Snowflake,
    pub guild_id: Option<Snowflake>,
}

/// THREAD_LIST_SYNC: the bot gained access to channels.
#[derive(Debug, Deserialize)]
pub struct Threads {
    pub guild_id: Snowflake,
    /// The affected channels. Empty means all channels of the guild.
    #[serde(default, deserialize_with = "list")]
    pub channel_ids: Vec<Snowflake>,
    /// The active threads in these channels.
    #[serde(default, deserialize_with = "list")]
    pub threads: Vec<Channel>,
}

#[derive(Debug, Deserialize)]
pub struct Role {
    pub id: Snowflake,
    #[serde(default, deserialize_with = "maybe")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub permissions: Option<Permissions>,
    #[serde(default, deserialize_with = "maybe")]
    tags: Tags,
}

#[derive(Debug, Default, Deserialize)]
struct Tags {
    #[serde(default, deserialize_with = "maybe")]
    bot_id: Option<Snowflake>,
}

impl Role {
    /// The bot that owns this role. Discord created the role for the bot's invitation, and it has no other members.
    pub const fn bot(&self) -> Option<Snowflake> {
        self.tags.bot_id
    }
}

/// GUILD_ROLE_CREATE, GUILD_ROLE_UPDATE.
#[derive(Debug, Deserialize)]
pub struct RoleChanged {
    pub guild_id: Snowflake,
    /// The role after the change.
    pub role: Role,
}

/// GUILD_ROLE_DELETE.
#[derive(Debug, Deserialize)]
pub struct RoleDeleted {
    pub guild_id: Snowflake,
    pub role_id: Snowflake,
}

/// Any event about a guild or a channel. Only the ids are parsed.
#[derive(Debug, Deserialize)]
pub struct Changed {
    /// The guild, unless the event is about the guild itself (`id`).
    pub guild_id: Option<Snowflake>,
    /// The channel, unless the event is about the channel itself (`id`).
    pub channel_id: Option<Snowflake>,
    /// The guild or channel that the event is about.
    pub id: Option<Snowflake>,
}

/// GUILD_EMOJIS_UPDATE.
#[derive(Debug, Deserialize)]
pub struct Emojis {
    pub guild_id: Snowflake,
    #[serde(default, deserialize_with = "list")]
    pub emojis: Vec<Emoji>,
}

#[derive(Debug, Deserialize)]
pub struct Emoji {
    pub id: Snowflake,
    pub name: String,
    #[serde(default, deserialize_with = "maybe")]
    pub animated: bool,
    #[serde(default, deserialize_with = "maybe")]
    available: Option<bool>,
}

impl Emoji {
    /// Whether the emoji is usable. A guild that lost its boosts keeps emojis that are not.
    pub fn is_usable(&self) -> bool {
        self.available.unwrap_or(true)
    }
}

/// WEBHOOKS_UPDATE.
#[derive(Debug, Deserialize)]
pub struct WebhooksChanged {
    /// The channel whose webhooks changed.
    pub channel_id: Snowflake,
}
