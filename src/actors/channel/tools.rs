//! Calls of tools: has them made once they are on record, tells the replies that wait for them, and enters the ends of confirmed ones as events
//! (docs/design/tools.md).

use std::collections::HashMap;
use std::sync::Arc;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::State;
use super::channel_context::ChannelContext;
use crate::actors::companion::tools::{self, outcome_text};
use crate::actors::messages::channel::{CallsEnd, ChannelMessage};
use crate::actors::messages::models::Outcome;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::recall::Stretch;
use crate::domain::conversation::{Conversation, EVENT_ID, Input, KnownCall, Output, WantedCalls};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::{Address, Author, Message, Role};
use crate::domain::text::escaped;
use crate::domain::tools::{CONFIRMED_CALL, CallAnswer, CallOutcome, Effect, StatementCall};
use crate::ports::chat_platform::{CallOffer, insist};
use crate::ports::language_model::Request;

/// The replies that wait for the ends of their calls.
#[derive(Default)]
pub(super) struct WaitingReplies(HashMap<Ticket, oneshot::Sender<CallsEnd>>);

impl State {
    /// Handles an answer that asks for calls. Its model call belongs to the reply.
    pub(super) fn calls_wanted(
        &mut self,
        wanted: WantedCalls,
        asked: &Request,
        outcome: &Outcome,
        reply: oneshot::Sender<CallsEnd>,
    ) {
        let ticket = wanted.ticket;
        if self.conversation.turns().owed_reply(ticket).is_none() {
            // The reply is not waited for: its actor is about to end.
            return self.record_unclaimed_usage(asked, outcome);
        }
        self.note_extra_call(ticket, asked, outcome);
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, Input::CallsWanted(wanted), world));
        if outputs.iter().any(is_call) {
            self.waiting.0.insert(ticket, reply);
        }
        self.carry_out(outputs);
    }

    /// Makes a call that is on record, unless it has ended.
    pub(super) fn make_call(&self, call: Ticket) {
        let Some(known) = self.conversation.call(call).filter(|known| known.is_running()).cloned() else { return };
        if known.called.effect == Effect::Journal {
            return self.begin_reminder_call(call, known.called.cause.as_ref());
        }
        let stretch = stretch(&known, &self.conversation, self.channel.hidden_upto());
        let channel = self.channel.clone();
        tokio::spawn(async move {
            let answer = tools::make(&known, stretch, &channel.key, &channel.context).await;
            // A channel that has stopped decides by its record what becomes of the call.
            let _ = channel.actor.cast(ChannelMessage::CallEnded { call, answer });
        });
    }

    pub(super) fn call_ended(&mut self, call: Ticket, answer: CallAnswer) {
        self.step(Input::CallEnded { call, answer, effects: Vec::new() });
    }

    /// Goes on with a reply whose calls have all ended: its model is asked again, or the reply starts if it waited for calls of an earlier attempt.
    pub(super) fn calls_settled(&mut self, ticket: Ticket) {
        if self.conversation.awaits_calls(ticket) {
            return;
        }
        let now = self.now();
        match self.waiting.0.remove(&ticket) {
            Some(reply) => {
                let is_open = |call: &KnownCall| call.called.ticket == ticket && call.is_open(now);
                let has_proposed = self.conversation.calls().iter().any(is_open);
                let end = if has_proposed { CallsEnd::Proposed } else { CallsEnd::Ended };
                // A reply that was cancelled does not wait.
                let _ = reply.send(end);
            }
            None if !self.replies.writes(ticket) => self.reply(ticket),
            None => {}
        }
    }

    /// Drops the waits of replies that are not owed any more.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting.0.retain(|ticket, _| self.conversation.turns().owed_reply(*ticket).is_some());
    }

    /// Confirms or declines a call for a person who may do so. Answered once that is journaled.
    pub(super) fn confirm_call(
        &mut self,
        call: Ticket,
        by: Option<PersonId>,
        is_confirmed: bool,
        reply: RpcReplyPort<Result<(), VoteError>>,
    ) {
        if self.restoring.is_some() {
            // The caller may have stopped waiting.
            return drop(reply.send(Err(VoteError::Gone)));
        }
        self.step_for(Input::CallConfirmed { call, by, is_confirmed }, reply, is_call, Err(VoteError::NotOpen));
    }

    /// Enters the end of a confirmed call as an event that its companion acknowledges. It is recorded once, however often it is entered.
    pub(super) fn announce_call(&self, call: Ticket) {
        let Some(known) = self.conversation.call(call).filter(|known| known.awaits_event()) else { return };
        let id: Arc<str> = format!("{EVENT_ID}{}", call.0).into();
        let message = Message { id: Some(id.clone()), ..self.event_of(known) };
        self.channel.accept(Event::Said { message, reply_to: None, reply: None, said_at: None }, Some(id));
    }

    /// The event that a confirmed call has ended. Its answer stands in the companion's next prompt.
    fn event_of(&self, known: &KnownCall) -> Message {
        let language = self.channel.language();
        let outcome = known.answer.as_ref().map_or(CallOutcome::Unknown, |answer| answer.outcome);
        let outcome = language.say(outcome_text(outcome), &[]);
        let operator =
            || Author { id: "the operator".into(), name: language.say("calls.operator", &[]).into(), role: Role::Person };
        let from = known.by.as_ref().map_or_else(operator, |person| self.conversation.person(person));
        let text = language.say("calls.confirmed", &[("tool", &known.called.tool), ("outcome", &outcome)]);
        let address = Address { companions: vec![known.called.companion.clone()], ..Address::default() };
        Message { kind: Some(CONFIRMED_CALL.into()), address, ..Message::new(from, text.into()) }
    }
}

/// Offers buttons on the platform below a statement that proposes calls. The page has cards of its own.
pub(super) fn offer_buttons(recorded: &Recorded, conversation: &Conversation, channel: &ChannelContext) {
    let (Event::Said { message, .. }, Some(platform)) = (&recorded.event, channel.platform()) else { return };
    let is_proposed = |call: &&StatementCall| call.outcome.is_none() && call.until.is_some();
    for known in message.calls.iter().filter(is_proposed).filter_map(|proposed| conversation.call(proposed.call)) {
        let (called, channel, platform) = (known.called.clone(), channel.clone(), platform.clone());
        let companion = message.from.name.clone();
        tokio::spawn(async move {
            let language = channel.language();
            let question = language.say("calls.open", &[("companion", &companion), ("tool", &called.tool)]);
            // Nothing in the arguments can end the block of code.
            let arguments = escaped(&called.arguments, |_| false).replace('`', "\\u0060");
            let text = format!("{question}\n```json\n{arguments}\n```");
            let (confirm, decline) = (language.say("calls.confirm", &[]), language.say("calls.decline", &[]));
            let (channel_id, call) = (&channel.key.channel, called.call);
            let offer = CallOffer { channel: channel_id, call, text: &text, confirm: &confirm, decline: &decline };
            if let Err(error) = insist(|| platform.offer_call(&offer)).await {
                tracing::warn!(channel = %channel.shown(), %call, %error, "the buttons that confirm the call of a tool could not be posted");
            }
        });
    }
}

/// The events that `recall` searches: those before the messages that the reply answers.
fn stretch(known: &KnownCall, conversation: &Conversation, hidden: Seq) -> Stretch {
    let owed = conversation.turns().owed_reply(known.called.ticket);
    let first = owed.and_then(|owed| owed.messages.first().copied());
    let summary = conversation.summary();
    Stretch {
        after: summary.begins_after().max(hidden),
        before: first.unwrap_or_else(|| conversation.handled().next()),
        notes_after: summary.covers_after().max(hidden),
    }
}

fn is_call(output: &Output) -> bool {
    matches!(output, Output::Made(made) if made.event.call().is_some())
}
