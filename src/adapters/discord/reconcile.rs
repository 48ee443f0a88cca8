//! After a crash: which parts of a reply were posted, which are missing, and of which nobody can know.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::names;
use super::outgoing::is_same;
use super::snowflake::Snowflake;

/// A part of a reply, as the outbox has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxPart {
    /// Its content, as it was or will be sent.
    pub content: String,
    /// How far it came.
    pub state: State,
}

/// How far a part came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was never sent.
    Owed,
    /// Its request may have left.
    Sending,
    /// It is posted.
    Sent(Snowflake),
}

/// As whom a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    /// Through this webhook, under this name (as [`names::username`] made it).
    Webhook(Snowflake, &'a str),
    /// As the bot itself, in a direct message.
    Bot(Snowflake),
}

/// What was read back.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The messages after the newest one that was known before sending; in any order.
    pub messages: Vec<ReadMessage<'a>>,
    /// Whether these are all: no page was left out, and the bot may read the history. Without that permission Discord answers with an
    /// empty list, so it has to be asked for ([`super::permissions`]).
    pub is_complete: bool,
}

/// A message that was read back.
#[derive(Clone, Copy, Debug)]
pub struct ReadMessage<'a> {
    /// Its id.
    pub id: Snowflake,
    /// The webhook that posted it.
    pub webhook: Option<Snowflake>,
    /// Its author.
    pub author: Snowflake,
    /// The name it bears.
    pub username: &'a str,
    /// Its content; empty too if Discord does not show it to us.
    pub content: &'a str,
    /// Discord withholds the content, though the message is ours: its author and its order alone tell whether it is a part.
    pub is_withheld: bool,
    /// Whether it was edited, so that its content tells nothing of what was sent.
    pub is_edited: bool,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was posted.
    Posted(Snowflake),
    /// It was posted, since a later part was, and is gone by now.
    Gone,
    /// It is not there: send it.
    Missing,
    /// It may be there: do not send it.
    Unconfirmed,
}

/// What became of each part of a reply, in their order.
///
/// Parts are sent one after the other, so they stand in the channel in their order, with anybody's messages between them. A message is a
/// part's if it comes from the same speaker, came after what was known (and after the parts known to be sent), shows the same content and
/// is nobody else's: `taken` are the messages that are on record already. Of two parts with the same content the first is found first.
///
/// Messages of the speaker whose content Discord withholds are taken for the parts in their order, if no content tells more: nobody else
/// posts as this speaker, and what the speaker posted before is on record.
///
/// A part that is not found is missing if all was read and every message of the speaker can be told; else it is unconfirmed. Parts that
/// were never sent are missing. Whoever sends the missing ones stops at the first unconfirmed: what comes after it makes no sense alone.
pub fn reconcile(
    parts: &[OutboxPart],
    speaker: &Speaker<'_>,
    known: Option<Snowflake>,
    read: &History<'_>,
    taken: &BTreeSet<Snowflake>,
) -> Vec<Verdict> {
    let sent = |part: &OutboxPart| match part.state {
        State::Sent(id) => Some(id),
        _ => None,
    };
    let after = parts.iter().filter_map(sent).chain(known).max();
    let own: BTreeSet<Snowflake> = parts.iter().filter_map(sent).collect();
    let mut candidates: Vec<&ReadMessage<'_>> = read
        .messages
        .iter()
        .filter(|read| speaker.said(read) && after.is_none_or(|after| read.id > after))
        .filter(|read| !taken.contains(&read.id) && !own.contains(&read.id))
        .collect();
    candidates.sort_by_key(|read| read.id);
    candidates.dedup_by_key(|read| read.id);

    let doubtful: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].state == State::Sending).collect();
    let mut matches =
        aligned(&doubtful, &candidates, |part, read| !read.is_edited && is_same(&parts[part].content, read.content));
    if matches.iter().all(Option::is_none) {
        let withheld = candidates.iter().filter(|read| read.is_withheld && !read.is_edited);
        matches.iter_mut().zip(withheld).for_each(|(part, read)| *part = Some(read.id));
    }
    let last_found = matches.iter().rposition(Option::is_some);
    let found_ids: BTreeSet<_> = matches.iter().flatten().collect();
    // A message of the speaker's that shows nothing of what was sent may be any part.
    let has_untold = candidates.iter().any(|read| (read.is_edited || read.content.is_empty()) && !found_ids.contains(&read.id));

    let mut verdicts: Vec<Verdict> = parts.iter().map(|part| sent(part).map_or(Verdict::Missing, Verdict::Posted)).collect();
    for (place, part) in doubtful.iter().enumerate() {
        verdicts[*part] = match matches[place] {
            Some(id) => Verdict::Posted(id),
            None if last_found.is_some_and(|last| place < last) => Verdict::Gone,
            None if read.is_complete && !has_untold => Verdict::Missing,
            None => Verdict::Unconfirmed,
        };
    }
    verdicts
}

impl Speaker<'_> {
    /// Whether a message is by this speaker.
    fn said(&self, read: &ReadMessage<'_>) -> bool {
        match *self {
            Self::Webhook(webhook, name) => read.webhook == Some(webhook) && names::is_same(read.username, name),
            Self::Bot(bot) => read.webhook.is_none() && read.author == bot,
        }
    }
}

/// Which message is which part's: the most that can be had in the order of both, the earliest of each first.
fn aligned(
    parts: &[usize],
    messages: &[&ReadMessage<'_>],
    fits: impl Fn(usize, &ReadMessage<'_>) -> bool,
) -> Vec<Option<Snowflake>> {
    // The most matches among the parts and messages from here on.
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
