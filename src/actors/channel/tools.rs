//! Calls of tools: has them made once they are on record, tells the replies that wait for them, and enters the ends of confirmed ones as events
//! (docs/design/tools.md).

use std::collections::HashMap;
use std::sync::Arc;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::State;
use super::channel_context::ChannelContext;
use crate::actors::companion::tools;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::recall::Stretch;
use crate::domain::conversation::{Conversation, EVENT_ID, Input, Output, WantedCalls};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::{Address, Author, Message, Role};
use crate::domain::tools::{CONFIRMED_CALL, CallOutcome, Effect, KnownCall, StatementCall};
use crate::ports::chat_platform::{NotSent, insist};
use crate::ports::language_model::Request;

/// The replies that wait for the ends of their calls.
#[derive(Default)]
pub(super) struct WaitingReplies(HashMap<Ticket, oneshot::Sender<()>>);

impl State {
    /// Handles an answer that asks for calls. Its model call belongs to the reply.
    pub(super) fn calls_wanted(&mut self, wanted: WantedCalls, asked: &Request, outcome: &Outcome, reply: oneshot::Sender<()>) {
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

    /// Executes a committed tool call, or continues its reply if the call has ended. Without a call, it only continues the reply.
    pub(super) fn follow_call(&mut self, call: Option<Ticket>, reply: Ticket) {
        let known = call.and_then(|call| self.conversation.call(call)).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.is_running()) {
            return self.make_call(known.clone());
        }
        self.calls_settled(reply);
        if let Some(known) = known.filter(KnownCall::awaits_event) {
            self.announce_call(&known);
        }
    }

    fn make_call(&self, known: KnownCall) {
        let call = known.called.call;
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

    /// Goes on with a reply whose calls have all ended: its model is asked again, or the reply starts if it waited for calls of an earlier attempt.
    fn calls_settled(&mut self, ticket: Ticket) {
        if self.conversation.awaits_calls(ticket) {
            return;
        }
        match self.waiting.0.remove(&ticket) {
            // A reply that was cancelled does not wait.
            Some(reply) => drop(reply.send(())),
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
    fn announce_call(&self, known: &KnownCall) {
        let id: Option<Arc<str>> = Some(format!("{EVENT_ID}{}", known.called.call.0).into());
        let language = self.channel.language();
        let outcome = known.answer.as_ref().map_or(CallOutcome::Unknown, |answer| answer.outcome);
        // Its answer stands in the companion's next prompt.
        let text = tools::sentence_about("calls.confirmed", &known.called.tool, outcome, language);
        let operator =
            || Author { id: "the operator".into(), name: language.say("calls.operator", &[]).into(), role: Role::Person };
        let from = known.by.as_ref().map_or_else(operator, |person| self.conversation.person(person));
        let address = Address { companions: vec![known.called.companion.clone()], ..Address::default() };
        let message = Message { id: id.clone(), kind: Some(CONFIRMED_CALL.into()), address, ..Message::new(from, text.into()) };
        self.channel.accept(Event::Said { message, reply_to: None, reply: None, said_at: None }, id);
    }
}

/// Posts what stands below statements on the platform: buttons for proposed calls, and polls. The page draws its own.
#[derive(Default)]
pub(super) struct Below(Arc<()>);

impl Below {
    /// Whether something is being posted. Until then the channel is not at rest, so that it goes on after a restart.
    pub(super) fn is_posting(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(super) fn post(&self, recorded: &Recorded, conversation: &Conversation, channel: &ChannelContext) {
        let (Event::Said { message, .. }, Some(platform)) = (&recorded.event, channel.platform()) else { return };
        let now = channel.machine_time();
        for StatementCall { call, poll, .. } in message.calls.iter().cloned() {
            let proposed = conversation.call(call).filter(|known| known.is_open(now)).map(|known| known.called.clone());
            let (channel, platform, companion) = (channel.clone(), platform.clone(), message.from.name.clone());
            let posting = self.0.clone();
            tokio::spawn(async move {
                let key = &channel.key.channel;
                let posted = if let Some(poll) = poll {
                    match insist(|| platform.post_poll(key, call, &poll)).await {
                        // Without the permission to make polls, people can still reply.
                        Err(NotSent::Refused(_) | NotSent::Unpostable(_)) => {
                            let text = [std::slice::from_ref(&poll.question), &*poll.options].concat().join("\n* ");
                            let nonce = format!("{key}/poll/{call}");
                            insist(|| platform.announce(key, &text, &nonce)).await
                        }
                        posted => posted,
                    }
                } else if let Some(called) = proposed {
                    let language = channel.language();
                    let question = language.say("calls.open", &[("companion", &companion), ("tool", &called.tool)]);
                    let text = format!("{question}\n```json\n{}\n```", tools::as_code(&called.arguments));
                    let (confirm, decline) = (language.say("calls.confirm", &[]), language.say("calls.decline", &[]));
                    insist(|| platform.offer_call(key, call, &text, [&*confirm, &*decline])).await
                } else {
                    Ok(())
                };
                if let Err(error) = posted {
                    tracing::warn!(channel = %channel.shown(), %call, %error, "the poll, or the buttons that confirm the call of a tool, could not be posted");
                }
                drop(posting);
            });
        }
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
