//! Writes spans from what is finished: name, place, times and attributes at once.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Link, Span, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer};

use super::instruments::Instruments;
use super::trace::{SpanRef, TurnTrace};
use crate::domain::moment::Moment;

/// Writes spans, or nothing at all. A handle: cloned, it writes to the same place.
#[derive(Clone, Debug)]
pub struct Recorder {
    tracer: Option<SdkTracer>,
    capture_content: bool,
    instruments: Instruments,
}

/// A span that is over.
#[derive(Debug)]
pub struct FinishedSpan {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Whether it went out to somebody.
    pub kind: SpanKind,
    /// Where it belongs.
    pub place: Place,
    /// When it began.
    pub started: Moment,
    /// When it was over; not before it began.
    pub ended: Moment,
    /// What is known of it.
    pub attributes: Vec<KeyValue>,
    /// What went wrong, if something did: the span's status.
    pub error: Option<Cow<'static, str>>,
    /// What it goes on from, in other traces.
    pub links: Vec<SpanRef>,
}

/// Where a span belongs.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The root of a turn's trace.
    Root(TurnTrace),
    /// Under another span.
    Under(SpanRef),
    /// A trace of its own.
    Alone,
}

impl Recorder {
    /// Writes through a tracer, if there is one, whose provider has [`RecordedIds`] as its id generator; measures with these instruments.
    pub const fn new(tracer: Option<SdkTracer>, capture_content: bool, instruments: Instruments) -> Self {
        Self { tracer, capture_content, instruments }
    }

    /// Writes nothing, and measures what nobody reads.
    pub fn silent() -> Self {
        Self::new(None, false, Instruments::unread())
    }

    /// What is measured with.
    pub const fn instruments(&self) -> &Instruments {
        &self.instruments
    }

    /// Whether anything is written: attributes that are dear to make need not be made otherwise.
    pub const fn is_on(&self) -> bool {
        self.tracer.is_some()
    }

    /// Whether what people and companions say may become an attribute.
    pub const fn captures_content(&self) -> bool {
        self.capture_content
    }

    /// Writes a span. Never blocks; None if nothing is written.
    pub fn write(&self, span: FinishedSpan) -> Option<SpanRef> {
        let tracer = self.tracer.as_ref()?;
        let builder = SpanBuilder::from_name(span.name)
            .with_kind(span.kind)
            .with_start_time(time(span.started))
            .with_attributes(span.attributes)
            .with_links(span.links.into_iter().map(|link| Link::with_context(link.context())).collect());
        let mut written = match span.place {
            Place::Root(trace) => chosen(trace, || builder.start_with_context(tracer, &Context::new())),
            Place::Under(parent) => {
                builder.start_with_context(tracer, &Context::new().with_remote_span_context(parent.context()))
            }
            Place::Alone => builder.start_with_context(tracer, &Context::new()),
        };
        if let Some(error) = span.error {
            written.set_status(Status::Error { description: error });
        }
        let reference = SpanRef::of(written.span_context());
        written.end_with_timestamp(time(span.ended.max(span.started)));
        Some(reference)
    }
}

/// Gives random ids, except to a root span: its children were written before it, under an id that was known from the beginning.
#[derive(Debug, Default)]
pub struct RecordedIds(RandomIdGenerator);

thread_local! {
    static CHOSEN: Cell<Option<TurnTrace>> = const { Cell::new(None) };
}

/// Starts a span that gets the ids of a turn's root: a span is started on one thread, at once.
fn chosen<T>(trace: TurnTrace, start: impl FnOnce() -> T) -> T {
    CHOSEN.set(Some(trace));
    let started = start();
    CHOSEN.set(None);
    started
}

impl IdGenerator for RecordedIds {
    fn new_trace_id(&self) -> TraceId {
        CHOSEN.get().map_or_else(|| self.0.new_trace_id(), |trace| trace.root().context().trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        CHOSEN.get().map_or_else(|| self.0.new_span_id(), |trace| trace.root().context().span_id())
    }
}

fn time(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(moment.as_micros())
}
