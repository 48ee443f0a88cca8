//! Removes mentions of other people from messages: the name of the person who interrupted a spoken statement, and the quotation
//! in a reply.

use std::collections::BTreeSet;

use crate::actors::erasure::deletion::{RewriteError, append_deletion, redact_traces, traces_of};
use crate::actors::runtime::context::ActorContext;
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::message::Quoted;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Reader;

/// Removes quotations of the platform message `id` from the replies to it. That message is not in the journal. After an edit,
/// `now` is its new text: quotations that still match the beginning of that text stay.
pub async fn forget_quotations(
    context: &ActorContext,
    channel_key: &ChannelKey,
    id: &str,
    now: Option<&str>,
) -> Result<(), RewriteError> {
    let reader = Reader::new(&*context.store);
    if reader.quotations(channel_key, id).await?.is_empty() {
        return Ok(());
    }
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let mut outdated = BTreeSet::new();
    for seq in reader.quotations(channel_key, id).await? {
        if let Some(recorded) = reader.event(channel_key, seq).await?
            && let Event::Said { message, .. } = &recorded.event
            && let Some(quoted) = &message.quoted
            && now.is_none_or(|now| Quoted::new(quoted.from.clone(), now).text != quoted.text)
        {
            outdated.insert(seq);
        }
    }
    forget_named(context, channel_key, outdated).await
}

/// Removes the mentions of other people from these messages, and the reasons of decisions about messages with quotations. Some of
/// the messages may be deleted already. The caller holds the rewrite lock.
pub async fn forget_named(context: &ActorContext, channel_key: &ChannelKey, messages: BTreeSet<Seq>) -> Result<(), RewriteError> {
    let reader = Reader::new(&*context.store);
    let (mut unnamed, mut quoting) = (Vec::new(), BTreeSet::new());
    for seq in messages {
        let Some(mut recorded) = reader.event(channel_key, seq).await? else { continue };
        if let Event::Said { message, .. } = &mut recorded.event
            && message.named().is_some()
        {
            quoting.extend(message.quoted.is_some().then_some(seq));
            message.forget_named();
            unnamed.push(recorded);
        }
    }
    if unnamed.is_empty() {
        return Ok(());
    }
    let numbers = unnamed.iter().map(|recorded| recorded.seq).collect();
    append_deletion(context, channel_key, &BTreeSet::new(), numbers).await?;
    let traces = traces_of(&reader, channel_key, &quoting).await?.redacted;
    unnamed.extend(traces.into_iter().filter(|recorded| matches!(recorded.event, Event::Decided(_))));
    unnamed.sort_by_key(|recorded| recorded.seq);
    redact_traces(context, channel_key, unnamed, Vec::new()).await
}
