//! Which trace each question and reply belongs to, and what of it is told when it is over.

use std::collections::HashMap;

use crate::actors::kit::Kit;
use crate::actors::side_models::{CallFacts as PoolFacts, Outcome};
use crate::domain::decision::Decision;
use crate::domain::event::{Call, Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;
use crate::journal::record::Used;
use crate::ports::language_model::Request;
use crate::telemetry::decisions::{self, Answer, DecisionFacts};
use crate::telemetry::model_calls::{self, CallFacts};
use crate::telemetry::trace::TurnTrace;
use crate::telemetry::turns::{self, StatementFacts, TurnFacts};

/// So much of an answer is kept on record.
const ANSWER_KEPT_CHARS: usize = 1_000;

/// The turns in flight, by the number of their question or reply.
#[derive(Default)]
pub(super) struct Traces {
    turns: HashMap<Ticket, Turn>,
    /// The turn of the decision that has just been made: what it leads to belongs to it.
    last: Option<Turn>,
    spent: HashMap<Ticket, Vec<Used>>,
}

/// A turn in flight.
#[derive(Clone)]
pub(super) struct Turn {
    trace: TurnTrace,
    trigger: Trigger,
    message: Seq,
    began: Moment,
    since: Moment,
    counts: (u64, u64, Option<u64>),
}

impl Traces {
    pub(super) fn asked(&mut self, evaluated: &Evaluated, now: Moment, kit: &Kit) {
        let turn = Turn {
            trace: TurnTrace::new(kit.chance.id()),
            trigger: evaluated.trigger,
            message: evaluated.message,
            began: now,
            since: now,
            counts: (evaluated.message_count, evaluated.check_count, evaluated.threshold),
        };
        self.turns.insert(evaluated.ticket, turn);
    }

    pub(super) fn owed(&mut self, ticket: Ticket, now: Moment, kit: &Kit) {
        let turn = self.last.take().unwrap_or_else(|| unknown(now, kit));
        self.turns.insert(ticket, Turn { since: now, ..turn });
    }

    /// Since when each question and reply is in flight.
    pub(super) fn since(&self) -> HashMap<Ticket, Moment> {
        self.turns.iter().map(|(ticket, turn)| (*ticket, turn.since)).collect()
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
            trace: self.turns.get(&ticket).map(|turn| turn.trace.to_string().into()),
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
                under: self.turns.get(&ticket).map(|turn| turn.trace.root()),
                channel: Some(&place.channel),
                request: asked,
                identity: &outcome.facts.identity,
                outcome: outcome.result.as_ref(),
                started: ended - std::time::Duration::from_millis(outcome.facts.model_ms),
                ended,
            },
        );
    }

    /// The turn of a decision. What a YES leads to belongs to it.
    pub(super) fn concluded(&mut self, decided: &Decided, now: Moment, kit: &Kit) -> Turn {
        let asked = decided.ticket.and_then(|ticket| self.turns.remove(&ticket));
        let turn =
            asked.unwrap_or_else(|| Turn { message: decided.messages.last().copied().unwrap_or_default(), ..unknown(now, kit) });
        let counts = (decided.message_count, decided.check_count, decided.threshold);
        let turn = Turn { trigger: decided.trigger, counts, ..turn };
        self.last = (decided.decision == Decision::Yes).then(|| turn.clone());
        turn
    }

    pub(super) fn unanswered(&mut self, ticket: Ticket, event: &Event, place: &Place, kit: &Kit) {
        let Event::Unanswered { companion, error, .. } = event else { return };
        let now = kit.clock.now();
        let turn = self.turns.remove(&ticket).unwrap_or_else(|| unknown(now, kit));
        tell(&turn, companion, Answer::Missing { error_type: error }, place, kit, now);
        end(&turn, "failed", Some(error), place, kit);
    }

    pub(super) fn failed(&mut self, ticket: Ticket, error: &str, place: &Place, kit: &Kit) {
        if let Some(turn) = self.turns.remove(&ticket) {
            end(&turn, "failed", Some(error), place, kit);
        }
        self.spent.remove(&ticket);
    }

    pub(super) fn cancelled(&mut self, ticket: Ticket, place: &Place, kit: &Kit) {
        if let Some(turn) = self.turns.remove(&ticket) {
            end(&turn, "cancelled", None, place, kit);
        }
        self.spent.remove(&ticket);
    }

    /// A statement is on record: its turn is over.
    pub(super) fn posted(&mut self, recorded: &Recorded, place: &Place, kit: &Kit) {
        let Event::Said { message, reply: Some(ticket), .. } = &recorded.event else { return };
        let Some(turn) = self.turns.remove(ticket) else { return };
        turns::record_statement(
            &kit.recorder,
            &StatementFacts {
                trace: turn.trace,
                turn_id: &turn.id(place),
                guild: &place.guild,
                channel: &place.channel,
                companion: &CompanionId::from(&*message.from.id),
                companion_name: &message.from.name,
                trigger: turn.trigger,
                error_type: None,
                started: turn.since,
                ended: kit.clock.now(),
            },
        );
        end(&turn, "posted", None, place, kit);
    }
}

impl Turn {
    fn id(&self, place: &Place) -> String {
        format!("{}#{}", place.channel, self.message)
    }
}

/// Tells of a decision; one that leads nowhere ends its turn.
pub(super) fn tell_decision(decided: &Decided, turn: &Turn, place: &Place, kit: &Kit) {
    let now = kit.clock.now();
    let answer = Answer::Decided { decision: decided.decision.as_str(), reason: decided.reason.as_str() };
    for companion in &decided.companions {
        tell(turn, companion, answer, place, kit, now);
    }
    if decided.decision == Decision::No {
        end(turn, "silence", None, place, kit);
    }
}

fn tell(turn: &Turn, companion: &CompanionId, answer: Answer<'_>, place: &Place, kit: &Kit, now: Moment) {
    let (message_count, check_count, threshold) = turn.counts;
    decisions::record(
        &kit.recorder,
        &DecisionFacts {
            trace: turn.trace,
            turn_id: &turn.id(place),
            guild: &place.guild,
            channel: &place.channel,
            companion,
            trigger: turn.trigger,
            answer,
            message_count,
            check_count,
            threshold,
            vote: None,
            started: turn.since,
            ended: now,
        },
    );
}

fn end(turn: &Turn, outcome: &str, error_type: Option<&str>, place: &Place, kit: &Kit) {
    turns::record(
        &kit.recorder,
        &TurnFacts {
            trace: turn.trace,
            turn_id: &turn.id(place),
            guild: &place.guild,
            channel: &place.channel,
            trigger: turn.trigger,
            outcome,
            error_type,
            follows: None,
            started: turn.began,
            ended: kit.clock.now(),
        },
    );
}

/// A turn whose beginning was lost with a restart, or that needed no question.
fn unknown(now: Moment, kit: &Kit) -> Turn {
    let trace = TurnTrace::new(kit.chance.id());
    Turn { trace, trigger: Trigger::Lull, message: Seq::NONE, began: now, since: now, counts: (0, 0, None) }
}
