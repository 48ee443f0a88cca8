//! The channel's part in deliveries: starts them, resumes them after a restart, stops them, and journals what was posted.

use std::sync::Arc;

use ractor::{ActorId, ActorProcessingErr, ActorRuntime};
use tokio::sync::watch;

use super::State;
use super::rounds::StatementWaiter;
use super::steps::Statement;
use crate::actors::channel::delivery::{Arguments, Delivery};
use crate::actors::messages::channel::{ChannelMessage, Delivered};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Accepted, OutboxWrite, Record, WriterMessage};
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Input;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::Modality;
use crate::domain::moment::Moment;
use crate::journal::record::OutboxRecord;
use crate::ports::chat_platform::ChatPlatform;
use crate::telemetry::plain::Plain;

/// A delivery in progress.
pub(super) struct RunningDelivery {
    companion: CompanionId,
    ticket: Ticket,
    began: Moment,
    stop: watch::Sender<bool>,
    /// The caller that waits for the statement's number.
    waiter: Option<StatementWaiter>,
}

impl State {
    /// Has a statement posted on a platform.
    pub(super) fn deliver(&mut self, ticket: Ticket, text: Arc<str>, platform: Arc<dyn ChatPlatform>) {
        let waiter = self.take_waiter(ticket);
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else { return };
        let owed = self.interrupted_delivery.take_if(|known| known.0 == ticket).map(|known| known.1);
        let owed = owed.unwrap_or_else(|| OutboxRecord {
            companion: floor.companion.clone(),
            trigger: floor.trigger,
            messages: floor.messages.clone(),
            upto: floor.upto,
            text: Some(text),
            parts: Vec::new(),
            name: None,
        });
        self.start_delivery(ticket, owed, platform, waiter, false);
    }

    /// Resumes the deliveries that a restart interrupted. A reply that was dropped meanwhile sends nothing more, and its posted parts are
    /// journaled.
    pub(super) fn resume_deliveries(&mut self, owed: Vec<(Ticket, OutboxRecord)>) {
        let platform = self.context.platforms.of(&self.channel_key.channel).cloned();
        for (ticket, owed) in owed {
            match (owed.text.clone(), &platform) {
                (Some(text), Some(platform)) if self.is_owed(ticket) => {
                    self.interrupted_delivery = Some(Box::new((ticket, owed)));
                    self.traces.written(ticket, self.context.clock.now());
                    self.deliver(ticket, text, platform.clone());
                }
                (Some(_), Some(platform)) => self.start_delivery(ticket, owed, platform.clone(), None, true),
                (None, _) if !self.is_owed(ticket) => self.remove_from_outbox(ticket),
                (None, _) | (Some(_), None) => {}
            }
        }
    }

    /// Removes replies from the outbox that were owed before and no longer are. One that is being delivered is left to its delivery.
    pub(super) fn remove_dropped_replies(&mut self, owed: Vec<Ticket>) {
        for ticket in owed {
            if !self.is_owed(ticket) && self.deliveries.values().all(|delivery| delivery.ticket != ticket) {
                self.remove_from_outbox(ticket);
            }
        }
    }

    fn is_owed(&self, ticket: Ticket) -> bool {
        self.conversation.owed_reply(ticket).is_some()
    }

    /// Removes a reply from the outbox that is no longer owed.
    fn remove_from_outbox(&mut self, ticket: Ticket) {
        self.batches += 1;
        let (batch, channel) = (self.batches, self.myself.clone());
        self.post_commit_actions.push_back((batch, Vec::new()));
        self.send(WriterMessage::Record(Record {
            channel_key: self.channel_key.clone(),
            at: self.conversation.clock(),
            made: Vec::new(),
            quiet: None,
            snapshot: None,
            outbox: vec![OutboxWrite::Remove(ticket)],
            usage: Vec::new(),
            reply: Reply::new(move |result| {
                // A channel that has stopped reads it from the record.
                let _ = channel.cast(ChannelMessage::Recorded { batch, result });
            }),
        }));
    }

    fn start_delivery(
        &mut self,
        ticket: Ticket,
        mut owed: OutboxRecord,
        platform: Arc<dyn ChatPlatform>,
        waiter: Option<StatementWaiter>,
        is_stopped: bool,
    ) {
        let companion = owed.companion.clone();
        let known = self.context.memberships.companion(&self.channel_key.channel, &companion);
        let (name, picture) = known.map_or_else(|| (companion.as_str().into(), None), |known| (known.name, known.picture));
        let name = owed.name.get_or_insert(name).clone();
        let (stop, stopped) = watch::channel(is_stopped);
        let membership = self.context.memberships.get(&self.channel_key.channel);
        let arguments = Arguments {
            channel_key: self.channel_key.clone(),
            since: membership.map_or(Moment::ZERO, |membership| membership.created_at),
            ticket,
            owed,
            on_record: self.conversation.window().entries().filter_map(|entry| entry.message.id.clone()).collect(),
            name,
            picture,
            used: self.traces.take_usage(ticket),
            platform,
            stop: stopped,
            delivery_lock: self.delivery_lock.clone(),
            channel: self.myself.clone(),
            context: ActorContext::clone(&self.context),
        };
        match ActorRuntime::spawn_linked_instant(None, Delivery, arguments, self.myself.get_cell()) {
            Ok((actor, _)) => {
                self.deliveries
                    .insert(actor.get_id(), RunningDelivery { companion, ticket, began: self.context.clock.now(), stop, waiter });
            }
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a statement could not be sent");
                self.delivery_failed(ticket, "unreachable");
            }
        }
    }

    /// Ends a reply of which nothing was posted.
    fn delivery_failed(&mut self, ticket: Ticket, error: &str) {
        if self.is_owed(ticket) {
            self.step(Input::ReplyFailed { ticket, error: error.into() });
        } else {
            self.remove_from_outbox(ticket);
        }
    }

    /// Stops a delivery: parts that were not sent stay unsent. The delivery still reports the parts that were.
    pub(super) fn stop_delivery(&self, ticket: Ticket) {
        for delivery in self.deliveries.values().filter(|delivery| delivery.ticket == ticket) {
            delivery.stop.send_replace(true);
        }
    }

    /// A delivery has ended: the statement was posted, or a part of it, or nothing.
    pub(super) fn delivered(&mut self, ticket: Ticket, delivered: Delivered) {
        let Some(actor) = self.deliveries.iter().find(|(_, delivery)| delivery.ticket == ticket).map(|(actor, _)| *actor) else {
            return;
        };
        let Some(RunningDelivery { companion, began, waiter, .. }) = self.deliveries.remove(&actor) else { return };
        self.traces.sent(ticket, began, self.context.clock.now());
        let Delivered { text, ids, is_unconfirmed, error } = delivered;
        if text.is_empty() {
            self.delivery_failed(ticket, error.unwrap_or("empty"));
            return;
        }
        if is_unconfirmed {
            tracing::warn!(
                channel = %Plain(self.channel_key.channel.as_str()),
                companion = %Plain(companion.as_str()),
                "a statement was sent without a confirmation; it counts as posted"
            );
        }
        // The words of a reply that was spoken before come first.
        let heard = self.conversation.owed_reply(ticket).map(|floor| floor.heard()).unwrap_or_default();
        let modality = if heard.is_empty() { Modality::Text } else { Modality::Voice };
        let text = if heard.is_empty() { text } else { format!("{} {}", heard.trim(), text.trim()).into() };
        self.post(ticket, Statement { companion, text, modality, cut: None, ids }, waiter);
    }

    /// A statement is on record, unless one of its messages is already there as a different message. Then the channel restarts from its
    /// record, and the delivery detects the mistake.
    pub(super) fn statement_recorded(&self, accepted: Accepted) -> Result<(), ActorProcessingErr> {
        match accepted.is_new {
            true => Ok(()),
            false => Err("a statement was posted under the id of another message on record".into()),
        }
    }

    /// A delivery stopped without a report. Nobody knows what it sent, so the channel restarts from its record.
    pub(super) fn delivery_stopped(&mut self, actor: ActorId) -> Result<(), ActorProcessingErr> {
        match self.deliveries.remove(&actor) {
            Some(_) => Err("a delivery died before it reported".into()),
            None => Ok(()),
        }
    }
}
