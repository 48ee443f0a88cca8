//! Reads earlier messages of a channel from its journal, without those that a prompt must not show.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::actors::messages::companion::HistoryRange;
use crate::actors::recall::message_of;
use crate::actors::runtime::context::ActorContext;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, GuildId, PersonId, Seq};
use crate::domain::message::{Author, Quoted, Role};
use crate::domain::prompt::{PromptInput, Said, tokens};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Journal, Range, ReadError, Reader};
use crate::journal::record::{decode_event, event_kind};
use crate::ports::store::Value;
use crate::ports::store::key::Key;

/// How long a reader waits for requests that redact the channel's journal. Reading in between could show words that were just deleted.
const REWRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of events per page.
const PAGE: usize = 256;

/// The maximum number of events that `read` looks at.
const MAX_EVENTS: usize = 8_192;

/// The messages of a range that fit.
#[derive(Debug, Default)]
pub struct History {
    /// The newest messages that fit, oldest first.
    pub messages: Vec<Said>,
    /// The number of older messages that were counted.
    pub left_out: usize,
}

/// Waits until no request redacts the channel's journal. While the lock is held, no text is deleted from the journal or the conversation. `None` if a
/// deletion takes too long.
pub async fn lock(context: &ActorContext, channel_key: &ChannelKey) -> Option<impl Send> {
    tokio::time::timeout(REWRITE_LOCK_TIMEOUT, context.rewrite_locks.lock(channel_key)).await.ok()
}

/// Reads the newest messages of a range, up to the one with which they exceed `max_tokens`, and counts the older ones after `counted_after`. A
/// `clear` ends the range. The caller holds the [`lock`]. `None` if the journal cannot be read now.
pub async fn read(
    context: &ActorContext,
    channel_key: &ChannelKey,
    range: &HistoryRange,
    counted_after: Seq,
    max_tokens: usize,
) -> Option<History> {
    let journal = journal(context, channel_key).await?;
    let (mut history, mut before, mut used, mut looked_at) = (History::default(), range.before, 0, 0);
    let mut json = Vec::new();
    'pages: while looked_at < MAX_EVENTS {
        let page = Range { after: range.after, before: Some(before), limit: PAGE, newest_first: true };
        let page = readable(journal.stored(page).await, channel_key)?;
        let is_last = page.len() < PAGE;
        looked_at += page.len();
        before = last_of(&page).unwrap_or(before);
        for (key, value) in &page {
            let Some(recorded) = message_or_clear(key, value, &mut json) else { continue };
            if matches!(recorded.event, Event::Cleared { .. }) {
                break 'pages;
            }
            if used > max_tokens && recorded.seq <= counted_after {
                break 'pages;
            }
            let Some(said) = shown_message(recorded, context, channel_key) else { continue };
            if used > max_tokens {
                history.left_out += 1;
            } else {
                used += tokens(&said.message.text);
                history.messages.push(said);
            }
        }
        if is_last {
            break;
        }
    }
    history.messages.reverse();
    Some(history)
}

/// Adds quotes to the new messages: the beginning of the message that each replies to. Adds no quote if that message is also new, if its author opted
/// out, or if `is_shown` returns false because the model must not read it. The caller holds the [`lock`].
pub async fn add_quotes(
    input: &mut PromptInput,
    companion: &CompanionId,
    is_shown: impl Fn(Seq) -> bool + Send,
    context: &ActorContext,
    channel_key: &ChannelKey,
) {
    let new: BTreeSet<Seq> = input.buffer.iter().filter(|said| !said.message.is_by(companion)).map(|said| said.seq).collect();
    let reader = Reader::new(&*context.store);
    for said in &mut input.buffer {
        said.quoted = match said.reply_to {
            Some(seq) if new.contains(&seq) || !is_shown(seq) => None,
            // A message that cannot be read is not quoted.
            Some(seq) => reader.event(channel_key, seq).await.ok().flatten().and_then(message_of).map(|replied| {
                let message = &replied.message;
                Quoted::new(message.from.clone(), &message.text)
            }),
            None => said.message.quoted.as_deref().cloned(),
        };
        said.quoted.take_if(|quoted| !is_heard(&quoted.from, context, &channel_key.guild));
    }
}

/// Like [`add_quotes`], for a caller that does not hold the lock. Adds no quotes if the lock is not available.
pub async fn quote(
    input: &mut PromptInput,
    companion: &CompanionId,
    is_shown: impl Fn(Seq) -> bool + Send,
    context: &ActorContext,
    channel_key: &ChannelKey,
) {
    let replies = input.buffer.iter().any(|said| said.reply_to.is_some() || said.message.quoted.is_some());
    if replies && let Some(_lock) = lock(context, channel_key).await {
        add_quotes(input, companion, is_shown, context, channel_key).await;
    }
}

/// Reads the oldest messages of a range that take at most `max_tokens`, but at least one. Returns them with the number of the last event that they
/// cover. The caller holds the [`lock`]. `None` if the journal cannot be read now.
pub async fn read_oldest(
    context: &ActorContext,
    channel_key: &ChannelKey,
    range: &HistoryRange,
    max_tokens: usize,
) -> Option<(Vec<Said>, Seq)> {
    let journal = journal(context, channel_key).await?;
    let (mut messages, mut upto, mut used, mut json) = (Vec::new(), range.after, 0, Vec::new());
    loop {
        let page = Range { after: upto, before: Some(range.before), limit: PAGE, newest_first: false };
        let page = readable(journal.stored(page).await, channel_key)?;
        for (key, value) in &page {
            let recorded = message_or_clear(key, value, &mut json);
            if let Some(said) = recorded.and_then(|recorded| shown_message(recorded, context, channel_key)) {
                used += tokens(&said.message.text);
                if used > max_tokens && !messages.is_empty() {
                    return Some((messages, upto));
                }
                messages.push(said);
            }
            upto = key.last_number().map_or(upto, Seq);
        }
        if page.len() < PAGE {
            return Some((messages, Seq(range.before.0.saturating_sub(1))));
        }
    }
}

async fn journal<'a>(context: &'a ActorContext, channel_key: &ChannelKey) -> Option<Journal<'a>> {
    readable(Reader::new(&*context.store).journal(channel_key).await, channel_key)
}

fn readable<T>(read: Result<T, ReadError>, channel_key: &ChannelKey) -> Option<T> {
    read.inspect_err(|error| {
        tracing::warn!(channel = %crate::telemetry::plain::Plain(channel_key.channel.as_str()), %error, "the history cannot be read for a prompt");
    })
    .ok()
}

/// The number of the last event of a page.
fn last_of(page: &[(Key, Value)]) -> Option<Seq> {
    page.last().and_then(|(key, _)| key.last_number()).map(Seq)
}

/// Decodes a message or a `clear`. `None`: it is another event, which is not decoded, or it cannot be read.
fn message_or_clear(key: &Key, value: &[u8], json: &mut Vec<u8>) -> Option<Recorded> {
    let is_other = event_kind(value, json).is_some_and(|kind| !matches!(kind, "said" | "cleared"));
    if is_other { None } else { decode_event(key, value).ok() }
}

/// The message of an event. None if the event is no message, if the message was deleted, or if its author opted out.
fn shown_message(recorded: Recorded, context: &ActorContext, channel_key: &ChannelKey) -> Option<Said> {
    let said = message_of(recorded)?;
    is_heard(&said.message.from, context, &channel_key.guild).then_some(said)
}

/// Whether messages of this author may be shown. False if the person has opted out.
pub fn is_heard(from: &Author, context: &ActorContext, guild: &GuildId) -> bool {
    from.role != Role::Person || !context.opt_outs.holds(guild, &PersonId::from(&*from.id))
}
