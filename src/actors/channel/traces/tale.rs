//! What is told of a turn once it is on record: spans and log lines, from what is finished.

use std::sync::Arc;

use super::{Flight, Turn};
use crate::actors::kit::Kit;
use crate::domain::closing::{Cause, Stage};
use crate::domain::event::{Decided, RoundClosed};
use crate::domain::id::CompanionId;
use crate::domain::moment::Moment;
use crate::domain::round;
use crate::domain::vote::Stance;
use crate::journal::place::Place;
use crate::telemetry::decisions::{self, Answer, DecisionFacts, VoteFacts};
use crate::telemetry::rounds::{self, ClosingFacts, RepetitionFacts, SelectionFacts};
use crate::telemetry::trace::TurnTrace;
use crate::telemetry::turns::{self, StatementFacts, TurnFacts};

/// Something to be told.
pub(in crate::actors::channel) enum Tale {
    /// It was decided. In a round: with what came of the wish to speak.
    Decided { decided: Box<Decided>, flight: Flight, floor: Option<&'static str> },
    /// A question got no answer.
    Unanswered { companion: CompanionId, error: Arc<str>, flight: Flight },
    /// A round is over.
    Selection { turn: Turn, closed: Box<RoundClosed>, missing: usize, since: Moment, at: Moment },
    /// A stage changed.
    Closing { companion: CompanionId, from: Stage, to: Stage, cause: Cause, at: Moment, under: Option<TurnTrace> },
    /// Repetition was judged.
    Repetition { score: f64, detections: u32, model: Option<Arc<str>>, at: Moment, under: Option<TurnTrace> },
    /// A statement was not made.
    StatementFailed { companion: CompanionId, error: Arc<str>, flight: Flight },
    /// A turn is over.
    Ended { turn: Turn, outcome: &'static str, error: Option<Arc<str>> },
}

impl Tale {
    /// The same, in this trace.
    pub(super) fn under(self, trace: Option<TurnTrace>) -> Self {
        match self {
            Self::Closing { companion, from, to, cause, at, .. } => {
                Self::Closing { companion, from, to, cause, at, under: trace }
            }
            other => other,
        }
    }

    pub(in crate::actors::channel) fn tell(self, place: &Place, kit: &Kit) {
        match self {
            Self::Decided { decided, flight, floor } => tell_decision(&decided, &flight, floor, place, kit),
            Self::Unanswered { companion, error, flight } => {
                tell(&flight, &companion, (Answer::Missing { error_type: &error }, true), None, place, kit);
            }
            Self::Selection { turn, closed, missing, since, at } => {
                let facts = SelectionFacts {
                    trace: turn.trace,
                    turn_id: &turn.id(place),
                    guild: &place.guild,
                    channel: &place.channel,
                    message: closed.message,
                    states: closed.states.len(),
                    speak: closed.states.iter().filter(|state| state.state == Stance::Speak).count(),
                    candidates: usize::from(closed.selected.is_some()) + closed.others.len(),
                    missing,
                    is_tied: closed.selected.as_ref().is_some_and(|selected| round::is_tied(&closed.states, selected)),
                    selected: closed.selected.as_ref(),
                    started: since,
                    ended: at,
                };
                rounds::record_selection(&kit.recorder, &facts);
            }
            Self::Closing { companion, from, to, cause, at, under } => {
                let facts = ClosingFacts {
                    under: under.map(TurnTrace::root),
                    guild: &place.guild,
                    channel: &place.channel,
                    companion: &companion,
                    from,
                    to,
                    cause,
                    at,
                };
                rounds::record_closing(&kit.recorder, &facts);
            }
            Self::Repetition { score, detections, model, at, under } => {
                let facts = RepetitionFacts {
                    under: under.map(TurnTrace::root),
                    guild: &place.guild,
                    channel: &place.channel,
                    score,
                    detections,
                    judge: if model.is_some() { "model" } else { "lexical" },
                    at,
                };
                rounds::record_repetition(&kit.recorder, &facts);
            }
            Self::StatementFailed { companion, error, flight } => {
                let known = kit.residents.companion(&place.channel, &companion);
                let facts = StatementFacts {
                    trace: flight.turn.trace,
                    turn_id: &flight.turn.id(place),
                    guild: &place.guild,
                    channel: &place.channel,
                    companion: &companion,
                    companion_name: known.as_ref().map_or(companion.as_str(), |known| &known.name),
                    trigger: flight.trigger,
                    error_type: Some(&error),
                    started: flight.since,
                    ended: kit.clock.now(),
                };
                turns::record_statement(&kit.recorder, &facts);
            }
            Self::Ended { turn, outcome, error } => {
                let facts = TurnFacts {
                    trace: turn.trace,
                    turn_id: &turn.id(place),
                    guild: &place.guild,
                    channel: &place.channel,
                    trigger: turn.trigger,
                    outcome,
                    error_type: error.as_deref(),
                    follows: turn.follows,
                    started: turn.began,
                    ended: kit.clock.now(),
                };
                turns::record(&kit.recorder, &facts);
            }
        }
    }
}

fn tell_decision(decided: &Decided, flight: &Flight, floor: Option<&'static str>, place: &Place, kit: &Kit) {
    let answer = Answer::Decided { decision: decided.decision.as_str(), reason: decided.reason.as_str() };
    let vote = decided.vote.as_ref().map(|vote| VoteFacts {
        state: vote.state.as_str(),
        importance: vote.importance,
        selected: vote.selected,
        closing: vote.closing.as_str(),
        floor,
    });
    for companion in &decided.companions {
        tell(flight, companion, (answer, decided.ticket.is_some()), vote, place, kit);
    }
}

fn tell(
    flight: &Flight,
    companion: &CompanionId,
    (answer, was_asked): (Answer<'_>, bool),
    vote: Option<VoteFacts<'_>>,
    place: &Place,
    kit: &Kit,
) {
    let (message_count, check_count, threshold) = flight.counts;
    decisions::record(
        &kit.recorder,
        &DecisionFacts {
            trace: flight.turn.trace,
            turn_id: &flight.turn.id(place),
            guild: &place.guild,
            channel: &place.channel,
            companion,
            trigger: flight.trigger,
            answer,
            message_count,
            check_count,
            threshold,
            vote,
            was_asked,
            started: flight.since,
            ended: kit.clock.now(),
        },
    );
}
