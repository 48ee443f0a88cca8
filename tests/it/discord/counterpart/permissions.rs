//! Permissions of members, computed as documented.
//!
//! <https://docs.discord.com/developers/topics/permissions>

use super::channels::{Channel, Overwrite};
use super::guilds::Guild;
use super::id::Id;

pub const ADMINISTRATOR: u64 = 1 << 3;
pub const MANAGE_CHANNELS: u64 = 1 << 4;
pub const MANAGE_GUILD: u64 = 1 << 5;
pub const VIEW_CHANNEL: u64 = 1 << 10;
pub const SEND_MESSAGES: u64 = 1 << 11;
pub const SEND_TTS_MESSAGES: u64 = 1 << 12;
pub const MANAGE_MESSAGES: u64 = 1 << 13;
pub const EMBED_LINKS: u64 = 1 << 14;
pub const ATTACH_FILES: u64 = 1 << 15;
pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
pub const MENTION_EVERYONE: u64 = 1 << 17;
pub const CONNECT: u64 = 1 << 20;
pub const MANAGE_WEBHOOKS: u64 = 1 << 29;
pub const USE_APPLICATION_COMMANDS: u64 = 1 << 31;
pub const MANAGE_THREADS: u64 = 1 << 34;
pub const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
pub const CREATE_PRIVATE_THREADS: u64 = 1 << 36;
pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;
/// Every permission there is, up to `BYPASS_SLOWMODE`.
pub const ALL: u64 = (1 << 53) - 1;

/// The permissions of everyone in a new guild.
pub const USUAL: u64 = VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | CONNECT
    | USE_APPLICATION_COMMANDS
    | CREATE_PUBLIC_THREADS
    | CREATE_PRIVATE_THREADS
    | SEND_MESSAGES_IN_THREADS;

/// Permissions that are lost with the permission to send.
const NEEDS_SENDING: u64 = MENTION_EVERYONE | SEND_TTS_MESSAGES | ATTACH_FILES | EMBED_LINKS;
/// The permissions that a timed-out member keeps.
const TIMED_OUT: u64 = VIEW_CHANNEL | READ_MESSAGE_HISTORY;

/// A member's permissions in the whole guild. None for users who are not members.
pub fn in_guild(guild: &Guild, user: Id) -> u64 {
    let Some(member) = guild.members.get(&user) else { return 0 };
    if guild.owner == user {
        return ALL;
    }
    let roles = [&guild.id].into_iter().chain(&member.roles);
    let permissions = roles.filter_map(|role| guild.roles.get(role)).fold(0, |sum, role| sum | role.permissions);
    if permissions & ADMINISTRATOR != 0 {
        ALL
    } else if member.timed_out {
        permissions & TIMED_OUT
    } else {
        permissions
    }
}

/// A member's permissions in a channel of the guild, or in a thread of that channel. A thread has no overwrites of its own.
pub fn in_channel(guild: &Guild, channel: &Channel, thread: bool, user: Id) -> u64 {
    let base = in_guild(guild, user);
    let Some(member) = guild.members.get(&user) else { return 0 };
    if base & ADMINISTRATOR != 0 {
        return ALL;
    }
    let all = |overwrites: &mut dyn Iterator<Item = &Overwrite>| {
        overwrites.fold((0, 0), |(allow, deny), overwrite| (allow | overwrite.allow, deny | overwrite.deny))
    };
    let overwrites_of = |id: Id| channel.overwrites.iter().filter(move |overwrite| overwrite.id == id);
    let mut roles = channel.overwrites.iter().filter(|overwrite| member.roles.contains(&overwrite.id));
    let mut permissions = base;
    for (allow, deny) in [all(&mut overwrites_of(guild.id)), all(&mut roles), all(&mut overwrites_of(user))] {
        permissions = permissions & !deny | allow;
    }
    if member.timed_out {
        permissions &= TIMED_OUT;
    }
    implied(permissions, thread)
}

/// Removes permissions that are useless without a missing one.
fn implied(permissions: u64, thread: bool) -> u64 {
    let sending = if thread { SEND_MESSAGES_IN_THREADS } else { SEND_MESSAGES };
    if permissions & VIEW_CHANNEL == 0 {
        0
    } else if permissions & sending == 0 {
        permissions & !NEEDS_SENDING
    } else {
        permissions
    }
}
