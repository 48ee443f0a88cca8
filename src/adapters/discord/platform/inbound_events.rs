//! Requests what the gateway does not report: messages of a downtime, and guilds and channels that a resumed session does not report again.

use serde_json::value::RawValue;

use super::super::backfill;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::Discord;

impl Discord {
    /// The id of the bot's user, if it is known already.
    pub fn user(&self) -> Option<Snowflake> {
        self.bot.get().map(|bot| bot.user)
    }

    /// Sets whether the session that is started or resumed has the Message Content intent.
    pub fn set_reads_all(&self, reads_all: bool) {
        *self.reads_all.lock() = Some(reads_all);
    }

    /// Whether Discord shows the text of all messages, or only of those that mention the bot or are sent to it directly. None: unknown.
    pub fn reads_all(&self) -> Option<bool> {
        *self.reads_all.lock()
    }

    /// A page of a channel's messages, not parsed.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn page(&self, page: backfill::Request) -> Result<Vec<Box<RawValue>>, Failed> {
        self.rest.ask(Request::messages_before(page.channel, page.before, page.limit)).await
    }

    /// Requests a channel or thread, and caches it. Returns its newest message.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn fetch_channel(&self, channel: Snowflake) -> Result<Option<Snowflake>, Failed> {
        let fetched: wire::Channel = self.rest.ask(Request::channel(channel)).await?;
        self.cache.update_channel(fetched.guild_id, &fetched);
        Ok(fetched.newest())
    }

    /// Requests a guild and its channels, and caches them.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn fetch_guild(&self, guild: Snowflake) -> Result<(), Failed> {
        let bot = self.bot().await?.user;
        let fetched: wire::Guild = self.rest.ask(Request::guild(guild)).await?;
        let channels: Vec<wire::Channel> = self.rest.ask(Request::guild_channels(guild)).await?;
        for channel in &channels {
            self.cache.update_channel(Some(guild), channel);
        }
        self.cache.update_guild(&fetched, Some(bot));
        Ok(())
    }
}
