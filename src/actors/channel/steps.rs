//! Passes a channel's messages to its conversation, and the events that result to the writer.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, RpcReplyPort};

use super::post_commit::PostCommitAction;
use super::rounds::StatementWaiter;
use super::summarising::summary_limits;
use super::traces::TraceRecord;
use super::{Alarm, Received, SLEEP_AFTER, State};
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{Accepted, OutboxWrite, Post, Quiet, Record, WriterMessage};
use crate::actors::runtime::actor_keys::{GuildKey, SwitchboardKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::planted::{Bug, is_planted};
use crate::domain::address::{self, Incoming};
use crate::domain::conversation::{Aloud, Conversation, Input, Output, Posting, Rules, World};
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket, TurnId};
use crate::domain::message::{Author, Cut, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{OutboxRecord, Used};
use crate::ports::language_model::{ModelRole, Request};
use crate::telemetry::instruments::platform_label;
use crate::telemetry::plain::Plain;

/// Events between two snapshots. About as many have to be folded after a restart, at most.
const EVENTS_PER_SNAPSHOT: u32 = 128;

/// The longest time that one alarm is set for. An alarm that rings too early is set again.
const MAX_ALARM: Duration = Duration::from_secs(24 * 60 * 60);

impl State {
    /// Runs one step of the conversation and carries out its outputs.
    pub(super) fn step(&mut self, input: Input) {
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, input, world));
        self.carry_out(outputs);
    }

    /// Handles what was dispatched to the channel. If the channel is not restored, it waits until it is.
    pub(super) fn take(&mut self, received: Received) {
        match &mut self.received_while_restoring {
            Some(waiting) => waiting.push(received),
            None => {
                self.receive(received);
                self.taken_on(1);
            }
        }
    }

    pub(super) fn receive(&mut self, received: Received) {
        match received {
            Received::Event(recorded, committed) => self.receive_event(recorded, committed),
            Received::HandOver(batch, committed) => self.receive_hand_over(batch, committed),
            Received::Voice(input) => self.hear(input),
            Received::ModelsReplaced => {
                // The models of before may fail, or take long.
                let asked: Vec<_> = self.asked_companions.keys().copied().collect();
                asked.into_iter().for_each(|ticket| self.cancel_and_ask_again(ticket));
                self.step(Input::ModelsReplaced);
            }
        }
    }

    /// Notes that this many inbound events are being handled.
    pub(super) fn note_received(&mut self, events: usize) {
        self.is_pending = true;
        self.since_snapshot += events as u32;
        self.last_received = tokio::time::Instant::now();
    }

    fn receive_event(&mut self, recorded: Box<Recorded>, committed: Moment) {
        self.note_received(1);
        self.in_flight.mark(recorded.seq);
        for record in self.traces.receive(&recorded, committed) {
            record.emit(&self.channel_key, &self.context);
        }
        let is_cleared = matches!(recorded.event, Event::Cleared);
        let is_said = matches!(recorded.event, Event::Said { .. });
        let is_of_call = matches!(recorded.event, Event::VoiceJoined { .. } | Event::Segment(_));
        let owed: Vec<_> = self.conversation.owed_replies().map(|floor| floor.ticket).filter(|_| !is_said).collect();
        self.step(Input::Inbound(recorded));
        self.remove_dropped_replies(owed);
        self.in_flight.clear();
        // Rounds that were dropped by clearing the channel have no closing event that would stop their manager.
        if self.conversation.rounds().is_empty() && is_cleared {
            self.stop_manager();
        }
        if is_of_call {
            self.ignore_opted_out();
        }
    }

    /// Reports that this many dispatched events wait no longer.
    pub(super) fn taken_on(&self, count: usize) {
        if let Some(registration) = &self.registration {
            registration.taken_on(count);
        }
    }

    pub(super) fn wake(&mut self) -> Result<(), ActorProcessingErr> {
        // The alarm has rung. If it rang too early, it is set again below.
        self.alarm = None;
        self.give_up_overdue();
        let now = self.channel_clock.now(self.context.clock.now());
        if self.due_at().is_some_and(|at| at <= now) {
            self.step(Input::Woken);
        } else if self.sleep_at.is_some_and(|at| at <= now) {
            self.sleep()?;
        } else {
            self.arm();
        }
        Ok(())
    }

    pub(super) fn batch_committed(&mut self, batch: u64) {
        while self.post_commit_actions.front().is_some_and(|(number, _)| *number <= batch) {
            for action in self.post_commit_actions.pop_front().into_iter().flat_map(|(_, actions)| actions) {
                self.run(action);
            }
        }
    }

    pub(super) fn sentence_written(&mut self, ticket: Ticket, text: Arc<str>) {
        self.step(Input::SentenceWritten { ticket, text });
    }

    pub(super) fn reply_ended(&mut self, ticket: Ticket, text: Result<Arc<str>, Arc<str>>, asked: &Request, outcome: Outcome) {
        self.replies.retain(|_, (reply, _)| *reply != ticket);
        self.attempts.remove(&ticket);
        let Some(floor) = self.conversation.owed_reply(ticket) else {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        };
        let companion = floor.companion.clone();
        self.traces.called(ticket, asked, &outcome, &self.channel_key, &self.context);
        self.count_tokens(&outcome);
        match text {
            Ok(text) => {
                // Recorded together with the statement.
                if let Some(used) = self.used(Some(companion), asked.role, &asked.model, &outcome) {
                    self.traces.add_usage(ticket, used);
                }
                self.step(Input::Written { ticket, text });
            }
            Err(error) => {
                self.note_usage(asked, &outcome);
                self.step(Input::ReplyFailed { ticket, error });
            }
        }
    }

    pub(super) fn summarised(&mut self, upto: Seq, messages: u64, text: Option<Arc<str>>, outcome: Option<&Outcome>) {
        if let Some(outcome) = outcome {
            self.count_tokens(outcome);
            self.unrecorded_usage.extend(self.used(None, ModelRole::Side, &ModelRole::Side.into(), outcome));
        }
        self.step(Input::Summarised { upto, messages, text });
    }

    /// Drops expired events from memory, except those that work in progress needs. A channel that is not restored does so later.
    pub(super) fn drop_expired(&mut self, below: Seq) {
        self.expired_below = self.expired_below.max(below);
        if self.received_while_restoring.is_none() {
            let below = std::mem::take(&mut self.expired_below).min(self.conversation.needed_from());
            self.conversation.drop_below(below);
        }
    }

    pub(super) fn membership_changed(&mut self) {
        if self.received_while_restoring.is_none() {
            self.reconcile();
        }
    }

    /// Journals who joined, left, or was paused or unpaused, where the conversation differs from the memberships.
    pub(super) fn reconcile(&mut self) {
        // A change in progress journals its own events. The channel reconciles again when the change is done.
        let is_changing = self.context.memberships.is_changing(&self.channel_key.channel);
        let Some(membership) = self.context.memberships.get(&self.channel_key.channel).filter(|_| !is_changing) else { return };
        if self.context.memberships.outdated(&self.channel_key.channel).is_some() {
            self.follow_parent();
            return;
        }
        // A companion that is no longer configured could be asked, but its statements would never be posted.
        let present = self.context.memberships.present(&self.channel_key.channel);
        let mut events = Vec::new();
        for (companion, external) in &present {
            let paused = membership.is_paused(companion);
            let gate = self.conversation.gate(companion);
            if gate.is_none_or(|gate| gate.external != *external) {
                events.push(Event::Joined { companion: companion.clone(), external: *external });
            }
            if gate.is_some_and(|gate| gate.paused) != paused {
                events.push(Event::Paused { companion: Some(companion.clone()), paused });
            }
        }
        for view in self.conversation.companions().filter(|view| !present.contains_key(view.companion)) {
            events.push(Event::Left { companion: view.companion.clone() });
        }
        // Companions that leave go first, to make room.
        events.sort_by_key(|event| !matches!(event, Event::Left { .. }));
        if events.is_empty() {
            return;
        }
        let (inbound, channel_key, myself) =
            (Inbound::new(ActorContext::clone(&self.context)), self.channel_key.clone(), self.myself.clone());
        let change = self.context.memberships.begin_change(&channel_key.channel);
        tokio::spawn(async move {
            for event in events {
                if let Err(error) = inbound.accept(&channel_key, event, None).await {
                    tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "the channel's members could not be journaled");
                    return;
                }
            }
            drop(change);
            // Changes made meanwhile were skipped, so the channel reconciles again. A channel that has stopped does so when it restarts.
            let _ = myself.cast(ChannelMessage::MembershipChanged);
        });
    }

    /// Applies the membership changes of the parent channel to this thread: they are journaled and stored together, so that the next change
    /// is compared with the journaled members. `changes::update_thread` notifies the channel when it is done.
    fn follow_parent(&self) {
        let (context, thread) = (self.context.clone(), self.channel_key.channel.clone());
        tokio::spawn(async move {
            if let Err(error) = changes::update_thread(&context, &thread).await {
                tracing::warn!(channel = %Plain(thread.as_str()), %error, "the thread's members could not be journaled");
            }
        });
    }

    pub(super) fn look(&self, reply: RpcReplyPort<Box<Inspection>>) {
        if self.received_while_restoring.is_some() {
            // The channel is not restored. A caller without an answer reads the record itself.
            return;
        }
        let look = Inspection { conversation: self.conversation.clone(), since: self.traces.since() };
        // The caller may have stopped waiting.
        let _ = reply.send(Box::new(look));
    }

    /// Sets the next check whether the channel can sleep.
    pub(super) fn schedule_sleep(&mut self) {
        self.sleep_at = Some(self.channel_clock.now(self.context.clock.now()) + SLEEP_AFTER);
        self.arm();
    }

    /// Goes to sleep if nothing is in progress. Events that arrive meanwhile are still handled, or wake the channel again.
    fn sleep(&mut self) -> Result<(), ActorProcessingErr> {
        let is_quiet = self.last_received.elapsed() >= SLEEP_AFTER
            && self.post_commit_actions.is_empty()
            && self.replies.is_empty()
            && self.deliveries.is_empty();
        if !is_quiet || !self.conversation.is_at_rest() {
            self.schedule_sleep();
            return Ok(());
        }
        self.record(Vec::new(), Vec::new(), true, true);
        self.sleep_at = None;
        if let Some(switchboard) = self.context.directory.find(&SwitchboardKey()) {
            // A switchboard that is being restarted reads from the record when channels wake.
            let ChannelKey { guild, channel } = self.channel_key.clone();
            let _ = switchboard.cast(SwitchboardMessage::WakeAt(guild, channel, self.conversation.silence_at()));
        }
        self.registration = None;
        self.myself.drain()?;
        Ok(())
    }

    /// Starts a successor for the events that arrived while the channel fell asleep.
    pub(super) fn wake_successor(&mut self) {
        if self.registration.is_none()
            && !self.conversation.is_at_rest()
            && let Some(guild) = self.context.directory.find(&GuildKey(self.channel_key.guild.clone()))
        {
            // A guild that has stopped wakes all pending channels when it restarts.
            let _ = guild.cast(GuildMessage::Open(self.channel_key.channel.clone()));
        }
    }

    pub(super) fn with_world<T>(&mut self, run: impl FnOnce(&mut Conversation, Moment, &mut World<'_>) -> T) -> T {
        let is_unpostable = self.is_unpostable();
        let Self { context, conversation, channel_key, budgets, policies, language, channel_clock, .. } = self;
        let now = channel_clock.now(context.clock.now());
        let edition = context.memberships.edition();
        if policies.0 != edition {
            *policies = (edition, budgets.policies.shared(context.memberships.policies(&channel_key.channel)));
            *language = context.memberships.language(&channel_key.channel);
        }
        let mut ledger = budgets.ledger();
        let mut world = World {
            channel: &channel_key.channel,
            rules: Rules::of(&context.settings, language.as_deref()),
            policies: &policies.1,
            jitter: &mut || context.rng.jitter(),
            roll: &mut || Some(context.rng.fraction()),
            turn: &mut || TurnId(context.rng.id()),
            ledger: &mut ledger,
            summary: Some(summary_limits(&context.settings.prompt)),
            tokens_per_day: context.settings.models.guild_tokens_per_day,
            is_unpostable,
        };
        run(conversation, now, &mut world)
    }

    /// Whether the platform knows that it cannot post in this channel at the moment.
    pub(super) fn is_unpostable(&self) -> bool {
        self.context
            .platforms
            .of(&self.channel_key.channel)
            .is_some_and(|platform| platform.is_unpostable(&self.channel_key.channel))
    }

    /// Carries out the outputs of a step: sends the events to the writer and does the rest now.
    pub(super) fn carry_out(&mut self, outputs: Vec<Output>) {
        let (mut made, mut cancelled, mut postings) = (Vec::new(), Vec::new(), Vec::new());
        let mut hand_overs = Vec::new();
        for output in outputs {
            self.show_note(&output);
            match output {
                Output::Made(event) => {
                    self.log_used_up(&event.event);
                    made.push(*event);
                }
                Output::Cancel { ticket } => cancelled.push(ticket),
                Output::Post(posting) => {
                    self.traces.written(posting.ticket, self.context.clock.now());
                    postings.push(*posting);
                }
                Output::Summarise { after, upto } => self.summarise(after, upto),
                Output::Dropped { companion, ticket } => self.show_dropped(companion, ticket),
                Output::LullArmed { .. } | Output::LullCancelled { .. } => {}
                Output::HandOver(messages) => hand_overs.push(messages),
                Output::Voice(effect) => self.carry_out_in_call(*effect),
                Output::Aloud { ticket, aloud } => {
                    if aloud == Aloud::SaidAll {
                        self.traces.written(ticket, self.context.clock.now());
                    }
                    self.follow_reply(ticket, aloud);
                }
            }
        }
        // A silence that ends makes events in a channel that was at rest.
        self.is_pending |= !made.is_empty();
        let is_quiet = self.is_pending && self.conversation.is_at_rest();
        let records = self.traces.follow(&made, &self.conversation, &self.context);
        self.unrecorded_usage.extend(self.traces.take_unposted_usage());
        // What a reply may do waits for what was recorded before, also if nothing is recorded now.
        if !made.is_empty() || is_quiet || !self.calls_after_commit.is_empty() {
            self.record(made, records, is_quiet, false);
        } else {
            records.into_iter().for_each(|record| record.emit(&self.channel_key, &self.context));
        }
        hand_overs.into_iter().for_each(|messages| self.journal_hand_over(messages));
        // A late text is posted after the event by which it took the floor.
        for Posting { companion, ticket, text, spoken } in postings {
            // What was heard was said already.
            let to_post = match &spoken {
                Some(spoken) => spoken.rest.clone(),
                None => Some(text.clone()),
            };
            match self.context.platforms.of(&self.channel_key.channel).cloned().zip(to_post) {
                Some((platform, text)) => self.deliver(ticket, text, platform),
                None => {
                    let waiter = self.take_waiter(ticket);
                    let modality = if spoken.is_some() { Modality::Voice } else { Modality::Text };
                    let cut = spoken.and_then(|spoken| spoken.cut);
                    let statement = Statement { companion, text, modality, cut, ids: Vec::new() };
                    self.post(ticket, statement, waiter);
                }
            }
        }
        self.record_remaining_usage();
        // The trace records about these tickets are taken by now.
        for ticket in cancelled {
            self.cancel(ticket);
        }
        self.show_counters();
        self.arm();
    }

    /// Records usage that no batch has recorded.
    pub(super) fn record_remaining_usage(&mut self) {
        if !self.unrecorded_usage.is_empty() {
            self.record(Vec::new(), Vec::new(), false, false);
        }
    }

    /// Sends a batch of events to the writer. The actions that follow run once it is committed.
    fn record(&mut self, made: Vec<Made>, records: Vec<TraceRecord>, is_quiet: bool, falls_asleep: bool) {
        self.batches += 1;
        self.since_snapshot += made.len() as u32;
        let mut actions = self.actions(&made);
        actions.extend(self.calls_after_commit.drain(..).map(PostCommitAction::Call));
        actions.extend(records.into_iter().map(|record| PostCommitAction::Emit(Box::new(record))));
        let is_due = falls_asleep || self.since_snapshot >= EVENTS_PER_SNAPSHOT;
        let snapshot = is_due.then(|| Box::new(self.conversation.clone()));
        if snapshot.is_some() {
            self.since_snapshot = 0;
        }
        self.is_pending &= !is_quiet;
        let outbox = made.iter().flat_map(|made| outbox_writes(&made.event)).collect();
        let mut usage: Vec<_> = made.iter().flat_map(|made| self.usage(&made.event)).collect();
        usage.extend(std::mem::take(&mut self.unrecorded_usage));
        let batch = self.batches;
        let channel = self.myself.clone();
        let record = Record {
            channel_key: self.channel_key.clone(),
            // Usage without events happened now. The conversation's clock may show a time long ago.
            at: if made.is_empty() { self.channel_clock.now(self.context.clock.now()) } else { self.conversation.clock() },
            quiet: is_quiet.then(|| Quiet { handled: self.conversation.handled(), due: self.conversation.silence_at() }),
            snapshot,
            outbox,
            usage,
            reply: Reply::new(move |result| {
                // A channel that has stopped reads it from the record.
                let _ = channel.cast(ChannelMessage::Recorded { batch, result });
            }),
            made,
        };
        self.post_commit_actions.push_back((batch, actions));
        self.send(WriterMessage::Record(record));
    }

    /// Journals a statement, under the ids that its platform gave its parts. In a channel without a platform this is what posts it.
    pub(super) fn post(&mut self, ticket: Ticket, statement: Statement, waiter: Option<StatementWaiter>) {
        let Statement { companion, text, modality, cut, ids } = statement;
        let memberships = &self.context.memberships;
        let known = memberships.companion(&self.channel_key.channel, &companion);
        let name = known.map_or_else(|| companion.as_str().into(), |known| known.name);
        let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
        let is_companion = |id: &str| memberships.is_in_guild(&self.channel_key.guild, id);
        let addressing = Incoming {
            speaker: &from,
            text: &text,
            mentions: &[],
            reply_to: None,
            to_all_of: &[],
            sounds: None,
            names_narrow: false,
        };
        let names = memberships.names(&self.channel_key.guild);
        let address = names.map(|names| address::resolve(&names, is_companion, &addressing)).unwrap_or_default();
        let id = ids.first().cloned();
        let message = Message {
            id,
            address,
            modality,
            lull_endpoint: false,
            asks_to_stop: false,
            speech: None,
            cut,
            kind: None,
            text,
            from,
        };
        let mut usage = vec![Used::Statement { companion }];
        usage.extend(self.traces.take_usage(ticket));
        let channel = self.myself.clone();
        // A statement for a platform was sent and counted before, even if its ids are unknown. Here it is only journaled.
        let is_counted = match self.context.platforms.of(&self.channel_key.channel) {
            Some(_) => is_planted(Bug::UnconfirmedIsCounted) && ids.is_empty(),
            None => true,
        };
        let sent = is_counted.then(tokio::time::Instant::now);
        let platform = platform_label(self.context.platforms.name(&self.channel_key.channel));
        let instruments = self.context.recorder.instruments().clone();
        self.send(WriterMessage::Post(Post {
            channel_key: self.channel_key.clone(),
            at: None,
            event: Event::Said { message, reply_to: None, reply: Some(ticket), said_at: None },
            turn: self.conversation.floor().filter(|floor| floor.ticket == ticket).and_then(|floor| floor.selection.turn),
            ids,
            ticket,
            usage,
            reply: Reply::new(move |result| {
                if let Some(sent) = sent {
                    instruments.sent(platform, if result.is_ok() { "posted" } else { "failed" }, sent.elapsed());
                }
                // As above; and the external companion may have stopped waiting.
                if let Some(waiter) = waiter {
                    let seq = result.as_ref().map(|accepted: &Accepted| accepted.seq).map_err(|_| VoteError::Gone);
                    let _ = waiter.reply.send(seq);
                }
                let _ = channel.cast(ChannelMessage::Posted { result });
            }),
        }));
    }

    /// Sends to the writer. If the writer is not running, the request is dropped and thereby answered as lost: the channel fails and restarts.
    pub(super) fn send(&self, message: WriterMessage) {
        match self.context.directory.find(&WriterKey()) {
            Some(writer) => drop(writer.cast(message)),
            None => drop(message),
        }
    }

    fn usage(&self, event: &Event) -> Vec<Used> {
        match event {
            Event::Evaluated(evaluated) => {
                let companion = evaluated.companion.clone();
                if evaluated.trigger == crate::domain::trigger::Trigger::DirectAddress {
                    let author = self.conversation.window().get(evaluated.message);
                    let person = author.map_or("", |entry| &*entry.message.from.id).into();
                    vec![Used::Address { person, message: evaluated.message }]
                } else {
                    vec![Used::Evaluation { companion }]
                }
            }
            _ => Vec::new(),
        }
    }

    /// Sets the alarm for the next deadline or, if there is none, for the next sleep check; and for the timeout of the oldest question.
    /// An alarm that rings earlier stays, and is set again when it has rung. Each message postpones a lull, and a new alarm for each message
    /// would cost much without need.
    pub(super) fn arm(&mut self) {
        let now = tokio::time::Instant::now();
        // A span, not a time of day: the machine's clock may have been set since.
        // While only a silence is waited for, the channel sleeps.
        let due = self.due_at();
        let sleep_at = self.sleep_at.filter(|_| due.is_none() || self.conversation.is_at_rest());
        let due = due.into_iter().chain(sleep_at).min().map(|at| {
            let span = at.since(self.channel_clock.now(self.context.clock.now()));
            now + span.min(MAX_ALARM)
        });
        let Some(rings_at) = due.into_iter().chain(self.question_timeouts.until()).min() else { return };
        if self.alarm.as_ref().is_some_and(|alarm| alarm.rings_at <= rings_at) {
            return;
        }
        let timer = self.myself.send_after(rings_at.saturating_duration_since(now), || ChannelMessage::Woken);
        self.alarm = Some(Alarm { rings_at, task: timer.abort_handle() });
    }
}

/// A statement that was made.
pub(super) struct Statement {
    pub(super) companion: CompanionId,
    pub(super) text: Arc<str>,
    pub(super) modality: Modality,
    pub(super) cut: Option<Box<Cut>>,
    /// The ids that its platform gave its parts.
    pub(super) ids: Vec<Arc<str>>,
}

fn outbox_writes(event: &Event) -> Vec<OutboxWrite> {
    let owed = |companion: &CompanionId, trigger, messages: &[Seq], upto| OutboxRecord {
        companion: companion.clone(),
        trigger,
        messages: messages.to_vec(),
        upto,
        text: None,
        parts: Vec::new(),
        name: None,
    };
    match event {
        Event::ReplyOwed { companion, ticket, trigger, messages, upto, .. } => {
            vec![OutboxWrite::Put(*ticket, owed(companion, *trigger, messages, *upto))]
        }
        Event::Replanned { companion, ticket, next, trigger, messages, upto }
        | Event::ReplyExtended { companion, ticket, next, trigger, messages, upto } => {
            vec![OutboxWrite::Remove(*ticket), OutboxWrite::Put(*next, owed(companion, *trigger, messages, *upto))]
        }
        Event::ReplyFailed { ticket, .. } | Event::Cancelled { ticket: Some(ticket), .. } => vec![OutboxWrite::Remove(*ticket)],
        _ => Vec::new(),
    }
}
