//! The deliveries in progress. Each posts one statement on the platform, and can be stopped.

use std::collections::HashMap;
use std::sync::Arc;

use ractor::ActorId;
use tokio::sync::{Mutex, watch};

use super::channel_context::ChannelContext;
use super::delivery::{Arguments, Delivery};
use super::external_companions::StatementWaiter;
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Conversation;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::moment::Moment;
use crate::domain::turn::OwedReply;
use crate::journal::record::{NoticeRecord, OutboxRecord, Used, Written};
use crate::ports::chat_platform::ChatPlatform;

#[derive(Default)]
pub(super) struct Deliveries {
    running: HashMap<ActorId, RunningDelivery>,
    /// Held by a delivery while it runs, so that a channel's statements are posted one after another.
    delivery_lock: Arc<Mutex<()>>,
    /// The statement whose delivery a restart interrupted, until it is resumed.
    interrupted: Option<Box<(Ticket, OutboxRecord)>>,
}

/// A delivery in progress.
pub(super) struct RunningDelivery {
    pub(super) companion: CompanionId,
    ticket: Ticket,
    pub(super) began: Moment,
    stop: watch::Sender<bool>,
    /// The caller that waits for the statement's number.
    pub(super) waiter: Option<StatementWaiter>,
}

/// A statement to post.
pub(super) struct Order {
    pub(super) ticket: Ticket,
    /// Its outbox record, with its text.
    pub(super) owed: OutboxRecord,
    pub(super) platform: Arc<dyn ChatPlatform>,
    /// The usage of the calls that wrote it.
    pub(super) used: Vec<Used>,
    pub(super) waiter: Option<StatementWaiter>,
    /// No further part may be sent. The delivery determines which parts were posted.
    pub(super) is_stopped: bool,
}

impl Deliveries {
    /// Starts to post a statement. Returns false if the actor could not be started.
    pub(super) fn start(&mut self, order: Order, conversation: &Conversation, channel: &ChannelContext) -> bool {
        let Order { ticket, mut owed, platform, used, waiter, is_stopped } = order;
        let companion = owed.companion.clone();
        let known = channel.context.memberships.companion(&channel.key.channel, &companion);
        let (name, picture) = known.map_or_else(|| (companion.as_str().into(), None), |known| (known.name, known.picture));
        let name = owed.name.get_or_insert(name).clone();
        let (stop, stopped) = watch::channel(is_stopped);
        let membership = channel.context.memberships.get(&channel.key.channel);
        let is_external = membership.as_ref().is_some_and(|membership| membership.is_external(&companion));
        let public = || channel.context.pictures.public_url(&companion, &channel.context.settings.server);
        let picture = picture.or_else(|| public().filter(|_| !is_external));
        let arguments = Arguments {
            channel_key: channel.key.clone(),
            since: membership.map_or(Moment::ZERO, |membership| membership.created_at),
            ticket,
            owed,
            on_record: conversation.window().entries().filter_map(|entry| entry.message.id.clone()).collect(),
            name,
            picture,
            used,
            platform,
            stop: stopped,
            delivery_lock: self.delivery_lock.clone(),
            channel: channel.actor.clone(),
            context: ActorContext::clone(&channel.context),
        };
        let Some(actor) = channel.start(Delivery, arguments, "a statement could not be sent") else { return false };
        let running = RunningDelivery { companion, ticket, began: channel.machine_time(), stop, waiter };
        self.running.insert(actor.get_id(), running);
        true
    }

    /// Keeps the outbox record of a statement whose delivery a restart interrupted, until the delivery is started again.
    pub(super) fn keep_interrupted(&mut self, ticket: Ticket, owed: OutboxRecord) {
        self.interrupted = Some(Box::new((ticket, owed)));
    }

    /// The outbox record of this statement: that of its interrupted delivery, or a new one.
    pub(super) fn outbox_record(
        &mut self,
        floor: &OwedReply,
        text: Arc<str>,
        written: Written,
        notice: Option<NoticeRecord>,
    ) -> OutboxRecord {
        let interrupted = self.interrupted.take_if(|known| known.0 == floor.ticket).map(|known| known.1);
        interrupted.unwrap_or_else(|| {
            let owed = OutboxRecord::new(floor.companion.clone(), floor.trigger, floor.messages.clone(), floor.upto);
            OutboxRecord { text: Some(text), written, notice, ..owed }
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn contains(&self, actor: ActorId) -> bool {
        self.running.contains_key(&actor)
    }

    /// Whether this statement is being posted.
    pub(super) fn posts(&self, ticket: Ticket) -> bool {
        self.running.values().any(|delivery| delivery.ticket == ticket)
    }

    /// Stops a delivery. It sends no further parts, but still reports the parts that it sent.
    pub(super) fn stop(&self, ticket: Ticket) {
        for delivery in self.running.values().filter(|delivery| delivery.ticket == ticket) {
            delivery.stop.send_replace(true);
        }
    }

    /// Removes and returns the delivery of this statement after it has ended.
    pub(super) fn remove_ended(&mut self, ticket: Ticket) -> Option<RunningDelivery> {
        let actor = self.running.iter().find(|(_, delivery)| delivery.ticket == ticket).map(|(actor, _)| *actor)?;
        self.running.remove(&actor)
    }

    /// Removes a stopped actor. Returns true if it did not report the outcome of its delivery.
    pub(super) fn remove_stopped(&mut self, actor: ActorId) -> bool {
        self.running.remove(&actor).is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delivery_is_stopped_by_its_ticket_and_taken_once() {
        let mut deliveries = Deliveries::default();
        let mut add = |pid, ticket| {
            let (stop, stopped) = watch::channel(false);
            let (companion, began) = ("aria".into(), Moment::ZERO);
            let delivery = RunningDelivery { companion, ticket: Ticket(ticket), began, stop, waiter: None };
            deliveries.running.insert(ActorId::Local(pid), delivery);
            stopped
        };
        let (first, second) = (add(1, 7), add(2, 8));

        deliveries.stop(Ticket(8));

        assert!(!*first.borrow() && *second.borrow());
        assert!(deliveries.posts(Ticket(8)) && deliveries.contains(ActorId::Local(2)));
        assert!(deliveries.remove_ended(Ticket(8)).is_some());
        assert!(deliveries.remove_ended(Ticket(8)).is_none());
        assert!(!deliveries.remove_stopped(ActorId::Local(2)), "this one has reported");
        assert!(deliveries.remove_stopped(ActorId::Local(1)));
        assert!(deliveries.is_empty());
    }

    #[test]
    fn an_interrupted_delivery_continues_with_its_own_record_once() {
        let mut deliveries = Deliveries::default();
        let floor = |ticket| {
            let floor =
                json!({ "companion": "aria", "ticket": ticket, "trigger": "lull", "messages": [], "upto": 3, "why": null });
            serde_json::from_value::<OwedReply>(floor).unwrap()
        };
        let interrupted = OutboxRecord {
            name: Some("Aria".into()),
            ..deliveries.outbox_record(&floor(7), "Hello".into(), Written::default(), None)
        };
        deliveries.keep_interrupted(Ticket(7), interrupted);

        let other = deliveries.outbox_record(&floor(8), "Hello".into(), Written::default(), None);
        let resumed = deliveries.outbox_record(&floor(7), "Hello".into(), Written::default(), None);
        let later = deliveries.outbox_record(&floor(7), "Hello".into(), Written::default(), None);

        assert_eq!([other, resumed, later].map(|record| record.name.is_some()), [false, true, false]);
    }
}
