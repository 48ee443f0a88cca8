//! Has a companion draft a message for a person (docs/design/speaking.md S-23).

use std::sync::Arc;

use ractor::RpcReplyPort;

use super::channel_context::ChannelContext;
use super::replies;
use crate::actors::companion::drafting;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::conversation::Conversation;
use crate::domain::id::CompanionId;

/// Asks the companion's main model in a task of its own. The channel counts the usage, also if the caller has stopped waiting.
pub(super) fn draft(
    companion: CompanionId,
    person: Arc<str>,
    reply: RpcReplyPort<Result<Arc<str>, Arc<str>>>,
    conversation: &Conversation,
    channel: &ChannelContext,
) {
    let statement = replies::draft_of(&companion, person.clone(), conversation).hidden_upto(channel.hidden_upto());
    let channel = channel.clone();
    tokio::spawn(async move {
        let text = match drafting::draft(statement, &person, &companion, &channel.key, &channel.context).await {
            Some((asked, outcome, text)) => {
                let _ = channel.actor.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) });
                text
            }
            None => Err("absent".into()),
        };
        // The caller may have stopped waiting.
        let _ = reply.send(text);
    });
}
