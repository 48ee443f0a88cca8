//! Which trace each question and reply belongs to: one for each trigger group, from its questions to silence or to one statement.

mod tale;

use std::collections::HashMap;
use std::sync::Arc;

use crate::actors::kit::Kit;
use crate::actors::side_models::{CallFacts as PoolFacts, Outcome};
use crate::domain::closing::Cause;
use crate::domain::conversation::Conversation;
use crate::domain::decision::Decision;
use crate::domain::event::{Call, Decided, Evaluated, Event, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;
use crate::journal::record::Used;
use crate::ports::language_model::Request;
use crate::telemetry::model_calls::{self, CallFacts};
use crate::telemetry::trace::TurnTrace;
use crate::telemetry::turns::{self, StatementFacts};
pub(super) use tale::Tale;

/// So much of an answer is kept on record.
const ANSWER_KEPT_CHARS: usize = 1_000;

/// The turns in flight.
#[derive(Default)]
pub(super) struct Traces {
    /// Questions and replies, by their number.
    flights: HashMap<Ticket, Flight>,
    /// What the batch at hand begins, until a question or a round takes it over.
    batch: Option<Turn>,
    /// Stages that changed in the batch at hand, by what was heard.
    changed: Vec<Tale>,
    round: Option<Open>,
    /// The turn of whoever was selected and does not speak yet.
    selected: Option<Turn>,
    /// Why the statement of that turn failed, if one has and nobody has taken over.
    failed: Option<Arc<str>>,
    /// The turn of the newest statement: the round that it opens follows it.
    posted: Option<Turn>,
    spent: HashMap<Ticket, Vec<Used>>,
}

/// A trigger group.
#[derive(Clone)]
pub(super) struct Turn {
    trace: TurnTrace,
    /// The strongest of its triggers.
    trigger: Trigger,
    message: Seq,
    began: Moment,
    follows: Option<TurnTrace>,
}

/// A question or a reply in flight.
#[derive(Clone)]
pub(super) struct Flight {
    turn: Turn,
    trigger: Trigger,
    since: Moment,
    counts: (u64, u64, Option<u64>),
}

/// A round that is open.
struct Open {
    turn: Turn,
    since: Moment,
    /// Those that want to speak: told when it is known who does.
    wishes: Vec<(Decided, Flight)>,
    answers: u32,
    errors: Vec<Arc<str>>,
}

impl Traces {
    /// Goes along with what is put on record, and gives what is to be told of it once it is committed.
    pub(super) fn follow(&mut self, event: &Event, now: Moment, kit: &Kit) -> Vec<Tale> {
        match event {
            Event::RoundOpened(opened) => {
                let turn = Turn { message: opened.message, ..self.batch.take().unwrap_or_else(|| Turn::new(now, kit)) };
                self.round = Some(Open::new(turn, now));
                Vec::new()
            }
            Event::Evaluated(evaluated) => {
                self.asked(evaluated, now, kit);
                Vec::new()
            }
            Event::Decided(decided) => self.decided(decided, now, kit),
            Event::Unanswered { companion, ticket, error, .. } => {
                let flight = self.flights.remove(ticket).unwrap_or_else(|| Flight::new(Turn::new(now, kit), Trigger::Lull, now));
                let turn = flight.turn.clone();
                let mut told = vec![Tale::Unanswered { companion: companion.clone(), error: error.clone(), flight }];
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
                self.flights.insert(*ticket, Flight::new(turn, Trigger::Turn, now));
                Vec::new()
            }
            Event::RepetitionJudged { score, detections, call, .. } => {
                let under = self.posted.as_ref().map(|turn| turn.trace);
                self.flights.retain(|_, flight| Some(flight.turn.trace) != under);
                let model = call.as_ref().map(|call| call.model.clone());
                vec![Tale::Repetition { score: *score, detections: *detections, model, at: now, under }]
            }
            Event::ReplyOwed { ticket, trigger, .. } => {
                self.failed = None;
                let turn = self.selected.take().unwrap_or_else(|| Turn::new(now, kit));
                self.flights.insert(*ticket, Flight::new(turn, *trigger, now));
                Vec::new()
            }
            Event::ReplyFailed { companion, ticket, error, .. } => {
                self.spent.remove(ticket);
                let Some(flight) = self.flights.remove(ticket) else { return Vec::new() };
                self.selected = Some(flight.turn.clone());
                self.failed = Some(error.clone());
                vec![Tale::StatementFailed { companion: companion.clone(), error: error.clone(), flight }]
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

    fn asked(&mut self, evaluated: &Evaluated, now: Moment, kit: &Kit) {
        let mut turn = match &self.round {
            Some(round) => round.turn.clone(),
            None => Turn { message: evaluated.message, ..self.batch.take().unwrap_or_else(|| Turn::new(now, kit)) },
        };
        turn.trigger = turn.trigger.max(evaluated.trigger);
        if evaluated.trigger == Trigger::Turn {
            turn.follows = self.posted.as_ref().map(|posted| posted.trace);
        }
        if let Some(round) = &mut self.round {
            round.turn = turn.clone();
        }
        let counts = (evaluated.message_count, evaluated.check_count, evaluated.threshold);
        let flight = Flight { counts, ..Flight::new(turn, evaluated.trigger, now) };
        self.flights.insert(evaluated.ticket, flight);
    }

    fn decided(&mut self, decided: &Decided, now: Moment, kit: &Kit) -> Vec<Tale> {
        let counts = (decided.message_count, decided.check_count, decided.threshold);
        let Some(ticket) = decided.ticket else {
            let turn = match &self.round {
                Some(round) => round.turn.clone(),
                None => {
                    let turn = self.batch.get_or_insert_with(|| Turn::new(now, kit));
                    turn.trigger = turn.trigger.max(decided.trigger);
                    turn.message = decided.messages.last().copied().unwrap_or(turn.message);
                    turn.clone()
                }
            };
            let flight = Flight { counts, ..Flight::new(turn, decided.trigger, now) };
            return vec![Tale::Decided { decided: Box::new(decided.clone()), flight, floor: None }];
        };
        let flight = self.flights.remove(&ticket).unwrap_or_else(|| {
            let turn = self.round.as_ref().map_or_else(|| Turn::new(now, kit), |round| round.turn.clone());
            Flight::new(turn, decided.trigger, now)
        });
        let flight = Flight { counts, trigger: decided.trigger, ..flight };
        let is_yes = decided.decision == Decision::Yes;
        if decided.vote.is_some()
            && let Some(round) = &mut self.round
        {
            round.answers += 1;
            if is_yes {
                round.wishes.push((decided.clone(), flight));
                return Vec::new();
            }
            return vec![Tale::Decided { decided: Box::new(decided.clone()), flight, floor: Some("none") }];
        }
        let turn = flight.turn.clone();
        let mut told = vec![Tale::Decided { decided: Box::new(decided.clone()), flight, floor: None }];
        if is_yes {
            self.selected = Some(turn);
        } else {
            told.push(Tale::Ended { turn, outcome: "silence", error: None });
        }
        told
    }

    fn round_closed(&mut self, closed: &RoundClosed, now: Moment, kit: &Kit) -> Vec<Tale> {
        let round = self.round.take().unwrap_or_else(|| Open::new(Turn::new(now, kit), now));
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
            .map(|(decided, flight)| {
                let floor = decided.companions.first().map(floor);
                Tale::Decided { decided: Box::new(decided), flight, floor }
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
            self.selected = Some(turn);
        } else {
            let error = errors.into_iter().next().filter(|_| answers == 0);
            told.push(Tale::Ended { turn, outcome: if error.is_some() { "failed" } else { "silence" }, error });
        }
        told
    }

    /// What goes on after a restart, as far as the record tells: a trace of its own that follows the one before.
    pub(super) fn resume(&mut self, conversation: &Conversation, events: &[Recorded], now: Moment, kit: &Kit) {
        let calls = events.iter().rev().filter_map(|recorded| match &recorded.event {
            Event::Decided(decided) => decided.call.as_ref(),
            _ => None,
        });
        let follows = calls.filter_map(|call| call.trace.as_ref()?.parse().ok()).next();
        let turn = |message, trigger| Turn { message, trigger, follows, ..Turn::new(now, kit) };
        if let Some(round) = conversation.round() {
            let mut open = Open::new(turn(round.message, Trigger::Lull), now);
            for (_, evaluation) in conversation.open_questions() {
                open.turn.trigger = open.turn.trigger.max(evaluation.trigger);
            }
            for recorded in events {
                let Event::Decided(decided) = &recorded.event else { continue };
                let Some(vote) = decided.vote.as_ref().filter(|vote| vote.message_id == round.message_id()) else { continue };
                open.answers += 1;
                let is_wanted = conversation.gate(&vote.from).is_some_and(|gate| gate.wish.is_some());
                if is_wanted && decided.decision == Decision::Yes {
                    let counts = (decided.message_count, decided.check_count, decided.threshold);
                    let flight = Flight { counts, ..Flight::new(open.turn.clone(), decided.trigger, recorded.at) };
                    open.wishes.push((decided.clone(), flight));
                }
            }
            self.round = Some(open);
        }
        for (companion, evaluation) in conversation.open_questions() {
            let its_own = || turn(evaluation.message, evaluation.trigger);
            let asked = self.round.as_ref().map_or_else(its_own, |round| round.turn.clone());
            let gate = conversation.gate(companion);
            let check_count = gate.map_or(0, |gate| gate.check_count);
            let counts = (evaluation.message_count, check_count, gate.and_then(|gate| gate.next_interjection_at));
            self.flights.insert(evaluation.ticket, Flight { counts, ..Flight::new(asked, evaluation.trigger, now) });
        }
        self.selected = conversation.turn().map(|next| turn(next.selection.opened, next.candidate.trigger));
        if let Some(floor) = conversation.floor() {
            let owed = turn(floor.selection.opened, floor.trigger);
            self.flights.insert(floor.ticket, Flight::new(owed, floor.trigger, now));
        }
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

    pub(super) fn called(&self, ticket: Ticket, asked: &Request, outcome: &Outcome, place: &Place, kit: &Kit) {
        let ended = kit.clock.now();
        model_calls::record(
            &kit.recorder,
            &CallFacts {
                under: self.flights.get(&ticket).map(|flight| flight.turn.trace.root()),
                channel: Some(&place.channel),
                request: asked,
                identity: &outcome.facts.identity,
                outcome: outcome.result.as_ref(),
                started: ended - std::time::Duration::from_millis(outcome.facts.model_ms),
                ended,
            },
        );
    }

    /// Nobody waits for a question or a reply any more. A round goes on without it.
    pub(super) fn cancelled(&mut self, ticket: Ticket, place: &Place, kit: &Kit) {
        self.spent.remove(&ticket);
        let Some(flight) = self.flights.remove(&ticket) else { return };
        let is_of = |turn: &Turn| turn.trace == flight.turn.trace;
        let goes_on = self.round.as_ref().is_some_and(|round| is_of(&round.turn)) || self.posted.as_ref().is_some_and(is_of);
        if !goes_on {
            Tale::Ended { turn: flight.turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
    }

    /// Ends what the conversation has dropped: a round that was cleared, or whoever was selected and may not speak any more.
    pub(super) fn abandon(&mut self, conversation: &Conversation, place: &Place, kit: &Kit) {
        if conversation.round().is_none()
            && let Some(Open { turn, wishes, .. }) = self.round.take()
        {
            for (decided, flight) in wishes {
                Tale::Decided { decided: Box::new(decided), flight, floor: Some("none") }.tell(place, kit);
            }
            Tale::Ended { turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
        if conversation.turn().is_none()
            && let Some(turn) = self.selected.take()
        {
            Tale::Ended { turn, outcome: "cancelled", error: None }.tell(place, kit);
        }
    }

    /// A statement is on record: its turn is over.
    pub(super) fn posted(&mut self, recorded: &Recorded, place: &Place, kit: &Kit) {
        let Event::Said { message, reply: Some(ticket), .. } = &recorded.event else { return };
        let Some(flight) = self.flights.remove(ticket) else { return };
        turns::record_statement(
            &kit.recorder,
            &StatementFacts {
                trace: flight.turn.trace,
                turn_id: &flight.turn.id(place),
                guild: &place.guild,
                channel: &place.channel,
                companion: &CompanionId::from(&*message.from.id),
                companion_name: &message.from.name,
                trigger: flight.trigger,
                error_type: None,
                started: flight.since,
                ended: kit.clock.now(),
            },
        );
        self.posted = Some(flight.turn.clone());
        Tale::Ended { turn: flight.turn, outcome: "posted", error: None }.tell(place, kit);
    }
}

impl Turn {
    /// One that begins now.
    fn new(now: Moment, kit: &Kit) -> Self {
        let trace = TurnTrace::new(kit.chance.id());
        Self { trace, trigger: Trigger::Lull, message: Seq::NONE, began: now, follows: None }
    }

    fn id(&self, place: &Place) -> String {
        format!("{}#{}", place.channel, self.message)
    }
}

impl Flight {
    fn new(turn: Turn, trigger: Trigger, since: Moment) -> Self {
        Self { turn, trigger, since, counts: (0, 0, None) }
    }
}

impl Open {
    fn new(turn: Turn, since: Moment) -> Self {
        Self { turn, since, wishes: Vec::new(), answers: 0, errors: Vec::new() }
    }
}
