//! Cancels questions and replies, as the conversation decides it (docs/design/speaking.md S-8).

use super::State;
use crate::actors::messages::companion::CompanionMessage;
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::domain::id::Ticket;

impl State {
    /// Carries out `Output::Cancel`: cancels the question or judgement with this ticket, kills the reply's actor, and stops the delivery.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.attempts.remove(&ticket);
        self.cancel_question(ticket);
        self.replies.retain(|_, (reply, actor)| {
            let is_cancelled = *reply == ticket;
            if is_cancelled {
                actor.kill();
            }
            !is_cancelled
        });
        self.stop_delivery(ticket);
    }

    /// Cancels this question or judgement in the pool or at its companion.
    pub(super) fn cancel_question(&mut self, ticket: Ticket) {
        if let Some(call) = self.judgement_calls.remove(&ticket) {
            self.context.pool.cancel(call);
        }
        let Some(companion) = self.asked_companions.remove(&ticket) else { return };
        if let Some(actor) = self.context.directory.find(&CompanionKey(self.channel_key.guild.clone(), companion)) {
            // A companion that has stopped has cancelled it.
            let _ = actor.cast(CompanionMessage::Cancel { channel: self.channel_key.channel.clone(), ticket });
        }
    }
}
