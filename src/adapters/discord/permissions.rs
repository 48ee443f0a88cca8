//! Computes a member's permissions in a channel, and which of the bot's needs they do not cover.

#[cfg(test)]
mod tests;

use twilight_model::channel::ChannelType;
use twilight_model::channel::permission_overwrite::{PermissionOverwrite, PermissionOverwriteType};
use twilight_model::guild::Permissions;

use super::snowflake::Snowflake;
use super::wire::{Server, ServerChannel, ServerMember, ServerRole};
use crate::domain::moment::Moment;

/// Permissions that require the permission to send messages.
const FOR_WRITERS_ONLY: Permissions = Permissions::MENTION_EVERYONE
    .union(Permissions::SEND_TTS_MESSAGES)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::EMBED_LINKS);

/// The kind of channel for text messages.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Text,
    /// A voice or stage channel, which also has a text chat.
    Voice,
    /// A thread, or a post in a forum. If it is locked, only moderators may write in it.
    Thread {
        is_locked: bool,
    },
}

/// Whether a channel is a voice or stage channel, which also has a text chat.
pub const fn is_voice(kind: ChannelType) -> bool {
    matches!(kind, ChannelType::GuildVoice | ChannelType::GuildStageVoice)
}

/// The permissions of a member in a guild, before a channel's overwrites.
pub fn in_guild(guild: &Server, id: Snowflake, member: &ServerMember) -> Permissions {
    if guild.owner_id == id {
        return Permissions::all();
    }
    // `@everyone` is the role with the id of the guild.
    let has = |role: &&ServerRole| role.id == guild.id || member.roles.contains(&role.id);
    let permissions: Permissions = guild.roles.iter().filter(has).map(|role| role.permissions).collect();
    if permissions.contains(Permissions::ADMINISTRATOR) { Permissions::all() } else { permissions }
}

/// A member's effective permissions in a channel, considering implied permissions and timeouts.
pub fn in_channel(guild: &Server, id: Snowflake, member: &ServerMember, channel: &ServerChannel, now: Moment) -> Permissions {
    let base = in_guild(guild, id, member);
    if base.contains(Permissions::ADMINISTRATOR) {
        return Permissions::all();
    }
    let overwrites = channel.permission_overwrites.as_deref().unwrap_or_default();
    let mut permissions = overwritten(base, guild.id, id, member, overwrites);
    if member.is_timed_out(now) {
        permissions &= Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY;
    }
    if !permissions.contains(Permissions::VIEW_CHANNEL) {
        return Permissions::empty();
    }
    if is_voice(channel.kind) && !permissions.contains(Permissions::CONNECT) {
        return Permissions::VIEW_CHANNEL;
    }
    if permissions.contains(Permissions::SEND_MESSAGES) { permissions } else { permissions - FOR_WRITERS_ONLY }
}

/// Applies the overwrite of `@everyone`, then those of all roles together, then the member's own. In each step, allow takes precedence over deny.
fn overwritten(
    base: Permissions,
    guild: Snowflake,
    id: Snowflake,
    member: &ServerMember,
    overwrites: &[PermissionOverwrite],
) -> Permissions {
    use PermissionOverwriteType::{Member, Role};
    let is = |overwrite: &PermissionOverwrite, kind, id: Snowflake| overwrite.kind == kind && overwrite.id == id.get();
    let everyone = |overwrite: &PermissionOverwrite| is(overwrite, Role, guild);
    let by_role =
        |overwrite: &PermissionOverwrite| !everyone(overwrite) && member.roles.iter().any(|role| is(overwrite, Role, *role));
    let own = |overwrite: &PermissionOverwrite| is(overwrite, Member, id);
    let steps: [&dyn Fn(&PermissionOverwrite) -> bool; 3] = [&everyone, &by_role, &own];
    steps.into_iter().fold(base, |permissions, concerns| {
        let step = || overwrites.iter().filter(|overwrite| concerns(overwrite));
        let denied: Permissions = step().map(|overwrite| overwrite.deny).collect();
        let allowed: Permissions = step().map(|overwrite| overwrite.allow).collect();
        (permissions - denied) | allowed
    })
}

/// Who can read a channel and its earlier messages.
#[derive(Clone, Copy, Debug, Default)]
pub enum Readers {
    /// Members with an explicit permission, or unknown readers.
    #[default]
    Few,
    /// Those who can read its channel.
    OfParent,
    /// Everybody with the necessary permissions. The channel denies and allows some of them to `@everyone`.
    With { denied: Permissions, allowed: Permissions, is_voice: bool },
}

impl Readers {
    /// Whether everybody in the guild can read the channel, with the permissions that everybody has in the guild.
    pub fn is_everybody(self, everyone: Permissions) -> bool {
        let Self::With { denied, allowed, is_voice } = self else { return false };
        let connect = if is_voice { Permissions::CONNECT } else { Permissions::empty() };
        let needed = Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY | connect;
        everyone.contains(Permissions::ADMINISTRATOR) || ((everyone - denied) | allowed).contains(needed)
    }
}

/// Something that the bot must be able to do in a channel. Ordered by importance, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Receive messages.
    Listen,
    /// Enter the voice channel, and read its text chat.
    Enter,
    /// Be heard in the call.
    Speak,
    /// Give companions their own names and pictures.
    Webhooks,
    /// Post in a thread that moderators have locked.
    Unlocked,
    /// Read messages missed during downtime, and check whether its own messages arrived.
    ReadBack,
    /// Show the typing indicator, and post where webhooks are impossible.
    Send,
    /// [`Need::Send`] in a thread.
    SendInThreads,
    /// Acknowledge a stop with a reaction. The invitation does not request it.
    React,
    /// Register slash commands. The invitation allows it.
    Commands,
}

/// Instructions for allowing a permission in a channel.
macro_rules! allow {
    ($permission:literal) => {
        concat!("Edit Channel > Permissions > add the bot > allow ", $permission, ".")
    };
}

impl Need {
    /// The required permission, and two sentences for the guild's administrators: what does not work without the permission, and how to grant it.
    /// The check, the commands, the calls and the refusal texts use this table.
    const fn entry(self) -> (Permissions, &'static str, &'static str) {
        match self {
            Self::Listen => (
                Permissions::VIEW_CHANNEL,
                "Companions see no messages here.",
                allow!("View Channel (in a private thread, mention the bot once)"),
            ),
            Self::Enter => (
                Permissions::CONNECT,
                "Companions can neither read the text of this voice channel nor take part in its call.",
                allow!("Connect"),
            ),
            Self::Speak => (Permissions::SPEAK, "Companions are not heard in the call of this voice channel.", allow!("Speak")),
            Self::Webhooks => (
                Permissions::MANAGE_WEBHOOKS,
                "Companions cannot speak here: their names and pictures come from a webhook.",
                allow!("Manage Webhooks"),
            ),
            Self::Unlocked => (
                Permissions::MANAGE_THREADS,
                "Companions cannot speak in this thread: it is locked.",
                "Open the thread's menu > Unlock Thread.",
            ),
            Self::ReadBack => (
                Permissions::READ_MESSAGE_HISTORY,
                "Messages that are sent while the bot is offline are lost, and after a crash a reply may stay unfinished.",
                allow!("Read Message History"),
            ),
            Self::Send => (
                Permissions::SEND_MESSAGES,
                "The typing indicator of companions is not shown.",
                allow!("Send Messages (in a forum: Create Posts)"),
            ),
            Self::SendInThreads => (
                Permissions::SEND_MESSAGES_IN_THREADS,
                "The typing indicator of companions is not shown in threads.",
                allow!("Send Messages in Threads"),
            ),
            Self::React => {
                (Permissions::ADD_REACTIONS, "No reaction shows that a message stopped a reply.", allow!("Add Reactions"))
            }
            Self::Commands => (
                Permissions::empty(),
                "The command /tertulia is missing.",
                "Invite the bot again with the scopes bot and applications.commands; its settings stay.",
            ),
        }
    }

    /// What does not work without the permission, and how to grant it.
    pub const fn explanation(self) -> (&'static str, &'static str) {
        let (_, without, click) = self.entry();
        (without, click)
    }

    /// Whether companions cannot speak in the channel without the permission.
    pub const fn is_vital(self) -> bool {
        matches!(self, Self::Listen | Self::Enter | Self::Webhooks | Self::Unlocked)
    }

    pub(super) fn is_missing(self, permissions: Permissions) -> bool {
        !permissions.intersects(Permissions::ADMINISTRATOR | self.entry().0)
    }
}

/// The permissions that an invitation link requests for the bot.
pub fn invitation() -> Permissions {
    [Need::Listen, Need::Send, Need::SendInThreads, Need::ReadBack, Need::Webhooks]
        .map(|need| need.entry().0)
        .into_iter()
        .collect()
}

/// The first need for a voice channel's call that the bot's permissions do not cover. On a stage, moderators decide who speaks.
pub fn missing_in_call(permissions: Permissions, is_stage: bool) -> Option<Need> {
    let needs = [Some(Need::Listen), Some(Need::Enter), (!is_stage).then_some(Need::Speak)];
    needs.into_iter().flatten().find(|need| need.is_missing(permissions))
}

/// The needs that the bot's permissions do not cover in a channel, the most important first.
pub fn missing(permissions: Permissions, place: Place) -> Vec<Need> {
    let is_locked = matches!(place, Place::Thread { is_locked: true }) && Need::Unlocked.is_missing(permissions);
    let write = if matches!(place, Place::Thread { .. }) { Need::SendInThreads } else { Need::Send };
    let needed = [
        (Need::Listen, true),
        (Need::Enter, matches!(place, Place::Voice)),
        (Need::Webhooks, true),
        (Need::Unlocked, is_locked),
        (Need::ReadBack, true),
        (write, !is_locked),
    ];
    let lacks = |(need, concerns): (Need, bool)| (concerns && need.is_missing(permissions)).then_some(need);
    let mut needs: Vec<Need> = needed.into_iter().filter_map(lacks).collect();
    if let Some(Need::Listen | Need::Enter) = needs.first() {
        // Without this permission, Discord hides the others.
        needs.truncate(1);
    }
    needs
}
