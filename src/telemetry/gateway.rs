//! Records how connections to Discord's gateway come about, and how long it was away: each a trace of its own.

use std::ops::Deref;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes as name;
use super::instruments::{Instruments, Set};
use super::recorder::{FinishedSpan, Place, Recorder};
use crate::domain::moment::Moment;

/// What an adapter records of its connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GatewayRecorder(Recorder);

/// One connection, from its first byte to a session or to its failure.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its number, from 0.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// It was to go on where another was; else it began anew.
    pub is_resume: bool,
    /// An identify left.
    pub has_identified: bool,
    /// When it began.
    pub began: Moment,
    /// When there was a session, or none to be had.
    pub ended: Moment,
    /// Why there was none.
    pub error: Option<String>,
}

/// The time without a connection.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// The connection's number, from 0.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Why the one before ended.
    pub cause: &'static str,
    /// How many connections it took.
    pub attempts: u32,
    /// When it ended.
    pub began: Moment,
    /// When there was one again.
    pub ended: Moment,
}

impl GatewayRecorder {
    /// Records there.
    pub const fn new(recorder: Recorder) -> Self {
        Self(recorder)
    }

    /// Records nothing, and measures what nobody reads.
    pub fn silent() -> Self {
        Self(Recorder::silent())
    }

    /// What is measured with.
    pub const fn instruments(&self) -> &Instruments {
        self.0.instruments()
    }

    /// A connection came about, or did not: `discord.gateway.identify` or `discord.gateway.resume`.
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

    /// There is a connection again: `discord.gateway.reconnect`.
    pub fn came_back(&self, absence: &Absence) {
        let more = [
            KeyValue::new(name::GATEWAY_CAUSE, absence.cause),
            KeyValue::new(name::GATEWAY_ATTEMPTS, i64::from(absence.attempts)),
        ];
        let shard = (absence.shard, absence.shards);
        self.write(name::SPAN_GATEWAY_RECONNECT, shard, (absence.began, absence.ended), None, more);
    }

    fn write<const N: usize>(
        &self,
        span: &'static str,
        (shard, shards): (u32, u32),
        (started, ended): (Moment, Moment),
        error: Option<String>,
        more: [KeyValue; N],
    ) {
        if !self.0.is_on() {
            return;
        }
        let mut attributes =
            vec![KeyValue::new(name::GATEWAY_SHARD, i64::from(shard)), KeyValue::new(name::GATEWAY_SHARDS, i64::from(shards))];
        attributes.extend(more);
        self.0.write(FinishedSpan {
            name: span.into(),
            kind: SpanKind::Client,
            place: Place::Alone,
            started,
            ended,
            attributes,
            error: error.map(Into::into),
            links: Vec::new(),
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

    use super::super::memory::{SpanMemory, attribute};
    use super::*;

    #[test]
    fn a_connection_that_came_about_and_one_that_did_not_are_told_apart() {
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
    fn an_absence_is_as_long_as_it_was() {
        let memory = SpanMemory::new();
        let (began, ended) = (Moment::from_micros(1_000_000), Moment::from_micros(3_500_000));

        GatewayRecorder::new(memory.recorder(false)).came_back(&Absence {
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
