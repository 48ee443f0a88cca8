//! Applications, people, guilds, roles and members, and their JSON.
//!
//! <https://docs.discord.com/developers/resources/guild>, <https://docs.discord.com/developers/resources/user>

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Id, Intents, Permissions, iso8601, now_ms};

/// The application whose bot connects.
#[derive(Clone, Debug)]
pub struct Application {
    pub id: Id,
    pub name: String,
    pub token: String,
    /// The privileged intents that are enabled in the portal.
    pub privileged: Intents,
    /// Its owner, a person.
    pub owner: Id,
    /// Whether anybody may invite its bot.
    pub public: bool,
    /// Whether an invitation needs a code grant.
    pub code_grant: bool,
    /// The URL that receives interactions instead of the gateway.
    pub interactions_url: Option<String>,
    /// What the bot's profile says.
    pub description: String,
}

impl Application {
    /// <https://docs.discord.com/developers/resources/application#application-object-application-flags>
    pub fn flags(&self) -> u64 {
        // The limited flags are those of applications that need no review.
        [(Intents::GUILD_PRESENCES, 1 << 13), (Intents::GUILD_MEMBERS, 1 << 15), (Intents::MESSAGE_CONTENT, 1 << 19)]
            .iter()
            .filter(|(intent, _)| self.privileged.contains(*intent))
            .fold(0, |flags, (_, flag)| flags | flag)
    }
}

/// A person or a bot.
#[derive(Clone, Debug)]
pub struct User {
    pub id: Id,
    pub name: String,
    pub global_name: Option<String>,
    pub bot: bool,
}

impl User {
    pub fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "username": self.name,
            "discriminator": if self.bot { "1337" } else { "0" },
            "global_name": self.global_name,
            "avatar": null,
            "public_flags": 0,
        });
        if self.bot {
            json["bot"] = json!(true);
        }
        json
    }

    /// The bot's own user, as the bot receives it.
    pub fn current_json(&self) -> Value {
        let mut json = self.json();
        json["mfa_enabled"] = json!(true);
        json["verified"] = json!(true);
        json["email"] = Value::Null;
        json["flags"] = json!(0);
        json
    }
}

#[derive(Clone, Debug)]
pub struct Guild {
    pub id: Id,
    pub name: String,
    pub owner: Id,
    pub roles: BTreeMap<Id, Role>,
    pub members: BTreeMap<Id, Member>,
    /// The guild has an outage: no events are sent.
    pub outage: bool,
    pub system_channel: Option<Id>,
}

#[derive(Clone, Debug)]
pub struct Role {
    pub id: Id,
    pub name: String,
    pub permissions: Permissions,
    pub position: usize,
    pub mentionable: bool,
    /// The bot that it belongs to.
    pub bot: Option<Id>,
}

impl Role {
    pub fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "name": self.name,
            "color": 0,
            "colors": { "primary_color": 0, "secondary_color": null, "tertiary_color": null },
            "hoist": false,
            "icon": null,
            "unicode_emoji": null,
            "position": self.position,
            "permissions": self.permissions,
            "managed": self.bot.is_some(),
            "mentionable": self.mentionable,
            "flags": 0,
        });
        if let Some(bot) = self.bot {
            json["tags"] = json!({ "bot_id": bot });
        }
        json
    }
}

#[derive(Clone, Debug)]
pub struct Member {
    pub nick: Option<String>,
    pub roles: Vec<Id>,
    pub joined_ms: u64,
    pub timed_out: bool,
}

impl Member {
    /// A member as part of a message: without its user.
    pub fn partial_json(&self) -> Value {
        json!({
            "avatar": null,
            "communication_disabled_until": self.timed_out.then(|| iso8601(now_ms() + 3_600_000)),
            "deaf": false,
            "flags": 0,
            "joined_at": iso8601(self.joined_ms),
            "mute": false,
            "nick": self.nick,
            "pending": false,
            "premium_since": null,
            "roles": self.roles,
        })
    }

    pub fn json(&self, user: &User) -> Value {
        let mut json = self.partial_json();
        json["user"] = user.json();
        json
    }
}

impl Guild {
    /// The guild in `GET /guilds/{id}` and GUILD_UPDATE.
    pub fn json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "owner_id": self.owner,
            "roles": self.roles.values().map(Role::json).collect::<Vec<_>>(),
            "afk_channel_id": null,
            "afk_timeout": 300,
            "application_id": null,
            "banner": null,
            "default_message_notifications": 0,
            "description": null,
            "discovery_splash": null,
            "emojis": [],
            "explicit_content_filter": 0,
            "features": [],
            "icon": null,
            "max_members": 500_000,
            "max_presences": null,
            "max_video_channel_users": 25,
            "mfa_level": 0,
            "nsfw": false,
            "nsfw_level": 0,
            "preferred_locale": "en-US",
            "premium_progress_bar_enabled": false,
            "premium_subscription_count": 0,
            "premium_tier": 0,
            "public_updates_channel_id": null,
            "rules_channel_id": null,
            "safety_alerts_channel_id": null,
            "splash": null,
            "stickers": [],
            "system_channel_flags": 0,
            "system_channel_id": self.system_channel,
            "vanity_url_code": null,
            "verification_level": 0,
        })
    }
}
