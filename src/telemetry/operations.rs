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

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, Status};

    use super::super::memory::{SpanMemory, attribute};
    use super::*;

    #[test]
    fn a_restart_is_a_separate_trace_with_the_duration_of_its_delay() {
        let memory = SpanMemory::new();

        restarted(&memory.recorder(false), &FACTS, Duration::from_millis(1_250));

        let [span] = &memory.named("actor.restart")[..] else { panic!("not one span") };
        assert_eq!(span.parent_span_id, SpanId::INVALID);
        assert_eq!(span.end_time.duration_since(span.start_time).expect("after"), Duration::from_millis(1_250));
        assert_eq!(attribute(span, "actor.sort").as_deref(), Some("channel"));
        assert_eq!(attribute(span, "actor.restart.delay_s").as_deref(), Some("1.25"));
        assert_eq!(span.status, Status::error("failed: boom"));
    }

    #[test]
    fn an_exceeded_limit_is_recorded() {
        let memory = SpanMemory::new();

        escalated(&memory.recorder(false), &FACTS);

        let [span] = &memory.named("supervisor.escalate")[..] else { panic!("not one span") };
        assert_eq!(attribute(span, "actor.address").as_deref(), Some("console:lobby"));
        assert_eq!(attribute(span, "actor.ending").as_deref(), Some("failed: boom"));
    }

    const FACTS: ActorFacts<'static> =
        ActorFacts { sort: "channel", address: "console:lobby", ending: "failed: boom", at: Moment::from_micros(1_000_000) };
}
