//! Asks a companion whether it wants to speak.

use tokio::time::Instant;

use super::super::channel_context::ChannelContext;
use super::Call;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::models::CallId;
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::domain::conversation::Conversation;
use crate::domain::id::Ticket;
use crate::domain::priority::Priority;

/// Hands a question to its companion, and returns its call. `None`: the question is closed, or the companion is external. That one was
/// notified when the round was published, and the round's deadline limits how long it can take.
pub(super) fn ask(
    ticket: Ticket,
    deadline: Instant,
    is_repeat: bool,
    conversation: &Conversation,
    channel: &ChannelContext,
) -> Option<Call> {
    let (companion, evaluation) = conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
    conversation.gate(companion).filter(|gate| !gate.external)?;
    let tell = channel.tell();
    let (call, lost) = (Call::default(), tell.clone());
    let arrived = call.clone();
    let arrival = Reply::new(move |asked: Result<CallId, Dropped>| match asked {
        Ok(call) => drop(arrived.set(call)),
        Err(Dropped) => lost(ChannelMessage::Lost { ticket }),
    });
    let input = channel.source(move |conversation| conversation.prompt_input(ticket));
    let modality = conversation.window().get(evaluation.message).map(|entry| entry.message.modality);
    let priority = Priority::of(evaluation.trigger, modality.unwrap_or_default());
    let channel_key = channel.key.clone();
    let companion = CompanionKey(channel_key.guild.clone(), companion.clone());
    let asking = DecisionRequest { channel_key, ticket, priority, deadline, is_repeat, input, tell, arrival };
    // If the companion is not running, the question is dropped. The drop reports it as lost, and it is asked again.
    match channel.context.directory.find(&companion) {
        Some(actor) => drop(actor.cast(asking)),
        None => drop(asking),
    }
    Some(call)
}
