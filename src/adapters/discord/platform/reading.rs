//! Reads back what was posted, and finds a part among it.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::super::names;
use super::super::outgoing::{self, is_same};
use super::super::permissions::Need;
use super::super::reconcile::{Found, Owed, Read, ReadBack, Speaker, State, reconcile};
use super::super::refusals::code;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::{Bot, Discord};
use crate::ports::chat_platform::{NotRead, Part};

/// A page of messages is full with so many.
const PAGE: usize = 100;
/// No more pages are read: whatever is older than a thousand messages would be looked for in vain by whoever reads the channel, too.
const MOST_PAGES: usize = 10;

/// A message, as far as it tells whose it is.
#[derive(Deserialize)]
struct Message {
    id: Snowflake,
    author: Author,
    #[serde(default)]
    content: String,
    #[serde(default)]
    edited_timestamp: Option<String>,
    #[serde(default)]
    webhook_id: Option<Snowflake>,
    #[serde(default)]
    application_id: Option<Snowflake>,
}

#[derive(Deserialize)]
struct Author {
    id: Snowflake,
    #[serde(default)]
    username: String,
}

impl Discord {
    /// The message that a part is, among those after this one but for those that are taken; none if it is certainly not there.
    pub(super) async fn read_back(
        &self,
        channel: Snowflake,
        part: &Part,
        words: &outgoing::Part,
        after: Snowflake,
        taken: &BTreeSet<Snowflake>,
    ) -> Result<Option<Snowflake>, NotRead> {
        let bot = self.bot().await.map_err(unread)?;
        let (mut messages, is_complete) = self.history(channel, after).await?;
        // Answers to commands come from a webhook with the application's own id, and are nobody's words.
        messages.retain(|message| message.webhook_id != Some(bot.application));
        let is_direct = Snowflake::of_direct_guild(&part.guild).is_some();
        // An empty history may be one that is hidden.
        if messages.is_empty() && !is_direct {
            self.may_read(channel, after).await?;
        }
        let webhook = match self.cache.place(channel) {
            Some(place) => self.webhooks.known(place.root).await,
            None => None,
        };
        let name = names::username(&part.name);
        let speaker = if is_direct { Speaker::Bot(bot.user) } else { Speaker::Webhook(bot.application, &name) };
        let own = |message: &Message| match message.webhook_id {
            Some(id) => message.application_id == Some(bot.application) || webhook == Some(id),
            None => message.author.id == bot.user,
        };
        let is_withheld = |message: &Message| {
            let is_by_speaker = message.webhook_id.is_some() && names::is_same(&message.author.username, &name);
            is_by_speaker && own(message) && message.content.is_empty() && !taken.contains(&message.id)
        };
        let withheld: Vec<_> = messages.iter_mut().filter(|message| is_withheld(message)).collect();
        if !withheld.is_empty() {
            self.reveal(channel, bot, withheld).await?;
        }
        let messages = messages.iter().map(|message| read(message, bot, own(message), words)).collect();
        let owed = [Owed { content: words.content.clone(), state: State::Sending }];
        let verdicts = reconcile(&owed, &speaker, Some(after), &ReadBack { messages, is_complete }, taken);
        match verdicts.first() {
            Some(Found::Posted(message)) => Ok(Some(*message)),
            Some(Found::Missing | Found::Gone) => Ok(None),
            Some(Found::Unconfirmed) | None if !is_complete => Err(NotRead::Never("too much was posted since".to_owned())),
            Some(Found::Unconfirmed) | None => {
                Err(NotRead::Never("what the companion posted since may be it, or was changed".to_owned()))
            }
        }
    }

    /// Reads with the webhook's own token what Discord withholds from the bot's: without the Message Content intent its lists show the
    /// application's own webhook messages without their content (discord-api-docs, issue 5411). What a webhook posted that is gone stays
    /// withheld.
    async fn reveal(&self, channel: Snowflake, bot: Bot, withheld: Vec<&mut Message>) -> Result<(), NotRead> {
        let place = self.place(channel).await.map_err(unread)?;
        let webhook = match self.webhooks.existing(&self.rest, bot.application, place.root).await {
            Ok(webhook) => webhook,
            Err(Failed::Refused(_)) => None,
            Err(failed) => return Err(unread(failed)),
        };
        let Some(webhook) = webhook else { return Ok(()) };
        for message in withheld.into_iter().filter(|message| message.webhook_id == Some(webhook.id)) {
            match self.rest.ask::<Message>(Request::webhook_message(&webhook, place.thread, message.id)).await {
                Ok(shown) => message.content = shown.content,
                Err(Failed::Refused(_)) => {}
                Err(failed) => return Err(unread(failed)),
            }
        }
        Ok(())
    }

    /// The messages after this one, and whether these are all.
    async fn history(&self, channel: Snowflake, after: Snowflake) -> Result<(Vec<Message>, bool), NotRead> {
        let mut all: Vec<Message> = Vec::new();
        let mut newest = after;
        for _ in 0..MOST_PAGES {
            let page: Vec<Message> = self.rest.ask(Request::messages(channel, newest)).await.map_err(unread)?;
            let is_last = page.len() < PAGE;
            newest = page.iter().map(|message| message.id).max().unwrap_or(newest).max(newest);
            all.extend(page);
            if is_last {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    /// Whether the history may be read: without the permission, Discord's list of messages is empty, but a single one is refused.
    async fn may_read(&self, channel: Snowflake, message: Snowflake) -> Result<(), NotRead> {
        match self.rest.tell(&Request::message(channel, message)).await {
            Ok(_) => Ok(()),
            Err(Failed::Refused(refusal)) if refusal.code == code::UNKNOWN_MESSAGE => Ok(()),
            Err(failed) => Err(unread(failed)),
        }
    }
}

/// A message as it is compared. One of our webhooks is all of them: a webhook may have been replaced since.
fn read<'a>(message: &'a Message, bot: Bot, is_own: bool, words: &outgoing::Part) -> Read<'a> {
    let is_by_webhook = message.webhook_id.is_some();
    let is_part = is_same(&words.content, &message.content);
    // Nobody knows whose the webhook was, or who could be called when the words were sent: it may be the part, and it may not.
    let is_unclear = is_by_webhook && !is_own && is_part || is_own && !is_part && has_mark(&message.content);
    Read {
        id: message.id,
        webhook: message.webhook_id.map(|webhook| if is_own || is_unclear { bot.application } else { webhook }),
        author: message.author.id,
        username: &message.author.username,
        content: if is_unclear { "" } else { &message.content },
        is_withheld: is_own && is_by_webhook && message.content.is_empty(),
        is_edited: message.edited_timestamp.is_some(),
    }
}

/// Whether something in it was put there by who and what was around when it was sent.
fn has_mark(content: &str) -> bool {
    ["<@", "<:", "<a:"].into_iter().any(|mark| content.contains(mark))
}

fn unread(failed: Failed) -> NotRead {
    match failed {
        Failed::NotNow { after, detail } => NotRead::Later { after, detail },
        Failed::Unknown { detail, .. } => NotRead::Later { after: None, detail },
        Failed::Refused(refusal) => NotRead::Never(refusal.lacking(Need::ReadBack)),
    }
}
