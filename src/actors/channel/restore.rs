//! Restores a channel from its journal, and resumes the open work.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use super::guild_budgets::GuildBudgets;
use super::post_commit::PostCommitAction;
use super::{State, members, voice};
use crate::actors::messages::channel::{CannotRestore, ChannelMessage, Received};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests;
use crate::domain::budget::{AHEAD, DAY, Ledger, Use};
use crate::domain::conversation::{Conversation, Output};
use crate::domain::event::{Recorded, split_handled};
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader, Restored};
use crate::journal::record::Used;
use crate::telemetry::instruments::NONE;

/// The pause between two attempts to reach a writer that is being restarted.
const WRITER_RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The number of attempts. After the last one the channel fails, and its supervisor decides.
const WRITER_ATTEMPTS: u32 = 500;

/// For at least this long, a platform posts only one of two messages with the same nonce.
const SAME_POST: Duration = Duration::from_secs(60);

/// The messages that arrive while the journal is being read.
pub(super) struct Restoring {
    pub(super) began: Instant,
    /// They are handled once the channel is restored.
    pub(super) received: Vec<Received>,
    /// Events below this number have expired. They are dropped from memory once the channel is restored.
    pub(super) expired_below: Seq,
    /// Whether to check for events that were committed and never dispatched, once the channel is restored.
    pub(super) must_check_for_missed: bool,
}

impl Default for Restoring {
    fn default() -> Self {
        Self { began: Instant::now(), received: Vec::new(), expired_below: Seq::NONE, must_check_for_missed: false }
    }
}

/// Reads the journal in a task of its own, which sends the result to the channel.
pub(super) fn begin(channel: ChannelContext, budgets: Arc<GuildBudgets>) {
    tokio::spawn(async move {
        let restored = read(&channel.key, &channel.context, &budgets).await;
        // A channel that has stopped needs no result.
        let _ = channel.actor.cast(ChannelMessage::Restored(restored.map(Box::new)));
    });
}

async fn read(channel_key: &ChannelKey, context: &ActorContext, budgets: &GuildBudgets) -> Result<Restored, CannotRestore> {
    let reader = Reader::new(&*context.store);
    if let Err(not_now) = fence(channel_key, context).await {
        // The writer cannot fence a journal that it cannot open. Reading the head gives the more precise error.
        reader.head(channel_key).await?;
        return Err(not_now);
    }
    budgets.is_loaded.get_or_try_init(|| load_usage(channel_key, context, budgets, reader)).await?;
    Ok(reader.restore(channel_key).await?)
}

/// Waits until all requests of a predecessor to the writer are stored or lost.
async fn fence(channel_key: &ChannelKey, context: &ActorContext) -> Result<(), CannotRestore> {
    for _ in 0..WRITER_ATTEMPTS {
        match requests::fence(context, channel_key).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Unreadable(reason)) => return Err(CannotRestore::Damaged(reason.to_string())),
            Err(_) => tokio::time::sleep(WRITER_RETRY_PAUSE).await,
        }
    }
    Err(CannotRestore::NotNow("the writer does not answer".into()))
}

async fn load_usage(
    channel_key: &ChannelKey,
    context: &ActorContext,
    budgets: &GuildBudgets,
    reader: Reader<'_>,
) -> Result<(), ReadError> {
    let now = context.clock.now();
    let in_force = context.in_force();
    let (policy, tokens_per_day) = (&in_force.gate, in_force.models.guild_tokens_per_day);
    let mut used = Ledger::default();
    used.set_clock(now);
    reader
        .usage(&channel_key.guild, now - DAY, Some(now + AHEAD), |record| {
            let counted = match &record.used {
                Used::Evaluation { companion } => Use::Evaluation { channel: &record.channel, companion },
                Used::Address { person, message } => Use::Address { person, channel: &record.channel, message: *message },
                Used::Statement { .. } => Use::Statement { channel: &record.channel, message: Seq::NONE },
                Used::Call { usage, .. } => {
                    used.count_tokens(usage.total(), record.at, tokens_per_day);
                    return ControlFlow::Continue(());
                }
                Used::ToolCall { .. } => {
                    used.count_call(record.at, in_force.tools.most_of_day());
                    return ControlFlow::Continue(());
                }
                Used::Speech { .. } | Used::Notice { .. } | Used::Help { .. } | Used::Refusal => return ControlFlow::Continue(()),
            };
            used.count(counted, record.at, policy);
            ControlFlow::Continue(())
        })
        .await?;
    // Owed replies count from now on, before their channels have read their journals.
    for (channel, statements) in reader.owing(&channel_key.guild).await? {
        used.promise_statements(&channel, statements);
    }
    // All channels of the guild wait for this before they count usage of their own.
    *budgets.ledger() = used;
    Ok(())
}

impl State {
    /// Folds the journal, resumes the open work, and handles the events that arrived in the meantime.
    pub(super) fn restored(&mut self, restored: Restored) {
        let Restoring { began, received, expired_below, must_check_for_missed } = self.restoring.take().unwrap_or_default();
        self.in_flight.begin_restore();
        let Restored { snapshot, earlier, events, head, skip, owed } = restored;
        if let Some(snapshot) = snapshot {
            self.conversation = snapshot.conversation;
        }
        self.journal.restore(head, events.len());
        let (handled, unhandled) = split_handled(&events);
        for recorded in handled {
            self.fold(recorded, skip.contains(&recorded.seq));
        }
        let took = began.elapsed().as_secs_f64();
        self.channel.context.recorder.instruments().channel_restore_duration.record(took, NONE);
        let being_posted = owed.iter().filter(|(_, record)| record.text.is_some()).map(|(ticket, _)| *ticket);
        let posted = unhandled.iter().filter_map(|recorded| recorded.event.reply());
        for ticket in being_posted.chain(posted) {
            self.conversation.note_interrupted_posting(ticket);
        }
        let now = self.channel.machine_time();
        self.traces.resume(&self.conversation, &earlier, handled, now, &self.channel.context);
        let mut caught_up = Vec::new();
        for recorded in unhandled {
            caught_up.extend(self.catch_up(recorded, skip.contains(&recorded.seq)));
            // The predecessor may have handled events without a consequence.
            if !caught_up.iter().any(|output| matches!(output, Output::Made(_))) {
                self.traces.forget_ended(&self.conversation, now);
            }
        }
        // The predecessor may not have posted what stands below its last statements.
        let is_there = |seq: Seq| !skip.contains(&seq) && self.conversation.window().get(seq).is_some();
        let recent = events.iter().filter(|recorded| recorded.at > now - SAME_POST && is_there(recorded.seq));
        recent.for_each(|recorded| self.below.post(recorded, &self.conversation, &self.channel));
        self.clock.set(self.conversation.clock());
        let open_actions = open_actions(&self.conversation);
        // All decisions that follow from the journal are made at once, so no single event is in flight. The event that killed the predecessor may
        // kill again.
        let suspect = Some(self.in_flight.suspect()).filter(|seq| !skip.contains(seq));
        self.in_flight.mark(suspect.unwrap_or(Seq::NONE));
        voice::end_playback_of_predecessor(&self.conversation, &self.channel);
        let outputs = self.with_world(|conversation, now, world| conversation.resume(now, caught_up, world));
        self.carry_out(outputs);
        self.in_flight.clear();
        owed.into_iter().for_each(|(ticket, owed)| self.resume_delivery(ticket, owed));
        open_actions.into_iter().for_each(|action| self.run(action));
        self.taken_on(received.len());
        for received in received {
            if let Some(received) = self.without_dead_letters(received, &skip) {
                self.receive(received);
            }
        }
        self.ignore_opted_out();
        self.drop_expired(expired_below);
        if must_check_for_missed {
            self.check_for_missed_events();
        }
        members::reconcile(&self.conversation, &self.channel);
        self.schedule_sleep_check();
        self.in_flight.end_restore();
    }

    /// A received message without its dead letters. None if it is a dead letter itself. A hand-over is returned even if it is empty now.
    fn without_dead_letters(&mut self, received: Received, skip: &BTreeSet<Seq>) -> Option<Received> {
        let mut is_skipped = |recorded: &Recorded| {
            self.journal.note_newest(recorded.seq);
            let is_skipped = skip.contains(&recorded.seq);
            if is_skipped {
                self.conversation.skip(recorded);
            }
            is_skipped
        };
        match received {
            Received::Inbound(recorded, _) if is_skipped(&recorded) => None,
            Received::HandedOver(mut batch, committed) => {
                batch.retain(|recorded| !is_skipped(recorded));
                Some(Received::HandedOver(batch, committed))
            }
            received => Some(received),
        }
    }

    /// Handles an event that was journaled before the restart, and that the predecessor had not handled.
    fn catch_up(&mut self, recorded: &Recorded, is_dead_letter: bool) -> Vec<Output> {
        if is_dead_letter {
            self.conversation.skip(recorded);
            return Vec::new();
        }
        self.in_flight.mark(recorded.seq);
        // The predecessor may have emitted the records of a statement.
        drop(self.traces.receive(recorded, recorded.at));
        let outputs = self.with_world(|conversation, _, world| conversation.catch_up(recorded.clone(), world));
        self.in_flight.clear();
        outputs
    }

    fn fold(&mut self, recorded: &Recorded, is_dead_letter: bool) {
        if is_dead_letter {
            self.conversation.skip(recorded);
            return;
        }
        self.in_flight.mark(recorded.seq);
        self.with_world(|conversation, _, world| conversation.fold(recorded, world));
        self.in_flight.clear();
    }
}

/// The actions for questions and replies that were open before the restart. They run as if their events had just been committed.
fn open_actions(conversation: &Conversation) -> Vec<PostCommitAction> {
    let tickets = conversation.open_questions().map(|(_, evaluation)| evaluation.ticket).collect();
    let questions = [PostCommitAction::Ask { tickets }];
    let replies = conversation.turns().owed_replies().map(|floor| PostCommitAction::Reply { ticket: floor.ticket });
    let rounds = conversation.turns().rounds().iter().map(|round| PostCommitAction::ManageRound { message: round.message });
    let judgement = conversation.turns().open_judgement().map(|(ticket, _)| PostCommitAction::Ask { tickets: vec![ticket] });
    let calls = conversation.calls().iter().filter(|call| call.is_running() || call.awaits_event());
    let calls = calls.map(|known| PostCommitAction::FollowCall { call: Some(known.called.call), reply: known.called.ticket });
    rounds.chain(questions).chain(replies).chain(judgement).chain(calls).collect()
}
