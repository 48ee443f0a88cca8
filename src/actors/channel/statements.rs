//! The course of a statement: a reply is owed, written, posted on the platform if the channel has one, and journaled.

use std::sync::Arc;

use ractor::{ActorId, ActorProcessingErr};
use tokio::time::Instant;

use super::deliveries::{Order, RunningDelivery};
use super::delivery;
use super::external_companions::{StatementWaiter, is_external};
use super::{Inconsistent, State, notices};
use crate::actors::erasure::deletion::finish_deletion;
use crate::actors::messages::channel::{ChannelMessage, Delivered};
use crate::actors::messages::models::Outcome;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{Accepted, Post, Replaces, Request as WriterRequest};
use crate::actors::runtime::directory::Sort;
use crate::domain::address::{self, Incoming};
use crate::domain::conversation::{Conversation, Input, Posting};
use crate::domain::event::{Disclosed, Event, Failure};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::{Author, Message, Modality, Role};
use crate::domain::notice::Owed;
use crate::domain::turn::OwedReply;
use crate::journal::record::{OutboxRecord, Used, Written};
use crate::ports::chat_platform::ChatPlatform;
use crate::ports::language_model::{Answer, Request};
use crate::settings::safety::Safety;
use crate::telemetry::instruments::platform_label;
use crate::telemetry::plain::Plain;

impl State {
    /// Starts the work on an owed reply: its companion writes it, or an external program does.
    pub(super) fn reply(&mut self, ticket: Ticket) {
        let Some(owed) = reply_to_write(ticket, &self.conversation) else { return };
        if self.conversation.awaits_calls(ticket) {
            // It starts once the calls of its earlier attempts have ended.
            return;
        }
        let error = if self.channel.is_unpostable() {
            // The channel became unpostable after the companion decided to speak. The platform would refuse the statement.
            delivery::UNPOSTABLE
        } else if is_external(&owed.companion, &self.conversation) {
            let floor = self.conversation.turns().floor().filter(|floor| floor.ticket == ticket);
            return floor.into_iter().for_each(|floor| self.external.select(floor));
        } else if self.channel.is_absent(&owed.companion) {
            "absent"
        } else if self.replies.start(owed, &self.conversation, &self.channel) {
            return;
        } else {
            "unreachable"
        };
        self.fail_reply(ticket, error);
    }

    pub(super) fn fail_reply(&mut self, ticket: Ticket, error: &str) {
        self.step(Input::ReplyFailed { ticket, error: error.into() });
    }

    /// Handles the stop of a reply's actor. A stop without a result counts as a crash.
    pub(super) fn reply_stopped(&mut self, actor: ActorId) {
        if let Some(ticket) = self.replies.take_stopped(actor)
            && self.lost(ticket)
        {
            self.channel.record_restart(Sort::Reply, "it died before the statement was written");
        }
    }

    /// Handles the text of a reply, or its error.
    pub(super) fn reply_ended(
        &mut self,
        ticket: Ticket,
        text: Result<Arc<str>, Failure>,
        written: Written,
        asked: &Request,
        outcome: &Outcome,
    ) {
        self.replies.end(ticket);
        let Some(owed) = self.conversation.turns().owed_reply(ticket) else {
            self.record_unclaimed_usage(asked, outcome);
            return;
        };
        let truncated = outcome.result.as_ref().is_ok_and(Answer::is_cut);
        let (recalled, files_of, lore) = (asked.recalled.clone(), asked.files_of.clone(), asked.lore.clone());
        self.replies.note_written(ticket, Written { truncated, recalled, files_of, lore, ..written });
        self.traces.called(&[ticket], asked, outcome, &self.channel);
        self.spending.count_tokens(outcome, &self.channel);
        match text {
            Ok(text) => {
                self.spending.note_reply(ticket, owed.companion.clone(), asked, outcome, &self.channel);
                self.step(Input::Written { ticket, text });
            }
            Err(error) => {
                self.spending.note_question(asked, outcome, &self.channel);
                self.step(Input::ReplyFailed { ticket, error });
            }
        }
    }

    /// Posts a statement: on the platform first, if the channel has one.
    pub(super) fn post(&mut self, posting: Posting) {
        let Posting { companion, ticket, text, spoken } = posting;
        let written = self.replies.take_written(ticket);
        let owed = || notices::owed(ticket, written.told, &self.conversation, &self.channel);
        // Spoken words are not sent to the platform. Only the rest is, or else the notice, which a statement that was cut leaves to the next one.
        let to_post = match &spoken {
            Some(spoken) if spoken.cut.is_none() => spoken.rest.clone().or_else(|| owed().map(|_| "".into())),
            Some(_) => None,
            None => Some(text.clone()),
        };
        if let Some((platform, text)) = self.channel.platform().zip(to_post) {
            self.deliver(ticket, text, written, platform);
            return;
        }
        let owed = self.channel.platform().is_none().then(owed).flatten();
        let modality = if spoken.is_some() { Modality::Voice } else { Modality::Text };
        let cut = spoken.and_then(|spoken| spoken.cut);
        let (used, waiter) = (self.spending.take_of_reply(ticket), self.external.take_waiter(ticket));
        let replaces = written.again.map(|statement| Replaces { statement, in_place: false });
        let message = Message { modality, cut, ..self.statement(ticket, &companion, text, written) };
        let disclosed = owed.map(|owed| self.disclosed(owed, ticket, None));
        self.journal_statement(ticket, message, disclosed, Vec::new(), replaces, used, waiter);
    }

    /// Builds the disclosure that this part of the reply carries.
    fn disclosed(&self, owed: Owed, ticket: Ticket, part: Option<Arc<str>>) -> Disclosed {
        let Safety { operator, privacy, .. } = self.channel.context.in_force().safety.clone();
        Disclosed { owed, ticket, part, operator, privacy }
    }

    /// Starts posting a statement on a platform.
    fn deliver(&mut self, ticket: Ticket, text: Arc<str>, written: Written, platform: Arc<dyn ChatPlatform>) {
        let waiter = self.external.take_waiter(ticket);
        let Some(floor) = self.conversation.turns().floor().filter(|floor| floor.ticket == ticket) else { return };
        let notice = notices::owed(ticket, written.told, &self.conversation, &self.channel)
            .map(|owed| notices::record(owed, &self.channel));
        let owed = self.deliveries.outbox_record(floor, text, written, notice);
        let used = self.spending.take_of_reply(ticket);
        self.start_delivery(Order { ticket, owed, platform, used, waiter, is_stopped: false });
    }

    fn start_delivery(&mut self, order: Order) {
        let ticket = order.ticket;
        if !self.deliveries.start(order, &self.conversation, &self.channel) {
            self.delivery_failed(ticket, delivery::UNDELIVERED);
        }
    }

    /// Resumes a delivery that a restart interrupted. If the reply was dropped in the meantime, no further part is sent, and its posted parts are
    /// journaled.
    pub(super) fn resume_delivery(&mut self, ticket: Ticket, owed: OutboxRecord) {
        let is_owed = self.is_owed(ticket);
        match (owed.text.clone(), self.channel.platform()) {
            (Some(text), Some(platform)) if is_owed => {
                self.deliveries.keep_interrupted(ticket, owed);
                self.traces.written(ticket, self.channel.machine_time());
                let written = self.replies.take_written(ticket);
                self.deliver(ticket, text, written, platform);
            }
            (Some(_), Some(platform)) => {
                let used = self.spending.take_of_reply(ticket);
                self.start_delivery(Order { ticket, owed, platform, used, waiter: None, is_stopped: true });
            }
            (None, _) if !is_owed => self.remove_from_outbox(ticket),
            (None, _) | (Some(_), None) => {}
        }
    }

    /// Handles the end of a delivery: the statement was posted in full, in part or not at all.
    pub(super) fn delivered(&mut self, ticket: Ticket, delivered: Delivered) {
        let Some(RunningDelivery { companion, began, waiter, .. }) = self.deliveries.remove_ended(ticket) else { return };
        self.traces.sent(ticket, began, self.channel.machine_time());
        let Delivered { text, ids, is_unconfirmed, error, disclosed, mut written } = delivered;
        // The words that were already spoken come first.
        let heard = self.conversation.turns().owed_reply(ticket).map(|floor| floor.heard()).unwrap_or_default();
        let text = if heard.is_empty() { text } else { format!("{} {}", heard.trim(), text.trim()).trim().into() };
        if text.is_empty() {
            self.delivery_failed(ticket, error.unwrap_or("empty"));
            return;
        }
        if is_unconfirmed {
            let (channel, companion) = (self.channel.shown(), Plain(companion.as_str()));
            tracing::warn!(%channel, %companion, "a statement was sent without a confirmation; it counts as posted");
        }
        let modality = if heard.is_empty() { Modality::Text } else { Modality::Voice };
        let used = self.spending.take_of_reply(ticket);
        // Perhaps only a part was posted.
        if let Some(versions) = &mut written.versions {
            versions.texts.iter_mut().skip(versions.standing).take(1).for_each(|standing| *standing = text.clone());
        }
        let in_place = ids.iter().any(|id| written.former.contains(id));
        let replaces = written.again.map(|statement| Replaces { statement, in_place });
        let message = Message { modality, ..self.statement(ticket, &companion, text, written) };
        // A person may have been forgotten during the delivery.
        let answered = notices::answered(ticket, &self.conversation);
        let disclosed = disclosed.and_then(|(mut owed, part)| {
            owed.people.retain(|person| answered.contains(person));
            (!owed.people.is_empty()).then(|| self.disclosed(owed, ticket, Some(part)))
        });
        self.journal_statement(ticket, message, disclosed, ids, replaces, used, waiter);
    }

    /// Journals a statement with the ids of its parts on the platform. In a channel without a platform, journaling is posting. `used` is the usage of
    /// the calls that wrote it, unless that was recorded with its delivery. `waiter` waits for its number. `disclosed` is the notice that it carries.
    #[expect(clippy::too_many_arguments, reason = "each is one part of what is journaled")]
    fn journal_statement(
        &self,
        ticket: Ticket,
        message: Message,
        disclosed: Option<Disclosed>,
        ids: Vec<Arc<str>>,
        replaces: Option<Replaces>,
        used: Vec<Used>,
        waiter: Option<StatementWaiter>,
    ) {
        let calls = self.conversation.calls_for_statement(ticket);
        let message = Message { id: ids.first().cloned(), calls, ..message };
        let companion = CompanionId::from(&*message.from.id);
        let usage = [Used::Statement { companion }].into_iter().chain(used).collect();
        // A statement for a platform was sent and counted before, even if its ids are unknown. Here it is only journaled.
        let sent = self.channel.platform().is_none().then(Instant::now);
        let platform = platform_label(self.channel.context.platforms.name(&self.channel.key.channel));
        let instruments = self.channel.context.recorder.instruments().clone();
        let floor = self.conversation.turns().floor().filter(|floor| floor.ticket == ticket);
        let here = self.channel.clone();
        self.channel.send_to_writer(WriterRequest::Post(Post {
            channel_key: self.channel.key.clone(),
            at: None,
            event: Event::Said { message, reply_to: None, reply: Some(ticket), said_at: None },
            disclosed: disclosed.map(|disclosed| Box::new(Event::Disclosed(Box::new(disclosed)))),
            turn: floor.and_then(|floor| floor.selection.turn),
            ids,
            replaces,
            ticket,
            usage,
            reply: self.channel.reply(move |result| {
                if let (Some(Replaces { statement, .. }), Ok(_)) = (replaces, &result) {
                    // The record of the deletion is in the same batch.
                    tokio::spawn(async move { finish_deletion(&here.context, &here.key, statement).await });
                }
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

    /// Ends a reply that was not posted at all.
    fn delivery_failed(&mut self, ticket: Ticket, error: &str) {
        if self.is_owed(ticket) {
            self.fail_reply(ticket, error);
        } else {
            self.remove_from_outbox(ticket);
        }
    }

    /// Handles the stop of a delivery's actor. If it did not report, the parts that it sent are unknown, so the channel restarts from its journal.
    pub(super) fn delivery_stopped(&mut self, actor: ActorId) -> Result<(), ActorProcessingErr> {
        match self.deliveries.remove_stopped(actor) {
            true => Err(Inconsistent("a delivery died before it reported").into()),
            false => Ok(()),
        }
    }

    /// Removes replies that are no longer owed from the outbox. A running delivery removes its own reply.
    pub(super) fn remove_dropped_replies(&mut self, owed_before: Vec<Ticket>) {
        for ticket in owed_before {
            if !self.is_owed(ticket) && !self.deliveries.posts(ticket) {
                self.remove_from_outbox(ticket);
            }
        }
    }

    /// A companion's statement with this text.
    fn statement(&self, ticket: Ticket, companion: &CompanionId, text: Arc<str>, written: Written) -> Message {
        let memberships = &self.channel.context.memberships;
        let known = memberships.companion(&self.channel.key.channel, companion);
        let name = known.map_or_else(|| companion.as_str().into(), |known| known.name);
        let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
        let is_companion = |id: &str| memberships.is_in_guild(&self.channel.key.guild, id);
        let names = memberships.names(&self.channel.key.guild);
        let incoming = Incoming::new(&from, &text);
        let address = names.map(|names| address::resolve(&names, is_companion, &incoming)).unwrap_or_default();
        // The former answers to a message that was deleted meanwhile are erased.
        let answers_all = self.conversation.turns().owed_reply(ticket).is_some_and(|owed| !owed.is_spoilt);
        let Written { truncated, recalled, files_of, lore, versions, edited, .. } = written;
        let versions = versions.filter(|_| answers_all);
        Message { address, truncated, recalled, files_of, lore, versions, edited, ..Message::new(from, text) }
    }

    fn is_owed(&self, ticket: Ticket) -> bool {
        self.conversation.turns().owed_reply(ticket).is_some()
    }

    fn remove_from_outbox(&mut self, ticket: Ticket) {
        self.journal.remove_from_outbox(ticket, &self.conversation, &self.channel);
    }
}

/// The reply with this ticket, if it is owed and its text has not arrived.
pub(super) fn reply_to_write(ticket: Ticket, conversation: &Conversation) -> Option<&OwedReply> {
    conversation.turns().owed_reply(ticket).filter(|floor| floor.is_being_made())
}
