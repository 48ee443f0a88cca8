//! Has a companion draft a message for a person, who edits and sends it (docs/design/speaking.md S-23).

use std::sync::Arc;

use parking_lot::Mutex;
use ractor::RpcReplyPort;

use super::channel_context::ChannelContext;
use super::replies;
use crate::actors::companion::reply::{Source, lazy_request, moderated};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::runtime::directory::Address;
use crate::domain::id::CompanionId;
use crate::domain::priority::Priority;
use crate::domain::raw_answer::{self, Nothing, Speakers};
use crate::ports::language_model::ModelRole;

/// Drafts in a task of its own. Replies with the text, or with a stable error code.
pub(super) fn draft(
    companion: CompanionId,
    person: Arc<str>,
    reply: RpcReplyPort<Result<Arc<str>, Arc<str>>>,
    channel: &ChannelContext,
) {
    let channel = channel.clone();
    tokio::spawn(async move {
        // The caller may have stopped waiting.
        let _ = reply.send(written(companion, person, &channel).await);
    });
}

/// Asks the main model of the companion. The channel counts the usage.
async fn written(companion: CompanionId, person: Arc<str>, channel: &ChannelContext) -> Result<Arc<str>, Arc<str>> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let (memberships, pool) = (&context.memberships, &context.pool);
    let settings = memberships.companion(&channel_key.channel, &companion).ok_or("absent")?;
    let present = memberships.present(&channel_key.channel).into_keys();
    let names = present.filter_map(|id| memberships.companion(&channel_key.channel, &id)).map(|present| present.name);
    let speakers = Speakers::new(&person, names);
    let (here, by) = (channel.clone(), companion.clone());
    let source = Source {
        channel_key: channel_key.clone(),
        at_work: Address::Channel(channel_key.channel.clone()),
        statement: channel.source(move |conversation| {
            Some(replies::draft_of(&by, person.clone(), conversation).hidden_upto(here.hidden_upto()))
        }),
        context: context.clone(),
    };
    let asked = lazy_request(&source, &settings, Arc::new(Mutex::new(Speakers::new(&settings.name, []))), "");
    let outcome = pool.answer(asked.clone(), Priority::DirectAddress, pool.deadline(ModelRole::Main), None).await;
    let words = match &outcome.result {
        Ok(answer) => raw_answer::statement(&answer.text(), speakers).words.map_err(Nothing::code),
        Err(error) => Err(error.code()),
    };
    let _ = channel.actor.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) });
    moderated(words?, &companion, channel_key, context).await.map_err(|failure| failure.code)
}
