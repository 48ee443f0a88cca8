//! Records connection attempts to Discord's gateway, and the time without a connection. Each is a separate trace.

use std::ops::Deref;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes as name;
use super::instruments::{Instruments, Set};
use super::recorder::{FinishedSpan, Place, Recorder};
use crate::domain::moment::Moment;

/// Records an adapter's connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GatewayRecorder(Recorder);

/// One connection attempt, from the first byte to a session or a failure.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The connection's number, from 0.
    pub shard: u32,
    /// The total number of connections.
    pub shards: u32,
    /// Whether it tried to resume a session. Otherwise it began a new one.
    pub is_resume: bool,
    pub has_identified: bool,
    pub began: Moment,
    /// When the session was established, or the attempt failed.
    pub ended: Moment,
    /// Why the attempt failed.
    pub error: Option<String>,
}

/// The time without a connection.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// The connection's number, from 0.
    pub shard: u32,
    /// The total number of connections.
    pub shards: u32,
    /// Why the previous connection ended.
    pub cause: &'static str,
    /// Number of attempts until the next connection.
    pub attempts: u32,
    /// When the previous connection ended.
    pub began: Moment,
    /// When the next connection was established.
    pub ended: Moment,
}

impl GatewayRecorder {
    pub const fn new(recorder: Recorder) -> Self {
        Self(recorder)
    }

    pub const fn instruments(&self) -> &Instruments {
        self.0.instruments()
    }

    /// Records a connection attempt: `discord.gateway.identify` or `discord.gateway.resume`.
    pub fn attempted(&self, attempt: &Attempt) {
        let outcome = if attempt.error.is_none() { "established" } else { "failed" };
        let span = if attempt.is_resume {
            self.discord_resumes.add(1, [outcome]);
            name::SPAN_GATEWAY_RESUME
        } else {
            if attempt.has_identified {
                self.discord_identifies.add(1, [outcome]);
            }
            name::SPAN_GATEWAY_IDENTIFY
        };
        self.write(span, (attempt.shard, attempt.shards), (attempt.began, attempt.ended), attempt.error.clone(), []);
    }

    /// Records that the connection is back: `discord.gateway.reconnect`.
    pub fn reconnected(&self, absence: &Absence) {
        let attributes = [
            KeyValue::new(name::GATEWAY_CAUSE, absence.cause),
            KeyValue::new(name::GATEWAY_ATTEMPTS, i64::from(absence.attempts)),
        ];
        let shard = (absence.shard, absence.shards);
        self.write(name::SPAN_GATEWAY_RECONNECT, shard, (absence.began, absence.ended), None, attributes);
    }

    fn write<const N: usize>(
        &self,
        span: &'static str,
        (shard, shards): (u32, u32),
        times: (Moment, Moment),
        error: Option<String>,
        more: [KeyValue; N],
    ) {
        self.0.record(|| {
            let mut attributes = vec![
                KeyValue::new(name::GATEWAY_SHARD, i64::from(shard)),
                KeyValue::new(name::GATEWAY_SHARDS, i64::from(shards)),
            ];
            attributes.extend(more);
            let span = FinishedSpan::new(span, Place::Alone, times, attributes);
            FinishedSpan { kind: SpanKind::Client, error: error.map(Into::into), ..span }
        });
    }
}

impl Deref for GatewayRecorder {
    type Target = Set;

    fn deref(&self) -> &Set {
        self.0.instruments()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::Status;

    use super::super::fake::{SpanMemory, attribute};
    use super::*;

    #[test]
    fn established_and_failed_connections_have_different_status() {
        let memory = SpanMemory::new();
        let recorder = GatewayRecorder::new(memory.recorder(false));

        recorder.attempted(&attempt(false));
        recorder.attempted(&Attempt { error: Some("nobody answers".to_owned()), ..attempt(true) });

        let [identify] = &memory.named("discord.gateway.identify")[..] else { panic!("not one span") };
        assert_eq!(identify.status, Status::Unset);
        assert_eq!(attribute(identify, "discord.gateway.shard").as_deref(), Some("1"));
        let [resume] = &memory.named("discord.gateway.resume")[..] else { panic!("not one span") };
        assert_eq!(resume.status, Status::error("nobody answers"));
    }

    #[test]
    fn the_span_of_an_absence_has_its_duration() {
        let memory = SpanMemory::new();
        let (began, ended) = (Moment::from_micros(1_000_000), Moment::from_micros(3_500_000));

        GatewayRecorder::new(memory.recorder(false)).reconnected(&Absence {
            shard: 1,
            shards: 4,
            cause: "cut",
            attempts: 2,
            began,
            ended,
        });

        let [span] = &memory.named("discord.gateway.reconnect")[..] else { panic!("not one span") };
        assert_eq!(span.end_time.duration_since(span.start_time).expect("after"), ended.since(began));
        assert_eq!(attribute(span, "discord.gateway.cause").as_deref(), Some("cut"));
        assert_eq!(attribute(span, "discord.gateway.attempts").as_deref(), Some("2"));
    }

    fn attempt(is_resume: bool) -> Attempt {
        let at = Moment::from_micros(1_000_000);
        Attempt { shard: 1, shards: 4, is_resume, has_identified: !is_resume, began: at, ended: at, error: None }
    }
}
