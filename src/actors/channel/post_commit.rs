//! What follows once something is on record.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRuntime, ActorStatus, RpcReplyPort};

use super::traces::{self, TraceRecord};
use super::{REPLY_AGAIN_AT_MOST, State};
use crate::actors::companion::reply;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{CompanionMessage, DecisionInput, DecisionRequest, Evaluate, Statement, Tell};
use crate::actors::messages::models::Outcome;
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::runtime::actor_keys::{ChannelActorKey, CompanionKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::domain::conversation::Input;
use crate::domain::event::{Event, Made, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Message;
use crate::domain::priority::Priority;
use crate::domain::prompt;
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::vote::State as Ballot;
use crate::domain::window;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, Reader};
use crate::ports::language_model::{self, LazyRequest, ModelRole, Request};
use crate::settings;
use crate::telemetry::operations::{self, ActorFacts};
use crate::telemetry::plain::Plain;

/// How much longer than the pool's own deadline a channel waits for an answer.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A summary takes in so many events at most, the newest: more do not fit into its prompt.
const SUMMARISED_AT_MOST: usize = 1_000;

/// A summary waits so long for words to be taken out of the record, in others' place. Then it is tried again when as much has settled once more.
const REWRITING_AT_MOST: Duration = Duration::from_secs(30);

/// Something to be done once a batch is committed.
pub(super) enum PostCommitAction {
    /// Have this round managed, if it is still open.
    HoldRound { message: Seq },
    /// Ask this question, if it is still open.
    Ask { ticket: Ticket },
    /// Ask for this judgement, if it is still to be known.
    Judge { ticket: Ticket },
    /// Begin this reply, if it is still owed.
    Reply { ticket: Ticket },
    /// Publish this State.
    Publish(Box<Ballot>),
    /// Tell an external companion that its vote counts.
    Confirm(RpcReplyPort<Result<(), VoteError>>),
    /// The round is over.
    EndRound(Box<RoundClosed>),
    /// Show that nothing comes of a wish, a turn or a reply.
    ShowDropped { companion: CompanionId, ticket: Option<Ticket> },
    /// Tell what happened.
    Tell(Box<TraceRecord>),
}

impl State {
    /// What follows once this is on record.
    pub(super) fn actions(&mut self, made: &[Made]) -> Vec<PostCommitAction> {
        let mut actions = Vec::new();
        for Made { event, .. } in made {
            match event {
                Event::RoundOpened(opened) => {
                    self.round_asked = opened.asked.clone();
                    actions.push(PostCommitAction::HoldRound { message: opened.message });
                }
                Event::Evaluated(evaluated) => actions.push(PostCommitAction::Ask { ticket: evaluated.ticket }),
                Event::RepetitionAsked { ticket, .. } => actions.push(PostCommitAction::Judge { ticket: *ticket }),
                Event::ReplyOwed { ticket, .. } => actions.push(PostCommitAction::Reply { ticket: *ticket }),
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
            PostCommitAction::HoldRound { message } => self.hold_round(message),
            PostCommitAction::Ask { ticket } => self.ask(ticket),
            PostCommitAction::Judge { ticket } => self.ask_for_judgement(ticket),
            PostCommitAction::Reply { ticket } => self.reply(ticket),
            PostCommitAction::Publish(ballot) => self.tell_manager(*ballot),
            // Whoever voted may have stopped waiting.
            PostCommitAction::Confirm(reply) => drop(reply.send(Ok(()))),
            PostCommitAction::EndRound(closed) => self.end_round(*closed),
            PostCommitAction::ShowDropped { companion, ticket } => self.note_dropped(&companion, ticket),
            PostCommitAction::Tell(record) => (*record).tell(&self.channel_key, &self.context),
        }
    }

    fn ask(&mut self, ticket: Ticket) {
        let open = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
        let Some((companion, evaluation)) = open else { return };
        let Some(gate) = self.conversation.gate(companion) else { return };
        // One that a program outside plays has been told, with everybody who watches; its deadline is the round's.
        if gate.external {
            return;
        }
        let window = self.conversation.window();
        // What it said itself after its cursor is nothing to be decided about, and belongs to what is read.
        let is_shown = |entry: &&window::Entry| {
            entry.message.is_by(companion) || entry.seq <= evaluation.upto && entry.concerns_gate_of(companion)
        };
        let buffer: Vec<Arc<Message>> = window.after(gate.cursor).filter(is_shown).map(|entry| entry.message.clone()).collect();
        let triggered_by = window.get(evaluation.message).map(|entry| &entry.message);
        let input = DecisionInput {
            trigger: evaluation.trigger,
            is_vote: self.conversation.round().is_some_and(|round| round.awaits(companion)),
            modality: triggered_by.map(|message| message.modality).unwrap_or_default(),
            message_count: evaluation.message_count,
            speaker: triggered_by.map(|message| message.from.name.clone()),
            is_repetitive: self.is_repetitive(),
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(gate.cursor).map(|entry| entry.message.clone()).collect(),
            buffer,
        };
        let tell: Tell = Arc::new(self.teller());
        let lost = tell.clone();
        let arrival = Reply::new(move |arrived: Result<(), Dropped>| {
            if arrived.is_err() {
                // Handed over again, one whose asking panics would panic again.
                let is_unaskable = std::thread::panicking();
                lost(if is_unaskable {
                    ChannelMessage::QuestionPanicked { ticket }
                } else {
                    ChannelMessage::QuestionLost { ticket }
                });
            }
        });
        let asking = DecisionRequest { channel_key: self.channel_key.clone(), ticket, tell, arrival };
        let evaluate = Evaluate { asking, input };
        let at = CompanionKey(self.channel_key.guild.clone(), companion.clone());
        // A question that finds nobody is dropped, which tells us to ask again.
        match self.context.directory.find(&at) {
            Some(actor) => drop(actor.cast(CompanionMessage::Evaluate(Box::new(evaluate)))),
            None => drop(evaluate),
        }
        self.asked.insert(ticket, companion.clone());
        if let Entry::Vacant(first) = self.tries.entry(ticket) {
            first.insert(0);
            self.wait_for(ticket);
        }
    }

    /// Tells this channel, or whoever is in its place then. One that is gone asks again when it is back.
    fn teller(&self) -> impl Fn(ChannelMessage) + Send + Sync + 'static {
        let (context, at) = (self.context.clone(), ChannelActorKey(self.channel_key.channel.clone()));
        move |message| {
            if let Some(channel) = context.directory.find(&at) {
                let _ = channel.cast(message);
            }
        }
    }

    fn reply(&mut self, ticket: Ticket) {
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket && !floor.is_posting) else {
            return;
        };
        if self.is_unpostable() {
            // Found out since the companion decided to speak: the words would be refused.
            self.step(Input::ReplyFailed { ticket, error: "refused".into() });
            return;
        }
        if self.is_external(&floor.companion) {
            self.await_words(ticket);
            return;
        }
        if self.is_absent(&floor.companion) {
            self.step(Input::ReplyFailed { ticket, error: "absent".into() });
            return;
        }
        let window = self.conversation.window();
        let before = floor.messages.first().map_or(floor.upto, |first| Seq(first.0.saturating_sub(1)));
        // As for a question: what it said itself in between is read with what it answers.
        let is_shown = |entry: &&window::Entry| floor.messages.contains(&entry.seq) || entry.message.is_by(&floor.companion);
        let snapshot: Vec<Arc<Message>> = window.after(before).filter(is_shown).map(|entry| entry.message.clone()).collect();
        let newest = floor.messages.iter().rev().find_map(|seq| window.get(*seq)).map(|entry| &entry.message);
        let statement = Statement {
            trigger: floor.trigger,
            closing: self.conversation.gate(&floor.companion).map(|gate| gate.stage).unwrap_or_default(),
            modality: newest.map(|message| message.modality).unwrap_or_default(),
            why: floor.why.clone(),
            message_count: floor.messages.len() as u64,
            speaker: newest.map(|message| message.from.name.clone()),
            is_repetitive: self.is_repetitive(),
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(before).map(|entry| entry.message.clone()).collect(),
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
        let begun = ActorRuntime::spawn_linked_instant(None, reply::Reply, arguments, self.myself.get_cell());
        match begun {
            Ok((actor, _)) => {
                self.replies.insert(actor.get_id(), (ticket, actor.get_cell()));
            }
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a reply could not be begun");
                self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
            }
        }
    }

    /// Whether the next prompts warn of going in circles.
    fn is_repetitive(&self) -> bool {
        self.conversation.tally().detections > 0
    }

    /// Whether a companion is configured no more.
    fn is_absent(&self, companion: &CompanionId) -> bool {
        self.context.memberships.companion(&self.channel_key.channel, companion).is_none()
    }

    /// A reply's actor is gone. If its words never came, they are asked for again.
    pub(super) fn reply_is_gone(&mut self, reply: ActorId) {
        let Some((ticket, _)) = self.replies.remove(&reply) else { return };
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket && !floor.is_posting) else {
            return;
        };
        if self.is_absent(&floor.companion) {
            self.step(Input::ReplyFailed { ticket, error: "absent".into() });
            return;
        }
        let tries = self.tries.entry(ticket).or_default();
        *tries += 1;
        if *tries < REPLY_AGAIN_AT_MOST {
            let facts = ActorFacts {
                sort: Sort::Reply.as_str(),
                address: self.channel_key.channel.as_str(),
                ending: "it died before its words came",
                at: self.context.clock.now(),
            };
            operations::restarted(&self.context.recorder, &facts, Duration::ZERO);
            self.reply(ticket);
        } else {
            self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
        }
    }

    /// Has the rolling summary refreshed, by the side model, in nobody's way.
    pub(super) fn summarise(&mut self, after: Seq, upto: Seq) {
        let (channel_key, context, channel) = (self.channel_key.clone(), self.context.clone(), self.myself.clone());
        let previous = self.conversation.summary().text.clone();
        tokio::spawn(async move {
            let turn = context.pool.turn_to_summarise(&channel_key.guild, context.recorder.instruments()).await;
            // A channel that is gone has it done again.
            if channel.get_status() >= ActorStatus::Stopping {
                return;
            }
            if turn.is_none() {
                let _ = channel.cast(ChannelMessage::Summarised { upto, text: None, outcome: None });
                return;
            }
            let range = Range { after, before: Some(upto.next()), limit: SUMMARISED_AT_MOST, newest_first: true };
            // Apart, so that whoever waits for its turn has no room for it yet.
            let outcome = Box::pin(ask_for_summary(range, previous.as_deref(), &channel_key, &context)).await;
            let answer = outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
            let text = answer.map(|answer| answer.text().trim().into()).filter(|text: &Arc<str>| !text.is_empty());
            let _ = channel.cast(ChannelMessage::Summarised { upto, text, outcome });
        });
    }
}

/// Asks for a summary of this stretch; none: it cannot be read.
async fn ask_for_summary(
    range: Range,
    previous: Option<&str>,
    channel_key: &ChannelKey,
    context: &ActorContext,
) -> Option<Box<Outcome>> {
    // Whoever takes words out of the record has told the channel before: what is read in between would bring them back.
    let rewrite_locks = tokio::time::timeout(REWRITING_AT_MOST, context.rewrite_locks.lock(channel_key)).await.ok()?;
    let events = Reader::new(&*context.store).events(channel_key, range).await;
    drop(rewrite_locks);
    let request = match events {
        Ok(events) => Arc::new(LazyRequest::from(to_summarise(events, previous, channel_key, &context.settings.prompt))),
        Err(error) => {
            tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "what is to be summarised cannot be read");
            return None;
        }
    };
    let outcome = context.pool.answer(request.clone(), Priority::Summary, context.pool.deadline(ModelRole::Side), None).await;
    // Of no turn: all that was settled since the last one led to it.
    traces::tell_call(None, &request, &outcome, channel_key, context);
    Some(Box::new(outcome))
}

/// Asks for a summary of these events, newest first. Once it is worded they are let go of: the answer may be waited for for long.
fn to_summarise(
    events: Vec<Recorded>,
    previous: Option<&str>,
    channel_key: &ChannelKey,
    words: &settings::prompt::Prompt,
) -> Request {
    let messages: Vec<Message> = events.into_iter().rev().filter_map(|recorded| said(recorded.event)).collect();
    let prompt = prompt::summary(previous, &messages.iter().collect::<Vec<_>>(), words);
    let newest = Line::newest_of(messages.iter());
    let request = Request {
        messages: language_model::Message::prompt(prompt.system, prompt.user),
        sizes: prompt.sizes,
        ..Request::new(ModelRole::Side, channel_key.guild.clone(), words.max_side_answer_tokens)
    };
    request.with(QuestionContext { purpose: Purpose::Summary, chattiness: "".into(), newest })
}

fn said(event: Event) -> Option<Message> {
    match event {
        Event::Said { message, .. } => Some(message),
        _ => None,
    }
}
