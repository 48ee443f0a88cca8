//! Permissions of members, computed as documented.
//!
//! <https://docs.discord.com/developers/topics/permissions>

use super::{Channel, Guild, Id, Overwrite, Permissions};

/// The permissions of everyone in a new guild.
pub const USUAL: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::ADD_REACTIONS)
    .union(Permissions::EMBED_LINKS)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::CONNECT)
    .union(Permissions::SPEAK)
    .union(Permissions::USE_SLASH_COMMANDS)
    .union(Permissions::CREATE_PUBLIC_THREADS)
    .union(Permissions::CREATE_PRIVATE_THREADS)
    .union(Permissions::SEND_POLLS)
    .union(Permissions::SEND_MESSAGES_IN_THREADS);

/// Permissions that are lost with the permission to send.
const NEEDS_SENDING: Permissions = Permissions::MENTION_EVERYONE
    .union(Permissions::SEND_TTS_MESSAGES)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::EMBED_LINKS);
/// The permissions that a timed-out member keeps.
const TIMED_OUT: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::READ_MESSAGE_HISTORY);

/// A member's permissions in the whole guild. None for users who are not members.
pub fn in_guild(guild: &Guild, user: Id) -> Permissions {
    let Some(member) = guild.members.get(&user) else { return Permissions::empty() };
    if guild.owner == user {
        return Permissions::all();
    }
    let roles = [&guild.id].into_iter().chain(&member.roles);
    let permissions: Permissions = roles.filter_map(|role| guild.roles.get(role)).map(|role| role.permissions).collect();
    if permissions.contains(Permissions::ADMINISTRATOR) {
        Permissions::all()
    } else if member.timed_out {
        permissions & TIMED_OUT
    } else {
        permissions
    }
}

/// A member's permissions in a channel of the guild, or in a thread of that channel. A thread has no overwrites of its own.
pub fn in_channel(guild: &Guild, channel: &Channel, thread: bool, user: Id) -> Permissions {
    let base = in_guild(guild, user);
    let Some(member) = guild.members.get(&user) else { return base };
    if base.contains(Permissions::ADMINISTRATOR) {
        return base;
    }
    let mut permissions = base;
    for of in [&[guild.id][..], &member.roles, &[user]] {
        let overwrites: Vec<&Overwrite> = channel.overwrites.iter().filter(|overwrite| of.contains(&overwrite.id)).collect();
        permissions.remove(overwrites.iter().map(|overwrite| overwrite.deny).collect());
        permissions.insert(overwrites.iter().map(|overwrite| overwrite.allow).collect());
    }
    if member.timed_out {
        permissions &= TIMED_OUT;
    }
    // Permissions that are useless without a missing one are lost with it.
    let sending = if thread { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
    if !permissions.contains(Permissions::VIEW_CHANNEL) {
        Permissions::empty()
    } else if !permissions.contains(sending) {
        permissions - NEEDS_SENDING
    } else {
        permissions
    }
}
