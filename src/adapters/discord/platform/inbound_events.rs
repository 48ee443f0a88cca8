//! Requests data that the gateway does not report: messages missed during downtime, and guilds and channels that a resumed session does not report
//! again.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::super::backfill;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::Discord;
use crate::domain::id::PersonId;

impl Discord {
    /// The bot's user id, if already known.
    pub fn user(&self) -> Option<Snowflake> {
        self.bot.get().map(|bot| bot.user)
    }

    /// Sets whether the session being started or resumed has the Message Content intent.
    pub fn set_reads_all(&self, reads_all: bool) {
        *self.reads_all.lock() = Some(reads_all);
    }

    /// Whether Discord shows the text of all messages, or only of direct messages and those that mention the bot. `None`: unknown.
    pub fn reads_all(&self) -> Option<bool> {
        *self.reads_all.lock()
    }

    /// Requests a page of a channel's messages, unparsed.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn page(&self, page: backfill::Request) -> Result<Vec<Box<RawValue>>, Failed> {
        self.rest.ask(Request::messages_before(page.channel, page.before, page.limit)).await
    }

    /// Removes forwarded texts of people who have opted out, also from the message being replied to. Discord does not report a forwarded text's
    /// author, so the original message is requested. If it cannot be read, or is itself a forward, its author is unknown, and the text is removed.
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

    /// Requests a channel or thread, and caches it. Returns the id of its newest message.
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
