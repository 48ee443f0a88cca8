//! Takes a channel's messages to its conversation, and what comes of it to the writer.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, RpcReplyPort};

use super::post_commit::PostCommitAction;
use super::rounds::Words;
use super::traces::TraceRecord;
use super::{Alarm, DOZE_AFTER, State};
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{Accepted, OutboxWrite, Post, Record, WriterMessage};
use crate::actors::runtime::actor_keys::{GuildKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::domain::address::{self, Heard};
use crate::domain::conversation::{Conversation, Input, Output, Posting, Rules, World};
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket, TurnId};
use crate::domain::message::{Author, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::journal::record::{OutboxRecord, Used};
use crate::ports::language_model::{ModelRole, Request};
use crate::telemetry::instruments::platform_label;
use crate::telemetry::plain::Plain;

/// Events between two snapshots: what a restart has to fold at most, about.
const EVENTS_PER_SNAPSHOT: u32 = 128;

/// An alarm rings after so long at the latest; if that is too early, it is set again.
const LONGEST_ALARM: Duration = Duration::from_secs(24 * 60 * 60);

impl State {
    /// One step of the conversation.
    pub(super) fn step(&mut self, input: Input) {
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, input, world));
        self.carry_out(outputs);
    }

    /// Takes in what was heard; false: it waits until the record was read.
    pub(super) fn heard(&mut self, recorded: Box<Recorded>, committed: Moment) -> bool {
        if let Some(waiting) = &mut self.heard_meanwhile {
            waiting.push((recorded, committed));
            return false;
        }
        self.is_pending = true;
        self.since_snapshot += 1;
        self.last_heard = tokio::time::Instant::now();
        self.in_flight.mark(recorded.seq);
        for record in self.traces.heard(&recorded, committed) {
            record.tell(&self.channel_key, &self.context);
        }
        let is_cleared = matches!(recorded.event, Event::Cleared);
        let is_said = matches!(recorded.event, Event::Said { .. });
        let owed = self.conversation.floor().map(|floor| floor.ticket).filter(|_| !is_said);
        self.step(Input::Heard(recorded));
        self.forget_dropped(owed);
        self.in_flight.clear();
        // What was dropped has no end that could be on record.
        if self.conversation.round().is_none() && is_cleared {
            self.dismiss_manager();
        }
        true
    }

    /// So many events that were handed over wait no more.
    pub(super) fn taken_on(&self, count: usize) {
        if let Some(registration) = &self.registration {
            registration.taken_on(count);
        }
    }

    pub(super) fn woken(&mut self) -> Result<(), ActorProcessingErr> {
        // It has rung: if it rang too early, it is set again.
        self.alarm = None;
        self.give_up_overdue();
        let now = self.channel_clock.now(self.context.clock.now());
        if self.due_at().is_some_and(|at| at <= now) {
            self.step(Input::Woken);
        } else if self.doze_at.is_some_and(|at| at <= now) {
            self.doze()?;
        } else {
            self.arm();
        }
        Ok(())
    }

    pub(super) fn recorded(&mut self, batch: u64) {
        while self.owed.front().is_some_and(|(owed, _)| *owed <= batch) {
            for action in self.owed.pop_front().into_iter().flat_map(|(_, actions)| actions) {
                self.run(action);
            }
        }
    }

    pub(super) fn reply_ended(&mut self, ticket: Ticket, text: Result<Arc<str>, Arc<str>>, asked: &Request, outcome: Outcome) {
        self.replies.retain(|_, (reply, _)| *reply != ticket);
        self.tries.remove(&ticket);
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        };
        let companion = floor.companion.clone();
        self.traces.called(ticket, asked, &outcome, &self.channel_key, &self.context);
        self.count_tokens(&outcome);
        match text {
            Ok(text) => {
                // On record with the words.
                if let Some(used) = self.used(Some(companion), asked.role, &asked.model, &outcome) {
                    self.traces.spent(ticket, used);
                }
                self.step(Input::Written { ticket, text });
            }
            Err(error) => {
                self.spend(asked, &outcome);
                self.step(Input::ReplyFailed { ticket, error });
            }
        }
    }

    pub(super) fn summarised(&mut self, upto: Seq, text: Option<Arc<str>>, outcome: Option<&Outcome>) {
        if let Some(outcome) = outcome {
            self.count_tokens(outcome);
            self.spent.extend(self.used(None, ModelRole::Side, &ModelRole::Side.into(), outcome));
        }
        self.step(Input::Summarised { upto, text });
    }

    /// Lets go of what was kept for long enough, as far as nothing that goes on needs it. One that still reads its record does it when
    /// it has.
    pub(super) fn let_go(&mut self, below: Seq) {
        self.let_go_below = self.let_go_below.max(below);
        if self.heard_meanwhile.is_none() {
            let below = std::mem::take(&mut self.let_go_below).min(self.conversation.needed_from());
            self.conversation.let_go(below);
        }
    }

    pub(super) fn membership_changed(&mut self) {
        if self.heard_meanwhile.is_none() {
            self.reconcile();
        }
    }

    /// Whoever should be here is let in, whoever should not is let out, and the same with being silenced: as events like any other.
    pub(super) fn reconcile(&mut self) {
        // What somebody is putting on record is not put there twice; the channel looks again when that is done.
        let is_changing = self.context.memberships.is_changing(&self.channel_key.channel);
        let Some(membership) = self.context.memberships.get(&self.channel_key.channel).filter(|_| !is_changing) else { return };
        if self.context.memberships.outdated(&self.channel_key.channel).is_some() {
            self.keep_up();
            return;
        }
        // One that is configured no more could be asked, but would never be heard to the end.
        let present = self.context.memberships.present(&self.channel_key.channel);
        let mut news = Vec::new();
        for (companion, external) in &present {
            let paused = membership.is_paused(companion);
            let gate = self.conversation.gate(companion);
            if gate.is_none_or(|gate| gate.external != *external) {
                news.push(Event::Joined { companion: companion.clone(), external: *external });
            }
            if gate.is_some_and(|gate| gate.paused) != paused {
                news.push(Event::Paused { companion: Some(companion.clone()), paused });
            }
        }
        for view in self.conversation.companions().filter(|view| !present.contains_key(view.companion)) {
            news.push(Event::Left { companion: view.companion.clone() });
        }
        // Whoever leaves makes room first.
        news.sort_by_key(|event| !matches!(event, Event::Left { .. }));
        if news.is_empty() {
            return;
        }
        let (inbound, channel_key, myself) =
            (Inbound::new(ActorContext::clone(&self.context)), self.channel_key.clone(), self.myself.clone());
        let change = self.context.memberships.begin_change(&channel_key.channel);
        tokio::spawn(async move {
            for event in news {
                if let Err(error) = inbound.accept(&channel_key, event, None).await {
                    tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "who lives in the channel could not be put on record");
                    return;
                }
            }
            drop(change);
            // What changed meanwhile was not looked at. A channel that is gone looks when it is back.
            let _ = myself.cast(ChannelMessage::MembershipChanged);
        });
    }

    /// What changed in the channel that this thread is in comes on record and is stored in one, lest the next change be measured by what
    /// is not on record any more. Whoever does it tells when it is done.
    fn keep_up(&self) {
        let (context, thread) = (self.context.clone(), self.channel_key.channel.clone());
        tokio::spawn(async move {
            if let Err(error) = changes::update_thread(&context, &thread).await {
                tracing::warn!(channel = %Plain(thread.as_str()), %error, "who lives in the thread could not be put on record");
            }
        });
    }

    pub(super) fn look(&self, reply: RpcReplyPort<Box<Inspection>>) {
        if self.heard_meanwhile.is_some() {
            // It knows nothing yet; whoever gets no answer reads the record.
            return;
        }
        let look =
            Inspection { conversation: self.conversation.clone(), asked: self.round_asked.clone(), since: self.traces.since() };
        // Whoever asked may have stopped waiting.
        let _ = reply.send(Box::new(look));
    }

    /// Looks after a while whether it may sleep.
    pub(super) fn watch_for_doze(&mut self) {
        self.doze_at = Some(self.channel_clock.now(self.context.clock.now()) + DOZE_AFTER);
        self.arm();
    }

    /// Goes to sleep, if nothing is going on. What comes meanwhile is still handled, or wakes it again.
    fn doze(&mut self) -> Result<(), ActorProcessingErr> {
        let is_quiet = self.last_heard.elapsed() >= DOZE_AFTER
            && self.owed.is_empty()
            && self.replies.is_empty()
            && self.deliveries.is_empty();
        if !is_quiet || !self.conversation.is_at_rest() {
            self.watch_for_doze();
            return Ok(());
        }
        self.record(Vec::new(), Vec::new(), true, true);
        self.doze_at = None;
        self.registration = None;
        self.myself.drain()?;
        Ok(())
    }

    /// What was heard while it fell asleep is for its successor.
    pub(super) fn wake_successor(&mut self) {
        if self.registration.is_none()
            && !self.conversation.is_at_rest()
            && let Some(guild) = self.context.directory.find(&GuildKey(self.channel_key.guild.clone()))
        {
            // A guild that is gone wakes all that is pending when it is back.
            let _ = guild.cast(GuildMessage::Open(self.channel_key.channel.clone()));
        }
    }

    pub(super) fn with_world<T>(&mut self, run: impl FnOnce(&mut Conversation, Moment, &mut World<'_>) -> T) -> T {
        let is_unpostable = self.is_unpostable();
        let Self { context, conversation, channel_key, budgets, policies, channel_clock, .. } = self;
        let now = channel_clock.now(context.clock.now());
        let edition = context.memberships.edition();
        if policies.0 != edition {
            *policies = (edition, budgets.policies.shared(context.memberships.policies(&channel_key.channel)));
        }
        let mut ledger = budgets.ledger();
        let mut world = World {
            channel: &channel_key.channel,
            rules: Rules::from(&*context.settings),
            policies: &policies.1,
            jitter: &mut || context.rng.jitter(),
            turn: &mut || TurnId(context.rng.id()),
            ledger: &mut ledger,
            summary_after: Some(context.settings.prompt.summary_after),
            tokens_per_day: context.settings.models.guild_tokens_per_day,
            is_unpostable,
        };
        run(conversation, now, &mut world)
    }

    /// Whether nothing can be posted here at the moment, as far as the platform knows.
    pub(super) fn is_unpostable(&self) -> bool {
        self.context
            .platforms
            .of(&self.channel_key.channel)
            .is_some_and(|platform| platform.is_unpostable(&self.channel_key.channel))
    }

    /// What the conversation wants done: what goes on record is handed to the writer, the rest is done now.
    pub(super) fn carry_out(&mut self, outputs: Vec<Output>) {
        let (mut made, mut cancelled) = (Vec::new(), Vec::new());
        for output in outputs {
            self.show_note(&output);
            match output {
                Output::Made(event) => {
                    self.tell_used_up(&event.event);
                    made.push(*event);
                }
                Output::Cancel { ticket } => cancelled.push(ticket),
                Output::Post(posting) => {
                    let Posting { companion, ticket, text } = *posting;
                    self.traces.written(ticket, self.context.clock.now());
                    match self.context.platforms.of(&self.channel_key.channel).cloned() {
                        Some(platform) => self.deliver(ticket, text, platform),
                        None => {
                            let words = self.awaited_words(ticket);
                            self.post(&companion, ticket, text, Vec::new(), words);
                        }
                    }
                }
                Output::Summarise { after, upto } => self.summarise(after, upto),
                Output::Dropped { companion, ticket } => self.show_dropped(companion, ticket),
                Output::LullArmed { .. } | Output::LullCancelled { .. } => {}
            }
        }
        let is_quiet = self.is_pending && self.conversation.is_at_rest();
        let told = self.traces.follow(&made, &self.conversation, &self.context);
        if !made.is_empty() || is_quiet {
            self.record(made, told, is_quiet, false);
        } else {
            told.into_iter().for_each(|record| record.tell(&self.channel_key, &self.context));
        }
        self.record_spent();
        // What is on record of them has been told by now.
        for ticket in cancelled {
            self.cancel(ticket);
        }
        self.show_counters();
        self.arm();
    }

    /// Puts on record what was used, if nothing has taken it there.
    pub(super) fn record_spent(&mut self) {
        if !self.spent.is_empty() {
            self.record(Vec::new(), Vec::new(), false, false);
        }
    }

    /// Hands what was made to the writer; what follows is done once it is committed.
    fn record(&mut self, made: Vec<Made>, told: Vec<TraceRecord>, is_quiet: bool, falls_asleep: bool) {
        self.batches += 1;
        self.since_snapshot += made.len() as u32;
        let mut actions = self.actions(&made);
        actions.extend(told.into_iter().map(|record| PostCommitAction::Tell(Box::new(record))));
        let is_due = falls_asleep || self.since_snapshot >= EVENTS_PER_SNAPSHOT;
        let snapshot = is_due.then(|| Box::new(self.conversation.clone()));
        if snapshot.is_some() {
            self.since_snapshot = 0;
        }
        self.is_pending &= !is_quiet;
        let outbox = made.iter().filter_map(|made| outbox_write(&made.event)).collect();
        let mut usage: Vec<_> = made.iter().flat_map(|made| self.usage(&made.event)).collect();
        usage.extend(std::mem::take(&mut self.spent));
        let batch = self.batches;
        let channel = self.myself.clone();
        let record = Record {
            channel_key: self.channel_key.clone(),
            // What was used without anything being made was used now, however long ago something happened here.
            at: if made.is_empty() { self.channel_clock.now(self.context.clock.now()) } else { self.conversation.clock() },
            quiet: is_quiet.then(|| self.conversation.handled()),
            snapshot,
            outbox,
            usage,
            reply: Reply::new(move |result| {
                // A channel that is gone reads it from the record.
                let _ = channel.cast(ChannelMessage::Recorded { batch, result });
            }),
            made,
        };
        self.owed.push_back((batch, actions));
        self.send(WriterMessage::Record(record));
    }

    /// Puts a statement on record, under the ids that its platform gave its parts; where it has none, that posts it.
    pub(super) fn post(
        &mut self,
        companion: &CompanionId,
        ticket: Ticket,
        text: Arc<str>,
        ids: Vec<Arc<str>>,
        awaited: Option<Words>,
    ) {
        let memberships = &self.context.memberships;
        let known = memberships.companion(&self.channel_key.channel, companion);
        let name = known.map_or_else(|| companion.as_str().into(), |known| known.name);
        let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
        let is_companion = |id: &str| memberships.is_in_guild(&self.channel_key.guild, id);
        let heard = Heard { speaker: &from, text: &text, mentions: &[], reply_to: None, to_all_of: &[] };
        let names = memberships.names(&self.channel_key.guild);
        let address = names.map(|names| address::resolve(&names, is_companion, &heard)).unwrap_or_default();
        let message = Message { id: ids.first().cloned(), address, modality: Modality::Text, lull_endpoint: false, text, from };
        let mut usage = vec![Used::Statement { companion: companion.clone() }];
        usage.extend(self.traces.take_spent(ticket));
        let channel = self.myself.clone();
        // What goes to a platform was sent before, and counted, also where nobody knows its ids: it is only put on record.
        let sent = self.context.platforms.of(&self.channel_key.channel).is_none().then(tokio::time::Instant::now);
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
                // As above; and whoever said the words may have stopped waiting.
                if let Some(words) = awaited {
                    let seq = result.as_ref().map(|accepted: &Accepted| accepted.seq).map_err(|_| VoteError::Gone);
                    let _ = words.reply.send(seq);
                }
                let _ = channel.cast(ChannelMessage::Posted { result });
            }),
        }));
    }

    /// A writer that is not there drops the request, which thereby is answered as lost: the channel fails and begins anew.
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

    /// Sets the alarm for the next deadline, or for when it may sleep where there is none; and for when the oldest question is given up. One
    /// that rings before that stays as it is, and is set again when it has rung: each message puts a lull off, and an alarm for each would be
    /// much for nothing.
    pub(super) fn arm(&mut self) {
        let now = tokio::time::Instant::now();
        // Not when by the clock, which may have been set since.
        let due = self.due_at().or(self.doze_at).map(|at| {
            let span = at.since(self.channel_clock.now(self.context.clock.now()));
            now + span.min(LONGEST_ALARM)
        });
        let Some(rings_at) = due.into_iter().chain(self.question_timeouts.until()).min() else { return };
        if self.alarm.as_ref().is_some_and(|alarm| alarm.rings_at <= rings_at) {
            return;
        }
        let timer = self.myself.send_after(rings_at.saturating_duration_since(now), || ChannelMessage::Woken);
        self.alarm = Some(Alarm { rings_at, task: timer.abort_handle() });
    }
}

fn outbox_write(event: &Event) -> Option<OutboxWrite> {
    match event {
        Event::ReplyOwed { companion, ticket, trigger, messages, upto, .. } => {
            let record = OutboxRecord {
                companion: companion.clone(),
                trigger: *trigger,
                messages: messages.clone(),
                upto: *upto,
                text: None,
                parts: Vec::new(),
                name: None,
            };
            Some(OutboxWrite::Put(*ticket, record))
        }
        Event::ReplyFailed { ticket, .. } => Some(OutboxWrite::Remove(*ticket)),
        _ => None,
    }
}
