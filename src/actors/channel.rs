//! A channel: runs its conversation, journals the decisions, and carries them out once they are committed.
//!
//! Every decision is journaled before the channel acts on it. The state of this actor can be rebuilt from the store, so a channel that fails is
//! simply restarted.
//!
//! This file handles each message. The conversation decides: `steps.rs` runs a step, and hands each output to the part that carries it out. The parts
//! of [`State`] hold the data for that. No part knows another.

mod captions;
mod channel_context;
mod clock;
mod deliveries;
pub mod delivery;
mod drafting;
mod external_companions;
pub mod folded;
mod guild_budgets;
mod help;
mod interjection_policies;
mod journal_state;
mod losses;
mod members;
mod note_taking;
mod notes;
mod notices;
mod post_commit;
mod questions;
mod reminding;
mod replies;
mod restore;
mod rounds;
mod spending;
mod statements;
mod steps;
mod stopping;
mod summarising;
#[cfg(test)]
mod tests;
mod together;
mod tools;
mod traces;
mod transcribing;
pub mod turn_taking_manager;
mod voice;
mod world;

use std::sync::Arc;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::time::Instant;

use crate::actors::messages::channel::{CannotRestore, ChannelMessage, Inspection, Received, Taken};
use crate::actors::messages::companion::Begun;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::models::{CallFacts, Outcome};
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{self, Accepted, Committed, Fence, WriteError};
use crate::actors::models::Refusal;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, SwitchboardKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Registration, Sort};
use crate::actors::runtime::in_flight::InFlight;
use crate::actors::runtime::supervision::child::DependencyLost;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::answer::Verdict;
use crate::domain::conversation::{Conversation, Input, Notice, Output};
use crate::domain::event::{Event, Recorded};
use crate::domain::filter::Finding;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::raw_answer;
use crate::domain::repetition;
use crate::domain::voice::utterance;
use crate::domain::vote::Vote;
use crate::domain::vote::{self, State as Ballot};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{LazyRequest, ModelRole, NoAnswer, Request, TokenUsage};
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::model_calls::record_trimmed;
use crate::telemetry::plain::Plain;
use channel_context::ChannelContext;
use clock::{Clock, Due};
use deliveries::Deliveries;
use external_companions::{ExternalCompanions, is_external};
pub use guild_budgets::GuildBudgets;
use help::HelpOffers;
use journal_state::{JournalState, MissedEvents};
use losses::Losses;
use notes::Notes;
use post_commit::PostCommitAction;
use questions::{Arrival, Questions};
use reminding::Reminding;
use replies::Replies;
use restore::Restoring;
use rounds::RoundHost;
use spending::Spending;
use tools::{Below, WaitingReplies};
use traces::{Traces, record_late_call};
use transcribing::Transcriptions;
use voice::VoiceEffects;
use world::ChannelWorld;

pub struct Channel;

#[derive(Clone)]
pub struct Arguments {
    pub channel_key: ChannelKey,
    pub context: Arc<ActorContext>,
    pub budgets: Arc<GuildBudgets>,
    /// Marks the event in flight, so that a message that kills the channel can be identified.
    pub in_flight: Arc<InFlight>,
}

pub struct State {
    channel: ChannelContext,
    in_flight: Arc<InFlight>,
    /// `None` once the channel goes to sleep.
    registration: Option<Registration>,
    conversation: Conversation,
    /// The messages that arrived while the journal was being read. `None` once the channel is restored.
    restoring: Option<Restoring>,
    journal: JournalState,
    world: ChannelWorld,
    clock: Clock,
    questions: Questions,
    losses: Losses,
    rounds: RoundHost,
    external: ExternalCompanions,
    replies: Replies,
    waiting: WaitingReplies,
    below: Below,
    deliveries: Deliveries,
    voice: VoiceEffects,
    spending: Spending,
    traces: Traces,
    notes: Notes,
    help: HelpOffers,
    transcriptions: Transcriptions,
    reminding: Reminding,
    _counted: Counted,
}

/// The error that restarts the channel after a lost write. Only events that can never be written count as the channel's own failure.
fn restart_error(lost: WriteError) -> ActorProcessingErr {
    match lost {
        WriteError::Unfit(_) => lost.into(),
        WriteError::Unknown | WriteError::Unavailable(_) | WriteError::Unreadable(_) | WriteError::Deleted => {
            DependencyLost(lost.to_string()).into()
        }
    }
}

impl Actor for Channel {
    type Msg = ChannelMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ChannelMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { channel_key, context, budgets, in_flight } = arguments;
        // Registered before the journal is read, so that events accepted after the read are dispatched here.
        let registration = context.directory.register(&ChannelActorKey(channel_key.channel.clone()), &myself);
        let channel = ChannelContext { key: channel_key, context, actor: myself };
        restore::begin(channel.clone(), budgets.clone());
        Ok(State {
            clock: Clock::new(channel.machine_time()),
            _counted: channel.context.recorder.instruments().actors.one([Sort::Channel.as_str()]),
            channel,
            in_flight,
            registration: Some(registration),
            conversation: Conversation::default(),
            restoring: Some(Restoring::default()),
            journal: JournalState::new(),
            world: ChannelWorld::new(budgets.clone()),
            questions: Questions::default(),
            losses: Losses::default(),
            rounds: RoundHost::default(),
            external: ExternalCompanions::default(),
            replies: Replies::default(),
            waiting: WaitingReplies::default(),
            below: Below::default(),
            deliveries: Deliveries::default(),
            voice: VoiceEffects::default(),
            spending: Spending::new(budgets),
            traces: Traces::default(),
            notes: Notes::default(),
            help: HelpOffers::default(),
            transcriptions: Transcriptions::default(),
            reminding: Reminding::default(),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<ChannelMessage>,
        message: ChannelMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Channel(state.channel.key.channel.clone()));
        match message {
            ChannelMessage::Restored(Ok(restored)) => state.restored(*restored),
            ChannelMessage::Restored(Err(error)) => state.not_restored(error)?,
            ChannelMessage::Received(received) => state.receive_or_defer(received)?,
            ChannelMessage::MembershipChanged => state.membership_changed(),
            ChannelMessage::Expired(below) => state.drop_expired(below),
            // The writer's answers. After a lost write the content of the store is unknown, so the channel restarts from its journal.
            ChannelMessage::Recorded { batch, result } => {
                let Committed { first, last } = result.map_err(restart_error)?;
                state.note_journaled(first, last)?;
                state.batch_committed(batch);
            }
            ChannelMessage::Posted { result } => statement_recorded(result.map_err(restart_error)?)?,
            ChannelMessage::NotHandedOver(lost) => return Err(restart_error(lost)),
            ChannelMessage::WriterReplaced => state.check_for_missed_events(),
            ChannelMessage::Fenced(last) => state.note_journaled(last.next(), last)?,
            // Questions, judgements, summaries, and lost work.
            ChannelMessage::Lost { ticket } => {
                state.replies.end(ticket);
                state.lost(ticket);
            }
            ChannelMessage::StartAgain { ticket } => state.start_again(ticket),
            ChannelMessage::Answered { ticket, asked, outcome } => {
                state.note_filter(&asked, &outcome);
                state.answered(ticket, &asked.newest(), *outcome);
            }
            ChannelMessage::AnsweredTogether { tickets, asked, outcome } => {
                state.answered_together(&tickets, &asked.newest(), &outcome);
            }
            ChannelMessage::Repeated { ticket, asked, outcome } => state.reply_repeated(ticket, &asked.newest(), &outcome),
            ChannelMessage::Unclaimed { asked, outcome } => state.record_unclaimed_usage(&asked.newest(), &outcome),
            ChannelMessage::Speaks { ticket, begun } => state.speaks(ticket, begun),
            ChannelMessage::Passed { ticket, reason, asked, outcome } => {
                state.note_filter(&asked, &outcome);
                state.passed(ticket, reason, &asked.newest(), &outcome);
            }
            ChannelMessage::Filtered(finding) => state.note_finding(*finding),
            ChannelMessage::Summarised { upto, messages, text, outcome } => {
                state.summarised(upto, messages, text, outcome.as_deref());
            }
            ChannelMessage::NotesTaken { taken, outcome } => state.notes_taken(taken, outcome.as_deref()),
            ChannelMessage::Transcribed(transcription) => {
                if state.conversation.awaited_notes().contains(&transcription.note.seq) {
                    transcribing::journal(*transcription, &state.channel);
                }
            }
            // Rounds, and external companions.
            ChannelMessage::RoundDue(round) => state.round_due(round),
            ChannelMessage::ManagerGone(manager) => state.manager_stopped(manager),
            ChannelMessage::Vote { state: ballot, reply } => state.external_vote(*ballot, reply),
            ChannelMessage::Speak { from, message_id, text, reply } => state.external_statement(from, &message_id, text, reply),
            // Replies and their deliveries (`statements.rs`).
            ChannelMessage::SentenceWritten { ticket, text } => state.step(Input::SentenceWritten { ticket, text }),
            ChannelMessage::CallsWanted { wanted, asked, outcome, reply } => {
                state.note_filter(&asked, &outcome);
                state.calls_wanted(*wanted, &asked.newest(), &outcome, reply);
            }
            ChannelMessage::ReminderPosted(number) => state.reminder_posted(number),
            ChannelMessage::CallEnded { call, answer } => state.step(Input::CallEnded { call, answer, effects: Vec::new() }),
            ChannelMessage::ConfirmCall { call, by, is_confirmed, reply } => state.confirm_call(call, by, is_confirmed, reply),
            ChannelMessage::ReplyEnded { ticket, text, written, asked, outcome } => {
                state.note_filter(&asked, &outcome);
                state.reply_ended(ticket, text, *written, &asked.newest(), &outcome);
            }
            ChannelMessage::ReplyGone(reply) => state.reply_stopped(reply),
            ChannelMessage::StopReply { companion, reply } => state.stop_reply(companion, reply),
            ChannelMessage::Draft { companion, person, reply } if state.restoring.is_none() => {
                drafting::draft(companion, person, reply, &state.channel);
            }
            ChannelMessage::Remind { wanted, reply } => state.set_reminder(*wanted, reply),
            ChannelMessage::ReminderCall { call, zone } => state.reminder_call(call, zone),
            // The caller tries again.
            ChannelMessage::Draft { .. } => {}
            ChannelMessage::Delivered { ticket, delivered } => state.delivered(ticket, *delivered),
            ChannelMessage::DeliveryGone(delivery) => state.delivery_stopped(delivery)?,
            ChannelMessage::Woken => state.wake()?,
            ChannelMessage::Read(read) if state.restoring.is_none() => read(&state.conversation),
            ChannelMessage::Read(_) => {}
            ChannelMessage::Inspect(reply) => state.inspect(reply),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ChannelMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // Replies, deliveries and the turn-taking manager are linked to the channel. If one of them dies, it is restarted while it is still needed.
        match event {
            SupervisionEvent::ActorTerminated(child, ..) | SupervisionEvent::ActorFailed(child, _) => {
                let child = child.get_id();
                let message = if state.replies.contains(child) {
                    ChannelMessage::ReplyGone(child)
                } else if state.deliveries.contains(child) {
                    ChannelMessage::DeliveryGone(child)
                } else {
                    ChannelMessage::ManagerGone(child)
                };
                // Supervision events overtake the mailbox, where the child's last messages may still wait. A cast handles those first.
                let _ = state.channel.actor.cast(message);
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ChannelMessage>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.wake_successor();
        Ok(())
    }
}

impl State {
    /// Stops a channel whose journal is damaged, without failing, so that its guild does not fail with it. The guild suspends the channel. Events
    /// accepted for it stay stored.
    fn not_restored(&self, error: CannotRestore) -> Result<(), ActorProcessingErr> {
        match error {
            CannotRestore::Damaged(reason) => {
                self.in_flight.mark_unreadable(reason);
                self.channel.actor.stop(None);
                Ok(())
            }
            CannotRestore::NotNow(reason) => Err(DependencyLost(reason).into()),
        }
    }

    /// Handles a message for the channel. If the channel is not restored, the message waits until it is.
    fn receive_or_defer(&mut self, received: Received) -> Result<(), MissedEvents> {
        let journaled = match &received {
            Received::Inbound(recorded, _) => std::slice::from_ref(&**recorded),
            Received::HandedOver(batch, _) => batch,
            Received::Voice(_) | Received::ModelsReplaced => &[],
        };
        if let [first, ..] = journaled
            && let [.., last] = journaled
        {
            self.note_journaled(first.seq, last.seq)?;
        }
        if let Some(restoring) = &mut self.restoring {
            restoring.received.push(received);
        } else {
            self.receive(received);
            self.taken_on(1);
        }
        Ok(())
    }

    fn receive(&mut self, received: Received) {
        match received {
            Received::Inbound(recorded, committed) => self.receive_event(recorded, committed),
            Received::HandedOver(batch, committed) => self.receive_hand_over(batch, committed),
            Received::Voice(notice) if !voice::is_relevant(&notice, &self.conversation) => {}
            Received::Voice(notice) => {
                if notice == Notice::PlayerRestarted {
                    voice::end_playback(&self.channel);
                }
                self.step(Input::Voice(notice));
            }
            Received::ModelsReplaced => {
                // Calls to the previous models may fail, or take long.
                let tickets = self.questions.open();
                tickets.iter().for_each(|ticket| self.questions.cancel(*ticket, &self.channel));
                self.run(PostCommitAction::Ask { tickets });
                self.step(Input::ModelsReplaced);
            }
        }
    }

    fn receive_event(&mut self, recorded: Box<Recorded>, committed: Moment) {
        self.note_received(1);
        self.in_flight.mark(recorded.seq);
        self.traces.receive(&recorded, committed).into_iter().for_each(|record| record.emit(&self.channel));
        let is_cleared = matches!(recorded.event, Event::Cleared { .. });
        // A caption changes nothing that a reply in progress answers.
        let is_change = matches!(&recorded.event, Event::Edited { captions, .. } if captions.is_empty());
        if is_change || matches!(recorded.event, Event::Cleared { .. } | Event::Deleted { .. }) {
            self.replies.drop_begun();
            // The endpoint's error message may quote the message that was changed.
            self.channel.context.pool.note_refusal(&self.channel.key, None);
        }
        let is_said = matches!(recorded.event, Event::Said { .. });
        let is_of_call = matches!(recorded.event, Event::VoiceJoined { .. } | Event::Segment(_));
        captions::describe(&recorded, &self.channel);
        self.below.post(&recorded, &self.conversation, &self.channel);
        let owed: Vec<_> = self.conversation.turns().owed_replies().map(|floor| floor.ticket).filter(|_| !is_said).collect();
        self.step(Input::Inbound(recorded));
        self.remove_dropped_replies(owed);
        self.in_flight.clear();
        // Rounds that were dropped by a clear have no closing event that would stop their manager.
        if self.conversation.turns().rounds().is_empty() && is_cleared {
            self.rounds.stop();
        }
        if is_of_call {
            self.ignore_opted_out();
        }
    }

    /// Handles the messages of a hand-over. None are left if all of them were dead letters.
    fn receive_hand_over(&mut self, batch: Vec<Recorded>, committed: Moment) {
        if batch.is_empty() {
            return;
        }
        self.note_received(batch.len());
        // If one of several messages kills the channel, its successor handles them one by one to identify it.
        if let [only] = &batch[..] {
            self.in_flight.mark(only.seq);
        }
        self.traces.receive_hand_over(&batch, committed);
        self.step(Input::HandedOver(batch));
        self.in_flight.clear();
    }

    /// Counts inbound events that are being handled.
    fn note_received(&mut self, events: usize) {
        self.journal.note_received(events);
        self.clock.note_received();
    }

    /// Reports that this many dispatched events were taken from the queue.
    fn taken_on(&self, count: usize) {
        if let Some(registration) = &self.registration {
            registration.taken_on(count);
        }
    }

    /// Makes the conversation ignore all people in the call who have opted out.
    fn ignore_opted_out(&mut self) {
        for user in voice::opted_out(&self.conversation, &self.channel) {
            self.step(Input::Voice(Notice::Call(utterance::Input::OptedOut { user })));
        }
    }

    fn membership_changed(&self) {
        if self.restoring.is_none() {
            members::reconcile(&self.conversation, &self.channel);
        }
    }

    /// Drops expired events from memory, except those that work in progress needs. A channel that is not restored yet drops them once it is.
    fn drop_expired(&mut self, below: Seq) {
        match &mut self.restoring {
            Some(restoring) => restoring.expired_below = restoring.expired_below.max(below),
            None => drop(self.conversation.drop_below(below.min(self.conversation.needed_from()))),
        }
    }

    /// Records that these events are in the journal. A channel that is not restored reads them from there.
    fn note_journaled(&mut self, first: Seq, last: Seq) -> Result<(), MissedEvents> {
        if self.restoring.is_some() { Ok(()) } else { self.journal.note_journaled(first, last) }
    }

    fn batch_committed(&mut self, batch: u64) {
        while let Some(actions) = self.journal.take_committed(batch) {
            actions.into_iter().for_each(|action| self.run(action));
        }
    }

    /// Asks the writer for the last number of the journal. If the writer has stopped, the channel asks again once a new one has started.
    fn check_for_missed_events(&mut self) {
        match &mut self.restoring {
            Some(restoring) => restoring.must_check_for_missed = true,
            None => {
                let reply = self.channel.reply(|last: Result<Seq, WriteError>| last.ok().map(ChannelMessage::Fenced));
                self.channel.send_to_writer(writer::Request::Fence(Fence { channel_key: self.channel.key.clone(), reply }));
            }
        }
    }

    /// Handles a question, a judgement or a reply that was lost with the pool, its companion or its own actor. Starts it again after a pause, up to
    /// the limit; there is no other retry. Returns whether it is started again.
    fn lost(&mut self, ticket: Ticket) -> bool {
        let is_wanted = |ticket| {
            questions::is_awaited(ticket, &self.conversation) || statements::reply_to_write(ticket, &self.conversation).is_some()
        };
        if !is_wanted(ticket) {
            return false;
        }
        // A reply that was partly spoken cannot be generated again with other words.
        let pause = self.losses.lose(ticket, is_wanted).filter(|_| !self.conversation.voice().has_said(ticket));
        match pause {
            Some(pause) => drop(self.channel.actor.send_after(pause, move || ChannelMessage::StartAgain { ticket })),
            None if questions::is_awaited(ticket, &self.conversation) => self.give_up_question(ticket, "unreachable"),
            None => self.fail_reply(ticket, "unreachable"),
        }
        pause.is_some()
    }

    fn start_again(&mut self, ticket: Ticket) {
        self.run(PostCommitAction::Ask { tickets: vec![ticket] });
        if !self.replies.writes(ticket) {
            self.reply(ticket);
        }
    }

    fn give_up_question(&mut self, ticket: Ticket, error: &str) {
        self.questions.cancel(ticket, &self.channel);
        if questions::is_judgement_open(ticket, &self.conversation) {
            self.traces.record_judgement_error(error);
            self.step(Input::Judged { ticket, score: 0.0, call: None });
        } else {
            self.step(Input::Unanswered { ticket, error: error.into() });
        }
    }

    fn answered(&mut self, ticket: Ticket, asked: &Request, outcome: Outcome) {
        match Questions::arrival(ticket, &outcome, &self.conversation) {
            Arrival::Lost => drop(self.lost(ticket)),
            Arrival::Unclaimed => self.record_unclaimed_usage(asked, &outcome),
            Arrival::Awaited if questions::is_judgement_open(ticket, &self.conversation) => self.judged(ticket, asked, &outcome),
            Arrival::Awaited => self.voted(ticket, asked, outcome),
        }
    }

    /// Handles the answer of a companion. If it is unreadable, the question is asked once more.
    fn voted(&mut self, ticket: Ticket, asked: &Request, mut outcome: Outcome) {
        if let Err(no_answer) = &outcome.result
            && no_answer.is_about_prompt()
            && let Some(answer) = self.questions.first_answer(ticket)
        {
            // The first answer is the only usable one, and its usage is already counted.
            self.note_extra_call(ticket, asked, &outcome);
            let facts = CallFacts { attempts: 0, usage: TokenUsage::default(), ..outcome.facts };
            outcome = Outcome { result: Ok(answer), facts };
        }
        let answer = match &outcome.result {
            Ok(answer) => answer,
            Err(error) => {
                self.note_call(&[ticket], asked, &outcome);
                self.questions.end(ticket, &self.channel);
                return self.step(Input::Unanswered { ticket, error: error.code().into() });
            }
        };
        let words = self.channel.context.settings.prompt.verdict_words();
        let vote = vote::read(&answer.text(), words);
        if vote.verdict == Verdict::Unreadable && self.questions.repeats(ticket, answer) {
            self.note_extra_call(ticket, asked, &outcome);
            return self.run(PostCommitAction::Ask { tickets: vec![ticket] });
        }
        self.note_call(&[ticket], asked, &outcome);
        self.questions.end(ticket, &self.channel);
        let call = self.traces.call(ticket, asked, &answer.text(), &outcome.facts);
        self.step(Input::Answered { ticket, vote, call: Some(Box::new(call)) });
    }

    /// Handles the first words of a streamed answer with `answer_or_pass`. The reply continues with the same call.
    fn speaks(&mut self, ticket: Ticket, begun: Box<Begun>) {
        let open = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
        // A closed question needs no statement. Dropping `begun` cancels the call.
        let Some((companion, evaluation)) = open else { return };
        let (companion, upto, is_spoilt) = (companion.clone(), evaluation.upto, evaluation.is_spoilt);
        self.questions.end(ticket, &self.channel);
        let call = self.traces.call(ticket, &begun.request.newest(), "", &begun.facts);
        // A statement whose prompt contained a deleted message is discarded and requested again.
        if !is_spoilt {
            self.replies.keep_begun(companion, upto, begun);
        }
        self.step(Input::Answered { ticket, vote: Vote::yes(), call: Some(Box::new(call)) });
    }

    /// Handles a declined answer with `answer_or_pass`.
    fn passed(&mut self, ticket: Ticket, reason: Option<String>, asked: &Request, outcome: &Outcome) {
        if Questions::arrival(ticket, outcome, &self.conversation) != Arrival::Awaited {
            return self.record_unclaimed_usage(asked, outcome);
        }
        self.note_call(&[ticket], asked, outcome);
        self.questions.end(ticket, &self.channel);
        let answer = outcome.result.as_ref().map(|answer| answer.text().into_owned()).unwrap_or_default();
        let call = self.traces.call(ticket, asked, &answer, &outcome.facts);
        self.step(Input::Answered { ticket, vote: Vote::no(reason), call: Some(Box::new(call)) });
    }

    /// Handles the side model's judgement. Without an answer the score is 0.
    fn judged(&mut self, ticket: Ticket, asked: &Request, outcome: &Outcome) {
        self.note_call(&[ticket], asked, outcome);
        self.questions.end(ticket, &self.channel);
        let (score, call) = match &outcome.result {
            Ok(answer) => {
                let call = self.traces.call(ticket, asked, &answer.text(), &outcome.facts);
                (repetition::read_score(&answer.text()), Some(Box::new(call)))
            }
            Err(error) => {
                self.traces.record_judgement_error(error.code());
                (0.0, None)
            }
        };
        self.step(Input::Judged { ticket, score, call });
    }

    /// Handles a first answer that is not a statement. Its call belongs to the reply, but only the second answer counts.
    fn reply_repeated(&mut self, ticket: Ticket, asked: &Request, outcome: &Outcome) {
        match self.conversation.turns().owed_reply(ticket) {
            Some(_) => self.note_extra_call(ticket, asked, outcome),
            None => self.record_unclaimed_usage(asked, outcome),
        }
    }

    /// Records the usage of a call whose answer does not count.
    fn note_extra_call(&mut self, ticket: Ticket, asked: &Request, outcome: &Outcome) {
        self.note_call(&[ticket], asked, outcome);
        self.spending.count_tokens(outcome, &self.channel);
        self.record_remaining_usage();
    }

    /// Records the usage of a call for these pending questions, and adds the call to the trace.
    fn note_call(&mut self, tickets: &[Ticket], asked: &Request, outcome: &Outcome) {
        if asked.role == ModelRole::Side
            && let Ok(answer) = &outcome.result
        {
            let trimmed = raw_answer::decision(&answer.text()).trimmed;
            record_trimmed(self.channel.context.recorder.instruments(), &outcome.facts.identity, asked, &trimmed);
        }
        self.spending.note_question(asked, outcome, &self.channel);
        self.traces.called(tickets, asked, outcome, &self.channel);
    }

    /// Records the usage of a question whose answer is no longer needed.
    fn record_unclaimed_usage(&mut self, asked: &Request, outcome: &Outcome) {
        record_late_call(asked, outcome, &self.channel);
        self.spending.note_question(asked, outcome, &self.channel);
        self.spending.count_tokens(outcome, &self.channel);
        self.record_remaining_usage();
    }

    /// Records the messages that a filter refuses. Also keeps the error message of the refusal until the next answer in the room.
    fn note_filter(&mut self, asked: &LazyRequest, outcome: &Outcome) {
        if let Some(finding) = asked.finding(&outcome.result) {
            self.note_finding(finding);
        }
        let (pool, key) = (&self.channel.context.pool, &self.channel.key);
        match &outcome.result {
            Ok(_) => pool.note_refusal(key, None),
            Err(NoAnswer::Filtered { detail, .. }) => {
                let filtered = self.conversation.filtered();
                let refuses_all = asked.search().is_some_and(|search| filtered.refuses_all(&search.lock()));
                let (role, name) = (asked.base().role, asked.base().model.clone());
                pool.note_refusal(key, Some(Refusal { role, name, detail: detail.clone(), refuses_all }));
            }
            Err(_) => {}
        }
    }

    fn note_finding(&mut self, finding: Finding) {
        let Some(finding) = self.conversation.filtered().checked(finding) else { return };
        let key = &self.channel.key;
        let (channel, model, asked) = (Plain(key.channel.as_str()), &*finding.model, finding.asked.as_str());
        if !finding.cleared.is_empty() {
            let companion = finding.companion.as_ref().map(CompanionId::as_str);
            tracing::warn!(%channel, model, asked, companion, "the filter of an endpoint refuses every question of a companion, so messages are not the cause; check the persona, and the account at the service");
        }
        match finding.found.filter(|seq| *seq != Seq::NONE) {
            Some(message) => {
                tracing::warn!(%channel, model, asked, message = message.0, "the filter of an endpoint refuses a message, which stays out of prompts to this model until somebody edits it")
            }
            None if finding.doubtful.is_empty() => {}
            None => {
                tracing::warn!(%channel, model, asked, messages = finding.doubtful.len(), "the filter of an endpoint refuses one of several messages; they stay out of prompts to this model until it is found")
            }
        }
        self.step(Input::Filtered(finding));
    }

    fn summarised(&mut self, upto: Seq, messages: u64, text: Option<Arc<str>>, outcome: Option<&Outcome>) {
        if let Some(outcome) = outcome {
            self.spending.count_tokens(outcome, &self.channel);
            self.spending.note_summary(outcome, &self.channel);
        }
        self.step(Input::Summarised { upto, messages, text });
    }

    fn notes_taken(&mut self, taken: Option<Taken>, outcome: Option<&Outcome>) {
        if let Some(outcome) = outcome {
            self.spending.count_tokens(outcome, &self.channel);
            self.spending.note_summary(outcome, &self.channel);
        }
        let channel = Plain(self.channel.key.channel.as_str());
        match &taken {
            Some((notes, taken)) => {
                let (made, dropped) = (notes.len(), taken.dropped.values().sum::<u32>());
                tracing::info!(%channel, messages = taken.messages, made, dropped, "notes were taken");
            }
            None => tracing::debug!(%channel, "notes could not be taken; the next attempt follows after more messages"),
        }
        self.step(Input::NotesTaken(taken));
    }

    /// Handles the manager's report that the deadline of this round has passed. If it has not by the channel's clock, the manager must wait longer.
    fn round_due(&mut self, message: Seq) {
        let now = self.now();
        match self.conversation.turns().round(message).map(|round| round.deadline) {
            Some(deadline) if deadline <= now => self.step(Input::Woken),
            Some(deadline) => self.rounds.extend_deadline(message, deadline.since(now)),
            None => {}
        }
    }

    /// Handles the stop of a turn-taking manager. If its rounds are open, another one takes over.
    fn manager_stopped(&mut self, manager: ActorId) {
        let now = self.now();
        if self.rounds.replace_stopped(manager, &self.conversation, now, &self.channel) {
            // Without another manager the channel watches the deadlines.
            self.arm();
        }
    }

    /// Handles the vote of an external companion. The vote is confirmed once it is journaled.
    fn external_vote(&mut self, ballot: Ballot, reply: RpcReplyPort<Result<(), VoteError>>) {
        let error = match self.restoring {
            Some(_) => Some(VoteError::Gone),
            None => {
                let is_external = is_external(&ballot.from, &self.conversation);
                VoteError::of_vote(&ballot, self.conversation.turns().rounds().iter(), is_external)
            }
        };
        if let Some(error) = error {
            // The caller may have stopped waiting.
            let _ = reply.send(Err(error));
            return;
        }
        let from = ballot.from.clone();
        // A vote that does not count arrived after the deadline.
        self.step_for(Input::Voted(ballot), reply, |output| contains_vote_of(output, &from), Err(VoteError::NoRound));
    }

    /// Handles the statement of an external companion, if it holds the floor for the message that the statement answers.
    fn external_statement(
        &mut self,
        from: CompanionId,
        answered_id: &str,
        text: Arc<str>,
        reply: RpcReplyPort<Result<Seq, VoteError>>,
    ) {
        let ticket = match self.restoring {
            Some(_) => Err(VoteError::Gone),
            None => self.external.ticket_for(&from, answered_id, &self.conversation),
        };
        match ticket {
            Ok(ticket) => {
                self.external.wait(ticket, reply);
                self.step(Input::Written { ticket, text });
                // The statement arrived after the deadline.
                if let Some(waiter) = self.external.take_rejected() {
                    waiter.answer(Err(VoteError::TooLate { from }));
                }
            }
            // The caller may have stopped waiting.
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Handles the Stop button. The stop is confirmed once it is journaled. A spoken reply stops in the voice call, and its statement is journaled
    /// later.
    fn stop_reply(&mut self, companion: CompanionId, reply: RpcReplyPort<Result<(), VoteError>>) {
        if self.restoring.is_some() || self.conversation.turns().stoppable_reply(&companion).is_none() {
            let error = if self.restoring.is_some() { VoteError::Gone } else { VoteError::NotWriting { companion } };
            // The caller may have stopped waiting.
            return drop(reply.send(Err(error)));
        }
        self.step_for(Input::StopPressed { companion }, reply, |output| matches!(output, Output::Made(_)), Ok(()));
    }

    /// Runs a step for an external caller. If one of its outputs records the request, it is confirmed once the batch is committed. Otherwise the
    /// answer is `otherwise`.
    fn step_for(
        &mut self,
        input: Input,
        reply: RpcReplyPort<Result<(), VoteError>>,
        records: impl Fn(&Output) -> bool,
        otherwise: Result<(), VoteError>,
    ) {
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, input, world));
        let is_recorded = outputs.iter().any(records);
        self.carry_out(outputs);
        match self.journal.newest_actions().filter(|_| is_recorded) {
            // The caller may have stopped waiting.
            Some(actions) => actions.push(PostCommitAction::Confirm(Box::new(move || drop(reply.send(Ok(())))))),
            None => drop(reply.send(otherwise)),
        }
    }

    /// Handles the alarm. It rings for overdue questions, for a deadline, for the check whether the channel can sleep, or too early.
    fn wake(&mut self) -> Result<(), ActorProcessingErr> {
        self.clock.rang();
        if self.restoring.is_none() {
            self.follow_reminders();
        }
        let now = Instant::now();
        while let Some(ticket) = self.questions.overdue(now) {
            self.questions.cancel(ticket, &self.channel);
            if questions::is_awaited(ticket, &self.conversation) {
                self.give_up_question(ticket, "timeout");
            }
        }
        let deadline = self.rounds.next_deadline(&self.conversation);
        match self.clock.due(deadline, self.channel.machine_time()) {
            Some(Due::Deadline) => self.step(Input::Woken),
            Some(Due::SleepCheck) => self.sleep()?,
            None => self.arm(),
        }
        Ok(())
    }

    /// Sets the next check whether the channel can sleep.
    fn schedule_sleep_check(&mut self) {
        self.clock.schedule_sleep_check(self.channel.machine_time());
        self.arm();
    }

    /// Goes to sleep if nothing is in progress. Events that arrive meanwhile are still handled, or wake the channel again.
    fn sleep(&mut self) -> Result<(), ActorProcessingErr> {
        let is_idle = self.clock.is_idle() && self.journal.is_committed() && !self.below.is_posting();
        if !is_idle || !self.replies.is_empty() || !self.deliveries.is_empty() || !self.conversation.is_at_rest() {
            self.schedule_sleep_check();
            return Ok(());
        }
        self.record(Vec::new(), Vec::new(), true, true);
        self.clock.end_sleep_checks();
        if let Some(switchboard) = self.channel.context.directory.find(&SwitchboardKey()) {
            // A switchboard that is being restarted reads from the journals when channels wake.
            let ChannelKey { guild, channel } = self.channel.key.clone();
            let _ = switchboard.cast(SwitchboardMessage::WakeAt(guild, channel, self.conversation.wakes_at()));
        }
        self.registration = None;
        self.channel.actor.drain()?;
        Ok(())
    }

    /// Starts a successor for the events that arrived while the channel fell asleep.
    fn wake_successor(&self) {
        if self.registration.is_none()
            && !self.conversation.is_at_rest()
            && let Some(guild) = self.channel.context.directory.find(&GuildKey(self.channel.key.guild.clone()))
        {
            // A guild that has stopped wakes all pending channels when it restarts.
            let _ = guild.cast(GuildMessage::Open(self.channel.key.channel.clone()));
        }
    }

    fn inspect(&mut self, reply: RpcReplyPort<Box<Inspection>>) {
        if self.restoring.is_some() {
            // The channel is not restored. A caller without an answer reads the journal itself.
            return;
        }
        let now = self.channel.machine_time();
        let (used_up, over_addresses) = self.world.with(&self.channel, |world| {
            (world.exhausted_statement_budget(now), world.ledger.over_addresses(now, world.rules.gate))
        });
        let (conversation, since) = (self.conversation.clone(), self.traces.since());
        let inspection = Inspection { conversation, since, used_up, over_addresses };
        // The caller may have stopped waiting.
        let _ = reply.send(Box::new(inspection));
    }
}

/// Handles the journaling of a statement. If one of its messages is already journaled as a different message, the channel restarts from its journal,
/// and the delivery detects the mistake.
fn statement_recorded(accepted: Accepted) -> Result<(), ActorProcessingErr> {
    match accepted.is_new {
        true => Ok(()),
        false => Err(Inconsistent("a statement was posted under the id of another message on record").into()),
    }
}

/// The error that a channel's state in memory may differ from its journal, so that it restarts.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Inconsistent(&'static str);

fn contains_vote_of(output: &Output, from: &CompanionId) -> bool {
    let Output::Made(made) = output else { return false };
    let Event::Decided(decided) = &made.event else { return false };
    decided.vote.as_ref().is_some_and(|vote| vote.from == *from)
}
