//! Runs a step of the channel's conversation and carries out the consequences: each output at once, each action once its batch is committed.

use super::clock::Awaited;
use super::journal_state::Batch;
use super::post_commit::{PostCommitAction, actions_of};
use super::rounds::Watched;
use super::traces::TraceRecord;
use super::{State, note_taking, notes, stopping, summarising, voice};
use crate::domain::conversation::{Aloud, CallEffect, Conversation, Input, Output, World};
use crate::domain::event::Made;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::moment::Moment;

impl State {
    /// Runs one step of the conversation and carries out its outputs.
    pub(super) fn step(&mut self, input: Input) {
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, input, world));
        self.carry_out(outputs);
    }

    /// The time by the channel's clock.
    pub(super) fn now(&mut self) -> Moment {
        self.clock.now(self.channel.machine_time())
    }

    pub(super) fn with_world<T>(&mut self, run: impl FnOnce(&mut Conversation, Moment, &mut World<'_>) -> T) -> T {
        let now = self.now();
        self.world.with(&self.channel, |world| run(&mut self.conversation, now, world))
    }

    /// Carries out the outputs of a step: sends the events to the writer, and handles the other outputs now.
    pub(super) fn carry_out(&mut self, outputs: Vec<Output>) {
        let (mut made, mut cancelled, mut postings) = (Vec::new(), Vec::new(), Vec::new());
        let mut hand_overs = Vec::new();
        for output in outputs {
            notes::show_timer(&output, &self.channel);
            match output {
                Output::Made(event) => {
                    self.spending.log_used_up(&event.event, &self.channel);
                    made.push(*event);
                }
                Output::Cancel { ticket } => cancelled.push(ticket),
                Output::Post(posting) => {
                    self.traces.written(posting.ticket, self.channel.machine_time());
                    postings.push(*posting);
                }
                Output::Summarise { after, upto } => {
                    summarising::summarise(after, upto, &self.channel);
                }
                Output::TakeNotes { after, upto } => note_taking::take_notes(after, upto, &self.channel),
                Output::Dropped { companion, ticket } => self.show_dropped(companion, ticket),
                Output::LullArmed { .. } | Output::LullCancelled { .. } => {}
                Output::HandOver(messages) => hand_overs.push(messages),
                Output::Call(mut effect) => {
                    if let CallEffect::Reply { ticket, turn, aloud } = &mut *effect {
                        if *aloud == Aloud::SaidAll {
                            self.traces.said_all(*ticket, self.channel.machine_time());
                        }
                        *turn = self.traces.turn_of(*ticket);
                    }
                    self.voice.carry_out(*effect, &self.channel);
                }
                Output::HasLeft { user } => voice::record_left(&user, &self.conversation, &self.channel),
                Output::RedactSpeech { user } => voice::redact_speech(&user, &self.conversation, &self.channel),
            }
        }
        let is_quiet = self.journal.becomes_quiet(&made, self.conversation.is_at_rest() && !self.below.is_posting());
        let records = self.traces.follow(&mut made, &self.conversation, &self.channel.context);
        self.spending.release_unposted(|ticket| self.traces.is_in_flight(ticket));
        self.replies.forget_unposted(|ticket| self.traces.is_in_flight(ticket));
        self.forget_waiting();
        // The effects of a reply wait for the previous batches, even if this step records no events.
        if !made.is_empty() || is_quiet || self.voice.waits_for_commit() {
            self.record(made, records, is_quiet, false);
        } else {
            records.into_iter().for_each(|record| record.emit(&self.channel));
        }
        hand_overs.into_iter().for_each(|messages| voice::journal_hand_over(messages, &self.conversation, &self.channel));
        // The trace records about these tickets are already taken. The rest of a spoken reply is posted afterwards.
        cancelled.into_iter().for_each(|ticket| self.cancel(ticket));
        // A late text is posted after the event by which it took the floor.
        postings.into_iter().for_each(|posting| self.post(posting));
        self.record_remaining_usage();
        self.notes.show_counters(&self.conversation, &self.channel);
        self.transcriptions.follow(&self.conversation, &self.channel);
        self.follow_reminders();
        self.arm();
    }

    /// Sends a batch of events to the writer, with the usage that is not recorded yet. The resulting actions run once the batch is committed.
    pub(super) fn record(&mut self, made: Vec<Made>, records: Vec<TraceRecord>, is_quiet: bool, falls_asleep: bool) {
        let mut actions = actions_of(&made);
        actions.extend(self.voice.take_after_commit().into_iter().map(PostCommitAction::Call));
        actions.extend(records.into_iter().map(|record| PostCommitAction::Emit(Box::new(record))));
        let usage = self.spending.take_for(&made, &self.conversation, |tool| self.channel.price_of_call(tool));
        let is_posting = self.below.is_posting();
        let batch = Batch { made, actions, usage, now: self.now(), is_quiet, falls_asleep, is_posting };
        self.journal.record(batch, &self.conversation, &self.channel);
    }

    /// Records the usage that no batch has recorded.
    pub(super) fn record_remaining_usage(&mut self) {
        if self.spending.has_unrecorded() {
            self.record(Vec::new(), Vec::new(), false, false);
        }
    }

    /// Runs an action whose events are committed.
    pub(super) fn run(&mut self, action: PostCommitAction) {
        match action {
            PostCommitAction::ManageRound { message } => {
                let now = self.now();
                if self.rounds.manage(message, &self.conversation, now, &self.channel) == Watched::ByChannel {
                    self.arm();
                }
            }
            PostCommitAction::Ask { tickets } => {
                if self.questions.ask(&tickets, &self.conversation, &self.channel) {
                    self.arm();
                }
            }
            PostCommitAction::Reply { ticket } => self.reply(ticket),
            PostCommitAction::FollowCall { call, reply } => self.follow_call(call, reply),
            PostCommitAction::Stop { ticket } => self.cancel(ticket),
            PostCommitAction::Help { message } => self.help.offer(message, &self.conversation, &self.channel),
            PostCommitAction::AcknowledgeStop { message } => stopping::acknowledge(message, &self.channel),
            PostCommitAction::Publish(ballot) => self.rounds.publish(*ballot),
            PostCommitAction::Confirm(tell) => tell(),
            PostCommitAction::EndRound(closed) => self.rounds.end(*closed),
            PostCommitAction::ShowDropped { companion, ticket } => notes::show_dropped(&companion, ticket, &self.channel),
            PostCommitAction::Call(effect) => voice::play_on_record(effect, &self.conversation, &self.channel),
            PostCommitAction::Emit(record) => record.emit(&self.channel),
        }
    }

    /// Shows that a wish to speak, a turn or a reply was dropped. The note comes after the events that announced it.
    fn show_dropped(&mut self, companion: CompanionId, ticket: Option<Ticket>) {
        let action = PostCommitAction::ShowDropped { companion, ticket };
        match self.journal.newest_actions() {
            Some(actions) => actions.push(action),
            None => self.run(action),
        }
    }

    /// Cancels the question or judgement with this ticket, kills the reply's actor, and stops the delivery (docs/design/speaking.md S-8).
    fn cancel(&mut self, ticket: Ticket) {
        self.questions.cancel(ticket, &self.channel);
        self.replies.cancel(ticket);
        self.deliveries.stop(ticket);
    }

    /// Sets the alarm for the next deadline of the channel.
    pub(super) fn arm(&mut self) {
        let awaited = Awaited {
            deadline: self.rounds.next_deadline(&self.conversation),
            is_at_rest: self.conversation.is_at_rest(),
            question_timeout: self.questions.next_timeout(),
            reminder: self.reminding.next_due(&self.conversation),
        };
        self.clock.arm(awaited, &self.channel);
    }
}
