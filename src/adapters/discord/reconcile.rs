//! Decides after a crash whether a part of a reply was posted.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::names;
use super::outgoing::is_same;
use super::snowflake::Snowflake;

/// The identity that a reply was sent under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    /// This webhook, with this name (from [`names::username`]).
    Webhook(Snowflake, &'a str),
    /// The bot itself, in a direct message.
    Bot(Snowflake),
}

/// The messages that were read back from the channel.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The messages after the newest one that was known before sending, in any order.
    pub messages: Vec<ReadMessage<'a>>,
    /// Whether these are all: no page is missing, and the bot may read the history. Without that permission Discord returns an empty
    /// list, so the caller must check it ([`super::permissions`]).
    pub is_complete: bool,
}

/// A message that was read back.
#[derive(Clone, Copy, Debug)]
pub struct ReadMessage<'a> {
    pub id: Snowflake,
    /// The webhook that posted it.
    pub webhook: Option<Snowflake>,
    pub author: Snowflake,
    /// The shown name of its author.
    pub username: &'a str,
    /// Its content; also empty if Discord withholds it.
    pub content: &'a str,
    /// Discord withholds the content of this message of ours, so only its author and order show whether it is a part.
    pub is_withheld: bool,
    /// Whether it was edited, so that its content may differ from what was sent.
    pub is_edited: bool,
}

/// The outcome of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Posted(Snowflake),
    /// It was not posted: send it.
    Missing,
    /// It may have been posted: do not send it.
    Unconfirmed,
}

/// Finds the outcome of a part with this content, whose request may have been sent. A message matches it if all of this is true:
///
/// * It comes from the same speaker.
/// * It is newer than `newest_known`.
/// * It shows the same content, and was not edited.
/// * It is not in `taken`, the messages that are on record already.
///
/// The oldest match counts. If no content matches, it is the speaker's oldest message with withheld content: nobody else posts as this
/// speaker, and what the speaker posted before is on record.
///
/// A part without a match is missing if the history is complete and every message of the speaker is identified; else it is unconfirmed.
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
