//! Decides after a crash which parts of a reply were posted, which are missing, and which are unknown.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::names;
use super::outgoing::is_same;
use super::snowflake::Snowflake;

/// A part of a reply in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxPart {
    /// The content that was or will be sent.
    pub content: String,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was never sent.
    Owed,
    /// Its request may have been sent.
    Sending,
    /// It is posted.
    Sent(Snowflake),
}

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
    /// It was posted, because a later part was, but was deleted since.
    Gone,
    /// It was not posted: send it.
    Missing,
    /// It may have been posted: do not send it.
    Unconfirmed,
}

/// Finds the outcome of each part of a reply, in order.
///
/// Parts are sent one after the other, so they appear in the channel in this order, with other people's messages between them. A message
/// matches a part if all of this is true:
///
/// * It comes from the same speaker.
/// * It is newer than `newest_known` and than the parts that are known to be sent.
/// * It shows the same content.
/// * It is not in `taken`, the messages that are on record already.
///
/// Of two parts with the same content, the first is matched first.
///
/// If no content matches, messages of the speaker with withheld content are matched to the parts in order: nobody else posts as this
/// speaker, and what the speaker posted before is on record.
///
/// A part without a match is missing if the history is complete and every message of the speaker is identified; else it is unconfirmed.
/// Parts that were never sent are missing. The sender of missing parts stops at the first unconfirmed one, because the parts after it make
/// no sense alone.
pub fn reconcile(
    parts: &[OutboxPart],
    speaker: &Speaker<'_>,
    newest_known: Option<Snowflake>,
    read: &History<'_>,
    taken: &BTreeSet<Snowflake>,
) -> Vec<Verdict> {
    let sent = |part: &OutboxPart| match part.state {
        State::Sent(id) => Some(id),
        _ => None,
    };
    let after = parts.iter().filter_map(sent).chain(newest_known).max();
    let own: BTreeSet<Snowflake> = parts.iter().filter_map(sent).collect();
    let mut candidates: Vec<&ReadMessage<'_>> = read
        .messages
        .iter()
        .filter(|read| speaker.is_author_of(read) && after.is_none_or(|after| read.id > after))
        .filter(|read| !taken.contains(&read.id) && !own.contains(&read.id))
        .collect();
    candidates.sort_by_key(|read| read.id);
    candidates.dedup_by_key(|read| read.id);

    let in_doubt: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].state == State::Sending).collect();
    let mut matches =
        aligned(&in_doubt, &candidates, |part, read| !read.is_edited && is_same(&parts[part].content, read.content));
    if matches.iter().all(Option::is_none) {
        let withheld = candidates.iter().filter(|read| read.is_withheld && !read.is_edited);
        matches.iter_mut().zip(withheld).for_each(|(part, read)| *part = Some(read.id));
    }
    let last_found = matches.iter().rposition(Option::is_some);
    let found_ids: BTreeSet<_> = matches.iter().flatten().collect();
    // A message of the speaker without its original content may be any part.
    let has_unidentified =
        candidates.iter().any(|read| (read.is_edited || read.content.is_empty()) && !found_ids.contains(&read.id));

    let mut verdicts: Vec<Verdict> = parts.iter().map(|part| sent(part).map_or(Verdict::Missing, Verdict::Posted)).collect();
    for (index, part) in in_doubt.iter().enumerate() {
        verdicts[*part] = match matches[index] {
            Some(id) => Verdict::Posted(id),
            None if last_found.is_some_and(|last| index < last) => Verdict::Gone,
            None if read.is_complete && !has_unidentified => Verdict::Missing,
            None => Verdict::Unconfirmed,
        };
    }
    verdicts
}

impl Speaker<'_> {
    fn is_author_of(&self, read: &ReadMessage<'_>) -> bool {
        match *self {
            Self::Webhook(webhook, name) => read.webhook == Some(webhook) && names::is_same(read.username, name),
            Self::Bot(bot) => read.webhook.is_none() && read.author == bot,
        }
    }
}

/// Matches messages to parts: as many as possible in the order of both, preferring the earliest of each.
fn aligned(
    parts: &[usize],
    messages: &[&ReadMessage<'_>],
    fits: impl Fn(usize, &ReadMessage<'_>) -> bool,
) -> Vec<Option<Snowflake>> {
    // `most[part][message]`: the most matches among the parts and messages from these on.
    let mut most = vec![vec![0_usize; messages.len() + 1]; parts.len() + 1];
    for part in (0..parts.len()).rev() {
        for message in (0..messages.len()).rev() {
            let skipping = most[part + 1][message].max(most[part][message + 1]);
            let matching = if fits(parts[part], messages[message]) { 1 + most[part + 1][message + 1] } else { 0 };
            most[part][message] = skipping.max(matching);
        }
    }
    let mut matches = vec![None; parts.len()];
    let (mut part, mut message) = (0, 0);
    while part < parts.len() && message < messages.len() {
        if fits(parts[part], messages[message]) && most[part][message] == 1 + most[part + 1][message + 1] {
            matches[part] = Some(messages[message].id);
            part += 1;
            message += 1;
        } else if most[part][message] == most[part][message + 1] {
            message += 1;
        } else {
            part += 1;
        }
    }
    matches
}
