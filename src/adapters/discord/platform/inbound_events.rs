//! Requests what the gateway does not report: messages of a downtime, and guilds and channels that a resumed session does not report again.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::super::backfill;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::Discord;
use crate::domain::id::PersonId;

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

    /// Removes forwarded texts of people who opted out, also from the message that this one answers. Discord does not report the author with a forwarded
    /// text, so the original is requested. If it cannot be read, or is a forward itself, the author is unknown, and the text is removed.
    pub async fn withhold_opted_out(&self, message: &mut wire::Message, opted_out: &HashSet<PersonId>) {
        if opted_out.is_empty() {
            return;
        }
        let mut next = Some(message);
        while let Some(message) = next {
            if message.forward().is_some() {
                let original = match message.forwarded_from() {
                    Some((channel, id)) => self.rest.ask::<wire::Message>(Request::message(channel, id)).await.ok(),
                    None => None,
                };
                let is_heard =
                    |original: wire::Message| original.forward().is_none() && !opted_out.contains(&original.author.id.person());
                if !original.is_some_and(is_heard) {
                    message.message_snapshots.iter_mut().for_each(|snapshot| snapshot.message = wire::Forwarded::default());
                }
            }
            next = message.referenced_message.as_deref_mut();
        }
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
