//! Which trace each question and reply belongs to: one for each trigger group, from its questions to silence or to one statement.

mod calls;
mod effort;
mod resume;
mod tale;
mod turn;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::models::{CallFacts as PoolFacts, Outcome};
use crate::actors::runtime::kit::Kit;
use crate::domain::closing::Cause;
use crate::domain::conversation::Conversation;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Call, Decided, Evaluated, Event, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;
use crate::journal::record::Used;
use crate::ports::language_model::Request;
use crate::telemetry::trace::TurnTrace;
pub(super) use calls::{tell_call, tell_late_call};
pub(super) use tale::Tale;
use turn::{Append, Appends, Flight, Open, Turn};

/// So much of an answer is kept on record.
const ANSWER_KEPT_CHARS: usize = 1_000;

/// The turns in flight.
#[derive(Default)]
pub(super) struct Traces {
    /// Questions and replies, by their number.
    flights: HashMap<Ticket, Box<Flight>>,
    /// What the batch at hand begins, until a question or a round takes it over.
    batch: Option<Turn>,
    /// Stages that changed in the batch at hand, by what was heard.
    changed: Vec<Tale>,
    round: Option<Box<Open>>,
    /// The turn of whoever was selected and does not speak yet.
    selected: Option<Turn>,
    /// Why the statement of that turn failed, if one has and nobody has taken over.
    failed: Option<Arc<str>>,
    /// The turn of the newest statement: the round that it opens follows it.
    posted: Option<Turn>,
    /// The number of that statement.
    spoken: Seq,
    /// A turn that only has its statement judged, because the server was restarted before that was done.
    judged_again: Option<Box<Turn>>,
    /// Why the newest judgement could not be made.
    misjudged: Option<Arc<str>>,
    /// The turns of those who were asked and gave no answer, and the message that it was about: what asks them next, or settles that
    /// message without asking, follows.
    unanswered: BTreeMap<CompanionId, (TurnTrace, Seq)>,
    appends: Appends,
    spent: HashMap<Ticket, Vec<Used>>,
}

impl Traces {
    /// Goes along with what is put on record, and gives what is to be told of it once it is committed.
    pub(super) fn follow(&mut self, event: &mut Event, now: Moment, kit: &Kit) -> Vec<Tale> {
        self.followed(event, now, kit)
    }

    fn followed(&mut self, event: &Event, now: Moment, kit: &Kit) -> Vec<Tale> {
        match event {
            Event::RoundOpened(opened) => {
                let mut turn = Turn { message: opened.message, ..self.batch.take().unwrap_or_else(|| Turn::new(now, kit)) };
                if opened.message == self.spoken {
                    turn.follows = self.posted.as_ref().map(|posted| posted.trace);
                }
                self.round = Some(Box::new(Open::new(turn, now)));
                Vec::new()
            }
            Event::Evaluated(evaluated) => self.asked(evaluated, now, kit).into_iter().collect(),
            Event::Decided(decided) => self.decided(decided, now, kit),
            Event::Unanswered { companion, ticket, error, .. } => {
                let flight = self.landed(*ticket).unwrap_or_else(|| Flight::new(Turn::new(now, kit), Trigger::Lull, now));
                let turn = flight.turn.clone();
                self.unanswered.insert(companion.clone(), (turn.trace, turn.message));
                let (companion, ticket) = (companion.clone(), *ticket);
                let mut told = vec![Tale::Unanswered { companion, ticket, error: error.clone(), flight, at: now }];
                match &mut self.round {
                    Some(round) => round.errors.push(error.clone()),
                    None => told.push(Tale::Ended { turn, outcome: "failed", error: Some(error.clone()) }),
                }
                told
            }
            Event::RoundClosed(closed) => self.round_closed(closed, now, kit),
            Event::StageChanged { companion, from, to, cause } => {
                let under = match cause {
                    Cause::State => self.round.as_ref().map(|round| round.turn.trace),
                    Cause::MaxTurns | Cause::Repetition => self.posted.as_ref().map(|turn| turn.trace),
                    Cause::DirectAddress | Cause::ReopenAfter | Cause::NewEpisode => None,
                };
                let told = Tale::Closing { companion: companion.clone(), from: *from, to: *to, cause: *cause, at: now, under };
                match cause {
                    Cause::DirectAddress | Cause::ReopenAfter | Cause::NewEpisode => {
                        self.changed.push(told);
                        Vec::new()
                    }
                    Cause::State | Cause::MaxTurns | Cause::Repetition => vec![told],
                }
            }
            Event::RepetitionAsked { ticket, .. } => {
                let turn = self.posted.clone().unwrap_or_else(|| Turn::new(now, kit));
                self.flights.insert(*ticket, Box::new(Flight::new(turn, Trigger::Turn, now)));
                Vec::new()
            }
            Event::RepetitionJudged { score, detections, call, .. } => {
                let under = self.posted.as_ref().map(|turn| turn.trace);
                let asked = self.flights.iter().find(|(_, flight)| Some(flight.turn.trace) == under);
                let asked = asked.map(|(ticket, flight)| (*ticket, flight.since));
                self.flights.retain(|_, flight| Some(flight.turn.trace) != under);
                let (error, is_by_model) = (self.misjudged.take(), asked.is_some() || call.is_some());
                let (score, detections) = (*score, *detections);
                let mut told = vec![Tale::Repetition { score, detections, asked, is_by_model, error, at: now, under }];
                let again = self.judged_again.take();
                told.extend(again.map(|turn| Tale::Ended { turn: *turn, outcome: "posted", error: None }));
                told
            }
            Event::ReplyOwed { ticket, trigger, .. } => {
                self.failed = None;
                let turn = self.selected.take().unwrap_or_else(|| Turn::new(now, kit));
                self.flights.insert(*ticket, Box::new(Flight::new(turn, *trigger, now)));
                Vec::new()
            }
            Event::ReplyFailed { companion, ticket, error, .. } => {
                self.spent.remove(ticket);
                let Some(flight) = self.landed(*ticket) else { return Vec::new() };
                self.selected = Some(flight.turn.clone());
                self.failed = Some(error.clone());
                vec![Tale::StatementFailed {
                    companion: companion.clone(),
                    ticket: *ticket,
                    error: error.clone(),
                    flight,
                    at: now,
                }]
            }
            _ => Vec::new(),
        }
    }

    /// Everything that a batch holds was followed: what led to no question is over.
    pub(super) fn end_of_batch(&mut self) -> Vec<Tale> {
        let under = self.batch.as_ref().or(self.round.as_ref().map(|round| &round.turn)).map(|turn| turn.trace);
        let mut told: Vec<_> = std::mem::take(&mut self.changed).into_iter().map(|change| change.under(under)).collect();
        told.extend(self.batch.take().map(|turn| Tale::Ended { turn, outcome: "silence", error: None }));
        if let Some(error) = self.failed.take() {
            let turn = self.selected.take();
            told.extend(turn.map(|turn| Tale::Ended { turn, outcome: "failed", error: Some(error) }));
        }
        told
    }

    fn asked(&mut self, evaluated: &Evaluated, now: Moment, kit: &Kit) -> Option<Tale> {
        let mut turn = match &self.round {
            Some(round) => round.turn.clone(),
            None => Turn { message: evaluated.message, ..self.batch.take().unwrap_or_else(|| Turn::new(now, kit)) },
        };
        turn.trigger = turn.trigger.max(evaluated.trigger);
        if evaluated.trigger == Trigger::Turn {
            turn.follows = self.posted.as_ref().map(|posted| posted.trace);
        }
        let unanswered = self.unanswered.remove(&evaluated.companion).map(|(trace, _)| trace);
        turn.follows = turn.follows.or(unanswered);
        let append = self.appends.take(evaluated.message);
        turn.led_to_by(append);
        if let Some(round) = &mut self.round {
            round.turn = turn.clone();
        }
        let counts = (evaluated.message_count, evaluated.check_count, evaluated.threshold);
        let flight = Flight { counts, ..Flight::new(turn.clone(), evaluated.trigger, now) };
        self.flights.insert(evaluated.ticket, Box::new(flight));
        append.map(|append| Tale::Appended { turn, append })
    }

    fn decided(&mut self, decided: &Decided, now: Moment, kit: &Kit) -> Vec<Tale> {
        let counts = (decided.message_count, decided.check_count, decided.threshold);
        let Some(ticket) = decided.ticket else {
            let unanswered = self.no_longer_asked(decided);
            let mut append = None;
            let turn = match &self.round {
                Some(round) => round.turn.clone(),
                None => {
                    let turn = self.batch.get_or_insert_with(|| Turn::new(now, kit));
                    turn.trigger = turn.trigger.max(decided.trigger);
                    if decided.trigger == Trigger::Turn {
                        turn.follows = self.posted.as_ref().map(|posted| posted.trace);
                    }
                    turn.follows = turn.follows.or(unanswered);
                    turn.message = decided.messages.last().copied().unwrap_or(turn.message);
                    append = self.appends.take(turn.message);
                    turn.led_to_by(append);
                    turn.clone()
                }
            };
            let appended = append.map(|append| Tale::Appended { turn: turn.clone(), append });
            let flight = Flight { counts, ..Flight::new(turn, decided.trigger, now) };
            let told = Tale::Decided { decided: Box::new(decided.clone()), flight, floor: None, at: now };
            return appended.into_iter().chain([told]).collect();
        };
        let flight = self.landed(ticket).unwrap_or_else(|| {
            let turn = self.round.as_ref().map_or_else(|| Turn::new(now, kit), |round| round.turn.clone());
            Flight::new(turn, decided.trigger, now)
        });
        if decided.reason == Reason::External {
            flight.turn.effort.waited(flight.since, now);
        }
        let flight = Flight { counts, trigger: decided.trigger, ..flight };
        let is_yes = decided.decision == Decision::Yes;
        if decided.vote.is_some()
            && let Some(round) = &mut self.round
        {
            round.answers += 1;
            if is_yes {
                round.wishes.push((decided.clone(), flight, now));
                return Vec::new();
            }
            return vec![Tale::Decided { decided: Box::new(decided.clone()), flight, floor: Some("none"), at: now }];
        }
        let turn = flight.turn.clone();
        let mut told = vec![Tale::Decided { decided: Box::new(decided.clone()), flight, floor: None, at: now }];
        if is_yes {
            self.selected = Some(turn);
        } else {
            told.push(Tale::Ended { turn, outcome: "silence", error: None });
        }
        told
    }

    /// The turn that asked in vain about what settles now without being asked about again, if one did.
    fn no_longer_asked(&mut self, decided: &Decided) -> Option<TurnTrace> {
        let settles = |(_, message): &(TurnTrace, Seq)| decided.messages.contains(message);
        let companion = decided.companions.iter().find(|companion| self.unanswered.get(*companion).is_some_and(settles))?;
        self.unanswered.remove(companion).map(|(trace, _)| trace)
    }

    fn round_closed(&mut self, closed: &RoundClosed, now: Moment, kit: &Kit) -> Vec<Tale> {
        let round = self.round.take().map(|round| *round).unwrap_or_else(|| Open::new(Turn::new(now, kit), now));
        let Open { turn, since, wishes, answers, errors } = round;
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
        let mut told: Vec<_> = wishes
            .into_iter()
            .map(|(decided, flight, at)| {
                let floor = decided.companions.first().map(floor);
                Tale::Decided { decided: Box::new(decided), flight, floor, at }
            })
            .collect();
        // Of whom nothing will be heard any more.
        self.flights.retain(|_, flight| flight.turn.trace != turn.trace);
        told.push(Tale::Selection {
            turn: turn.clone(),
            closed: Box::new(closed.clone()),
            missing: errors.len(),
            since,
            at: now,
        });
        if closed.selected.is_some() {
            turn.effort.waited(now, closed.speak_at.unwrap_or(now));
            self.selected = Some(turn);
        } else {
            let error = errors.into_iter().next().filter(|_| answers == 0);
            told.push(Tale::Ended { turn, outcome: if error.is_some() { "failed" } else { "silence" }, error });
        }
        told
    }

    /// Since when each question and reply is in flight.
    pub(super) fn since(&self) -> HashMap<Ticket, Moment> {
        self.flights.iter().map(|(ticket, flight)| (*ticket, flight.since)).collect()
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
            trace: self.flights.get(&ticket).map(|flight| flight.turn.trace.to_string().into()),
        }
    }

    pub(super) fn spent(&mut self, ticket: Ticket, used: Used) {
        self.spent.entry(ticket).or_default().push(used);
    }

    pub(super) fn take_spent(&mut self, ticket: Ticket) -> Vec<Used> {
        self.spent.remove(&ticket).unwrap_or_default()
    }

    pub(super) fn called(&mut self, ticket: Ticket, asked: &Request, outcome: &Outcome, place: &Place, kit: &Kit) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            let (ended, facts) = (kit.clock.now(), &outcome.facts);
            flight.is_called = true;
            flight.turn.effort.waited(ended - Duration::from_millis(facts.waited_ms + facts.model_ms), ended);
        }
        let under = self.flights.get(&ticket).map(|flight| flight.turn.trace.of(ticket));
        tell_call(under, asked, outcome, place, kit);
    }

    /// The side model could not say how much the last messages repeat each other.
    pub(super) fn misjudged(&mut self, error: &str) {
        self.misjudged = Some(error.into());
    }

    /// The words of a reply are there. What no model wrote came from outside.
    pub(super) fn written(&mut self, ticket: Ticket, now: Moment) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.written = Some(now);
            if !flight.is_called {
                flight.turn.effort.waited(flight.since, now);
            }
        }
    }

    /// A platform took this long to post a reply.
    pub(super) fn sent(&mut self, ticket: Ticket, began: Moment, now: Moment) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.sent = Some(now);
            flight.turn.effort.waited(began, now);
        }
    }

    /// Nobody waits for a question or a reply any more. A round goes on without it.
    pub(super) fn cancelled(&mut self, ticket: Ticket, place: &Place, kit: &Kit) {
        self.spent.remove(&ticket);
        let Some(flight) = self.landed(ticket) else { return };
        if !flight.is_called && flight.written.is_none() {
            flight.turn.effort.waited(flight.since, kit.clock.now());
        }
        let is_of = |turn: &Turn| turn.trace == flight.turn.trace;
        let is_told = self.posted.as_ref().is_some_and(is_of) && self.judged_again.take_if(|turn| is_of(turn)).is_none();
        let goes_on = is_told || self.round.as_ref().is_some_and(|round| is_of(&round.turn));
        if !goes_on {
            Tale::Ended { turn: flight.turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
    }

    /// Ends what the conversation has dropped: a round that was cleared, whoever was selected and may not speak any more, a retry.
    pub(super) fn abandon(&mut self, conversation: &Conversation, place: &Place, kit: &Kit) {
        if conversation.round().is_none()
            && let Some(round) = self.round.take()
        {
            let Open { turn, wishes, .. } = *round;
            for (decided, flight, at) in wishes {
                Tale::Decided { decided: Box::new(decided), flight, floor: Some("none"), at }.tell(place, kit);
            }
            Tale::Ended { turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
        // Whoever is not to be asked again, because all was cleared or it has left, follows nothing either.
        self.unanswered.retain(|companion, _| is_backing_off(conversation, companion));
        if conversation.turn().is_none()
            && let Some(turn) = self.selected.take()
        {
            Tale::Ended { turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
        // What the conversation does not show any more leads to nothing.
        self.appends.let_go(conversation.window().entries().next().map_or(conversation.handled(), |entry| entry.seq));
    }

    /// A question or a reply is in flight no more. The room for them goes with the last one.
    fn landed(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.flights.remove(&ticket).map(|flight| *flight);
        if self.flights.is_empty() {
            self.flights.shrink_to_fit();
        }
        flight
    }

    /// Something was said, and is on record: it may lead to something, or it is the statement with which a turn is over.
    pub(super) fn heard(&mut self, recorded: &Recorded, committed: Moment, place: &Place, kit: &Kit) {
        let Event::Said { message, reply, .. } = &recorded.event else { return };
        let append = Append { seq: recorded.seq, taken: recorded.at, committed };
        let fulfilled = reply.and_then(|ticket| Some((ticket, self.landed(ticket)?)));
        let Some((ticket, flight)) = fulfilled else {
            self.appends.remember(append);
            return;
        };
        let turn = flight.turn.clone();
        (self.posted, self.spoken) = (Some(turn.clone()), recorded.seq);
        Tale::Posted { by: message.from.clone(), ticket, flight, append }.tell(place, kit);
        Tale::Appended { turn: turn.clone(), append }.tell(place, kit);
        Tale::Ended { turn, outcome: "posted", error: None }.tell(place, kit);
    }
}

/// Whether it got no answer the last time that it was asked.
fn is_backing_off(conversation: &Conversation, companion: &CompanionId) -> bool {
    conversation.gate(companion).is_some_and(|gate| gate.back_off.is_some())
}
