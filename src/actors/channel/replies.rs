//! The replies that are being written, and their actors.

use std::collections::HashMap;
use std::sync::Arc;

use ractor::{ActorCell, ActorId};

use super::channel_context::ChannelContext;
use crate::actors::companion::reply;
use crate::actors::messages::companion::{Begun, HistoryRange, Statement};
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Conversation;
use crate::domain::gate::Evaluation;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Modality;
use crate::domain::priority::Priority;
use crate::domain::prompt::{Goal, PromptInput, Said, StatementInput};
use crate::domain::trigger::Trigger;
use crate::domain::turn::OwedReply;
use crate::domain::window;
use crate::journal::record::Written;

#[derive(Default)]
pub(super) struct Replies {
    actors: HashMap<ActorId, (Ticket, ActorCell)>,
    /// A model call that is already in progress, with its companion and the newest message that it answers.
    begun: Option<(CompanionId, Seq, Box<Begun>)>,
    /// Metadata of replies that are written but not yet posted.
    written: HashMap<Ticket, Written>,
}

impl Replies {
    /// Starts to write the owed reply. Returns false if its actor could not be started.
    pub(super) fn start(&mut self, owed: &OwedReply, conversation: &Conversation, channel: &ChannelContext) -> bool {
        let ticket = owed.ticket;
        let StatementInput { input, is_spoken, .. } = statement(owed, conversation).input;
        let here = channel.clone();
        let arguments = reply::Arguments {
            channel_key: channel.key.clone(),
            ticket,
            companion: owed.companion.clone(),
            priority: Priority::of(input.trigger, input.modality),
            is_spoken,
            begun: self.take_begun(owed, is_spoken),
            statement: channel.source(move |conversation| {
                let owed = conversation.turns().owed_reply(ticket)?;
                Some(statement(owed, conversation).hidden_upto(here.hidden_upto()))
            }),
            again: owed.again,
            continues: owed.continues,
            channel: channel.actor.clone(),
            context: ActorContext::clone(&channel.context),
        };
        let Some(actor) = channel.start(reply::Reply, arguments, "a reply could not be started") else { return false };
        self.actors.insert(actor.get_id(), (owed.ticket, actor.get_cell()));
        true
    }

    /// Keeps a model call in progress until its reply is owed.
    pub(super) fn keep_begun(&mut self, companion: CompanionId, upto: Seq, begun: Box<Begun>) {
        self.begun = Some((companion, upto, begun));
    }

    /// Drops the model call in progress, which cancels it.
    pub(super) fn drop_begun(&mut self) {
        self.begun = None;
    }

    /// Takes the statement whose call is in progress, if it answers the same messages as the owed reply. If further messages arrived in the meantime,
    /// the reply calls the model again.
    fn take_begun(&mut self, owed: &OwedReply, is_spoken: bool) -> Option<Box<Begun>> {
        let (companion, upto, begun) = self.begun.take()?;
        let is_same = companion == owed.companion && upto == owed.upto && is_spoken == (owed.modality == Modality::Voice);
        is_same.then_some(begun)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }

    /// Whether an actor is writing this reply.
    pub(super) fn writes(&self, ticket: Ticket) -> bool {
        self.actors.values().any(|(reply, _)| *reply == ticket)
    }

    pub(super) fn contains(&self, actor: ActorId) -> bool {
        self.actors.contains_key(&actor)
    }

    /// Removes the actor of a reply that is written or has failed. The actor stops by itself.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.actors.retain(|_, (reply, _)| *reply != ticket);
    }

    /// Stores the metadata of a written reply.
    pub(super) fn note_written(&mut self, ticket: Ticket, written: Written) {
        if written != Written::default() {
            self.written.insert(ticket, written);
        }
    }

    /// Removes and returns the metadata of a reply, for posting.
    pub(super) fn take_written(&mut self, ticket: Ticket) -> Written {
        self.written.remove(&ticket).unwrap_or_default()
    }

    /// Drops the metadata of replies that will not be posted.
    pub(super) fn forget_unposted(&mut self, is_in_flight: impl Fn(Ticket) -> bool) {
        self.written.retain(|ticket, _| is_in_flight(*ticket));
    }

    /// Kills the actor of this reply, if it has one.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        for (_, actor) in self.actors.values().filter(|(reply, _)| *reply == ticket) {
            actor.kill();
        }
        self.end(ticket);
    }

    /// Removes a stopped actor. Returns its ticket. `None` if the reply already ended or was cancelled.
    pub(super) fn take_stopped(&mut self, actor: ActorId) -> Option<Ticket> {
        self.actors.remove(&actor).map(|(ticket, _)| ticket)
    }
}

/// The input of the prompt for an owed reply.
fn statement(owed: &OwedReply, conversation: &Conversation) -> Statement {
    let OwedReply { companion, messages, upto, trigger, why, tries, again, continues, ticket, .. } = owed;
    // The statement that is continued is shown.
    let replaced = again.filter(|_| !continues);
    let of = Of { companion, messages, upto: *upto, trigger: *trigger, replaced };
    let is_spoken = conversation.voice().spoken_reply() == Some(*ticket);
    let made = statement_of(&of, conversation);
    let goal = if *continues { Goal::Continuation } else { Goal::Statement };
    let calls = conversation.reply_calls(companion, Some(owed), conversation.cause_of(owed));
    let input = StatementInput { reason: why.clone(), tries: *tries, is_spoken, goal, ..made.input };
    Statement { input, calls: Some(calls), ..made }
}

/// The input of the prompt for a statement without a vote before it. The companion may pass.
pub(super) fn statement_or_pass(
    companion: &CompanionId,
    evaluation: &Evaluation,
    conversation: &Conversation,
) -> Option<Statement> {
    let window = conversation.window();
    let messages: Vec<Seq> =
        conversation.buffer(companion).map(|entry| entry.seq).filter(|seq| *seq <= evaluation.upto).collect();
    let of = Of { companion, messages: &messages, upto: evaluation.upto, trigger: evaluation.trigger, replaced: None };
    let is_spoken = window.is_spoken(evaluation.message);
    let made = statement_of(&of, conversation);
    let cause = conversation.cause(evaluation.trigger, Some(evaluation.message), &messages);
    let calls = conversation.reply_calls(companion, None, cause);
    let input = StatementInput { is_spoken, may_pass: true, ..made.input };
    (!messages.is_empty()).then_some(Statement { input, calls: Some(calls), ..made })
}

/// The input of the prompt for a draft of this person's next message.
pub(super) fn draft_of(companion: &CompanionId, person: Arc<str>, conversation: &Conversation) -> Statement {
    let upto = conversation.handled();
    let messages: Vec<Seq> = conversation.buffer(companion).map(|entry| entry.seq).collect();
    let of = Of { companion, messages: &messages, upto, trigger: Trigger::Chosen, replaced: None };
    let made = statement_of(&of, conversation);
    Statement { input: StatementInput { goal: Goal::Draft(person), ..made.input }, ..made }
}

/// The messages that a companion's statement answers, and their trigger.
struct Of<'a> {
    companion: &'a CompanionId,
    messages: &'a [Seq],
    upto: Seq,
    trigger: Trigger,
    /// The statement that it replaces, which the prompt does not show.
    replaced: Option<Seq>,
}

fn statement_of(owed: &Of<'_>, conversation: &Conversation) -> Statement {
    let window = conversation.window();
    let first = owed.messages.first().copied().into_iter().chain(owed.replaced).min();
    let before = first.map_or(owed.upto, |first| Seq(first.0.saturating_sub(1)));
    // As for a question, the prompt also shows the companion's own statements between these messages.
    let is_own = |entry: &window::Entry| entry.message.is_by(owed.companion) && Some(entry.seq) != owed.replaced;
    let is_shown = |entry: &&window::Entry| owed.messages.contains(&entry.seq) || is_own(entry);
    let buffer: Vec<Said> = window.after(before).filter(is_shown).map(|entry| conversation.said(entry)).collect();
    // The prompt mentions an event or a silence only if it still applies.
    let trigger = match owed.trigger {
        Trigger::Event if !buffer.iter().any(|said| said.message.is_event()) => Trigger::Lull,
        Trigger::Silence if !owed.messages.is_empty() => Trigger::Lull,
        trigger => trigger,
    };
    let newest = owed.messages.iter().rev().find_map(|seq| window.get(*seq)).map(|entry| &entry.message);
    let input = PromptInput {
        trigger,
        stage: conversation.stage_in_prompt(owed.companion, owed.trigger, owed.messages),
        modality: newest.map(|message| message.modality).unwrap_or_default(),
        message_count: owed.messages.len() as u64,
        minutes: conversation.minutes_of_silence(),
        speaker: newest.map(|message| message.from.name.clone()),
        is_repetitive: conversation.warns_of_repetition(owed.trigger, owed.messages),
        summary: conversation.summary().text.clone(),
        recent: window.recent(before).map(window::Entry::said).collect(),
        buffer,
        filtered: conversation.filtered().clone(),
        about_risk: false,
    };
    let history = HistoryRange { after: conversation.summary().begins_after(), before: before.next() };
    let summary = conversation.summary();
    let input = StatementInput { input, summary_upto: summary.upto, is_anew: summary.is_anew(), ..StatementInput::default() };
    Statement { input, history, cleared: summary.covers_after(), calls: None }
}
