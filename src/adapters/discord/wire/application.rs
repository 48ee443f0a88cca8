//! The application and its bot, and the gateway's information about sessions and connections.

use serde::Deserialize;
use twilight_model::oauth::ApplicationFlags;

use super::super::snowflake::Snowflake;
use super::lenient::maybe;

/// An object with all fields ignored except its id.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WithId {
    pub id: Snowflake,
}

/// The ids of the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bot {
    /// The application's id. The application owns the webhooks.
    pub application: Snowflake,
    /// The bot's user id. This user writes the direct messages.
    pub user: Snowflake,
}

/// The application that the bot's token belongs to.
#[derive(Debug, Deserialize)]
pub struct Application {
    pub id: Snowflake,
    #[serde(default, deserialize_with = "maybe")]
    pub name: String,
    /// The flags that decide which intents are requested.
    #[serde(default = "ApplicationFlags::empty")]
    pub flags: ApplicationFlags,
    bot: Option<WithId>,
    /// The profile text of the bot.
    #[serde(default, deserialize_with = "maybe")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub bot_public: Option<bool>,
    #[serde(default, deserialize_with = "maybe")]
    pub bot_require_code_grant: bool,
    #[serde(default, deserialize_with = "maybe")]
    pub interactions_endpoint_url: String,
    #[serde(default, deserialize_with = "maybe")]
    pub approximate_guild_count: Option<u64>,
}

impl Application {
    /// The bot's ids. Without a user in the response, the id of the application is taken, which is the same for bots made since 2016.
    pub fn bot(&self) -> Bot {
        Bot { application: self.id, user: self.bot.map_or(self.id, |user| user.id) }
    }

    /// Whether the bot may read the content of all messages. An application that Discord has not reviewed has a separate flag for that.
    pub const fn reads_content(&self) -> bool {
        self.flags.intersects(ApplicationFlags::GATEWAY_MESSAGE_CONTENT.union(ApplicationFlags::GATEWAY_MESSAGE_CONTENT_LIMITED))
    }
}

/// READY: a new session started.
#[derive(Debug, Deserialize)]
pub struct Ready {
    #[serde(default, deserialize_with = "maybe")]
    pub session_id: String,
    /// The address for resuming the session.
    #[serde(default, deserialize_with = "maybe")]
    pub resume_gateway_url: Option<String>,
    user: WithId,
    #[serde(default, deserialize_with = "maybe")]
    application: Option<WithId>,
    /// The guilds of this shard. `None` if one of them cannot be parsed.
    #[serde(default, deserialize_with = "maybe")]
    guilds: Option<Vec<WithId>>,
}

impl Ready {
    pub fn bot(&self) -> Bot {
        Bot { application: self.application.unwrap_or(self.user).id, user: self.user.id }
    }

    /// The guilds of this shard, if all of them could be parsed. The bot is not in any guild missing from this list.
    pub fn guilds(&self) -> Option<impl Iterator<Item = Snowflake> + '_> {
        Some(self.guilds.as_ref()?.iter().map(|guild| guild.id))
    }
}

/// The answer to `GET /gateway/bot`.
#[derive(Debug, Deserialize)]
pub struct GatewayBot {
    #[serde(default, deserialize_with = "maybe")]
    pub url: String,
    /// The recommended number of shards.
    pub shards: u32,
    pub session_start_limit: SessionStartLimit,
}

/// The limits on starting sessions.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct SessionStartLimit {
    #[serde(default, deserialize_with = "maybe")]
    pub total: u32,
    pub remaining: u32,
    /// In milliseconds.
    pub reset_after: u64,
    pub max_concurrency: u32,
}
