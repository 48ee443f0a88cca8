//! Restores a channel from its record, and resumes the work that is open there.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, ActorRef};

use super::clock::ChannelClock;
use super::post_commit::PostCommitAction;
use super::{GuildBudgets, MissedEvents, Received, State};
use crate::actors::messages::channel::{CannotRestore, ChannelMessage};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Fence, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::planted::{Bug, is_planted};
use crate::actors::runtime::supervision::child::DependencyLost;
use crate::domain::budget::{DAY, Ledger, Use};
use crate::domain::conversation::Input;
use crate::domain::event::Recorded;
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader, Restored};
use crate::journal::record::Used;
use crate::ports::voice_call::CallEffect;
use crate::telemetry::instruments::NONE;

/// The pause between two attempts to reach a writer that is being restarted.
const WRITER_RETRY_PAUSE: Duration = Duration::from_millis(20);
/// How many attempts are made. Then the channel fails, and its supervisor decides.
const WRITER_ATTEMPTS: u32 = 500;

/// Reads the record in a task of its own, which sends the result to the channel.
pub(super) fn begin(
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
    budgets: Arc<GuildBudgets>,
    channel: ActorRef<ChannelMessage>,
) {
    tokio::spawn(async move {
        let restored = read(&channel_key, &context, &budgets).await;
        // A channel that has stopped needs no answer.
        let _ = channel.cast(ChannelMessage::Restored(restored.map(Box::new)));
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

/// Waits until everything that a predecessor sent to the writer is stored or lost.
async fn fence(channel_key: &ChannelKey, context: &ActorContext) -> Result<(), CannotRestore> {
    for _ in 0..WRITER_ATTEMPTS {
        if let Some(writer) = context.directory.find(&WriterKey()) {
            let (reply, fenced) = Reply::awaited();
            let fence = WriterMessage::Fence(Fence { channel_key: channel_key.clone(), reply });
            if writer.cast(fence).is_ok() {
                match fenced.await {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(WriteError::Unreadable(reason))) => return Err(CannotRestore::Damaged(reason.to_string())),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
        }
        tokio::time::sleep(WRITER_RETRY_PAUSE).await;
    }
    Err(CannotRestore::NotNow("the writer does not answer".into()))
}

async fn load_usage(
    channel_key: &ChannelKey,
    context: &ActorContext,
    budgets: &GuildBudgets,
    reader: Reader<'_>,
) -> Result<(), ReadError> {
    let from = context.clock.now() - DAY;
    let (policy, tokens_per_day) = (&context.settings.gate, context.settings.models.guild_tokens_per_day);
    let mut used = Ledger::default();
    reader
        .usage(&channel_key.guild, from, None, |record| {
            let counted = match &record.used {
                Used::Evaluation { companion } => Use::Evaluation { channel: &record.channel, companion },
                Used::Address { person, message } => Use::Address { person, channel: &record.channel, message: *message },
                Used::Statement { .. } => Use::Statement { channel: &record.channel },
                Used::Call { input_tokens, output_tokens, .. } => {
                    used.count_tokens(input_tokens.saturating_add(*output_tokens), record.at, tokens_per_day);
                    return ControlFlow::Continue(());
                }
                Used::Speech { .. } => return ControlFlow::Continue(()),
            };
            used.count(counted, record.at, policy);
            ControlFlow::Continue(())
        })
        .await?;
    // Replies that are owed count from now on, before their channels have read their records.
    for (channel, statements) in reader.owing(&channel_key.guild).await? {
        used.promise_statements(&channel, statements);
    }
    // All channels of the guild wait for this before they count usage of their own.
    *budgets.ledger() = used;
    Ok(())
}

impl State {
    /// Folds the record, resumes the work that is open there, and handles the events that arrived meanwhile.
    pub(super) fn restored(&mut self, restored: Restored) {
        self.in_flight.begin_restore();
        if self.in_flight.died_resuming() {
            self.dry_run_resume(&restored);
        }
        let Restored { snapshot, earlier, events, head, skip, owed } = restored;
        self.newest = head;
        if let Some(snapshot) = snapshot {
            self.conversation = snapshot.conversation;
        }
        self.since_snapshot = events.len() as u32;
        for recorded in &events {
            self.fold(recorded, skip.contains(&recorded.seq));
        }
        let took = self.restore_started.elapsed().as_secs_f64();
        self.context.recorder.instruments().channel_restore_duration.record(took, NONE);
        self.channel_clock = ChannelClock::new(self.conversation.clock());
        let open_actions = self.open_actions();
        for (ticket, _) in owed.iter().filter(|(_, record)| record.text.is_some()) {
            self.conversation.note_interrupted_posting(*ticket);
        }
        let now = self.context.clock.now();
        self.traces.resume(&self.conversation, &earlier, &events, now, &self.context);
        if self.in_flight.needs_prompt_search() {
            self.dry_run_prompts();
        }
        self.in_flight.begin_resume();
        let people = self.conversation.people_in_call().cloned().collect();
        // What a predecessor had played ends here, also if nobody owes it any more.
        self.context.voice_calls.carry_out(&self.channel_key.channel, CallEffect::Restarted { people });
        let outputs = self.with_world(|conversation, now, world| conversation.resume(now, world));
        self.carry_out(outputs);
        self.in_flight.end_resume();
        self.resume_deliveries(owed);
        for action in open_actions {
            match action {
                PostCommitAction::Reply { ticket } if is_planted(Bug::OwedIsGivenUp) => {
                    self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
                }
                action => self.run(action),
            }
        }
        let received = self.received_while_restoring.take().unwrap_or_default();
        self.taken_on(received.len());
        for received in received {
            if let Some(received) = self.without_dead_letters(received, &skip) {
                self.receive(received);
            }
        }
        self.ignore_opted_out();
        self.drop_expired(Seq::NONE);
        if std::mem::take(&mut self.must_check_for_missed) {
            self.check_for_missed_events();
        }
        self.reconcile();
        self.schedule_sleep();
        self.in_flight.end_restore();
    }

    /// What can be handled of something that arrived while the record was being read.
    fn without_dead_letters(&mut self, received: Received, skip: &BTreeSet<Seq>) -> Option<Received> {
        let mut is_skipped = |recorded: &Recorded| {
            self.newest = self.newest.max(recorded.seq);
            let is_skipped = skip.contains(&recorded.seq) || is_planted(Bug::LostWhileReading);
            if is_skipped {
                self.conversation.skip(recorded);
            }
            is_skipped
        };
        match received {
            Received::Event(recorded, _) if is_skipped(&recorded) => None,
            Received::HandOver(mut batch, committed) => {
                batch.retain(|recorded| !is_skipped(recorded));
                Some(Received::HandOver(batch, committed))
            }
            received => Some(received),
        }
    }

    /// Notes that these events are on record. If there is a gap before them, the writer died before it dispatched the missing events. Then
    /// the channel fails, and its successor reads them from the record.
    pub(super) fn note_journaled(&mut self, first: Seq, last: Seq) -> Result<(), MissedEvents> {
        let known = self.newest;
        if self.received_while_restoring.is_none() {
            if first > known.next() {
                return Err(MissedEvents { known, found: first });
            }
            self.newest = known.max(last);
        }
        Ok(())
    }

    /// Asks the writer for the last number of the journal. If the writer has stopped, the channel asks again once a new one has started.
    pub(super) fn check_for_missed_events(&mut self) {
        if self.received_while_restoring.is_some() {
            self.must_check_for_missed = true;
            return;
        }
        let channel = self.myself.clone();
        let reply = Reply::new(move |last| {
            if let Ok(last) = last {
                // A channel that has stopped reads the record when it restarts.
                let _ = channel.cast(ChannelMessage::Fenced(last));
            }
        });
        self.send(WriterMessage::Fence(Fence { channel_key: self.channel_key.clone(), reply }));
    }

    /// A channel whose record is damaged stops without failing, so that its guild does not fail with it. The guild suspends it. Events
    /// accepted for it stay stored.
    pub(super) fn not_restored(&self, error: CannotRestore) -> Result<(), ActorProcessingErr> {
        match error {
            CannotRestore::Damaged(reason) => {
                self.in_flight.mark_unreadable(reason);
                self.myself.stop(None);
                Ok(())
            }
            CannotRestore::NotNow(reason) => Err(DependencyLost(reason).into()),
        }
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

    /// The actions for questions and replies that were open before the restart. They run as if their events had just been committed.
    fn open_actions(&self) -> Vec<PostCommitAction> {
        let questions =
            self.conversation.open_questions().map(|(_, evaluation)| PostCommitAction::Ask { ticket: evaluation.ticket });
        let replies = self.conversation.owed_replies().map(|floor| PostCommitAction::Reply { ticket: floor.ticket });
        let rounds = self.conversation.rounds().iter().map(|round| PostCommitAction::ManageRound { message: round.message });
        let judgement = self.conversation.open_judgement().map(|(ticket, _)| PostCommitAction::Judge { ticket });
        let questions = questions.filter(|_| !is_planted(Bug::QuestionIsNotAskedAgain));
        rounds.chain(questions).chain(replies).chain(judgement).collect()
    }
}
