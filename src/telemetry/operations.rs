//! Records actions of supervisors: restarts and exceeded restart limits. Each is a separate trace.

use std::time::Duration;

use opentelemetry::KeyValue;

use super::attributes as name;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::moment::Moment;

/// An actor that ended.
#[derive(Clone, Copy, Debug)]
pub struct ActorFacts<'a> {
    /// The kind of actor: `channel`, `companion`, …
    pub sort: &'static str,
    pub address: &'a str,
    pub ending: &'a str,
    /// When the supervisor noticed.
    pub at: Moment,
}

/// Records that an actor is restarted after a delay: `actor.restart`.
pub fn restarted(recorder: &Recorder, facts: &ActorFacts<'_>, after: Duration) -> Option<SpanRef> {
    recorder.instruments().actor_restarts.add(1, [facts.sort]);
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

/// Records that an actor exceeded its restart limit, so that the parent supervisor must decide: `supervisor.escalate`.
pub fn escalated(recorder: &Recorder, facts: &ActorFacts<'_>) -> Option<SpanRef> {
    recorder.instruments().escalations.add(1, [facts.sort]);
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
    recorder.record(|| {
        let mut attributes = vec![
            KeyValue::new(name::ACTOR_SORT, facts.sort.to_owned()),
            KeyValue::new(name::ACTOR_ADDRESS, facts.address.to_owned()),
            KeyValue::new(name::ACTOR_ENDING, facts.ending.to_owned()),
        ];
        attributes.extend(more);
        let span = FinishedSpan::new(span, Place::Alone, (facts.at, ended), attributes);
        FinishedSpan { error: Some(facts.ending.to_owned().into()), ..span }
    })
}
