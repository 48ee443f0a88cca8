//! Asks for what was not told over the gateway: messages after a downtime, and what a resumed session told to the process before.

use std::sync::PoisonError;

use serde_json::value::RawValue;

use super::super::backfill;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::{Bot, Discord};

impl Discord {
    /// Who we are: asked for once, if nobody told.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn who(&self) -> Result<Bot, Failed> {
        self.bot().await
    }

    /// The bot's user, if it is known already.
    pub fn user(&self) -> Option<Snowflake> {
        self.bot.get().map(|bot| bot.user)
    }

    /// A session is asked for, or asked to go on: whether with the text of all messages.
    pub fn will_read_all(&self, reads_all: bool) {
        *self.reads_all.lock().unwrap_or_else(PoisonError::into_inner) = Some(reads_all);
    }

    /// Whether Discord shows the text of all messages, or only of what is meant for the bot; none: that is not known.
    pub fn reads_all(&self) -> Option<bool> {
        *self.reads_all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of a channel's messages, as they come.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn page(&self, page: backfill::Request) -> Result<Vec<Box<RawValue>>, Failed> {
        self.rest.ask(Request::messages_before(page.channel, page.before, page.limit)).await
    }

    /// Asks for a channel or thread, and knows it from then on. Returns its newest message.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn look_at(&self, channel: Snowflake) -> Result<Option<Snowflake>, Failed> {
        let told: wire::Channel = self.rest.ask(Request::channel(channel)).await?;
        self.cache.update_channel(told.guild_id.map(|id| id.0), &told);
        Ok(told.newest())
    }

    /// Asks for a guild and its channels, and knows them from then on.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn look_at_guild(&self, guild: Snowflake) -> Result<(), Failed> {
        let bot = self.bot().await?.user;
        let told: wire::Guild = self.rest.ask(Request::guild(guild)).await?;
        let channels: Vec<wire::Channel> = self.rest.ask(Request::guild_channels(guild)).await?;
        for channel in &channels {
            self.cache.update_channel(Some(guild), channel);
        }
        self.cache.update_guild(&told, Some(bot));
        Ok(())
    }
}
