//! Journals a companion's statement. In a channel without a platform this is what posts it.

use std::sync::Arc;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use super::external_companions::StatementWaiter;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{Accepted, Post, Request};
use crate::domain::address::{self, Incoming};
use crate::domain::conversation::Conversation;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::{Author, Message, Role};
use crate::journal::record::Used;
use crate::telemetry::instruments::platform_label;

/// Journals a statement, under the ids that its platform gave its parts. `used` is the usage of writing it, unless that was recorded with its
/// delivery. `waiter` waits for its number.
pub(super) fn journal(
    ticket: Ticket,
    message: Message,
    ids: Vec<Arc<str>>,
    used: Vec<Used>,
    waiter: Option<StatementWaiter>,
    conversation: &Conversation,
    channel: &ChannelContext,
) {
    let message = Message { id: ids.first().cloned(), ..message };
    let companion = CompanionId::from(&*message.from.id);
    let usage = [Used::Statement { companion }].into_iter().chain(used).collect();
    // A statement for a platform was sent and counted before, even if its ids are unknown. Here it is only journaled.
    let sent = channel.platform().is_none().then(Instant::now);
    let platform = platform_label(channel.context.platforms.name(&channel.key.channel));
    let instruments = channel.context.recorder.instruments().clone();
    channel.send_to_writer(Request::Post(Post {
        channel_key: channel.key.clone(),
        at: None,
        event: Event::Said { message, reply_to: None, reply: Some(ticket), said_at: None },
        turn: conversation.turns().floor().filter(|floor| floor.ticket == ticket).and_then(|floor| floor.selection.turn),
        ids,
        ticket,
        usage,
        reply: channel.reply(move |result| {
            if let Some(sent) = sent {
                instruments.sent(platform, if result.is_ok() { "posted" } else { "failed" }, sent.elapsed());
            }
            if let Some(waiter) = waiter {
                // The external companion may have stopped waiting.
                waiter.answer(result.as_ref().map(|accepted: &Accepted| accepted.seq).map_err(|_| VoteError::Gone));
            }
            Some(ChannelMessage::Posted { result })
        }),
    }));
}

/// A companion's statement with these words.
pub(super) fn statement(companion: &CompanionId, text: Arc<str>, channel: &ChannelContext) -> Message {
    let memberships = &channel.context.memberships;
    let known = memberships.companion(&channel.key.channel, companion);
    let name = known.map_or_else(|| companion.as_str().into(), |known| known.name);
    let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
    let is_companion = |id: &str| memberships.is_in_guild(&channel.key.guild, id);
    let names = memberships.names(&channel.key.guild);
    let incoming = Incoming::new(&from, &text);
    let address = names.map(|names| address::resolve(&names, is_companion, &incoming)).unwrap_or_default();
    Message { address, ..Message::new(from, text) }
}
