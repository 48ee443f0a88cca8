//! Writes spans whose work is finished: name, parent, times and attributes at once.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Link, Span, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer};

use super::attributes;
use super::instruments::Instruments;
use super::sampling::Sampling;
use super::trace::{SpanRef, TurnTrace};
use crate::domain::id::Ticket;
use crate::domain::moment::Moment;

/// Writes spans, if spans are exported. Clones write to the same exporter.
#[derive(Clone, Debug)]
pub struct Recorder {
    tracer: Option<SdkTracer>,
    sampling: Sampling,
    capture_content: bool,
    instruments: Instruments,
}

#[derive(Debug)]
pub struct FinishedSpan {
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub place: Place,
    pub started: Moment,
    /// Not before `started`.
    pub ended: Moment,
    pub attributes: Vec<KeyValue>,
    /// The error in the span's status, if it failed.
    pub error: Option<Cow<'static, str>>,
    /// Links to spans of other traces that it follows.
    pub links: Vec<SpanRef>,
}

/// The position of a span in its trace.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The root of a turn's trace.
    Root(TurnTrace),
    /// A child of another span.
    Under(SpanRef),
    /// A child of another span, with a known id, because its own children were written first.
    As { own: SpanRef, parent: SpanRef },
    /// A separate trace.
    Alone,
}

impl FinishedSpan {
    /// A span of this server's own work that did not fail.
    pub fn new(name: impl Into<Cow<'static, str>>, place: Place, times: (Moment, Moment), attributes: Vec<KeyValue>) -> Self {
        let (name, kind, (started, ended)) = (name.into(), SpanKind::Internal, times);
        Self { name, kind, place, started, ended, attributes, error: None, links: Vec::new() }
    }

    /// The same span. With an error code, it failed: the code is in its status and in `error.type`.
    pub fn failed(mut self, error: Option<&str>) -> Self {
        if let Some(code) = error {
            self.attributes.push(KeyValue::new(attributes::ERROR_TYPE, code.to_owned()));
            self.error = Some(code.to_owned().into());
        }
        self
    }
}

impl Place {
    /// Under the root of a turn. If it is about a question or a reply, its id is known, because the span of the call is under it.
    pub fn in_turn(trace: TurnTrace, ticket: Option<Ticket>) -> Self {
        match ticket {
            Some(ticket) => Self::As { own: trace.of(ticket), parent: trace.root() },
            None => Self::Under(trace.root()),
        }
    }

    /// The span's own ids, and its parent.
    fn resolved(self) -> (SpanRef, Option<SpanRef>) {
        match self {
            Self::Root(trace) => (trace.root(), None),
            Self::As { own, parent } => (own, Some(parent)),
            Self::Under(parent) => {
                let span = u64::from_be_bytes(RandomIdGenerator::default().new_span_id().to_bytes());
                (parent.sibling(span), Some(parent))
            }
            Self::Alone => {
                let trace = u128::from_be_bytes(RandomIdGenerator::default().new_trace_id().to_bytes());
                (TurnTrace::new(trace).root(), None)
            }
        }
    }
}

impl Recorder {
    /// A recorder that writes all spans with this tracer, or none without one. The tracer's provider must have [`RecordedIds`] as its id generator.
    pub fn new(tracer: Option<SdkTracer>, capture_content: bool, instruments: Instruments) -> Self {
        Self { tracer, sampling: Sampling::all(), capture_content, instruments }
    }

    pub fn sampled(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Writes no spans, and has instruments without a reader.
    pub fn silent() -> Self {
        Self::new(None, false, Instruments::noop())
    }

    pub const fn instruments(&self) -> &Instruments {
        &self.instruments
    }

    /// Whether attributes may contain the text of messages.
    pub const fn captures_content(&self) -> bool {
        self.capture_content
    }

    /// Writes a span, if its trace is sampled. Never blocks. Returns `None` if no spans are written; then the span is not even
    /// built.
    pub fn record(&self, span: impl FnOnce() -> FinishedSpan) -> Option<SpanRef> {
        let tracer = self.tracer.as_ref()?;
        let span = span();
        let (own, parent) = span.place.resolved();
        let place = match parent {
            Some(parent) => Place::As { own, parent },
            None => Place::Root(own.trace()),
        };
        for passed in self.sampling.pass(own.trace().as_u128(), FinishedSpan { place, ..span }) {
            self.export(passed, tracer);
        }
        Some(own)
    }

    fn export(&self, span: FinishedSpan, tracer: &SdkTracer) {
        let (own, parent) = span.place.resolved();
        let linked = |to: SpanRef| Link::with_context(to.context(self.sampling.keeps(to.trace().as_u128())));
        let builder = SpanBuilder::from_name(span.name)
            .with_kind(span.kind)
            .with_start_time(time(span.started))
            .with_attributes(span.attributes)
            .with_links(span.links.into_iter().map(linked).collect());
        let context = Context::new();
        let context = parent.map_or_else(|| context.clone(), |parent| context.with_remote_span_context(parent.context(true)));
        let mut written = with_ids(own, || builder.start_with_context(tracer, &context));
        if let Some(error) = span.error {
            written.set_status(Status::Error { description: error });
        }
        written.end_with_timestamp(time(span.ended.max(span.started)));
    }
}

/// Gives a span its predetermined ids, which other spans may already refer to.
#[derive(Debug, Default)]
pub struct RecordedIds(RandomIdGenerator);

thread_local! {
    static NEXT_IDS: Cell<Option<SpanRef>> = const { Cell::new(None) };
}

/// Starts a span with these ids. A thread-local works, because a span is started synchronously on one thread.
fn with_ids<T>(own: SpanRef, start: impl FnOnce() -> T) -> T {
    NEXT_IDS.set(Some(own));
    let started = start();
    NEXT_IDS.set(None);
    started
}

impl IdGenerator for RecordedIds {
    fn new_trace_id(&self) -> TraceId {
        NEXT_IDS.get().map_or_else(|| self.0.new_trace_id(), |own| own.context(true).trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        NEXT_IDS.get().map_or_else(|| self.0.new_span_id(), |own| own.context(true).span_id())
    }
}

fn time(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(moment.as_micros())
}
