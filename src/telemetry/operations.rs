//! Records what supervisors do: restarts and passed limits, each a trace of its own.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes as name;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::moment::Moment;

/// An actor that ended.
#[derive(Clone, Copy, Debug)]
pub struct ActorFacts<'a> {
    /// What sort of actor: `channel`, `companion`, …
    pub sort: &'a str,
    /// Which one.
    pub address: &'a str,
    /// How it ended.
    pub ending: &'a str,
    /// When that was noticed.
    pub at: Moment,
}

/// Records that an actor is started again after a delay: `actor.restart`.
pub fn restarted(recorder: &Recorder, facts: &ActorFacts<'_>, after: Duration) -> Option<SpanRef> {
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(sort = facts.sort, actor = %Plain(facts.address), ending = ?facts.ending, after_ms, "restarting an actor");
    write(
        recorder,
        facts,
        name::SPAN_RESTART,
        facts.at + after,
        Some(KeyValue::new(name::ACTOR_RESTART_DELAY, after.as_secs_f64())),
    )
}

/// Records that an actor ended once too often, and that the supervisor above has to decide: `supervisor.escalate`.
pub fn escalated(recorder: &Recorder, facts: &ActorFacts<'_>) -> Option<SpanRef> {
    tracing::error!(sort = facts.sort, actor = %Plain(facts.address), ending = ?facts.ending, "too many restarts");
    write(recorder, facts, name::SPAN_ESCALATE, facts.at, None)
}

fn write(
    recorder: &Recorder,
    facts: &ActorFacts<'_>,
    span: &'static str,
    ended: Moment,
    more: Option<KeyValue>,
) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let mut attributes = vec![
        KeyValue::new(name::ACTOR_SORT, facts.sort.to_owned()),
        KeyValue::new(name::ACTOR_ADDRESS, facts.address.to_owned()),
        KeyValue::new(name::ACTOR_ENDING, facts.ending.to_owned()),
    ];
    attributes.extend(more);
    recorder.write(FinishedSpan {
        name: span.into(),
        kind: SpanKind::Internal,
        place: Place::Alone,
        started: facts.at,
        ended,
        attributes,
        error: Some(facts.ending.to_owned().into()),
        links: Vec::new(),
    })
}
