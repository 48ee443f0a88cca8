//! Computes what a member may do in a channel, and what the bot needs there.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{BitAnd, BitOr, Not};

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// A set of permissions (Discord's documentation, "Permissions").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Permissions(pub u64);

impl Permissions {
    pub const NONE: Self = Self(0);
    /// All permissions, including future ones.
    pub const ALL: Self = Self(u64::MAX);
    /// All permissions, regardless of a channel's overwrites.
    pub const ADMINISTRATOR: Self = Self(1 << 3);
    /// Change channels, and which companions are members of them.
    pub const MANAGE_CHANNELS: Self = Self(1 << 4);
    /// See a channel, and receive its messages.
    pub const VIEW_CHANNEL: Self = Self(1 << 10);
    /// Write messages, except in threads.
    pub const SEND_MESSAGES: Self = Self(1 << 11);
    /// Have messages read aloud (text to speech).
    pub const SEND_TTS_MESSAGES: Self = Self(1 << 12);
    /// Show previews of links.
    pub const EMBED_LINKS: Self = Self(1 << 14);
    /// Send files.
    pub const ATTACH_FILES: Self = Self(1 << 15);
    /// Read older messages. Without it, Discord returns an empty list of messages.
    pub const READ_MESSAGE_HISTORY: Self = Self(1 << 16);
    /// Mention everyone, and roles.
    pub const MENTION_EVERYONE: Self = Self(1 << 17);
    /// Enter a voice channel, and read its text chat.
    pub const CONNECT: Self = Self(1 << 20);
    /// Create, list and delete a channel's webhooks.
    pub const MANAGE_WEBHOOKS: Self = Self(1 << 29);
    /// Use slash commands.
    pub const USE_APPLICATION_COMMANDS: Self = Self(1 << 31);
    /// See private threads, write in locked ones.
    pub const MANAGE_THREADS: Self = Self(1 << 34);
    /// Write messages in threads.
    pub const SEND_MESSAGES_IN_THREADS: Self = Self(1 << 38);

    /// The permissions that an invitation link requests for the bot.
    pub const INVITATION: Self = Self(
        Self::VIEW_CHANNEL.0
            | Self::SEND_MESSAGES.0
            | Self::SEND_MESSAGES_IN_THREADS.0
            | Self::READ_MESSAGE_HISTORY.0
            | Self::MANAGE_WEBHOOKS.0,
    );

    /// Whether this set has all of `others`.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Permissions {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Permissions {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// A guild's permissions.
#[derive(Clone, Copy, Debug)]
pub struct Guild<'a> {
    /// The guild's id, which is also the id of its `@everyone` role.
    pub id: Snowflake,
    pub owner: Snowflake,
    /// The permissions of each role.
    pub roles: &'a BTreeMap<Snowflake, Permissions>,
}

/// A member of a guild.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The user's id.
    pub id: Snowflake,
    /// The member's roles, without `@everyone`.
    pub roles: &'a [Snowflake],
    /// The end of the member's timeout (`communication_disabled_until`).
    pub timed_out_until: Option<Moment>,
}

/// A channel. For a thread: its parent channel, and the thread.
#[derive(Clone, Copy, Debug)]
pub struct Channel<'a> {
    pub overwrites: &'a [Overwrite],
    /// Whether it is a voice or stage channel, which has a text chat too.
    pub is_voice: bool,
    /// The thread, if there is one.
    pub thread: Option<Thread>,
}

/// A channel's permission overwrite for a role or a member.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    pub on: On,
    pub allow: Permissions,
    pub deny: Permissions,
}

/// The target of an overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Members with this role; the guild's own id means everyone.
    Role(Snowflake),
    Member(Snowflake),
}

/// A thread, or a post in a forum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// Whether only its members see it.
    pub is_private: bool,
    /// Whether the guild member is a member of the thread.
    pub is_member: bool,
    /// Whether only moderators may write.
    pub is_locked: bool,
}

/// A member's permissions in a guild, before the overwrites of a channel.
pub fn in_guild(guild: &Guild<'_>, member: &Member<'_>) -> Permissions {
    if guild.owner == member.id {
        return Permissions::ALL;
    }
    let role_permissions = |role| guild.roles.get(&role).copied().unwrap_or_default();
    let permissions = member.roles.iter().fold(role_permissions(guild.id), |sum, role| sum | role_permissions(*role));
    if permissions.contains(Permissions::ADMINISTRATOR) { Permissions::ALL } else { permissions }
}

/// A member's effective permissions in a channel, with implied permissions, the thread and a timeout taken into account.
pub fn in_channel(guild: &Guild<'_>, member: &Member<'_>, channel: &Channel<'_>, now: Moment) -> Permissions {
    let base = in_guild(guild, member);
    if base.contains(Permissions::ADMINISTRATOR) {
        return Permissions::ALL;
    }
    let mut permissions = overwritten(base, guild, member, channel.overwrites);
    if member.timed_out_until.is_some_and(|until| now < until) {
        permissions = permissions & (Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY);
    }
    let hidden = channel.thread.is_some_and(|thread| thread.is_private && !thread.is_member)
        && !permissions.contains(Permissions::MANAGE_THREADS);
    if hidden || !permissions.contains(Permissions::VIEW_CHANNEL) {
        return Permissions::NONE;
    }
    if channel.is_voice && !permissions.contains(Permissions::CONNECT) {
        return Permissions::VIEW_CHANNEL;
    }
    let mut writes = permissions.contains(Permissions::SEND_MESSAGES);
    if let Some(thread) = channel.thread {
        permissions = permissions & !Permissions::SEND_MESSAGES;
        if thread.is_locked && !permissions.contains(Permissions::MANAGE_THREADS) {
            permissions = permissions & !Permissions::SEND_MESSAGES_IN_THREADS;
        }
        writes = permissions.contains(Permissions::SEND_MESSAGES_IN_THREADS);
    }
    if !writes {
        let for_writers_only =
            Permissions::MENTION_EVERYONE | Permissions::SEND_TTS_MESSAGES | Permissions::ATTACH_FILES | Permissions::EMBED_LINKS;
        permissions = permissions & !for_writers_only;
    }
    permissions
}

/// Applies the overwrite of `@everyone`, then those of all roles together, then the member's own. In each step, allow wins over deny.
fn overwritten(base: Permissions, guild: &Guild<'_>, member: &Member<'_>, overwrites: &[Overwrite]) -> Permissions {
    let everyone = |on: On| on == On::Role(guild.id);
    let by_role = |on: On| matches!(on, On::Role(role) if role != guild.id && member.roles.contains(&role));
    let own = |on: On| on == On::Member(member.id);
    let steps: [&dyn Fn(On) -> bool; 3] = [&everyone, &by_role, &own];
    steps.into_iter().fold(base, |permissions, concerns| {
        let (mut allow, mut deny) = (Permissions::NONE, Permissions::NONE);
        for overwrite in overwrites.iter().filter(|overwrite| concerns(overwrite.on)) {
            allow = allow | overwrite.allow;
            deny = deny | overwrite.deny;
        }
        (permissions & !deny) | allow
    })
}

/// Something that the bot must be able to do in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Receive messages.
    Listen,
    /// Enter the voice channel whose text chat is read.
    Enter,
    /// Read messages of a downtime, and check whether its own messages arrived.
    ReadBack,
    /// Give companions their own names and pictures.
    Webhooks,
    /// Show the typing indicator, and post where there can be no webhook.
    Send,
    /// The same as [`Need::Send`], in a thread.
    SendInThreads,
    /// Post in a thread that moderators locked.
    Unlocked,
    /// Register slash commands.
    Commands,
}

impl Need {
    /// What does not work without it, and what to click: two sentences for the people who run the guild.
    pub const fn explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::Listen => (
                "Companions see no messages here.",
                "Edit Channel > Permissions > add the bot > allow View Channel (in a private thread, mention the bot once).",
            ),
            Self::Enter => (
                "Companions cannot read the text of this voice channel.",
                "Edit Channel > Permissions > add the bot > allow Connect.",
            ),
            Self::ReadBack => (
                "Messages that are sent while the bot is offline are lost, and after a crash a reply may stay unfinished.",
                "Edit Channel > Permissions > add the bot > allow Read Message History.",
            ),
            Self::Webhooks => (
                "Companions cannot speak here: their names and pictures come from a webhook.",
                "Edit Channel > Permissions > add the bot > allow Manage Webhooks.",
            ),
            Self::Send => (
                "The typing indicator of companions is not shown.",
                "Edit Channel > Permissions > add the bot > allow Send Messages (in a forum: Create Posts).",
            ),
            Self::SendInThreads => (
                "The typing indicator of companions is not shown in threads.",
                "Edit Channel > Permissions > add the bot > allow Send Messages in Threads.",
            ),
            Self::Unlocked => {
                ("Companions cannot speak in this thread: it is locked.", "Open the thread's menu > Unlock Thread.")
            }
            Self::Commands => (
                "The command /tertulia is missing.",
                "Invite the bot again with the scopes bot and applications.commands; its settings stay.",
            ),
        }
    }

    /// Whether companions cannot speak here without it.
    pub const fn is_vital(self) -> bool {
        matches!(self, Self::Listen | Self::Enter | Self::Webhooks | Self::Unlocked)
    }
}

/// What the bot needs in a channel and does not have, the most important first.
///
/// `has_commands`: whether Discord lets the bot register commands in this guild (the scope `applications.commands`).
pub fn missing(permissions: Permissions, channel: &Channel<'_>, has_commands: bool) -> Vec<Need> {
    let has = |permission| permissions.contains(permission);
    let mut needs = Vec::new();
    if !has(Permissions::VIEW_CHANNEL) {
        // Without this permission the others cannot be seen.
        needs.push(Need::Listen);
    } else if channel.is_voice && !has(Permissions::CONNECT) {
        needs.push(Need::Enter);
    } else {
        let locked = channel.thread.is_some_and(|thread| thread.is_locked) && !has(Permissions::MANAGE_THREADS);
        let send = if channel.thread.is_some() {
            (Need::SendInThreads, locked || has(Permissions::SEND_MESSAGES_IN_THREADS))
        } else {
            (Need::Send, has(Permissions::SEND_MESSAGES))
        };
        let checks = [
            (Need::Webhooks, has(Permissions::MANAGE_WEBHOOKS)),
            (Need::Unlocked, !locked),
            (Need::ReadBack, has(Permissions::READ_MESSAGE_HISTORY)),
            send,
        ];
        needs.extend(checks.into_iter().filter(|(_, is_met)| !is_met).map(|(need, _)| need));
    }
    needs.extend((!has_commands).then_some(Need::Commands));
    needs
}
