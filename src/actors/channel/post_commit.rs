//! The actions that the channel runs once a batch of events is committed: questions, replies, judgements, summaries.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRuntime, RpcReplyPort};

use super::traces::TraceRecord;
use super::{MAX_REPLY_ATTEMPTS, State};
use crate::actors::companion::reply;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{
    CompanionMessage, DecisionInput, DecisionRequest, Evaluate, HistoryRange, Statement, Tell,
};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::runtime::actor_keys::{ChannelActorKey, CompanionKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::domain::conversation::Input;
use crate::domain::event::{Event, Made, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Message;
use crate::domain::trigger::Trigger;
use crate::domain::vote::State as Ballot;
use crate::domain::window;
use crate::ports::voice_call::CallEffect;
use crate::telemetry::plain::Plain;

/// How much longer than the pool's own deadline a channel waits for an answer.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Something to do once a batch is committed.
pub(super) enum PostCommitAction {
    /// Start a manager for this round, if it is still open.
    ManageRound {
        message: Seq,
    },
    /// Ask this question, if it is still open.
    Ask {
        ticket: Ticket,
    },
    /// Ask for this judgement, if it is still missing.
    Judge {
        ticket: Ticket,
    },
    /// Start this reply, if it is still owed.
    Reply {
        ticket: Ticket,
    },
    /// Stop the call of this reply.
    Stop {
        ticket: Ticket,
    },
    /// Publish this State.
    Publish(Box<Ballot>),
    /// Answer an external companion that its vote counts.
    Confirm(RpcReplyPort<Result<(), VoteError>>),
    EndRound(Box<RoundClosed>),
    /// Show that a wish to speak, a turn or a reply was dropped.
    ShowDropped {
        companion: CompanionId,
        ticket: Option<Ticket>,
    },
    /// Do this in the voice call, if its reply still plays.
    Call(CallEffect),
    /// Write spans and log lines.
    Emit(Box<TraceRecord>),
}

impl State {
    /// The actions that follow once these events are on record.
    pub(super) fn actions(&mut self, made: &[Made]) -> Vec<PostCommitAction> {
        let mut actions = Vec::new();
        for Made { event, .. } in made {
            match event {
                Event::RoundOpened(opened) => {
                    actions.push(PostCommitAction::ManageRound { message: opened.message });
                }
                Event::Evaluated(evaluated) => actions.push(PostCommitAction::Ask { ticket: evaluated.ticket }),
                Event::RepetitionAsked { ticket, .. } => actions.push(PostCommitAction::Judge { ticket: *ticket }),
                Event::ReplyOwed { ticket, .. } | Event::Replanned { next: ticket, .. } => {
                    actions.push(PostCommitAction::Reply { ticket: *ticket })
                }
                Event::ReplyExtended { ticket, next, .. } => {
                    actions.push(PostCommitAction::Stop { ticket: *ticket });
                    actions.push(PostCommitAction::Reply { ticket: *next });
                }
                Event::Replanning { ticket, .. } | Event::Cancelled { ticket: Some(ticket), .. } => {
                    actions.push(PostCommitAction::Stop { ticket: *ticket })
                }
                Event::Decided(decided) => {
                    actions.extend(decided.vote.clone().map(|vote| PostCommitAction::Publish(Box::new(vote))))
                }
                Event::RoundClosed(closed) => actions.push(PostCommitAction::EndRound(Box::new(closed.clone()))),
                _ => {}
            }
        }
        actions
    }

    pub(super) fn run(&mut self, action: PostCommitAction) {
        match action {
            PostCommitAction::ManageRound { message } => self.manage_round(message),
            PostCommitAction::Ask { ticket } => self.ask(ticket),
            PostCommitAction::Judge { ticket } => self.ask_for_judgement(ticket),
            PostCommitAction::Reply { ticket } => self.reply(ticket),
            PostCommitAction::Stop { ticket } => self.cancel(ticket),
            PostCommitAction::Publish(ballot) => self.publish_vote(*ballot),
            // The external companion may have stopped waiting.
            PostCommitAction::Confirm(reply) => drop(reply.send(Ok(()))),
            PostCommitAction::EndRound(closed) => self.end_round(*closed),
            PostCommitAction::ShowDropped { companion, ticket } => self.note_dropped(&companion, ticket),
            PostCommitAction::Call(effect) => self.play_on_record(effect),
            PostCommitAction::Emit(record) => (*record).emit(&self.channel_key, &self.context),
        }
    }

    fn ask(&mut self, ticket: Ticket) {
        let open = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
        let Some((companion, evaluation)) = open else { return };
        let Some(gate) = self.conversation.gate(companion) else { return };
        // An external companion was notified when the round was published. The round's deadline limits how long it can take.
        if gate.external {
            return;
        }
        let window = self.conversation.window();
        // The companion's own statements after its cursor need no decision, but the prompt shows them.
        let is_shown = |entry: &&window::Entry| {
            entry.message.is_by(companion) || entry.seq <= evaluation.upto && entry.concerns_gate_of(companion)
        };
        let buffer: Vec<Arc<Message>> = window.after(gate.cursor).filter(is_shown).map(|entry| entry.message.clone()).collect();
        let triggered_by = window.get(evaluation.message).map(|entry| &entry.message);
        let input = DecisionInput {
            trigger: evaluation.trigger,
            stage: gate.stage,
            modality: triggered_by.map(|message| message.modality).unwrap_or_default(),
            message_count: evaluation.message_count,
            minutes: self.conversation.minutes_of_silence(),
            speaker: triggered_by.map(|message| message.from.name.clone()),
            is_repetitive: self.is_repetitive(),
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(gate.cursor).map(|entry| entry.message.clone()).collect(),
            buffer,
        };
        let tell: Tell = Arc::new(self.channel_sender());
        let lost = tell.clone();
        let arrival = Reply::new(move |arrived: Result<(), Dropped>| {
            if arrived.is_err() {
                // A question that panicked while it was asked would panic again at once.
                let asking_panicked = std::thread::panicking();
                lost(if asking_panicked {
                    ChannelMessage::QuestionPanicked { ticket }
                } else {
                    ChannelMessage::QuestionLost { ticket }
                });
            }
        });
        let asking = DecisionRequest { channel_key: self.channel_key.clone(), ticket, tell, arrival };
        let evaluate = Evaluate { asking, input };
        let at = CompanionKey(self.channel_key.guild.clone(), companion.clone());
        // If the companion is not running, the question is dropped. The drop reports it as lost, and it is asked again.
        match self.context.directory.find(&at) {
            Some(actor) => drop(actor.cast(CompanionMessage::Evaluate(Box::new(evaluate)))),
            None => drop(evaluate),
        }
        self.asked_companions.insert(ticket, companion.clone());
        if let Entry::Vacant(first) = self.attempts.entry(ticket) {
            first.insert(0);
            self.wait_for(ticket);
        }
    }

    /// Sends a message to this channel, or to its successor. A channel that has stopped asks again when it restarts.
    fn channel_sender(&self) -> impl Fn(ChannelMessage) + Send + Sync + 'static {
        let (context, at) = (self.context.clone(), ChannelActorKey(self.channel_key.channel.clone()));
        move |message| {
            if let Some(channel) = context.directory.find(&at) {
                let _ = channel.cast(message);
            }
        }
    }

    fn reply(&mut self, ticket: Ticket) {
        let Some(floor) = self.conversation.owed_reply(ticket).filter(|floor| floor.is_being_made()) else { return };
        if self.is_unpostable() {
            // The platform learned this after the companion decided to speak. It would refuse the statement.
            self.step(Input::ReplyFailed { ticket, error: "refused".into() });
            return;
        }
        if self.is_external(&floor.companion) {
            self.await_external_statement(ticket);
            return;
        }
        if self.is_absent(&floor.companion) {
            self.step(Input::ReplyFailed { ticket, error: "absent".into() });
            return;
        }
        let window = self.conversation.window();
        let before = floor.messages.first().map_or(floor.upto, |first| Seq(first.0.saturating_sub(1)));
        // As for a question: the prompt also shows what the companion itself said in between.
        let is_shown = |entry: &&window::Entry| floor.messages.contains(&entry.seq) || entry.message.is_by(&floor.companion);
        let snapshot: Vec<Arc<Message>> = window.after(before).filter(is_shown).map(|entry| entry.message.clone()).collect();
        // Of what led to the statement, only what is still true is said.
        let trigger = match floor.trigger {
            Trigger::Event if !snapshot.iter().any(|message| message.is_event()) => Trigger::Lull,
            Trigger::Silence if !floor.messages.is_empty() => Trigger::Lull,
            trigger => trigger,
        };
        let newest = floor.messages.iter().rev().find_map(|seq| window.get(*seq)).map(|entry| &entry.message);
        let statement = Statement {
            trigger,
            closing: self.conversation.gate(&floor.companion).map(|gate| gate.stage).unwrap_or_default(),
            tries: floor.tries,
            modality: newest.map(|message| message.modality).unwrap_or_default(),
            is_spoken: self.conversation.spoken_reply() == Some(ticket),
            why: floor.why.clone(),
            message_count: floor.messages.len() as u64,
            minutes: self.conversation.minutes_of_silence(),
            speaker: newest.map(|message| message.from.name.clone()),
            is_repetitive: self.is_repetitive(),
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(before).map(|entry| entry.message.clone()).collect(),
            left_out: 0,
            history: HistoryRange { after: self.conversation.summary().upto, before: before.next() },
            snapshot,
        };
        let arguments = reply::Arguments {
            channel_key: self.channel_key.clone(),
            ticket,
            companion: floor.companion.clone(),
            statement: Arc::new(statement),
            channel: self.myself.clone(),
            context: ActorContext::clone(&self.context),
        };
        let started = ActorRuntime::spawn_linked_instant(None, reply::Reply, arguments, self.myself.get_cell());
        match started {
            Ok((actor, _)) => {
                self.replies.insert(actor.get_id(), (ticket, actor.get_cell()));
            }
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a reply could not be started");
                self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
            }
        }
    }

    /// Whether the next prompts warn that the conversation repeats itself.
    fn is_repetitive(&self) -> bool {
        self.conversation.tally().detections > 0
    }

    /// Whether a companion is no longer configured.
    fn is_absent(&self, companion: &CompanionId) -> bool {
        self.context.memberships.companion(&self.channel_key.channel, companion).is_none()
    }

    /// A reply's actor has stopped. If its statement never came, a new actor is started for it.
    pub(super) fn reply_stopped(&mut self, reply: ActorId) {
        let Some((ticket, _)) = self.replies.remove(&reply) else { return };
        let Some(floor) = self.conversation.owed_reply(ticket).filter(|floor| floor.is_being_made()) else { return };
        if self.is_absent(&floor.companion) {
            self.step(Input::ReplyFailed { ticket, error: "absent".into() });
            return;
        }
        let attempts = self.attempts.entry(ticket).or_default();
        *attempts += 1;
        if *attempts < MAX_REPLY_ATTEMPTS && !self.conversation.has_said(ticket) {
            let (address, ending) = (self.channel_key.channel.as_str(), "it died before the statement was written");
            self.context.restarted(Sort::Reply, address, ending, Duration::ZERO);
            self.reply(ticket);
        } else {
            self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
        }
    }
}
