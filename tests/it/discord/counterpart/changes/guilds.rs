//! Changes to guilds: the bot joins and leaves, outages, roles and members.

use serde_json::{Value, json};

use super::super::{Event, Guild, Id, Intents, Member, Permissions, Place, Role, State, now_ms};

impl State {
    /// Adds the bot to a guild as an invitation does: with its own role, which has these permissions.
    pub fn invite_bot(&mut self, guild: Id, permissions: Permissions) {
        let (bot, role) = (self.world.bot(), self.world.new_id());
        let name = self.world.users[&bot].name.clone();
        let Some(target_guild) = self.world.guilds.get_mut(&guild) else { return };
        let position = target_guild.roles.len();
        target_guild.roles.insert(role, Role { id: role, name, permissions, position, mentionable: false, bot: Some(bot) });
        let member = Member { nick: None, roles: vec![role], joined_ms: now_ms(), timed_out: false };
        target_guild.members.insert(bot, member);
        let target_guild = target_guild.clone();
        self.send_event(&self.guild_create(&target_guild));
    }

    /// Removes the bot from a guild. It left, was kicked or banned, or the guild was deleted; the event does not say which.
    pub fn expel_bot(&mut self, guild: Id) {
        let bot = self.world.bot();
        self.leave_voice(guild, bot, 4014);
        let Some(target_guild) = self.world.guilds.get_mut(&guild) else { return };
        if target_guild.members.remove(&bot).is_some() {
            target_guild.roles.retain(|_, role| role.bot != Some(bot));
            self.send_event(&Event::new("GUILD_DELETE", Place::Guild(guild), Intents::GUILDS, json!({ "id": guild })));
        }
    }

    /// Begins or ends an outage of a guild.
    pub fn set_outage(&mut self, guild: Id, outage: bool) {
        let Some(target_guild) = self.world.guilds.get_mut(&guild) else { return };
        if std::mem::replace(&mut target_guild.outage, outage) == outage {
            return;
        }
        let target_guild = target_guild.clone();
        if outage {
            let data = json!({ "id": guild, "unavailable": true });
            self.send_event(&Event::new("GUILD_DELETE", Place::Guild(guild), Intents::GUILDS, data));
        } else {
            self.send_event(&self.guild_create(&target_guild));
        }
    }

    pub fn change_guild(&mut self, guild: Id, change: impl FnOnce(&mut Guild)) {
        let Some(target_guild) = self.world.guilds.get_mut(&guild) else { return };
        change(target_guild);
        let data = target_guild.json();
        self.send_event(&Event::new("GUILD_UPDATE", Place::Guild(guild), Intents::GUILDS, data));
    }

    /// Adds a role, or changes one.
    pub fn put_role(&mut self, guild: Id, role: Role) {
        self.changing_access(guild, None, |state| {
            let Some(target_guild) = state.world.guilds.get_mut(&guild) else { return };
            let data = json!({ "guild_id": guild, "role": role.json() });
            let exists = target_guild.roles.insert(role.id, role).is_some();
            let name = if exists { "GUILD_ROLE_UPDATE" } else { "GUILD_ROLE_CREATE" };
            state.send_event(&Event::new(name, Place::Guild(guild), Intents::GUILDS, data));
        });
    }

    /// Deletes a role, and removes it from all members.
    pub fn remove_role(&mut self, guild: Id, role: Id) {
        self.changing_access(guild, None, |state| {
            let Some(target_guild) = state.world.guilds.get_mut(&guild) else { return };
            target_guild.roles.remove(&role);
            for member in target_guild.members.values_mut() {
                member.roles.retain(|id| *id != role);
            }
            let data = json!({ "guild_id": guild, "role_id": role });
            state.send_event(&Event::new("GUILD_ROLE_DELETE", Place::Guild(guild), Intents::GUILDS, data));
        });
    }

    pub fn add_member(&mut self, guild: Id, user: Id) {
        let member = Member { nick: None, roles: Vec::new(), joined_ms: now_ms(), timed_out: false };
        let Some(target_guild) = self.world.guilds.get_mut(&guild) else { return };
        target_guild.members.insert(user, member);
        self.send_member_event("GUILD_MEMBER_ADD", guild, user, Intents::GUILD_MEMBERS);
    }

    /// Changes a member. The bot receives changes to its own membership without any intent.
    ///
    /// <https://docs.discord.com/developers/events/gateway#caveats>
    pub fn change_member(&mut self, guild: Id, user: Id, change: impl FnOnce(&mut Member)) {
        let intent = if user == self.world.bot() { Intents::empty() } else { Intents::GUILD_MEMBERS };
        self.changing_access(guild, None, |state| {
            let member = state.world.guilds.get_mut(&guild).and_then(|guild| guild.members.get_mut(&user));
            if let Some(member) = member {
                change(member);
                state.send_member_event("GUILD_MEMBER_UPDATE", guild, user, intent);
            }
        });
    }

    fn send_member_event(&mut self, name: &'static str, guild: Id, user: Id, intent: Intents) {
        let member = &self.world.guilds[&guild].members[&user];
        let mut data: Value = member.json(&self.world.users[&user]);
        data["guild_id"] = json!(guild);
        self.send_event(&Event::new(name, Place::Guild(guild), intent, data));
    }
}
