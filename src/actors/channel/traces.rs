//! Tells of turns in traces, from the events that are put on record: each says its turn, and the turn's trace goes by its id.

mod calls;
mod resume;
mod trace_record;
mod turn;
mod wait_time;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::messages::models::{CallFacts as PoolFacts, Outcome};
use crate::actors::runtime::context::ActorContext;
use crate::domain::closing::Cause;
use crate::domain::conversation::Conversation;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Call, Decided, Evaluated, Event, Made, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::Used;
use crate::ports::language_model::Request;
use crate::telemetry::trace::TurnTrace;
pub(super) use calls::{tell_call, tell_late_call};
pub(super) use trace_record::TraceRecord;
use turn::{Append, Appends, OpenTurn, PendingCall, Round, Turn};

/// So much of an answer is kept on record.
const ANSWER_KEPT_CHARS: usize = 1_000;

/// The turns that go on, and what was measured of their questions and replies.
#[derive(Default)]
pub(super) struct Traces {
    turns: BTreeMap<TurnId, Box<OpenTurn>>,
    /// Questions and replies in flight, by their number.
    flights: HashMap<Ticket, Box<PendingCall>>,
    /// The turn of the newest statement, and the statement: the round that it opens follows it.
    posted: Option<(Turn, Seq)>,
    /// Why the newest judgement could not be made.
    misjudged: Option<Arc<str>>,
    /// The turns of those who were asked and gave no answer, and the message that it was about: what asks them next, or settles that
    /// message without asking, follows.
    unanswered: BTreeMap<CompanionId, (TurnTrace, Seq)>,
    appends: Appends,
    spent: HashMap<Ticket, Vec<Used>>,
}

impl Traces {
    /// What is to be told of events that a step made, once they are committed; where it made none, at once. A turn of which the
    /// conversation knows nothing any more is over.
    pub(super) fn follow(&mut self, made: &[Made], conversation: &Conversation, context: &ActorContext) -> Vec<TraceRecord> {
        let (now, mut told) = (context.clock.now(), Vec::new());
        for Made { event, turn, .. } in made {
            self.take(event, *turn, now, context, &mut told);
        }
        self.end_turns(conversation, now, &mut told);
        told
    }

    fn take(&mut self, event: &Event, turn: Option<TurnId>, now: Moment, context: &ActorContext, told: &mut Vec<TraceRecord>) {
        match event {
            Event::RoundOpened(opened) => {
                let follows = self.posted.as_ref().filter(|(_, said)| *said == opened.message).map(|(posted, _)| posted.trace);
                let open = self.open(turn, now, context);
                open.turn.message = opened.message;
                open.turn.follows = follows.or(open.turn.follows);
                open.round = Some(Round::new(now));
                open.goes_on();
            }
            Event::Evaluated(evaluated) => told.extend(self.asked(evaluated, turn, now, context)),
            Event::Decided(decided) => self.decided(decided, turn, now, context, told),
            Event::Unanswered { companion, ticket, error, .. } => {
                let call = self.landed(*ticket).unwrap_or_else(|| self.unknown(turn, Trigger::Lull, now, context));
                self.unanswered.insert(companion.clone(), (call.turn.trace, call.turn.message));
                let open = self.open(Some(call.turn.id), now, context);
                match &mut open.round {
                    Some(round) => round.errors.push(error.clone()),
                    None => open.ends("failed", Some(error.clone())),
                }
                let (companion, ticket, error) = (companion.clone(), *ticket, error.clone());
                told.push(TraceRecord::Unanswered { companion, ticket, error, call, at: now });
            }
            Event::RoundClosed(closed) => self.round_closed(closed, turn, now, context, told),
            Event::StageChanged { companion, from, to, cause } => {
                let under = match cause {
                    Cause::MaxTurns | Cause::Repetition => self.posted.as_ref().map(|(posted, _)| posted.trace),
                    Cause::State | Cause::DirectAddress | Cause::ReopenAfter | Cause::NewEpisode => {
                        turn.map(|turn| self.open(Some(turn), now, context).turn.trace)
                    }
                };
                told.push(TraceRecord::Closing {
                    companion: companion.clone(),
                    from: *from,
                    to: *to,
                    cause: *cause,
                    at: now,
                    under,
                });
            }
            Event::RepetitionAsked { ticket, .. } => {
                let posted = self.posted.as_ref().map(|(posted, _)| posted.clone());
                let posted = posted.unwrap_or_else(|| Turn::new(turn, now, context));
                self.flights.insert(*ticket, Box::new(PendingCall::new(posted, Trigger::Turn, now)));
            }
            Event::RepetitionJudged { score, detections, call, .. } => {
                let posted = self.posted.as_ref().map(|(posted, _)| (posted.id, posted.trace));
                let is_its = |call: &PendingCall| posted.is_some_and(|(id, _)| call.turn.id == id);
                let asked = self.flights.iter().find(|(_, call)| is_its(call));
                let asked = asked.map(|(ticket, call)| (*ticket, call.since));
                self.flights.retain(|_, call| !is_its(call));
                if let Some(judged_again) = posted.and_then(|(id, _)| self.turns.get_mut(&id)) {
                    judged_again.ends("posted", None);
                }
                let (error, is_by_model) = (self.misjudged.take(), asked.is_some() || call.is_some());
                let (score, detections, under) = (*score, *detections, posted.map(|(_, trace)| trace));
                told.push(TraceRecord::Repetition { score, detections, asked, is_by_model, error, at: now, under });
            }
            Event::ReplyOwed { ticket, trigger, .. } => {
                let open = self.open(turn, now, context);
                open.goes_on();
                let call = PendingCall::new(open.turn.clone(), *trigger, now);
                self.flights.insert(*ticket, Box::new(call));
            }
            Event::ReplyFailed { companion, ticket, error, .. } => {
                self.spent.remove(ticket);
                let Some(call) = self.landed(*ticket) else { return };
                self.open(Some(call.turn.id), now, context).ends("failed", Some(error.clone()));
                let (companion, ticket, error) = (companion.clone(), *ticket, error.clone());
                told.push(TraceRecord::StatementFailed { companion, ticket, error, call, at: now });
            }
            // Nothing is told of these in a trace.
            Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::Summarised { .. } => {}
            // What comes from outside is told of when it is committed, and by what it leads to.
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::Cleared
            | Event::CaughtUp { .. } => {}
        }
    }

    /// The turn of an event. One that is not open begins.
    fn open(&mut self, turn: Option<TurnId>, now: Moment, context: &ActorContext) -> &mut OpenTurn {
        let turn = turn.unwrap_or_else(|| TurnId(context.rng.id()));
        self.turns.entry(turn).or_insert_with(|| Box::new(OpenTurn::new(Turn::new(Some(turn), now, context))))
    }

    /// What is in flight in a turn, where nothing is known of its beginning.
    fn unknown(&mut self, turn: Option<TurnId>, trigger: Trigger, now: Moment, context: &ActorContext) -> PendingCall {
        PendingCall::new(self.open(turn, now, context).turn.clone(), trigger, now)
    }

    fn asked(&mut self, evaluated: &Evaluated, turn: Option<TurnId>, now: Moment, context: &ActorContext) -> Option<TraceRecord> {
        let posted = self.posted.as_ref().filter(|_| evaluated.trigger == Trigger::Turn).map(|(posted, _)| posted.trace);
        let unanswered = self.unanswered.remove(&evaluated.companion).map(|(trace, _)| trace);
        let append = self.appends.take(evaluated.message);
        let open = self.open(turn, now, context);
        open.goes_on();
        if open.round.is_none() {
            open.turn.message = evaluated.message;
        }
        let turn = &mut open.turn;
        turn.trigger = turn.trigger.max(evaluated.trigger);
        turn.follows = posted.or(turn.follows).or(unanswered);
        turn.led_to_by(append);
        let turn = turn.clone();
        let counts = (evaluated.message_count, evaluated.check_count, evaluated.threshold);
        let call = PendingCall { counts, ..PendingCall::new(turn.clone(), evaluated.trigger, now) };
        self.flights.insert(evaluated.ticket, Box::new(call));
        append.map(|append| TraceRecord::Appended { turn, append })
    }

    fn decided(
        &mut self,
        decided: &Decided,
        turn: Option<TurnId>,
        now: Moment,
        context: &ActorContext,
        told: &mut Vec<TraceRecord>,
    ) {
        let counts = (decided.message_count, decided.check_count, decided.threshold);
        let Some(ticket) = decided.ticket else {
            let call = self.decided_without_a_call(decided, turn, now, context, told);
            let decided = Box::new(decided.clone());
            told.push(TraceRecord::Decided { decided, call: PendingCall { counts, ..call }, floor: None, at: now });
            return;
        };
        let call = self.landed(ticket).unwrap_or_else(|| self.unknown(turn, decided.trigger, now, context));
        if decided.reason == Reason::External {
            call.turn.wait_time.waited(call.since, now);
        }
        let call = PendingCall { counts, trigger: decided.trigger, ..call };
        let is_yes = decided.decision == Decision::Yes;
        let open = self.open(Some(call.turn.id), now, context);
        let mut floor = None;
        match &mut open.round {
            Some(round) if decided.vote.is_some() => {
                round.answers += 1;
                if is_yes {
                    round.wishes.push((decided.clone(), call, now));
                    return;
                }
                floor = Some("none");
            }
            _ if !is_yes => open.ends("silence", None),
            _ => {}
        }
        told.push(TraceRecord::Decided { decided: Box::new(decided.clone()), call, floor, at: now });
    }

    fn decided_without_a_call(
        &mut self,
        decided: &Decided,
        turn: Option<TurnId>,
        now: Moment,
        context: &ActorContext,
        told: &mut Vec<TraceRecord>,
    ) -> PendingCall {
        let unanswered = self.no_longer_asked(decided);
        let posted = self.posted.as_ref().filter(|_| decided.trigger == Trigger::Turn).map(|(posted, _)| posted.trace);
        if self.open(turn, now, context).round.is_some() {
            return self.unknown(turn, decided.trigger, now, context);
        }
        let append = decided.messages.last().and_then(|newest| self.appends.take(*newest));
        let open = self.open(turn, now, context);
        open.ends("silence", None);
        let turn = &mut open.turn;
        turn.trigger = turn.trigger.max(decided.trigger);
        turn.follows = posted.or(turn.follows).or(unanswered);
        turn.message = decided.messages.last().copied().unwrap_or(turn.message);
        turn.led_to_by(append);
        told.extend(append.map(|append| TraceRecord::Appended { turn: turn.clone(), append }));
        PendingCall::new(turn.clone(), decided.trigger, now)
    }

    /// The turn that asked in vain about what settles now without being asked about again, if one did.
    fn no_longer_asked(&mut self, decided: &Decided) -> Option<TurnTrace> {
        let settles = |(_, message): &(TurnTrace, Seq)| decided.messages.contains(message);
        let companion = decided.companions.iter().find(|companion| self.unanswered.get(*companion).is_some_and(settles))?;
        self.unanswered.remove(companion).map(|(trace, _)| trace)
    }

    fn round_closed(
        &mut self,
        closed: &RoundClosed,
        turn: Option<TurnId>,
        now: Moment,
        context: &ActorContext,
        told: &mut Vec<TraceRecord>,
    ) {
        // Stores of older formats do not say it.
        let turn = turn.or_else(|| self.turns.values().find(|open| open.round.is_some()).map(|open| open.turn.id));
        let open = self.open(turn, now, context);
        let Round { since, wishes, answers, errors } = open.round.take().unwrap_or_else(|| Round::new(now));
        let floor = |companion: &CompanionId| {
            let lost = closed.others.iter().any(|other| other.companion == *companion);
            if closed.selected.as_ref() == Some(companion) {
                "won"
            } else if lost {
                "lost"
            } else {
                "none"
            }
        };
        told.extend(wishes.into_iter().map(|(decided, call, at)| {
            let floor = decided.companions.first().map(floor);
            TraceRecord::Decided { decided: Box::new(decided), call, floor, at }
        }));
        let missing = errors.len();
        match closed.selected {
            Some(_) => open.turn.wait_time.waited(now, closed.speak_at.unwrap_or(now)),
            None => {
                let error = errors.into_iter().next().filter(|_| answers == 0);
                open.ends(if error.is_some() { "failed" } else { "silence" }, error);
            }
        }
        let turn = open.turn.clone();
        // Of whom nothing will be heard any more.
        self.flights.retain(|_, call| call.turn.id != turn.id);
        told.push(TraceRecord::Selection { turn, closed: Box::new(closed.clone()), missing, since, at: now });
    }

    /// Ends the turns that the conversation does not know any more, and forgets what can lead to nothing.
    fn end_turns(&mut self, conversation: &Conversation, now: Moment, told: &mut Vec<TraceRecord>) {
        let open: BTreeSet<_> = conversation.turns().collect();
        let over: Vec<_> = self.turns.keys().filter(|turn| !open.contains(turn)).copied().collect();
        for OpenTurn { turn, round, outcome, error } in over.iter().filter_map(|turn| self.turns.remove(turn)).map(|turn| *turn) {
            for call in self.flights.values().filter(|call| call.turn.id == turn.id) {
                if !call.is_called && call.written.is_none() {
                    turn.wait_time.waited(call.since, now);
                }
            }
            for (decided, call, at) in round.into_iter().flat_map(|round| round.wishes) {
                told.push(TraceRecord::Decided { decided: Box::new(decided), call, floor: Some("none"), at });
            }
            told.push(TraceRecord::Ended { turn, outcome, error });
        }
        let judged = conversation.open_judgement().map(|(ticket, _)| ticket);
        self.flights.retain(|ticket, call| Some(*ticket) == judged || self.turns.contains_key(&call.turn.id));
        if self.flights.is_empty() {
            self.flights.shrink_to_fit();
        }
        self.spent.retain(|ticket, _| self.flights.contains_key(ticket));
        // Whoever is not to be asked again, because all was cleared or it has left, follows nothing either.
        self.unanswered.retain(|companion, _| conversation.gate(companion).is_some_and(|gate| gate.back_off.is_some()));
        // What the conversation does not show any more leads to nothing.
        self.appends.let_go(conversation.window().entries().next().map_or(conversation.handled(), |entry| entry.seq));
    }

    /// Since when each question and reply is in flight.
    pub(super) fn since(&self) -> HashMap<Ticket, Moment> {
        self.flights.iter().map(|(ticket, call)| (*ticket, call.since)).collect()
    }

    pub(super) fn call(&self, ticket: Ticket, asked: &Request, answer: &str, facts: &PoolFacts) -> Call {
        Call {
            answer: answer.chars().take(ANSWER_KEPT_CHARS).collect::<String>().into(),
            prompt: asked.sizes.iter().map(|(part, tokens)| ((*part).into(), *tokens as u64)).collect(),
            provider: facts.identity.provider.clone(),
            model: facts.identity.model.clone(),
            wait_ms: facts.waited_ms,
            model_ms: facts.model_ms,
            input_tokens: facts.usage.input_tokens,
            output_tokens: facts.usage.output_tokens,
            trace: self.flights.get(&ticket).map(|call| call.turn.trace.to_string().into()),
        }
    }

    pub(super) fn spent(&mut self, ticket: Ticket, used: Used) {
        self.spent.entry(ticket).or_default().push(used);
    }

    pub(super) fn take_spent(&mut self, ticket: Ticket) -> Vec<Used> {
        self.spent.remove(&ticket).unwrap_or_default()
    }

    pub(super) fn called(
        &mut self,
        ticket: Ticket,
        asked: &Request,
        outcome: &Outcome,
        channel_key: &ChannelKey,
        context: &ActorContext,
    ) {
        if let Some(call) = self.flights.get_mut(&ticket) {
            let (ended, facts) = (context.clock.now(), &outcome.facts);
            call.is_called = true;
            call.turn.wait_time.waited(ended - Duration::from_millis(facts.waited_ms + facts.model_ms), ended);
        }
        let under = self.flights.get(&ticket).map(|call| call.turn.trace.of(ticket));
        tell_call(under, asked, outcome, channel_key, context);
    }

    /// The side model could not say how much the last messages repeat each other.
    pub(super) fn misjudged(&mut self, error: &str) {
        self.misjudged = Some(error.into());
    }

    /// The words of a reply are there. What no model wrote came from outside.
    pub(super) fn written(&mut self, ticket: Ticket, now: Moment) {
        if let Some(call) = self.flights.get_mut(&ticket) {
            call.written = Some(now);
            if !call.is_called {
                call.turn.wait_time.waited(call.since, now);
            }
        }
    }

    /// A platform took this long to post a reply.
    pub(super) fn sent(&mut self, ticket: Ticket, began: Moment, now: Moment) {
        if let Some(call) = self.flights.get_mut(&ticket) {
            call.sent = Some(now);
            call.turn.wait_time.waited(began, now);
        }
    }

    /// A question or a reply is in flight no more.
    fn landed(&mut self, ticket: Ticket) -> Option<PendingCall> {
        self.flights.remove(&ticket).map(|call| *call)
    }

    /// Something was said, and is on record: it may lead to something, or it is the statement with which a turn is over.
    pub(super) fn heard(&mut self, recorded: &Recorded, committed: Moment) -> Vec<TraceRecord> {
        let Event::Said { message, reply, .. } = &recorded.event else { return Vec::new() };
        let append = Append { seq: recorded.seq, taken: recorded.at, committed };
        let fulfilled = reply.and_then(|ticket| Some((ticket, self.landed(ticket)?)));
        let Some((ticket, call)) = fulfilled else {
            self.appends.remember(append);
            return Vec::new();
        };
        let turn = call.turn.clone();
        self.turns.remove(&turn.id);
        self.posted = Some((turn.clone(), recorded.seq));
        vec![
            TraceRecord::Posted { by: message.from.clone(), ticket, call, append },
            TraceRecord::Appended { turn: turn.clone(), append },
            TraceRecord::Ended { turn, outcome: "posted", error: None },
        ]
    }
}
