//! Derives the traces of turns from the journaled events. Each event has the id of its turn. The trace id is derived from it, unless the turn
//! continues after a restart.

mod calls;
mod resume;
mod trace_record;
mod turn;
mod wait_time;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::channel_context::ChannelContext;
use crate::actors::messages::models::{CallFacts as PoolFacts, Outcome};
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Conversation;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Call, Decided, Evaluated, Event, Made, Outvoted, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{Request, TokenUsage};
use crate::telemetry::messages::Append;
use crate::telemetry::model_calls::asked_together;
use crate::telemetry::rounds::{ClosingFacts, RepetitionFacts};
use crate::telemetry::trace::TurnTrace;
pub(super) use calls::{record_call, record_late_call};
pub(super) use trace_record::TraceRecord;
use turn::{Appends, OpenTurn, PendingCall, Round, Turn, Vote, utterance};

/// How many characters of a model's answer are journaled.
const JOURNALED_ANSWER_CHARS: usize = 1_000;

/// The error of a reply that a person cancelled.
const CANCELLED: &str = "cancelled";

/// The turn and the time of an event.
#[derive(Clone, Copy)]
struct At<'a> {
    turn: Option<TurnId>,
    now: Moment,
    context: &'a ActorContext,
}

impl At<'_> {
    const fn in_turn(self, turn: TurnId) -> Self {
        Self { turn: Some(turn), ..self }
    }
}

/// The turns in progress, and the measurements of their questions and replies.
#[derive(Default)]
pub(super) struct Traces {
    turns: BTreeMap<TurnId, Box<OpenTurn>>,
    /// Questions and replies in flight.
    pending_calls: HashMap<Ticket, Box<PendingCall>>,
    /// The turn of the newest statement, and the statement's number. The round that the statement opens links to this turn.
    posted: Option<(Turn, Seq)>,
    /// The error of the newest judgement, if it failed.
    judgement_error: Option<Arc<str>>,
    /// Companions whose last question failed, with the turn of the question and its message. The turn that asks again, or that settles the message
    /// without asking, links to that turn.
    unanswered: BTreeMap<CompanionId, (TurnTrace, Seq)>,
    appends: Appends,
}

impl Traces {
    /// The trace records of a step's events. They are emitted once the events are committed, or at once if there are none. A turn ends when the
    /// conversation no longer contains it.
    pub(super) fn follow(&mut self, made: &mut [Made], conversation: &Conversation, context: &ActorContext) -> Vec<TraceRecord> {
        let (now, mut records) = (context.clock.now(), Vec::new());
        for Made { event, turn, .. } in made {
            self.apply_event(event, At { turn: *turn, now, context }, &mut records);
            self.name_trace(event, *turn);
        }
        self.end_turns(conversation, now, &mut records);
        records
    }

    fn apply_event(&mut self, event: &Event, at: At<'_>, records: &mut Vec<TraceRecord>) {
        let At { turn, now, context } = at;
        match event {
            Event::RoundOpened(opened) => {
                let follows = self.posted.as_ref().filter(|(_, said)| *said == opened.message).map(|(posted, _)| posted.trace);
                let open = self.open(at);
                open.turn.message = opened.message;
                open.turn.follows = follows.or(open.turn.follows);
                open.round = Some(Round::new(now));
                open.start_call();
            }
            Event::Evaluated(evaluated) => {
                // The companion is asked again. Its earlier vote to speak does not count any more.
                let is_its = |vote: &mut Vote| vote.0.companions.contains(&evaluated.companion);
                let before = self.turns.values_mut().flat_map(|open| open.votes.extract_if(.., is_its));
                records.extend(before.map(|vote| TraceRecord::vote(vote, None, &[])));
                records.extend(self.asked(evaluated, at));
            }
            Event::Decided(decided) => self.decided(decided, at, records),
            Event::Unanswered { companion, ticket, error, .. } => {
                let call = self.take_pending_call(*ticket).unwrap_or_else(|| self.call_without_start(Trigger::Lull, at));
                self.unanswered.insert(companion.clone(), (call.turn.trace, call.turn.message));
                let open = self.open(at.in_turn(call.turn.id));
                match &mut open.round {
                    Some(round) => round.errors.push(error.clone()),
                    None => open.end_with("failed", Some(error.clone())),
                }
                let (companion, ticket, error) = (companion.clone(), *ticket, error.clone());
                records.push(TraceRecord::Unanswered { companion, ticket, error, call, at: now });
            }
            Event::RoundClosed(closed) => self.round_closed(closed, at, records),
            Event::StageChanged { companion, from, to, cause } => {
                // Changes that a posted statement causes belong to the turn that it ended.
                let under = turn.map(|turn| match &self.posted {
                    Some((posted, _)) if posted.id == turn => posted.trace,
                    _ => self.open(at).turn.trace,
                });
                let (companion, from, to, cause) = (companion.clone(), *from, *to, *cause);
                records.push(TraceRecord::Closing(ClosingFacts { under, companion, from, to, cause, at: now }));
            }
            Event::RepetitionAsked { ticket, .. } => {
                let posted = self.posted.as_ref().map(|(posted, _)| posted.clone());
                let posted = posted.unwrap_or_else(|| Turn::new(turn, now, context));
                self.pending_calls.insert(*ticket, Box::new(PendingCall::new(posted, Trigger::Turn, now)));
            }
            Event::RepetitionJudged { score, detections, call, .. } => {
                let posted = self.posted.as_ref().map(|(posted, _)| (posted.id, posted.trace));
                let belongs_to_posted = |call: &PendingCall| posted.is_some_and(|(id, _)| call.turn.id == id);
                let asked = self.pending_calls.iter().find(|(_, call)| belongs_to_posted(call));
                let asked = asked.map(|(ticket, call)| (*ticket, call.since));
                self.pending_calls.retain(|_, call| !belongs_to_posted(call));
                if let Some(open_turn) = posted.and_then(|(id, _)| self.turns.get_mut(&id)) {
                    open_turn.end_with("posted", None);
                }
                records.push(TraceRecord::Repetition(RepetitionFacts {
                    under: posted.map(|(_, trace)| trace),
                    ticket: asked.map(|(ticket, _)| ticket),
                    score: *score,
                    detections: *detections,
                    judge: if asked.is_some() || call.is_some() { "model" } else { "lexical" },
                    error_type: self.judgement_error.take(),
                    started: asked.map_or(now, |(_, since)| since),
                    ended: now,
                }));
            }
            Event::ReplyOwed { ticket, trigger, .. } => {
                let open = self.open(at);
                open.start_call();
                let call = PendingCall::new(open.turn.clone(), *trigger, now);
                self.pending_calls.insert(*ticket, Box::new(call));
            }
            Event::ReplyFailed { companion, ticket, error, .. } => {
                if let Some(turn) = self.pending_calls.get(ticket).map(|call| call.turn.id) {
                    self.open(at.in_turn(turn)).end_with("failed", Some(error.clone()));
                }
                records.extend(self.without_statement(companion, *ticket, error, now));
            }
            Event::Replanned { companion, ticket, next, trigger, .. }
            | Event::ReplyExtended { companion, ticket, next, trigger, .. } => {
                let stopped = self.take_pending_call(*ticket);
                let open = self.open(at);
                let call = PendingCall::new(open.turn.clone(), *trigger, now);
                self.pending_calls.insert(*next, Box::new(call));
                records.extend(stopped.map(|call| TraceRecord::StatementFailed {
                    companion: companion.clone(),
                    ticket: *ticket,
                    error: "replanned".into(),
                    call,
                    at: now,
                }));
            }
            Event::Cancelled { companion, ticket, .. } => {
                self.open(at).end_with("cancelled", None);
                records.extend(ticket.iter().flat_map(|ticket| self.without_statement(companion, *ticket, CANCELLED, now)));
            }
            Event::SentenceStarting { ticket, sentence, .. } => {
                if let Some(call) = self.pending_calls.get_mut(ticket) {
                    call.plays(*sentence, (0, false), now);
                }
            }
            Event::SentencePlayed { ticket, sentence, ms, dropped, .. } => {
                if let Some(call) = self.pending_calls.get_mut(ticket) {
                    call.plays(*sentence, (*ms, *dropped), now);
                }
            }
            Event::Interrupted { companion, interrupted, .. } => {
                let turn = self.open(at).turn.clone();
                let (companion, interrupted) = (companion.clone(), Box::new(interrupted.clone()));
                records.push(TraceRecord::Interruption { turn, companion, interrupted, at: now });
            }
            Event::HeldSelected { selected, others } => self.held_selected(selected, others, now, records),
            Event::ToolAnswered(answered) => {
                let started = now - Duration::from_millis(answered.answer.ms);
                let call = self.pending_calls.get(&answered.ticket);
                if let Some(call) = call {
                    call.turn.wait_time.waited(started, now);
                }
                let under = call.map(|call| call.turn.trace.of(answered.ticket));
                records.push(TraceRecord::ToolCalled { under, answered: answered.clone(), times: (started, now) });
            }
            // The other events do not appear in traces. Inbound events are traced by `receive` once they are committed, and through the turns that
            // they trigger.
            _ => {}
        }
    }

    /// The records of a reply in flight that has ended without a statement.
    fn without_statement(&mut self, companion: &CompanionId, ticket: Ticket, error: &str, now: Moment) -> Vec<TraceRecord> {
        let Some(mut call) = self.take_pending_call(ticket) else { return Vec::new() };
        call.end_waiting_for_listeners(now);
        let (companion, error) = (companion.clone(), error.into());
        let played = played(&mut call, &companion, "unheard");
        played.into_iter().chain([TraceRecord::StatementFailed { companion, ticket, error, call, at: now }]).collect()
    }

    /// Stores the trace id in a decision without a call, if the id is not derived from its turn because the turn continues after a restart.
    fn name_trace(&self, event: &mut Event, turn: Option<TurnId>) {
        let Event::Decided(Decided { call: None, trace, .. }) = event else { return };
        let open = turn.and_then(|turn| self.turns.get(&turn)).map(|open| &open.turn);
        let continued = open.filter(|open| open.trace != TurnTrace::of_turn(open.id));
        *trace = continued.map(|open| open.trace.to_string().into());
    }

    /// The turn of an event. Opens it if necessary.
    fn open(&mut self, At { turn, now, context }: At<'_>) -> &mut OpenTurn {
        let turn = turn.unwrap_or_else(|| TurnId(context.rng.id()));
        self.turns.entry(turn).or_insert_with(|| Box::new(OpenTurn::new(Turn::new(Some(turn), now, context))))
    }

    /// A call in flight in this turn whose start is unknown.
    fn call_without_start(&mut self, trigger: Trigger, at: At<'_>) -> PendingCall {
        PendingCall::new(self.open(at).turn.clone(), trigger, at.now)
    }

    fn asked(&mut self, evaluated: &Evaluated, at: At<'_>) -> Option<TraceRecord> {
        let posted = self.posted.as_ref().filter(|_| evaluated.trigger == Trigger::Turn).map(|(posted, _)| posted.trace);
        let unanswered = self.unanswered.remove(&evaluated.companion).map(|(trace, _)| trace);
        // A long silence was not triggered by the message before it.
        let append = self.appends.remove(evaluated.message).filter(|_| evaluated.trigger.needs_a_message());
        let open = self.open(at);
        open.start_call();
        if open.round.is_none() {
            open.turn.message = evaluated.message;
        }
        let turn = &mut open.turn;
        turn.trigger = turn.trigger.max(evaluated.trigger);
        turn.follows = posted.or(turn.follows).or(unanswered);
        turn.triggered_by(append);
        let turn = turn.clone();
        let counts = (evaluated.message_count, evaluated.check_count, evaluated.threshold);
        let call = PendingCall { counts, ..PendingCall::new(turn.clone(), evaluated.trigger, at.now) };
        self.pending_calls.insert(evaluated.ticket, Box::new(call));
        append.map(|append| TraceRecord::Appended { turn, append })
    }

    fn decided(&mut self, decided: &Decided, at: At<'_>, records: &mut Vec<TraceRecord>) {
        let now = at.now;
        let counts = (decided.message_count, decided.check_count, decided.threshold);
        let Some(ticket) = decided.ticket else {
            let call = self.decided_without_a_call(decided, at, records);
            let decided = Box::new(decided.clone());
            records.push(TraceRecord::Decided { decided, call: PendingCall { counts, ..call }, floor: None, at: now });
            return;
        };
        let call = self.take_pending_call(ticket).unwrap_or_else(|| self.call_without_start(decided.trigger, at));
        if decided.reason == Reason::External {
            call.turn.wait_time.waited(call.since, now);
        }
        let call = PendingCall { counts, trigger: decided.trigger, ..call };
        let is_yes = decided.decision == Decision::Yes;
        let open = self.open(at.in_turn(call.turn.id));
        let mut floor = None;
        match &mut open.round {
            Some(round) if decided.vote.is_some() => {
                round.answers += 1;
                if is_yes {
                    open.votes.push((decided.clone(), call, now));
                    return;
                }
                floor = Some("none");
            }
            // The question was retracted. The round continues.
            Some(_) if decided.reason == Reason::Cancelled => {}
            _ if !is_yes => open.end_with("silence", None),
            _ => {}
        }
        records.push(TraceRecord::Decided { decided: Box::new(decided.clone()), call, floor, at: now });
    }

    fn decided_without_a_call(&mut self, decided: &Decided, at: At<'_>, records: &mut Vec<TraceRecord>) -> PendingCall {
        let now = at.now;
        let unanswered = self.unanswered_turn(decided);
        let posted = self.posted.as_ref().filter(|_| decided.trigger == Trigger::Turn).map(|(posted, _)| posted.trace);
        if self.open(at).round.is_some() {
            return self.call_without_start(decided.trigger, at);
        }
        let append = decided.messages.last().and_then(|newest| self.appends.remove(*newest));
        let open = self.open(at);
        match decided.decision {
            Decision::No => open.end_with("silence", None),
            // An event must be acknowledged.
            Decision::Yes => open.turn.wait_time.waited(now, decided.speak_at.unwrap_or(now)),
        }
        let turn = &mut open.turn;
        turn.trigger = turn.trigger.max(decided.trigger);
        turn.follows = posted.or(turn.follows).or(unanswered);
        turn.message = decided.messages.last().copied().unwrap_or(turn.message);
        turn.triggered_by(append);
        records.extend(append.map(|append| TraceRecord::Appended { turn: turn.clone(), append }));
        PendingCall::new(turn.clone(), decided.trigger, now)
    }

    /// The turn of a failed question about these messages, if they settle now without another question.
    fn unanswered_turn(&mut self, decided: &Decided) -> Option<TurnTrace> {
        let settles = |(_, message): &(TurnTrace, Seq)| decided.messages.contains(message);
        let companion = decided.companions.iter().find(|companion| self.unanswered.get(*companion).is_some_and(settles))?;
        self.unanswered.remove(companion).map(|(trace, _)| trace)
    }

    fn round_closed(&mut self, closed: &RoundClosed, at: At<'_>, records: &mut Vec<TraceRecord>) {
        let now = at.now;
        let open = self.open(at);
        let Round { since, answers, errors } = open.round.take().unwrap_or_else(|| Round::new(now));
        let is_held = |vote: &Vote| vote.0.companions.iter().any(|companion| closed.held.contains(companion));
        let votes = open.votes.extract_if(.., |vote| !is_held(vote));
        records.extend(votes.map(|vote| TraceRecord::vote(vote, closed.selected.as_ref(), &closed.others)));
        let missing = errors.len();
        match closed.selected {
            Some(_) => open.turn.wait_time.waited(now, closed.speak_at.unwrap_or(now)),
            None if !closed.held.is_empty() => {}
            None => {
                let error = errors.into_iter().next().filter(|_| answers == 0);
                open.end_with(if error.is_some() { "failed" } else { "silence" }, error);
            }
        }
        let turn = open.turn.clone();
        // Answers to these calls no longer count.
        self.pending_calls.retain(|_, call| call.turn.id != turn.id);
        records.push(TraceRecord::Selection { turn, closed: Box::new(closed.clone()), missing, since, at: now });
    }

    /// Records that held votes got the floor, lost it, or were dropped before.
    fn held_selected(&mut self, selected: &CompanionId, others: &[Outvoted], now: Moment, records: &mut Vec<TraceRecord>) {
        let closed = self.turns.values_mut().filter(|open| open.round.is_none());
        for OpenTurn { turn, votes, .. } in closed.map(|open| &mut **open) {
            for vote in votes.drain(..) {
                if vote.0.companions.contains(selected) {
                    turn.wait_time.waited(vote.2, now);
                }
                records.push(TraceRecord::vote(vote, Some(selected), others));
            }
        }
    }

    /// Drops the turns that the conversation no longer contains, without records. The predecessor may have emitted them.
    pub(super) fn forget_ended(&mut self, conversation: &Conversation, now: Moment) {
        self.end_turns(conversation, now, &mut Vec::new());
    }

    /// Ends the turns that the conversation no longer contains, and drops state that is no longer needed.
    fn end_turns(&mut self, conversation: &Conversation, now: Moment, records: &mut Vec<TraceRecord>) {
        let open: BTreeSet<_> = conversation.turn_ids().collect();
        let over: Vec<_> = self.turns.keys().filter(|turn| !open.contains(turn)).copied().collect();
        for OpenTurn { turn, votes, outcome, error, .. } in
            over.iter().filter_map(|turn| self.turns.remove(turn)).map(|turn| *turn)
        {
            for call in self.pending_calls.values().filter(|call| call.turn.id == turn.id) {
                if !call.is_called && call.written.is_none() {
                    turn.wait_time.waited(call.since, now);
                }
            }
            records.extend(votes.into_iter().map(|vote| TraceRecord::vote(vote, None, &[])));
            records.push(TraceRecord::Ended { turn, outcome, error, heard_since: None });
        }
        let judged = conversation.turns().open_judgement().map(|(ticket, _)| ticket);
        self.pending_calls.retain(|ticket, call| Some(*ticket) == judged || self.turns.contains_key(&call.turn.id));
        if self.pending_calls.is_empty() {
            self.pending_calls.shrink_to_fit();
        }
        // A companion that will not be asked again, because the channel was cleared or the companion left, needs no link to its last question.
        self.unanswered.retain(|companion, _| conversation.gate(companion).is_some_and(|gate| gate.back_off.is_some()));
        // A message outside the conversation's window can no longer trigger a turn.
        self.appends.drop_below(conversation.window().entries().next().map_or(conversation.handled(), |entry| entry.seq));
    }

    /// The turn whose trace contains a question or reply in flight. After a restart it differs from the turn in the conversation.
    pub(super) fn turn_of(&self, ticket: Ticket) -> Option<TurnId> {
        self.pending_calls.get(&ticket).map(|call| TurnId(call.turn.trace.as_u128()))
    }

    /// When each question and reply in flight started.
    pub(super) fn since(&self) -> HashMap<Ticket, Moment> {
        self.pending_calls.iter().map(|(ticket, call)| (*ticket, call.since)).collect()
    }

    /// The record of a call. If the call asked several companions, `answer` is one companion's part, and the tokens are in the usage of the room.
    pub(super) fn call(&self, ticket: Ticket, asked: &Request, answer: &str, facts: &PoolFacts) -> Call {
        let asked_together = asked_together(asked);
        let usage = if asked_together.is_some() { TokenUsage::default() } else { facts.usage };
        Call {
            answer: answer.chars().take(JOURNALED_ANSWER_CHARS).collect::<String>().into(),
            shown: asked.shown,
            prompt: asked.sizes.iter().map(|(part, tokens)| ((*part).into(), *tokens as u64)).collect(),
            provider: facts.identity.provider.clone(),
            model: facts.identity.model.clone(),
            wait_ms: facts.waited_ms,
            model_ms: facts.model_ms,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            asked_together,
            trace: self.pending_calls.get(&ticket).map(|call| call.turn.trace.to_string().into()),
        }
    }

    /// Whether this question or reply is in flight.
    pub(super) fn is_in_flight(&self, ticket: Ticket) -> bool {
        self.pending_calls.contains_key(&ticket)
    }

    /// Records the end of a call for these questions. The span of a call for several companions is under their turn.
    pub(super) fn called(&mut self, tickets: &[Ticket], asked: &Request, outcome: &Outcome, channel: &ChannelContext) {
        let (ended, facts) = (channel.machine_time(), &outcome.facts);
        let mut under = None;
        for ticket in tickets {
            let Some(call) = self.pending_calls.get_mut(ticket) else { continue };
            call.is_called = true;
            call.turn.wait_time.waited(ended - Duration::from_millis(facts.waited_ms + facts.model_ms), ended);
            let trace = call.turn.trace;
            under = Some(if tickets.len() > 1 { trace.root() } else { trace.of(*ticket) });
        }
        // An earlier answer that is used because its repetition failed was recorded before.
        if outcome.facts.attempts > 0 || outcome.result.is_err() {
            record_call(under, asked, outcome, channel);
        }
    }

    /// Sets the error of a failed judgement by the side model.
    pub(super) fn record_judgement_error(&mut self, error: &str) {
        self.judgement_error = Some(error.into());
    }

    /// Records the arrival of a reply's text, or the end of the playback of a reply whose text arrived before. Without a model call the text came
    /// from an external companion.
    pub(super) fn written(&mut self, ticket: Ticket, now: Moment) {
        let Some(call) = self.pending_calls.get_mut(&ticket) else { return };
        if call.written.is_some() {
            call.end_waiting_for_listeners(now);
            call.spoken = Some(now);
        } else {
            call.written = Some(now);
            if !call.is_called {
                call.turn.wait_time.waited(call.since, now);
            }
        }
    }

    /// Records that the text of a spoken reply is complete. If the player restarts, this is called again, and has no effect.
    pub(super) fn said_all(&mut self, ticket: Ticket, now: Moment) {
        if self.pending_calls.get(&ticket).is_some_and(|call| call.written.is_none()) {
            self.written(ticket, now);
        }
    }

    /// Records that a platform has posted a reply. Posting started at `began`.
    pub(super) fn sent(&mut self, ticket: Ticket, began: Moment, now: Moment) {
        if let Some(call) = self.pending_calls.get_mut(&ticket) {
            call.sent = Some(now);
            call.turn.wait_time.waited(began, now);
        }
    }

    /// Removes and returns a question or reply in flight.
    fn take_pending_call(&mut self, ticket: Ticket) -> Option<PendingCall> {
        self.pending_calls.remove(&ticket).map(|call| *call)
    }

    /// Handles a journaled message. It may trigger a turn, or it is the statement that ends one.
    pub(super) fn receive(&mut self, recorded: &Recorded, committed: Moment) -> Vec<TraceRecord> {
        if let (Event::Disclosed(disclosed), Some((turn, _))) =
            (&recorded.event, self.posted.as_ref().filter(|(turn, _)| Some(turn.id) == recorded.turn))
        {
            return vec![TraceRecord::Disclosed { turn: turn.clone(), disclosed: disclosed.clone(), at: recorded.at }];
        }
        let Event::Said { message, reply, .. } = &recorded.event else { return Vec::new() };
        let append = Append { seq: recorded.seq, taken: recorded.at, committed, utterance: None };
        let fulfilled = reply.and_then(|ticket| Some((ticket, self.take_pending_call(ticket)?)));
        let Some((ticket, mut call)) = fulfilled else {
            self.appends.remember(append);
            return Vec::new();
        };
        let turn = call.turn.clone();
        self.turns.remove(&turn.id);
        self.posted = Some((turn.clone(), recorded.seq));
        let heard_since = call.playback.as_ref().map(|playback| playback.began);
        let outcome = if message.cut.is_some() { "cut" } else { "whole" };
        let played = played(&mut call, &CompanionId::from(&*message.from.id), outcome);
        let posted = [
            TraceRecord::Posted { by: message.from.clone(), ticket, call, append },
            TraceRecord::Appended { turn: turn.clone(), append },
            TraceRecord::Ended { turn, outcome: "posted", error: None, heard_since },
        ];
        played.into_iter().chain(posted).collect()
    }

    /// Remembers the messages of a hand-over. None of them is a statement.
    pub(super) fn receive_hand_over(&mut self, batch: &[Recorded], committed: Moment) {
        let utterance = utterance(batch);
        for recorded in batch {
            self.appends.remember(Append { seq: recorded.seq, taken: recorded.at, committed, utterance });
        }
    }
}

/// The playback record of a reply that has ended. None if playback had not begun.
fn played(call: &mut PendingCall, companion: &CompanionId, outcome: &'static str) -> Option<TraceRecord> {
    let playback = call.playback.take()?;
    Some(TraceRecord::Played { turn: call.turn.clone(), companion: companion.clone(), playback, outcome })
}
