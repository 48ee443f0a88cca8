//! Creates the world of a test.

use std::collections::BTreeMap;

use super::super::messages::image_hash;
use super::super::permissions::USUAL;
use super::super::{Channel, Guild, Id, Intents, Kind, Member, Overwrite, Permissions, Role, User, Webhook, now_ms};
use super::Counterpart;

/// The permissions that an invitation of the bot requests by default.
pub const INVITED: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::SEND_MESSAGES_IN_THREADS)
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::MANAGE_WEBHOOKS);

impl Counterpart {
    /// A person who is in no guild yet.
    pub fn person(&self, name: &str) -> Id {
        self.user(name, false)
    }

    /// Another bot, which is in no guild yet.
    pub fn foreign_bot(&self, name: &str) -> Id {
        self.user(name, true)
    }

    fn user(&self, name: &str, bot: bool) -> Id {
        self.with(|state| {
            let id = state.world.new_id();
            let user = User { id, name: name.to_lowercase(), global_name: Some(name.to_owned()), bot };
            state.world.users.insert(id, user);
            id
        })
    }

    /// A guild with the bot in it. Its owner is the application's owner, and everyone has the default permissions.
    pub fn guild(&self, name: &str) -> Id {
        let guild = self.guild_without_bot(name);
        self.invite_bot(guild, INVITED);
        guild
    }

    /// A guild that the bot is not in.
    pub fn guild_without_bot(&self, name: &str) -> Id {
        self.with(|state| {
            let (id, owner) = (state.world.new_guild_id(), state.world.application.owner);
            let everyone =
                Role { id, name: "@everyone".to_owned(), permissions: USUAL, position: 0, mentionable: false, bot: None };
            let member = Member { nick: None, roles: Vec::new(), joined_ms: now_ms(), timed_out: false };
            let guild = Guild {
                id,
                name: name.to_owned(),
                owner,
                roles: BTreeMap::from([(id, everyone)]),
                members: BTreeMap::from([(owner, member)]),
                outage: false,
                system_channel: None,
            };
            state.world.guilds.insert(id, guild);
            id
        })
    }

    /// Adds the bot with its own role, which has these permissions.
    pub fn invite_bot(&self, guild: Id, permissions: Permissions) {
        self.with(|state| state.invite_bot(guild, permissions));
    }

    /// A person in a guild.
    pub fn member(&self, guild: Id, name: &str) -> Id {
        let person = self.person(name);
        self.join(guild, person);
        person
    }

    /// A person in a guild, with a role that has these permissions.
    pub fn member_with(&self, guild: Id, name: &str, permissions: Permissions) -> Id {
        let person = self.member(guild, name);
        self.give_role(guild, person, self.role(guild, "Keepers", permissions));
        person
    }

    /// Sets the language of a person or a guild.
    pub fn set_language(&self, of: Id, language: &'static str) {
        self.with(|state| {
            state.world.languages.insert(of, language);
        });
    }

    pub fn join(&self, guild: Id, user: Id) {
        self.with(|state| state.add_member(guild, user));
    }

    /// A role that nobody has yet.
    pub fn role(&self, guild: Id, name: &str, permissions: Permissions) -> Id {
        self.with(|state| {
            let id = state.world.new_id();
            let position = state.world.guilds[&guild].roles.len();
            let role = Role { id, name: name.to_owned(), permissions, position, mentionable: true, bot: None };
            state.put_role(guild, role);
            id
        })
    }

    pub fn give_role(&self, guild: Id, user: Id, role: Id) {
        self.with(|state| state.change_member(guild, user, |member| member.roles.push(role)));
    }

    pub fn channel(&self, guild: Id, name: &str) -> Id {
        self.channel_of(guild, Kind::Text, name)
    }

    pub fn channel_of(&self, guild: Id, kind: Kind, name: &str) -> Id {
        self.with(|state| {
            let id = state.world.new_id();
            let position = state.world.channels_of(guild).count();
            state.add_channel(Channel { position, ..Channel::new(id, kind, Some(guild), name) });
            id
        })
    }

    /// Denies permissions in a channel to a role or a member, and nothing else. The guild's id stands for everyone.
    pub fn deny(&self, channel: Id, to: Id, denied: Permissions) {
        self.overwrite(channel, to, Permissions::empty(), denied);
    }

    /// Allows permissions in a channel to a role or a member, and denies none.
    pub fn allow(&self, channel: Id, to: Id, allowed: Permissions) {
        self.overwrite(channel, to, allowed, Permissions::empty());
    }

    /// Adds an overwrite to a channel, or replaces the one for the same role or member.
    pub fn overwrite(&self, channel: Id, id: Id, allow: Permissions, deny: Permissions) {
        self.with(|state| {
            let member = state.world.users.contains_key(&id);
            state.change_channel(channel, |channel| {
                channel.overwrites.retain(|existing| existing.id != id);
                channel.overwrites.push(Overwrite { id, member, allow, deny });
            });
        });
    }

    /// A thread without a message, started by a user.
    pub fn thread(&self, parent: Id, name: &str, owner: Id) -> Id {
        self.with(|state| {
            let id = state.world.new_id();
            let thread = Channel::new_thread(id, &state.world.channels[&parent], name, owner);
            state.add_thread(thread);
            id
        })
    }

    /// A webhook that a person created. The bot can use it with its token, but does not own it.
    pub fn foreign_webhook(&self, channel: Id, name: &str) -> Id {
        self.with(|state| {
            let (id, creator) = (state.world.new_id(), state.world.application.owner);
            let token = image_hash(name);
            let name = name.to_owned();
            state.add_webhook(Webhook { id, channel, name, avatar: None, token, application: None, creator });
            id
        })
    }

    /// Sets which privileged intents are enabled in the portal.
    pub fn set_privileged(&self, intents: Intents) {
        self.with(|state| state.world.application.privileged = intents);
    }
}
