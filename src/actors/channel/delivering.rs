//! Statements on their way to a platform that is not ours.

use std::sync::Arc;

use ractor::{ActorId, ActorProcessingErr, ActorRuntime};
use tokio::sync::watch;

use super::State;
use super::rounds::Words;
use crate::actors::channel::delivery::{Arguments, Delivery};
use crate::actors::messages::channel::{ChannelMessage, Delivered};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Accepted, OutboxWrite, Record, WriterMessage};
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Input;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::moment::Moment;
use crate::journal::record::OutboxRecord;
use crate::ports::chat_platform::ChatPlatform;
use crate::telemetry::plain::Plain;

/// A statement on its way.
pub(super) struct Underway {
    companion: CompanionId,
    ticket: Ticket,
    began: Moment,
    stop: watch::Sender<bool>,
    /// Whoever waits for its number.
    words: Option<Words>,
}

impl State {
    /// Has a statement posted on a platform.
    pub(super) fn deliver(&mut self, ticket: Ticket, text: Arc<str>, platform: Arc<dyn ChatPlatform>) {
        let words = self.awaited_words(ticket);
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else { return };
        let owed = self.owed_before.take_if(|known| known.0 == ticket).map(|known| known.1);
        let owed = owed.unwrap_or_else(|| OutboxRecord {
            companion: floor.companion.clone(),
            trigger: floor.trigger,
            messages: floor.messages.clone(),
            upto: floor.upto,
            text: Some(text),
            parts: Vec::new(),
            name: None,
        });
        self.send_off(ticket, owed, platform, words, false);
    }

    /// Goes on with what was on its way before a restart. What nobody wants any more, because it was dropped meanwhile, sends nothing
    /// further; what was posted of it is put on record.
    pub(super) fn deliver_on(&mut self, owed: Vec<(Ticket, OutboxRecord)>) {
        let platform = self.context.platforms.of(&self.channel_key.channel).cloned();
        let owes = self.conversation.floor().map(|floor| floor.ticket);
        for (ticket, owed) in owed {
            match (owed.text.clone(), &platform) {
                (Some(text), Some(_)) if owes == Some(ticket) => {
                    self.owed_before = Some(Box::new((ticket, owed)));
                    self.step(Input::Written { ticket, text });
                }
                (Some(_), Some(platform)) => self.send_off(ticket, owed, platform.clone(), None, true),
                (None, _) if owes != Some(ticket) => self.forget_owed(ticket),
                (None, _) | (Some(_), None) => {}
            }
        }
    }

    /// Takes a reply off the record that was owed before, unless it is owed still. One on its way to a platform ends by itself.
    pub(super) fn forget_dropped(&mut self, owed: Option<Ticket>) {
        let owes = self.conversation.floor().map(|floor| floor.ticket);
        if let Some(ticket) = owed.filter(|_| owes != owed)
            && self.deliveries.values().all(|underway| underway.ticket != ticket)
        {
            self.forget_owed(ticket);
        }
    }

    /// A reply that nobody owes any more is taken off the record.
    fn forget_owed(&mut self, ticket: Ticket) {
        self.batches += 1;
        let (batch, channel) = (self.batches, self.myself.clone());
        self.owed.push_back((batch, Vec::new()));
        self.send(WriterMessage::Record(Record {
            channel_key: self.channel_key.clone(),
            at: self.conversation.clock(),
            made: Vec::new(),
            quiet: None,
            snapshot: None,
            outbox: vec![OutboxWrite::Remove(ticket)],
            usage: Vec::new(),
            reply: Reply::new(move |result| {
                // A channel that is gone reads it from the record.
                let _ = channel.cast(ChannelMessage::Recorded { batch, result });
            }),
        }));
    }

    fn send_off(
        &mut self,
        ticket: Ticket,
        mut owed: OutboxRecord,
        platform: Arc<dyn ChatPlatform>,
        words: Option<Words>,
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
            used: self.traces.take_spent(ticket),
            platform,
            stop: stopped,
            lane: self.lane.clone(),
            channel: self.myself.clone(),
            context: ActorContext::clone(&self.context),
        };
        match ActorRuntime::spawn_linked_instant(None, Delivery, arguments, self.myself.get_cell()) {
            Ok((actor, _)) => {
                self.deliveries
                    .insert(actor.get_id(), Underway { companion, ticket, began: self.context.clock.now(), stop, words });
            }
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a statement could not be sent");
                self.not_delivered(ticket, "unreachable");
            }
        }
    }

    /// Nothing of it was posted.
    fn not_delivered(&mut self, ticket: Ticket, error: &str) {
        if self.conversation.floor().is_some_and(|floor| floor.ticket == ticket) {
            self.step(Input::ReplyFailed { ticket, error: error.into() });
        } else {
            self.forget_owed(ticket);
        }
    }

    /// What has not left yet does not leave any more; what came of the rest is told as ever.
    pub(super) fn stop_delivery(&self, ticket: Ticket) {
        for underway in self.deliveries.values().filter(|underway| underway.ticket == ticket) {
            underway.stop.send_replace(true);
        }
    }

    /// A statement is posted, or as much of it as could be.
    pub(super) fn delivered(&mut self, ticket: Ticket, delivered: Delivered) {
        let Some(actor) = self.deliveries.iter().find(|(_, underway)| underway.ticket == ticket).map(|(actor, _)| *actor) else {
            return;
        };
        let Some(Underway { companion, began, words, .. }) = self.deliveries.remove(&actor) else { return };
        self.traces.sent(ticket, began, self.context.clock.now());
        let Delivered { text, ids, is_unconfirmed, error } = delivered;
        if text.is_empty() {
            self.not_delivered(ticket, error.unwrap_or("empty"));
            return;
        }
        if is_unconfirmed {
            tracing::warn!(channel = %Plain(self.channel_key.channel.as_str()), companion = %Plain(companion.as_str()), "nobody knows whether a statement was posted; it counts as posted");
        }
        self.post(&companion, ticket, text, ids, words);
    }

    /// A statement is on record, unless one of its messages is there as something else: then it begins anew from what is on record, and
    /// finds that out.
    pub(super) fn posted(&self, accepted: Accepted) -> Result<(), ActorProcessingErr> {
        match accepted.is_new {
            true => Ok(()),
            false => Err("a statement was posted as a message that is on record already".into()),
        }
    }

    /// A delivery that died without a word: nobody knows what it did, so the channel begins anew from what is on record.
    pub(super) fn delivery_is_gone(&mut self, actor: ActorId) -> Result<(), ActorProcessingErr> {
        match self.deliveries.remove(&actor) {
            Some(_) => Err("a delivery died on its way".into()),
            None => Ok(()),
        }
    }
}
