//! Calls of tools: those of replies in progress, those that wait for a confirmation, and those whose end a companion has not been told
//! (docs/design/tools.md).

use super::super::budget::DailyCalls;
use super::super::message::Message;
use super::super::text::first_bytes;
use super::super::tools::arguments::{self, JsonObject};
use super::super::tools::built_in::BuiltIn;
use super::super::tools::{
    CONFIRMED_WITHIN, CallAnswer, CallOutcome, Cause, Effect, KnownCall, MOST_ARGUMENTS, MOST_PROPOSED, Offered, Refusal,
    Standing, StatementCall, ToolAnswered, ToolCalled, ToolConfirmed, Who, permission,
};
use super::*;

/// The most calls of a channel that are kept. Of more, the oldest that nothing needs are dropped, refused ones first.
const MOST_CALLS: usize = 32;
/// The most refused calls of an answer that are recorded.
const MOST_REFUSED: usize = 8;

/// The calls of a channel, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Calls(Vec<KnownCall>);

/// The calls that count for a reply, and whose right it has to more of them.
#[derive(Clone, Debug, Default)]
pub struct ReplyCalls {
    pub cause: Cause,
    /// The number of calls that it asked for, all its attempts together.
    pub made: usize,
    /// Its calls, and those of the statement that it replaces, in order.
    pub own: Vec<KnownCall>,
    /// Earlier calls of its companion, whose ends the companion has not been told.
    pub unreported: Vec<KnownCall>,
}

impl ReplyCalls {
    /// Whether an answer from outside is on record under the reply, or stands in its prompt.
    pub fn has_external_answer(&self) -> bool {
        let is_answered = |call: &KnownCall| call.called.is_external && call.answer.is_some();
        let has_text = |call: &KnownCall| call.answer.as_ref().is_some_and(|answer| !answer.text.is_empty());
        self.own.iter().any(is_answered) || self.unreported.iter().any(|call| is_answered(call) && has_text(call))
    }
}

/// The calls that an answer of a model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedCalls {
    /// The number of the reply.
    pub ticket: Ticket,
    pub calls: Vec<WantedCall>,
    /// The most calls of a reply.
    pub most: usize,
    pub most_of_day: DailyCalls,
    /// The standing of the people whose rights may count, as found now.
    pub standings: BTreeMap<Who, Standing>,
    /// What the reply was offered, without the tools that have changed since.
    pub offer: Offer,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WantedCall {
    pub tool: Arc<str>,
    pub arguments: Arc<str>,
}

/// What a reply was offered, and what counted for its calls when its prompt was built.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub tools: Vec<Offered>,
    /// The range of messages that the model was shown.
    pub shown: Option<(Seq, Seq)>,
    /// The cause of the reply. Messages that were deleted since count.
    pub cause: Cause,
    /// Whether the prompt had an answer from outside.
    pub has_external_answer: bool,
}

impl Calls {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the channel has work to do for one of them.
    pub(super) fn are_at_rest(&self) -> bool {
        !self.0.iter().any(|call| call.is_running() || call.awaits_event())
    }

    fn get_mut(&mut self, call: Ticket) -> Option<&mut KnownCall> {
        self.0.iter_mut().find(|known| known.called.call == call)
    }

    /// `is_owed`: whether a reply is still owed.
    pub(super) fn apply_called(
        &mut self,
        called: &ToolCalled,
        (turn, handled): (Option<TurnId>, Seq),
        now: Moment,
        is_owed: impl Fn(Ticket) -> bool,
    ) {
        self.0.push(KnownCall {
            called: called.clone(),
            turn,
            confirmed: None,
            by: None,
            answer: None,
            statement: None,
            is_told: false,
            is_announced: false,
            is_spoilt: called.arguments.is_empty(),
            handled,
        });
        let is_needed = |call: &KnownCall| {
            let is_of_statement = call.statement.is_some() || is_owed(call.called.ticket);
            call.is_running() || call.is_open(now) || call.awaits_event() || is_of_statement
        };
        while self.0.len() > MOST_CALLS {
            let free = self.0.iter().enumerate().filter(|(_, call)| !is_needed(call));
            let Some((oldest, _)) = free.min_by_key(|(_, call)| call.called.refused.is_none()) else { break };
            self.0.remove(oldest);
        }
    }

    pub(super) fn apply_confirmed(&mut self, confirmed: &ToolConfirmed) {
        if let Some(call) = self.get_mut(confirmed.call) {
            (call.confirmed, call.by) = (Some(confirmed.is_confirmed), confirmed.by.clone());
        }
    }

    pub(super) fn apply_answered(&mut self, answered: &ToolAnswered) {
        if let Some(call) = self.get_mut(answered.call) {
            call.answer = Some(answered.answer.clone());
            // The end of a confirmed call is told with its event.
            call.is_told &= call.confirmed.is_none();
        }
    }

    /// The next attempt of a reply takes the calls over.
    pub(super) fn replan(&mut self, stopped: Ticket, next: Ticket) {
        self.0.iter_mut().filter(|call| call.called.ticket == stopped).for_each(|call| call.called.ticket = next);
    }

    /// A reply became a statement. Its prompt told the ends of the companion's calls.
    pub(super) fn post(&mut self, reply: &OwedReply, statement: Seq, now: Moment) {
        for call in self.0.iter_mut().filter(|call| call.called.companion == reply.companion) {
            if is_under(call, reply) {
                call.statement = Some(statement);
            }
            call.is_told |= !call.is_running() && !call.is_open(now) && !call.awaits_event();
        }
        self.0.retain(|call| call.called.companion != reply.companion || call.statement == Some(statement) || !call.is_told);
    }

    /// Notes that the event about a confirmed call is on record.
    pub(super) fn note_event(&mut self, message: &Message) {
        let call = message.id.as_deref().and_then(|id| id.strip_prefix(EVENT_ID)?.parse().ok());
        if let Some(call) = call.and_then(|call| self.get_mut(Ticket(call))) {
            call.is_announced = true;
        }
    }

    /// Removes the texts of calls whose model was shown one of these messages.
    pub(super) fn spoil(&mut self, messages: &[Seq]) {
        let messages: BTreeSet<Seq> = messages.iter().copied().collect();
        let is_about = |call: &KnownCall| {
            call.called.was_shown(&messages) || call.statement.is_some_and(|statement| messages.contains(&statement))
        };
        self.0.iter_mut().filter(|call| is_about(call)).for_each(KnownCall::redact);
    }

    /// Ends the time of calls that nobody has confirmed, and whose model was shown the former text of an edited message.
    pub(super) fn edit(&mut self, message: Seq, now: Moment) {
        let messages = BTreeSet::from([message]);
        let is_about = |call: &&mut KnownCall| call.is_open(now) && call.called.was_shown(&messages);
        self.0.iter_mut().filter(is_about).for_each(|call| call.called.until = Some(now));
    }

    pub(super) fn redact(&mut self, call: Ticket) {
        self.get_mut(call).into_iter().for_each(KnownCall::redact);
    }

    /// Forgets all calls except those that are being made.
    pub(super) fn clear(&mut self) {
        self.0.retain(KnownCall::is_running);
        self.0.iter_mut().for_each(|call| call.is_told = true);
    }

    /// Drops calls from before this event, which have expired. Returns whether there were any.
    pub(super) fn drop_below(&mut self, below: Seq) -> bool {
        let count = self.0.len();
        self.0.retain(|call| call.handled >= below || call.is_running());
        self.0.len() < count
    }
}

/// The beginning of the ids of events about confirmed calls. The number of the call follows.
pub const EVENT_ID: &str = "call:";

impl Conversation {
    /// The calls that are known, oldest first.
    pub fn calls(&self) -> &[KnownCall] {
        &self.calls.0
    }

    /// A known call.
    pub fn call(&self, call: Ticket) -> Option<&KnownCall> {
        self.calls.0.iter().find(|known| known.called.call == call)
    }

    /// Whether this number was given to a call, or to something else in the channel.
    pub fn has_given(&self, number: Ticket) -> bool {
        number.0 > 0 && number <= self.position.tickets
    }

    /// Whether calls of this reply have no end on record.
    pub fn awaits_calls(&self, reply: Ticket) -> bool {
        self.calls.0.iter().any(|call| call.called.ticket == reply && call.is_running())
    }

    /// The calls that count for a companion's reply with this cause, which may not be owed yet.
    pub fn reply_calls(&self, companion: &CompanionId, reply: Option<&OwedReply>, cause: Cause) -> ReplyCalls {
        let of_companion = self.calls.0.iter().filter(|call| call.called.companion == *companion).cloned();
        let (own, mut unreported): (Vec<_>, Vec<_>) =
            of_companion.partition(|call| reply.is_some_and(|reply| is_under(call, reply)));
        unreported.retain(|call| !call.is_told && !call.is_running());
        let made = own.iter().filter(|call| reply.is_some_and(|reply| call.called.ticket == reply.ticket)).count();
        ReplyCalls { cause, made, own, unreported }
    }

    /// The calls of a reply that were made or proposed, for the message of its statement.
    pub fn calls_for_statement(&self, reply: Ticket) -> Vec<StatementCall> {
        let owed = self.turns.owed_reply(reply);
        let is_wanted = |call: &&KnownCall| call.called.refused.is_none() && owed.is_some_and(|owed| is_under(call, owed));
        let calls = self.calls.0.iter().filter(is_wanted);
        let of_statement = |call: &KnownCall| StatementCall {
            call: call.called.call,
            tool: call.called.tool.clone(),
            is_external: call.called.is_external,
            outcome: call.answer.as_ref().map(|answer| answer.outcome),
            until: call.called.until,
            poll: call.poll(),
        };
        calls.map(of_statement).collect()
    }

    /// The cause of a reply with this trigger to `message`, which answers these messages. A message that is not in the window is nobody's.
    pub fn cause(&self, trigger: Trigger, message: Option<Seq>, messages: &[Seq]) -> Cause {
        let answered = messages.iter().map(|seq| (*seq, self.window.get(*seq).map(|entry| &*entry.message)));
        Cause::of(trigger, message, answered)
    }

    /// The cause of an owed reply. A statement that is replaced or continued has none: whoever wanted that need not be whom it answers, and what its
    /// prompt shows may have been changed since.
    pub fn cause_of(&self, owed: &OwedReply) -> Cause {
        if owed.again.is_some() || owed.continues {
            Cause::nobody()
        } else {
            self.cause(owed.trigger, owed.message, &owed.messages)
        }
    }
}

fn is_under(call: &KnownCall, reply: &OwedReply) -> bool {
    let is_replaced = reply.again.is_some() && call.statement == reply.again;
    call.called.companion == reply.companion && (call.called.ticket == reply.ticket || is_replaced)
}

impl Step<'_, '_> {
    /// Records the calls that a model asks for: those that are made now, those that wait for a confirmation, and those that are refused.
    pub(super) fn want_calls(&mut self, wanted: WantedCalls) {
        let WantedCalls { ticket, calls, most, most_of_day, standings, offer } = wanted;
        let standing = |who: &Who| standings.get(who).cloned().unwrap_or_default();
        let mut refusals = 0;
        for WantedCall { tool, arguments } in calls {
            let Some(owed) = self.state.turns.owed_reply(ticket).filter(|owed| owed.is_being_made()) else { return };
            let companion = owed.companion.clone();
            let known = self.state.reply_calls(&companion, Some(owed), self.state.cause_of(owed).and(&offer.cause));
            let offered = offer.tools.iter().find(|offered| offered.name == tool);
            let now = self.state.position.clock;
            let parsed = if arguments.trim().is_empty() { Some(JsonObject::new()) } else { arguments::read(&arguments) };
            // What is on record, and shown, is what is called.
            let written = parsed.as_ref().map(|parsed| serde_json::Value::from(parsed.clone()).to_string());
            let written = written.filter(|written| written.len().max(arguments.len()) <= MOST_ARGUMENTS);
            let is_well_formed = written.is_some();
            let arguments: Arc<str> = written.map_or(arguments, Into::into);
            let is_repeated = || {
                // A stopped reply to the same messages may have made it.
                let is_of_same = |call: &&KnownCall| owed.messages.last().is_some_and(|last| *last <= call.handled);
                let stopped = known.unreported.iter().filter(is_of_same);
                known.own.iter().chain(stopped).any(|call| is_same(call, &tool, parsed.as_ref(), now))
            };
            // All polls of a statement would share its votes.
            let is_poll = |tool: &str| *tool == *BuiltIn::Poll.as_str();
            let has_poll =
                || known.own.iter().any(|call| is_poll(&call.called.tool) && (call.is_running() || call.poll().is_some()));
            let permitted = match offered {
                _ if known.made >= most => Err(Refusal::TooMany),
                None => Err(Refusal::NotOffered),
                Some(_) if !is_well_formed => Err(Refusal::BadArguments),
                Some(offered) if !offered.is_external && is_poll(&tool) && has_poll() => Err(Refusal::Repeated),
                Some(offered) if offered.effect != Effect::ReadOnly && is_repeated() => Err(Refusal::Repeated),
                Some(offered) => {
                    let has_external_answer = offer.has_external_answer || known.has_external_answer();
                    let person = known.cause.by.as_ref().map(|by| &by.person);
                    match permission(offered, &known.cause, has_external_answer, standing) {
                        Ok(true) if arguments.len() > MOST_PROPOSED => Err(Refusal::BadArguments),
                        Ok(_) if offered.is_external && !self.world.ledger.take_call(person, now, most_of_day) => {
                            Err(Refusal::UsedUp)
                        }
                        permitted => permitted,
                    }
                }
            };
            refusals += usize::from(permitted.is_err());
            if permitted.is_err() && refusals > MOST_REFUSED {
                continue;
            }
            let until = (permitted == Ok(true)).then(|| now + CONFIRMED_WITHIN);
            self.record(Event::ToolCalled(Box::new(ToolCalled {
                companion,
                ticket,
                call: Ticket(self.state.position.tickets.0 + 1),
                tool: first_bytes(&tool, 128).into(),
                arguments: first_bytes(&arguments, MOST_ARGUMENTS).into(),
                effect: offered.map_or(Effect::ReadOnly, |offered| offered.effect),
                is_external: offered.is_some_and(|offered| offered.is_external),
                found: known.cause.by.as_ref().map(|by| standing(by).found()),
                cause: known.cause.by,
                shown: offer.shown,
                until,
                refused: permitted.err(),
                version: offered.map(|offered| offered.version.clone()).unwrap_or_default(),
            })));
        }
    }

    /// Records that a person confirmed or declined a call, if it still can be.
    pub(super) fn confirm_call(&mut self, call: Ticket, by: Option<PersonId>, is_confirmed: bool) {
        let now = self.state.position.clock;
        let Some(known) = self.state.call(call).filter(|known| known.is_open(now)) else { return };
        let (companion, ticket) = (known.called.companion.clone(), known.called.ticket);
        self.record(Event::ToolConfirmed(Box::new(ToolConfirmed { companion, ticket, call, by, is_confirmed })));
    }

    /// Records the end of a call, after the events that it makes.
    pub(super) fn end_call(&mut self, call: Ticket, mut answer: CallAnswer, effects: Vec<Event>) {
        let Some(known) = self.state.call(call).filter(|known| known.is_running()) else { return };
        let (companion, ticket, tool) = (known.called.companion.clone(), known.called.ticket, known.called.tool.clone());
        if known.is_spoilt {
            answer.redact();
        }
        effects.into_iter().for_each(|event| self.record(event));
        let ms = answer.ms;
        self.record(Event::ToolAnswered(Box::new(ToolAnswered { companion, ticket, call, tool, answer })));
        self.extend_words(ticket, Duration::from_millis(ms));
    }

    /// Records after a restart that the outcome of calls is unknown, unless they can be repeated for a reply that is still owed.
    pub(super) fn end_lost_calls(&mut self) {
        let is_lost = |call: &&KnownCall| {
            let is_wanted = call.confirmed.is_some() || self.state.turns.owed_reply(call.called.ticket).is_some();
            call.is_running() && !(call.called.effect != Effect::Outside && is_wanted)
        };
        let lost: Vec<Ticket> = self.state.calls.0.iter().filter(is_lost).map(|call| call.called.call).collect();
        for call in lost {
            self.end_call(call, CallAnswer::without_text(CallOutcome::Unknown, 0), Vec::new());
        }
    }
}

/// Whether this is a call of the same tool with the same arguments that was made, or may still be.
fn is_same(call: &KnownCall, tool: &str, arguments: Option<&JsonObject>, now: Moment) -> bool {
    let is_wanted = call.called.until.is_none() || call.confirmed == Some(true) || call.is_open(now);
    let is_same =
        || arguments::read(&call.called.arguments).as_ref().zip(arguments).is_some_and(|(a, b)| arguments::are_same(a, b));
    call.called.refused.is_none() && is_wanted && *call.called.tool == *tool && is_same()
}
