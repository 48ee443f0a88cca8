//! Decides after a crash whether a part of a reply was posted.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::names;
use super::outgoing::is_same;
use super::snowflake::Snowflake;

/// The identity under which a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    /// This webhook, with this name (from [`names::username`]).
    Webhook(Snowflake, &'a str),
    /// The bot itself, in a direct message.
    Bot(Snowflake),
}

/// The messages that were read from the channel's history.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The messages after the newest one known before sending, in any order.
    pub messages: Vec<ReadMessage<'a>>,
    /// Whether the list is complete: no page is missing, and the bot may read the history. Without that permission, Discord returns an empty list,
    /// so the caller must check it ([`super::permissions`]).
    pub is_complete: bool,
}

/// A message that was read from the history.
#[derive(Clone, Copy, Debug)]
pub struct ReadMessage<'a> {
    pub id: Snowflake,
    /// The webhook that posted it.
    pub webhook: Option<Snowflake>,
    pub author: Snowflake,
    /// The displayed name of its author.
    pub username: &'a str,
    /// The content. Empty also if Discord withholds it.
    pub content: &'a str,
    /// Whether Discord withholds the content of this message of ours. Then only its author and order show whether it is a part.
    pub is_withheld: bool,
    /// Whether the message was edited, so its content may differ from what was sent.
    pub is_edited: bool,
}

/// The outcome of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Posted(Snowflake),
    /// The part was not posted and may be sent.
    Missing,
    /// The part may have been posted and must not be sent.
    Unconfirmed,
}

/// Finds the outcome of a part whose request may have been sent. A message matches the part if all of these conditions hold:
///
/// * It comes from the same speaker.
/// * It is newer than `newest_known`.
/// * It has the same content, and was not edited.
/// * It is not in `taken`, the messages that are already on record.
///
/// The oldest match counts. If no content matches, the speaker's oldest message with withheld content counts as the match: only we post as this
/// speaker, and the speaker's earlier messages are on record.
///
/// A part without a match is missing if the history is complete and every message of the speaker is identified. Otherwise it is unconfirmed.
pub fn reconcile(
    content: &str,
    speaker: &Speaker<'_>,
    newest_known: Snowflake,
    read: &History<'_>,
    taken: &BTreeSet<Snowflake>,
) -> Verdict {
    let is_candidate =
        |read: &&ReadMessage<'_>| speaker.is_author_of(read) && read.id > newest_known && !taken.contains(&read.id);
    let candidates = || read.messages.iter().filter(is_candidate);
    let oldest = |is_match: &dyn Fn(&ReadMessage<'_>) -> bool| {
        candidates().filter(|read| !read.is_edited && is_match(read)).map(|read| read.id).min()
    };
    let found = oldest(&|read| is_same(content, read.content)).or_else(|| oldest(&|read| read.is_withheld));
    // A message of the speaker without its original content may be the part.
    match found {
        Some(id) => Verdict::Posted(id),
        None if read.is_complete && !candidates().any(|read| read.is_edited || read.content.is_empty()) => Verdict::Missing,
        None => Verdict::Unconfirmed,
    }
}

impl Speaker<'_> {
    fn is_author_of(&self, read: &ReadMessage<'_>) -> bool {
        match *self {
            Self::Webhook(webhook, name) => read.webhook == Some(webhook) && names::is_same(read.username, name),
            Self::Bot(bot) => read.webhook.is_none() && read.author == bot,
        }
    }
}
