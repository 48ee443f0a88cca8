//! Reads what is on record of a channel, and goes on from there.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, ActorRef};

use super::clock::ChannelClock;
use super::post_commit::PostCommitAction;
use super::{GuildBudgets, Missed, State};
use crate::actors::messages::channel::{CannotRestore, ChannelMessage};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Fence, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::supervision::child::DependencyLost;
use crate::domain::budget::{DAY, Ledger, Use};
use crate::domain::event::Recorded;
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader, Restored};
use crate::journal::record::Used;
use crate::telemetry::instruments::NONE;

/// How long it is waited for a writer that is being restarted, at a time.
const SCRIBE_PATIENCE: Duration = Duration::from_millis(20);
/// How often. Then the channel fails, and its supervisor decides.
const SCRIBE_TRIES: u32 = 500;

/// Reads the record in a task of its own; the channel is told.
pub(super) fn begin(
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
    budgets: Arc<GuildBudgets>,
    channel: ActorRef<ChannelMessage>,
) {
    tokio::spawn(async move {
        let restored = read(&channel_key, &context, &budgets).await;
        // A channel that is gone needs no answer.
        let _ = channel.cast(ChannelMessage::Restored(restored.map(Box::new)));
    });
}

async fn read(channel_key: &ChannelKey, context: &ActorContext, budgets: &GuildBudgets) -> Result<Restored, CannotRestore> {
    let reader = Reader::new(&*context.store);
    if let Err(not_now) = fence(channel_key, context).await {
        // The writer answers for no journal that it cannot open. What is wrong with this one says more.
        reader.head(channel_key).await?;
        return Err(not_now);
    }
    budgets.is_open.get_or_try_init(|| open(channel_key, context, budgets, reader)).await?;
    Ok(reader.restore(channel_key).await?)
}

/// Waits until everything that a predecessor left on its way is stored, or lost.
async fn fence(channel_key: &ChannelKey, context: &ActorContext) -> Result<(), CannotRestore> {
    for _ in 0..SCRIBE_TRIES {
        if let Some(writer) = context.directory.find(&WriterKey()) {
            let (reply, settled) = Reply::awaited();
            let fence = WriterMessage::Fence(Fence { channel_key: channel_key.clone(), reply });
            if writer.cast(fence).is_ok() {
                match settled.await {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(WriteError::Unreadable(why))) => return Err(CannotRestore::Damaged(why.to_string())),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
        }
        tokio::time::sleep(SCRIBE_PATIENCE).await;
    }
    Err(CannotRestore::NotNow("the writer does not answer".into()))
}

async fn open(
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
            };
            used.count(counted, record.at, policy);
            ControlFlow::Continue(())
        })
        .await?;
    // What is owed is promised before its channel has read of it.
    for channel in reader.owing(&channel_key.guild).await? {
        used.promise_statement(&channel, true);
    }
    // All channels of the guild wait for this before they count anything of their own.
    *budgets.ledger() = used;
    Ok(())
}

impl State {
    /// Folds the record, goes on with what it leaves open, and takes in what was heard meanwhile.
    pub(super) fn restored(&mut self, restored: Restored) {
        self.in_flight.begin_restore();
        if self.in_flight.died_resuming() {
            self.try_one_by_one(&restored);
        }
        let Restored { snapshot, earlier, events, head, skip, asked, owed } = restored;
        self.newest = head;
        self.round_asked = asked;
        if let Some(snapshot) = snapshot {
            self.conversation = snapshot.conversation;
        }
        self.since_snapshot = events.len() as u32;
        for recorded in &events {
            self.fold(recorded, skip.contains(&recorded.seq));
        }
        let took = self.began.elapsed().as_secs_f64();
        self.context.recorder.instruments().channel_restore_duration.record(took, NONE);
        self.channel_clock = ChannelClock::new(self.conversation.clock());
        let reopened = self.reopened();
        let now = self.context.clock.now();
        self.traces.resume(&self.conversation, &earlier, &events, now, &self.context);
        if self.in_flight.needs_prompt_search() {
            self.try_words();
        }
        self.in_flight.begin_resume();
        let outputs = self.with_world(|conversation, now, world| conversation.resume(now, world));
        self.carry_out(outputs);
        self.in_flight.end_resume();
        self.deliver_on(owed);
        for action in reopened {
            self.run(action);
        }
        let meanwhile = self.heard_meanwhile.take().unwrap_or_default();
        self.taken_on(meanwhile.len());
        for (recorded, committed) in meanwhile {
            self.newest = self.newest.max(recorded.seq);
            if skip.contains(&recorded.seq) {
                self.conversation.pass_over(&recorded);
            } else {
                self.heard(recorded, committed);
            }
        }
        self.let_go(Seq::NONE);
        if std::mem::take(&mut self.is_to_look_again) {
            self.look_again();
        }
        self.reconcile();
        self.watch_for_doze();
        self.in_flight.end_restore();
    }

    /// These events are on record, and everything before them was handed over or was made here. Otherwise the writer died in between,
    /// and what it left is read from the record.
    pub(super) fn follow(&mut self, first: Seq, last: Seq) -> Result<(), Missed> {
        let known = self.newest;
        if self.heard_meanwhile.is_none() {
            if first > known.next() {
                return Err(Missed { known, found: first });
            }
            self.newest = known.max(last);
        }
        Ok(())
    }

    /// Asks the writer where the record stands. One that is gone is replaced by one after which it is asked again.
    pub(super) fn look_again(&mut self) {
        if self.heard_meanwhile.is_some() {
            self.is_to_look_again = true;
            return;
        }
        let channel = self.myself.clone();
        let reply = Reply::new(move |last| {
            if let Ok(last) = last {
                // A channel that is gone reads the record when it is back.
                let _ = channel.cast(ChannelMessage::Fenced(last));
            }
        });
        self.send(WriterMessage::Fence(Fence { channel_key: self.channel_key.clone(), reply }));
    }

    /// A channel whose record is damaged stays away, so that it does not take its guild along, which leaves it alone; what is accepted for it
    /// is kept.
    pub(super) fn not_restored(&self, error: CannotRestore) -> Result<(), ActorProcessingErr> {
        match error {
            CannotRestore::Damaged(why) => {
                self.in_flight.mark_unreadable(why);
                self.myself.stop(None);
                Ok(())
            }
            CannotRestore::NotNow(why) => Err(DependencyLost(why).into()),
        }
    }

    fn fold(&mut self, recorded: &Recorded, is_dead_letter: bool) {
        if is_dead_letter {
            self.conversation.pass_over(recorded);
            return;
        }
        self.in_flight.mark(recorded.seq);
        self.with_world(|conversation, _, world| conversation.fold(recorded, world));
        self.in_flight.clear();
    }

    /// What was asked or owed before, to be asked and made again: as if it had just been put on record.
    fn reopened(&self) -> Vec<PostCommitAction> {
        let questions =
            self.conversation.open_questions().map(|(_, evaluation)| PostCommitAction::Ask { ticket: evaluation.ticket });
        let reply = self.conversation.floor().map(|floor| PostCommitAction::Reply { ticket: floor.ticket });
        let round = self.conversation.round().map(|round| PostCommitAction::HoldRound { message: round.message });
        let judgement = self.conversation.open_judgement().map(|(ticket, _)| PostCommitAction::Judge { ticket });
        round.into_iter().chain(questions).chain(reply).chain(judgement).collect()
    }
}
