//! Records actions of supervisors, which are restarts and exceeded restart limits, and announced reminders. Each is a separate trace.

use std::time::Duration;

use opentelemetry::KeyValue;

use super::attributes as name;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use crate::domain::moment::Moment;
use crate::domain::reminders::Reminder;

/// Records that an actor, which ended at this moment, is restarted after a delay: `actor.restart`.
pub fn restarted(recorder: &Recorder, sort: &'static str, address: &str, ending: &str, at: Moment, after: Duration) {
    recorder.instruments().actor_restarts.add(1, [sort]);
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(sort, actor = %Plain(address), ?ending, after_ms, "restarting an actor");
    let delay = KeyValue::new(name::ACTOR_RESTART_DELAY, after.as_secs_f64());
    record(recorder, name::SPAN_RESTART, [sort, address, ending], (at, at + after), Some(delay));
}

/// Records that an actor exceeded its restart limit, so that the parent supervisor must decide: `supervisor.escalate`.
pub fn escalated(recorder: &Recorder, sort: &'static str, address: &str, ending: &str, at: Moment) {
    recorder.instruments().escalations.add(1, [sort]);
    tracing::error!(sort, actor = %Plain(address), ?ending, "too many restarts");
    record(recorder, name::SPAN_ESCALATE, [sort, address, ending], (at, at), None);
}

/// Records that a reminder is due and announced: `reminder.announce`, from the time when it was due until now.
pub fn reminded(recorder: &Recorder, channel: &str, reminder: &Reminder, now: Moment) {
    let late_secs = now.since(reminder.due).as_secs();
    tracing::info!(channel = %Plain(channel), number = reminder.number, late_secs, "a reminder is due");
    recorder.record(|| {
        let number = i64::try_from(reminder.number).unwrap_or(i64::MAX);
        let attributes = vec![KeyValue::new(name::CHANNEL_ID, channel.to_owned()), KeyValue::new(name::REMINDER, number)];
        FinishedSpan::new(name::SPAN_REMINDER, Place::Alone, (reminder.due.min(now), now), attributes)
    });
}

fn record(
    recorder: &Recorder,
    span: &'static str,
    [sort, address, ending]: [&str; 3],
    times: (Moment, Moment),
    more: Option<KeyValue>,
) {
    recorder.record(|| {
        let names = [(name::ACTOR_SORT, sort), (name::ACTOR_ADDRESS, address), (name::ACTOR_ENDING, ending)];
        let attributes = names.map(|(name, value)| KeyValue::new(name, value.to_owned())).into_iter().chain(more).collect();
        FinishedSpan { error: Some(ending.to_owned().into()), ..FinishedSpan::new(span, Place::Alone, times, attributes) }
    });
}
