//! Records a turn, the root of its trace, and its statement.

use std::time::Duration;

use opentelemetry::KeyValue;

use super::attributes as name;
use super::instruments::error_label;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{InTurn, SpanRef, TurnTrace};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;

/// A turn, from its messages to silence or to one posted statement.
#[derive(Clone, Debug)]
pub struct TurnFacts<'a> {
    pub turn: InTurn<'a>,
    /// The strongest trigger of the turn.
    pub trigger: Trigger,
    /// `posted`, `silence`, `failed` or `cancelled`.
    pub outcome: &'static str,
    /// A stable error code, if the turn failed.
    pub error_type: Option<&'a str>,
    /// The turn that it follows: the one whose statement opened this round, the one whose question failed, or the same turn
    /// before a restart.
    pub follows: Option<TurnTrace>,
    /// When its first message arrived.
    pub started: Moment,
    /// Since when an answer was expected: since the message, or since the end of the lull.
    pub awaited_since: Moment,
    /// The time that the server itself added since the trigger: without models, programs, platforms and intended delays.
    pub overhead: Duration,
    /// When the first words of a spoken answer were played. The wait for the answer ends then. `None`: the answer was not spoken.
    pub heard_since: Option<Moment>,
    pub ended: Moment,
}

/// The writing of a companion's statement, from getting the floor to the complete text.
#[derive(Clone, Debug)]
pub struct StatementFacts<'a> {
    pub turn: InTurn<'a>,
    /// The reply's ticket. The span of its call is a child of this one.
    pub ticket: Ticket,
    pub companion: &'a CompanionId,
    pub companion_name: &'a str,
    pub trigger: Trigger,
    /// A stable error code, if the statement failed.
    pub error_type: Option<&'a str>,
    /// When it got the floor.
    pub started: Moment,
    /// When the text was complete, or the statement failed.
    pub ended: Moment,
}

/// Records a turn: `conversation.turn`. Its children may be written already.
pub fn record(recorder: &Recorder, facts: &TurnFacts<'_>) -> Option<SpanRef> {
    let (instruments, trigger) = (recorder.instruments(), facts.trigger.as_str());
    instruments.turns.add(1, [trigger, facts.outcome]);
    let answered = facts.heard_since.unwrap_or(facts.ended);
    instruments.turn_duration.record(answered.since(facts.awaited_since).as_secs_f64(), [trigger, facts.outcome]);
    instruments.turn_overhead.record(facts.overhead.as_secs_f64(), [facts.outcome]);
    recorder.record(|| {
        let mut attributes = facts.turn.attributes();
        attributes.extend([
            KeyValue::new(name::DECISION_TRIGGER, facts.trigger.as_str()),
            KeyValue::new(name::TURN_OUTCOME, facts.outcome),
        ]);
        let (place, times) = (Place::Root(facts.turn.trace), (facts.started, facts.ended));
        let span = FinishedSpan::new(name::SPAN_TURN, place, times, attributes).failed(facts.error_type);
        FinishedSpan { links: facts.follows.map(TurnTrace::root).into_iter().collect(), ..span }
    })
}

/// Records a statement: `invoke_agent {companion}`, and a log line.
pub fn record_statement(recorder: &Recorder, facts: &StatementFacts<'_>) -> Option<SpanRef> {
    let (channel, companion) = (Plain(facts.turn.channel.as_str()), Plain(facts.companion.as_str()));
    let (trigger, trace) = (facts.trigger, facts.turn.trace);
    match facts.error_type.map(Plain) {
        None => tracing::info!(%channel, %trigger, %companion, %trace, "statement"),
        Some(error) => tracing::info!(%channel, %trigger, %companion, %error, %trace, "statement not made"),
    }
    let error = facts.error_type.map_or("", error_label);
    if !error.is_empty() {
        recorder.instruments().statements_failed.add(1, [error]);
    }
    recorder.instruments().agent_duration.record(facts.ended.since(facts.started).as_secs_f64(), [error]);
    recorder.record(|| {
        let mut attributes = facts.turn.attributes();
        attributes.extend([
            KeyValue::new(name::GEN_AI_OPERATION_NAME, "invoke_agent"),
            KeyValue::new(name::GEN_AI_AGENT_ID, facts.companion.to_string()),
            KeyValue::new(name::GEN_AI_AGENT_NAME, facts.companion_name.to_owned()),
            KeyValue::new(name::GEN_AI_CONVERSATION_ID, facts.turn.channel.to_string()),
            KeyValue::new(name::COMPANION_ID, facts.companion.to_string()),
            KeyValue::new(name::DECISION_TRIGGER, facts.trigger.as_str()),
            KeyValue::new(name::STATEMENT_UNSOLICITED, facts.trigger.is_unsolicited()),
        ]);
        let place = Place::in_turn(facts.turn.trace, Some(facts.ticket));
        let (span, times) = (format!("invoke_agent {}", facts.companion_name), (facts.started, facts.ended));
        FinishedSpan::new(span, place, times, attributes).failed(facts.error_type)
    })
}
