//! The application, its user, its guilds, their channels and members over REST.
//!
//! <https://docs.discord.com/developers/resources/guild>, <https://docs.discord.com/developers/resources/user>, <https://docs.discord.com/developers/resources/application>

use serde_json::json;

use super::super::identify::{recommended_shards, session_start_limit};
use super::super::permissions::in_guild;
use super::super::{Id, Permissions, Refusal, State, Unknown, User};
use super::{Call, Reply, ok};

impl State {
    pub fn gateway_bot(&mut self, _: &Call) -> Reply {
        let limit = session_start_limit(self);
        ok(json!({ "url": self.gateway_url, "shards": recommended_shards(self), "session_start_limit": limit }))
    }

    pub fn current_application(&mut self, _: &Call) -> Reply {
        let application = &self.world.application;
        ok(json!({
            "id": application.id,
            "name": application.name,
            "icon": null,
            "description": application.description,
            "bot_public": application.public,
            "bot_require_code_grant": application.code_grant,
            "interactions_endpoint_url": application.interactions_url,
            "bot": self.world.users[&self.world.bot()].json(),
            "owner": self.world.users[&application.owner].json(),
            "verify_key": "",
            "team": null,
            "flags": application.flags(),
            "approximate_guild_count": self.world.joined().count(),
            "integration_types_config": { "0": {} },
        }))
    }

    pub fn edit_application(&mut self, call: &Call) -> Reply {
        self.world.application.description = call.body["description"].as_str().unwrap_or_default().to_owned();
        self.current_application(call)
    }

    pub fn current_user(&mut self, _: &Call) -> Reply {
        ok(self.world.users[&self.world.bot()].current_json())
    }

    pub fn current_user_guilds(&mut self, call: &Call) -> Reply {
        let limit = call.query.get("limit").map_or(Some(200), |limit| limit.parse().ok());
        let limit = limit
            .filter(|limit| (1..=200).contains(limit))
            .ok_or_else(|| Refusal::field(&["limit"], "NUMBER_TYPE_MAX", "int value should be between 1 and 200."))?;
        let bot = self.world.bot();
        let partial = self.world.joined().take(limit).map(|guild| {
            json!({
                "id": guild.id,
                "name": guild.name,
                "icon": null,
                "banner": null,
                "owner": guild.owner == bot,
                "permissions": in_guild(guild, bot),
                "features": [],
            })
        });
        ok(partial.collect())
    }

    pub fn guild(&mut self, call: &Call) -> Reply {
        ok(self.world.joined_guild(call.id("guild"))?.json())
    }

    pub fn guild_channels(&mut self, call: &Call) -> Reply {
        let guild = call.id("guild");
        self.world.joined_guild(guild)?;
        let bot = self.world.bot();
        let shown = |viewable: bool| viewable || !self.rules.obfuscates_channels;
        let channels = self.world.channels_of(guild).filter(|channel| shown(self.world.may_view(channel, bot)));
        ok(channels.map(|channel| self.world.channel_json(channel)).collect())
    }

    pub fn channel(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        ok(self.world.channel_json(self.world.permitted(channel, Permissions::empty())?))
    }

    pub fn guild_member(&mut self, call: &Call) -> Reply {
        let (guild, user) = (call.id("guild"), call.id("user"));
        let guild = self.world.joined_guild(guild)?;
        let found: &User = self.world.users.get(&user).ok_or_else(|| Refusal::unknown(Unknown::User))?;
        let member = guild.members.get(&user).ok_or_else(|| Refusal::unknown(Unknown::Member))?;
        ok(member.json(found))
    }

    pub fn guild_webhooks(&mut self, call: &Call) -> Reply {
        let guild = call.id("guild");
        let target_guild = self.world.joined_guild(guild)?;
        if !in_guild(target_guild, self.world.bot()).contains(Permissions::MANAGE_WEBHOOKS) {
            return Err(Refusal::missing_permissions());
        }
        self.check_two_factors(Some(guild))?;
        let is_in_guild = |channel: Id| self.world.guild_of(channel).is_some_and(|other| other.id == guild);
        let webhooks = self.world.webhooks.values().filter(|webhook| is_in_guild(webhook.channel));
        ok(webhooks.map(|webhook| webhook.json(&self.world, true)).collect())
    }
}
