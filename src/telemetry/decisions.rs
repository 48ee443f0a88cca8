//! The one place where a gate's decision is recorded: as a span, a log line and measurements.

use opentelemetry::KeyValue;

use super::attributes::{self as name, whole};
use super::instruments::error_label;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{InTurn, SpanRef};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::domain::vote::State;

/// One evaluation of one companion.
#[derive(Clone, Debug)]
pub struct DecisionFacts<'a> {
    pub turn: InTurn<'a>,
    /// The question, if one was asked. The span of its call is a child of this one.
    pub ticket: Option<Ticket>,
    pub companion: &'a CompanionId,
    pub trigger: Trigger,
    pub answer: Answer<'a>,
    /// Number of messages that the gate had counted.
    pub message_count: u64,
    /// Interjection checks made since the last reset.
    pub check_count: u64,
    /// The count at which the next interjection is considered, if any.
    pub threshold: Option<u64>,
    /// In rounds, the vote.
    pub vote: Option<&'a State>,
    /// In rounds, `won`, `lost` or `none`. `None` while the outcome is unknown.
    pub floor: Option<&'static str>,
    pub started: Moment,
    pub ended: Moment,
}

/// The outcome of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    Decided {
        /// `YES` or `NO`.
        decision: &'static str,
        /// One of the closed list of reasons.
        reason: &'static str,
    },
    /// No answer arrived. This is not a NO.
    Missing {
        /// A stable code: `timeout`, `unreachable`, …
        error_type: &'a str,
    },
}

impl Answer<'_> {
    fn is_yes(&self) -> bool {
        matches!(self, Self::Decided { decision: "YES", .. })
    }
}

/// Records a decision, or that no answer arrived. Returns the span's reference, if spans are written.
pub fn record(recorder: &Recorder, facts: &DecisionFacts<'_>) -> Option<SpanRef> {
    log(facts);
    measure(recorder, facts);
    recorder.record(|| {
        let place = Place::in_turn(facts.turn.trace, facts.ticket);
        let error = match facts.answer {
            Answer::Decided { .. } => None,
            Answer::Missing { error_type } => Some(error_type),
        };
        FinishedSpan::new(name::SPAN_DECISION, place, (facts.started, facts.ended), attributes(facts)).failed(error)
    })
}

fn log(facts: &DecisionFacts<'_>) {
    let (channel, companion) = (Plain(facts.turn.channel.as_str()), Plain(facts.companion.as_str()));
    let (trigger, msgs, trace) = (facts.trigger, facts.message_count, facts.turn.trace);
    match facts.answer {
        // The format of this line is documented (docs/design/telemetry.md O-6).
        Answer::Decided { decision, reason } => {
            let (decision, reason) = (Plain(decision), Plain(reason));
            let floor = facts.floor.map(tracing::field::display);
            tracing::info!(%channel, %trigger, %decision, %companion, msgs, %reason, floor, %trace, "interjection");
        }
        Answer::Missing { error_type } => {
            let error = Plain(error_type);
            tracing::info!(%channel, %trigger, %companion, msgs, %error, %trace, "evaluation without an answer");
        }
    }
}

fn measure(recorder: &Recorder, facts: &DecisionFacts<'_>) {
    let (instruments, trigger) = (recorder.instruments(), facts.trigger.as_str());
    match facts.answer {
        Answer::Decided { decision, reason } => instruments.decisions.add(1, [trigger, decision, reason]),
        Answer::Missing { error_type } => instruments.unanswered.add(1, [trigger, error_label(error_type)]),
    }
    if facts.ticket.is_some() {
        instruments.decision_duration.record(facts.ended.since(facts.started).as_secs_f64(), [trigger]);
    }
    if let Some(floor) = facts.floor.filter(|_| facts.answer.is_yes()) {
        instruments.round_wishes.add(1, [floor]);
    }
}

fn attributes(facts: &DecisionFacts<'_>) -> Vec<KeyValue> {
    let mut attributes = facts.turn.attributes();
    attributes.extend([
        KeyValue::new(name::COMPANION_ID, facts.companion.to_string()),
        KeyValue::new(name::DECISION_TRIGGER, facts.trigger.as_str()),
        KeyValue::new(name::DECISION_MESSAGE_COUNT, whole(facts.message_count)),
        KeyValue::new(name::DECISION_CHECK_COUNT, whole(facts.check_count)),
    ]);
    if let Answer::Decided { decision, reason } = facts.answer {
        attributes.extend([KeyValue::new(name::DECISION, decision), KeyValue::new(name::DECISION_REASON, reason)]);
    }
    attributes.extend(facts.threshold.map(|threshold| KeyValue::new(name::DECISION_THRESHOLD, whole(threshold))));
    if let Some(vote) = &facts.vote {
        attributes.extend([
            KeyValue::new(name::DECISION_STATE, vote.state.as_str()),
            KeyValue::new(name::DECISION_IMPORTANCE, vote.importance),
            KeyValue::new(name::DECISION_SELECTED, vote.selected),
            KeyValue::new(name::DECISION_CLOSING, vote.closing.as_str()),
        ]);
        attributes.extend(facts.floor.map(|floor| KeyValue::new(name::DECISION_FLOOR, floor)));
    }
    attributes
}
