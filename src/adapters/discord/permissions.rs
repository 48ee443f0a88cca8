//! What a member may do in a channel, and what the bot needs there.

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
    /// None.
    pub const NONE: Self = Self(0);
    /// All there are and will be.
    pub const ALL: Self = Self(u64::MAX);
    /// All permissions, whatever a channel says.
    pub const ADMINISTRATOR: Self = Self(1 << 3);
    /// Change channels, and who lives in them.
    pub const MANAGE_CHANNELS: Self = Self(1 << 4);
    /// See a channel, and hear what is said in it.
    pub const VIEW_CHANNEL: Self = Self(1 << 10);
    /// Write messages; not in threads.
    pub const SEND_MESSAGES: Self = Self(1 << 11);
    /// Have messages read aloud.
    pub const SEND_TTS_MESSAGES: Self = Self(1 << 12);
    /// Have links unfolded.
    pub const EMBED_LINKS: Self = Self(1 << 14);
    /// Send files.
    pub const ATTACH_FILES: Self = Self(1 << 15);
    /// Read what was said before. Without it Discord answers a question for messages with an empty list.
    pub const READ_MESSAGE_HISTORY: Self = Self(1 << 16);
    /// Call everybody, and roles.
    pub const MENTION_EVERYONE: Self = Self(1 << 17);
    /// Enter a voice channel, and read its text.
    pub const CONNECT: Self = Self(1 << 20);
    /// Make, list and delete a channel's webhooks.
    pub const MANAGE_WEBHOOKS: Self = Self(1 << 29);
    /// Use slash commands.
    pub const USE_APPLICATION_COMMANDS: Self = Self(1 << 31);
    /// See private threads, speak in locked ones.
    pub const MANAGE_THREADS: Self = Self(1 << 34);
    /// Write messages in threads.
    pub const SEND_MESSAGES_IN_THREADS: Self = Self(1 << 38);

    /// What the bot asks for when it is invited: the number of an invitation link.
    pub const INVITATION: Self = Self(
        Self::VIEW_CHANNEL.0
            | Self::SEND_MESSAGES.0
            | Self::SEND_MESSAGES_IN_THREADS.0
            | Self::READ_MESSAGE_HISTORY.0
            | Self::MANAGE_WEBHOOKS.0,
    );

    /// Whether all of these are among them.
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

/// A guild, as far as its permissions go.
#[derive(Clone, Copy, Debug)]
pub struct Guild<'a> {
    /// Its id, which is also that of the role that everybody has.
    pub id: Snowflake,
    /// Who owns it.
    pub owner: Snowflake,
    /// What each role may do.
    pub roles: &'a BTreeMap<Snowflake, Permissions>,
}

/// A member of a guild.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The user's id.
    pub id: Snowflake,
    /// The member's roles, without the one that everybody has.
    pub roles: &'a [Snowflake],
    /// Until when it is silenced (`communication_disabled_until`).
    pub timed_out_until: Option<Moment>,
}

/// A channel; of a thread, the channel that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Channel<'a> {
    /// What it changes.
    pub overwrites: &'a [Overwrite],
    /// Whether it is a voice or stage channel, in whose text one can write too.
    pub is_voice: bool,
    /// The thread, if it is about one.
    pub thread: Option<Thread>,
}

/// What a channel changes for somebody.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    /// For whom.
    pub on: On,
    /// What is given.
    pub allow: Permissions,
    /// What is taken.
    pub deny: Permissions,
}

/// For whom a channel changes permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Those with this role; the guild's own id means everybody.
    Role(Snowflake),
    /// This member.
    Member(Snowflake),
}

/// A thread, or a forum's post.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// Only its members see it.
    pub is_private: bool,
    /// The member is one of its members.
    pub is_member: bool,
    /// Nobody but moderators may write.
    pub is_locked: bool,
}

/// What a member may do in a guild, before any channel changes it.
pub fn in_guild(guild: &Guild<'_>, member: &Member<'_>) -> Permissions {
    if guild.owner == member.id {
        return Permissions::ALL;
    }
    let of = |role| guild.roles.get(&role).copied().unwrap_or_default();
    let permissions = member.roles.iter().fold(of(guild.id), |sum, role| sum | of(*role));
    if permissions.contains(Permissions::ADMINISTRATOR) { Permissions::ALL } else { permissions }
}

/// What a member really may do in a channel: with what follows from other permissions, its thread, and being silenced.
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
        let with_messages =
            Permissions::MENTION_EVERYONE | Permissions::SEND_TTS_MESSAGES | Permissions::ATTACH_FILES | Permissions::EMBED_LINKS;
        permissions = permissions & !with_messages;
    }
    permissions
}

/// Everybody's overwrite first, then those of all roles together, then the member's own; at each, what is given wins.
fn overwritten(base: Permissions, guild: &Guild<'_>, member: &Member<'_>, overwrites: &[Overwrite]) -> Permissions {
    let everybody = |on: On| on == On::Role(guild.id);
    let by_role = |on: On| matches!(on, On::Role(role) if role != guild.id && member.roles.contains(&role));
    let own = |on: On| on == On::Member(member.id);
    let steps: [&dyn Fn(On) -> bool; 3] = [&everybody, &by_role, &own];
    steps.into_iter().fold(base, |permissions, concerns| {
        let (mut allow, mut deny) = (Permissions::NONE, Permissions::NONE);
        for overwrite in overwrites.iter().filter(|overwrite| concerns(overwrite.on)) {
            allow = allow | overwrite.allow;
            deny = deny | overwrite.deny;
        }
        (permissions & !deny) | allow
    })
}

/// Something that the bot has to do in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Hear what is said.
    Listen,
    /// Enter the voice channel that a text belongs to.
    Enter,
    /// Read what was said while it was away, and whether its own words arrived.
    ReadBack,
    /// Give companions their own names and pictures.
    Webhooks,
    /// Show that somebody is typing, and speak where there can be no webhook.
    Send,
    /// The same in a thread.
    SendInThreads,
    /// Speak in a thread that moderators closed.
    Unlocked,
    /// Be steered by slash commands.
    Commands,
}

impl Need {
    /// What does not work without it, and what to click: two sentences for whoever runs the guild.
    pub const fn explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::Listen => (
                "Companions hear nothing here.",
                "Edit Channel > Permissions > add the bot > allow View Channel (in a private thread, mention the bot once).",
            ),
            Self::Enter => (
                "Companions cannot read the text of this voice channel.",
                "Edit Channel > Permissions > add the bot > allow Connect.",
            ),
            Self::ReadBack => (
                "What is said while the bot is away is lost, and after a crash a reply may stay unfinished.",
                "Edit Channel > Permissions > add the bot > allow Read Message History.",
            ),
            Self::Webhooks => (
                "Companions cannot speak here: their names and pictures come from a webhook.",
                "Edit Channel > Permissions > add the bot > allow Manage Webhooks.",
            ),
            Self::Send => (
                "Nobody sees that a companion is typing.",
                "Edit Channel > Permissions > add the bot > allow Send Messages (in a forum: Create Posts).",
            ),
            Self::SendInThreads => (
                "Nobody sees in threads that a companion is typing.",
                "Edit Channel > Permissions > add the bot > allow Send Messages in Threads.",
            ),
            Self::Unlocked => {
                ("Companions cannot speak in this thread: it is locked.", "Open the thread's menu > Unlock Thread.")
            }
            Self::Commands => (
                "The command /tertulia is not there.",
                "Invite the bot again with the scopes bot and applications.commands; its settings stay.",
            ),
        }
    }

    /// Whether nothing is said here without it.
    pub const fn is_vital(self) -> bool {
        matches!(self, Self::Listen | Self::Enter | Self::Webhooks | Self::Unlocked)
    }
}

/// What the bot needs in a channel and does not have, the weightiest first.
///
/// `has_commands`: whether Discord lets the bot register commands in this guild (the scope `applications.commands`).
pub fn missing(permissions: Permissions, channel: &Channel<'_>, has_commands: bool) -> Vec<Need> {
    let has = |permission| permissions.contains(permission);
    let mut needs = Vec::new();
    if !has(Permissions::VIEW_CHANNEL) {
        // Without it nothing else is known.
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
