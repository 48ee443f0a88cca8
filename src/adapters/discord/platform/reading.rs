//! Reads files of messages, and a channel's history to find a part with unknown outcome.

use std::collections::BTreeSet;

use super::super::incoming::attached::recording;
use super::super::names;
use super::super::outgoing::{self, is_same};
use super::super::permissions::Need;
use super::super::reconcile::{History, ReadMessage, Speaker, Verdict, reconcile};
use super::super::refusals::code;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire::{Bot, Message};
use super::{Discord, is_by_bot};
use crate::domain::attachment::{Attachment, MOST_BYTES};
use crate::ports::chat_platform::{NotRead, Part};

/// The size of a full page of messages.
const PAGE: usize = 100;
/// The limit of pages. A part followed by a thousand newer messages is not worth finding.
const MAX_PAGES: usize = 10;

impl Discord {
    /// Reads a file of a message, or without one the recording of a voice note. The message is read first, because addresses of files expire.
    pub(super) async fn read_file(
        &self,
        channel: Snowflake,
        message: Snowflake,
        file: Option<&Attachment>,
    ) -> Result<Vec<u8>, NotRead> {
        self.files.count()?;
        let message: Message = self.rest.ask(Request::message(channel, message)).await.map_err(not_read)?;
        let found = match file {
            Some(file) => message.attachments.iter().find(|other| other.id.is_some_and(|id| id.to_string() == *file.id)),
            None => recording(&message),
        };
        let found = found.ok_or_else(|| NotRead::Never("the message has no such file".to_owned()))?;
        if found.size > MOST_BYTES as u64 {
            return Err(NotRead::Never("the file is too large".to_owned()));
        }
        self.files.read(&found.url).await
    }

    /// Finds the message of a part, among the messages after `after` that are not in `taken`. `None`: the part was certainly not posted.
    pub(super) async fn read_back(
        &self,
        channel: Snowflake,
        part: &Part,
        rendered: &outgoing::Part,
        after: Snowflake,
        taken: &BTreeSet<Snowflake>,
    ) -> Result<Option<Snowflake>, NotRead> {
        let bot = self.bot().await.map_err(not_read)?;
        let (mut messages, is_complete) = self.history(channel, after).await?;
        // Answers to commands come from a webhook with the application's own id. They are not statements.
        messages.retain(|message| message.webhook_id != Some(bot.application));
        let is_direct = Snowflake::of_direct_guild(&part.guild).is_some();
        // Without the permission to read it, the history is empty.
        if messages.is_empty() && !is_direct {
            self.check_history_access(channel, after).await?;
        }
        let webhook = match self.cache.webhook_target(channel) {
            Some(target) => self.webhooks.cached_id(target.root).await,
            None => None,
        };
        let name = names::username(&part.name);
        let speaker = if is_by_bot(part) { Speaker::Bot(bot.user) } else { Speaker::Webhook(bot.application, &name) };
        let own = |message: &Message| match message.webhook_id {
            Some(id) => message.application_id == Some(bot.application) || webhook == Some(id),
            None => message.author.id == bot.user,
        };
        let is_withheld = |message: &Message| {
            let is_by_speaker = message.webhook_id.is_some() && names::is_same(&message.author.username, &name);
            is_by_speaker && own(message) && message.content().is_empty() && !taken.contains(&message.id)
        };
        let withheld: Vec<_> = messages.iter_mut().filter(|message| is_withheld(message)).collect();
        if !withheld.is_empty() {
            self.fetch_withheld(channel, bot, withheld).await?;
        }
        let messages = messages.iter().map(|message| read(message, bot, own(message), rendered)).collect();
        match reconcile(&rendered.content, &speaker, after, &History { messages, is_complete }, taken) {
            Verdict::Posted(message) => Ok(Some(message)),
            Verdict::Missing => Ok(None),
            Verdict::Unconfirmed if !is_complete => Err(NotRead::Never("too many messages were posted since".to_owned())),
            Verdict::Unconfirmed => Err(NotRead::Never("a later message of the companion may be it, or was edited".to_owned())),
        }
    }

    /// Fetches withheld content with the webhook's own token. Without the Message Content intent, Discord lists the application's own webhook
    /// messages without their content for the bot's token (discord-api-docs, issue 5411). The content of messages from a deleted webhook stays
    /// withheld.
    async fn fetch_withheld(&self, channel: Snowflake, bot: Bot, withheld: Vec<&mut Message>) -> Result<(), NotRead> {
        let target = self.webhook_target(channel).await.map_err(not_read)?;
        let webhook = match self.webhooks.get(&self.rest, bot.application, target.root).await {
            Ok(webhook) => webhook,
            Err(Failed::Refused(_)) => None,
            Err(failed) => return Err(not_read(failed)),
        };
        let Some(webhook) = webhook else { return Ok(()) };
        for message in withheld.into_iter().filter(|message| message.webhook_id == Some(webhook.id)) {
            match self.rest.ask::<Message>(Request::webhook_message(&webhook, target.thread, message.id)).await {
                Ok(shown) => message.content = shown.content,
                Err(Failed::Refused(_)) => {}
                Err(failed) => return Err(not_read(failed)),
            }
        }
        Ok(())
    }

    /// The messages after `after`, and whether the list is complete.
    async fn history(&self, channel: Snowflake, after: Snowflake) -> Result<(Vec<Message>, bool), NotRead> {
        let mut all: Vec<Message> = Vec::new();
        let mut newest = after;
        for _ in 0..MAX_PAGES {
            let page: Vec<Message> = self.rest.ask(Request::messages(channel, newest)).await.map_err(not_read)?;
            let is_last = page.len() < PAGE;
            newest = page.iter().map(|message| message.id).max().unwrap_or(newest).max(newest);
            all.extend(page);
            if is_last {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    /// Returns an error if the history may not be read. Without the permission, Discord returns an empty list, but refuses a request for a single
    /// message.
    async fn check_history_access(&self, channel: Snowflake, message: Snowflake) -> Result<(), NotRead> {
        match self.rest.send(&Request::message(channel, message)).await {
            Ok(_) => Ok(()),
            Err(Failed::Refused(refusal)) if refusal.code == code::UNKNOWN_MESSAGE => Ok(()),
            Err(failed) => Err(not_read(failed)),
        }
    }
}

/// Converts a message for the comparison. All webhooks of ours count as one, because a webhook may have been replaced since.
fn read<'a>(message: &'a Message, bot: Bot, is_own: bool, rendered: &outgoing::Part) -> ReadMessage<'a> {
    let is_by_webhook = message.webhook_id.is_some();
    let is_part = is_same(&rendered.content, message.content());
    // Unclear whether this is the part: the webhook's owner is unknown, or different mentions may have been rendered when it was sent.
    let is_unclear = is_by_webhook && !is_own && is_part || is_own && !is_part && has_mark(message.content());
    ReadMessage {
        id: message.id,
        webhook: message.webhook_id.map(|webhook| if is_own || is_unclear { bot.application } else { webhook }),
        author: message.author.id,
        username: &message.author.username,
        content: if is_unclear { "" } else { message.content() },
        is_withheld: is_own && is_by_webhook && message.content().is_empty(),
        is_edited: message.edited_timestamp.is_some(),
    }
}

/// Whether the content has a mention or an emoji. Rendering these depends on the people and emojis that were known at the time.
fn has_mark(content: &str) -> bool {
    ["<@", "<:", "<a:"].into_iter().any(|mark| content.contains(mark))
}

fn not_read(failed: Failed) -> NotRead {
    match failed {
        Failed::NotNow { after, detail } => NotRead::Later { after, detail },
        Failed::Unknown { detail, .. } => NotRead::later(detail),
        Failed::Refused(refusal) => NotRead::Never(refusal.explain(Need::ReadBack)),
    }
}
