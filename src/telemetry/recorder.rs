//! Writes spans from what is finished: name, place, times and attributes at once.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Link, Span, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer};

use super::instruments::Instruments;
use super::sampling::Sampling;
use super::trace::{SpanRef, TurnTrace};
use crate::domain::moment::Moment;

/// Writes spans, or nothing at all. A handle: cloned, it writes to the same place.
#[derive(Clone, Debug)]
pub struct Recorder {
    tracer: Option<SdkTracer>,
    sampling: Sampling,
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
    /// Under another span, with an id that was known before, because what lies under it was written first.
    As {
        /// Itself.
        own: SpanRef,
        /// What it lies under.
        parent: SpanRef,
    },
    /// A trace of its own.
    Alone,
}

impl Place {
    /// The span's own ids, and what it lies under.
    fn settled(self) -> (SpanRef, Option<SpanRef>) {
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
    /// Writes through a tracer, if there is one, whose provider has [`RecordedIds`] as its id generator; measures with these instruments.
    pub fn new(tracer: Option<SdkTracer>, capture_content: bool, instruments: Instruments) -> Self {
        Self { tracer, sampling: Sampling::all(), capture_content, instruments }
    }

    /// Writes only what this lets pass.
    pub fn sampled(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
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

    /// Writes a span, if its trace is to be exported. Never blocks; None if nothing is ever written.
    pub fn write(&self, span: FinishedSpan) -> Option<SpanRef> {
        let tracer = self.tracer.as_ref()?;
        let (own, parent) = span.place.settled();
        let place = match parent {
            Some(parent) => Place::As { own, parent },
            None => Place::Root(own.trace()),
        };
        for passed in self.sampling.pass(own.trace().as_u128(), FinishedSpan { place, ..span }) {
            self.hand_over(passed, tracer);
        }
        Some(own)
    }

    fn hand_over(&self, span: FinishedSpan, tracer: &SdkTracer) {
        let (own, parent) = span.place.settled();
        let linked = |to: SpanRef| Link::with_context(to.context(self.sampling.keeps(to.trace().as_u128())));
        let builder = SpanBuilder::from_name(span.name)
            .with_kind(span.kind)
            .with_start_time(time(span.started))
            .with_attributes(span.attributes)
            .with_links(span.links.into_iter().map(linked).collect());
        let context = Context::new();
        let context = parent.map_or_else(|| context.clone(), |parent| context.with_remote_span_context(parent.context(true)));
        let mut written = chosen(own, || builder.start_with_context(tracer, &context));
        if let Some(error) = span.error {
            written.set_status(Status::Error { description: error });
        }
        written.end_with_timestamp(time(span.ended.max(span.started)));
    }
}

/// Gives a span the ids that it is to have: those that were known before it was written, and which others name already.
#[derive(Debug, Default)]
pub struct RecordedIds(RandomIdGenerator);

thread_local! {
    static CHOSEN: Cell<Option<SpanRef>> = const { Cell::new(None) };
}

/// Starts a span that gets these ids: a span is started on one thread, at once.
fn chosen<T>(own: SpanRef, start: impl FnOnce() -> T) -> T {
    CHOSEN.set(Some(own));
    let started = start();
    CHOSEN.set(None);
    started
}

impl IdGenerator for RecordedIds {
    fn new_trace_id(&self) -> TraceId {
        CHOSEN.get().map_or_else(|| self.0.new_trace_id(), |own| own.context(true).trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        CHOSEN.get().map_or_else(|| self.0.new_span_id(), |own| own.context(true).span_id())
    }
}

fn time(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(moment.as_micros())
}
