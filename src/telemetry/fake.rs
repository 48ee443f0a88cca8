//! Stores spans, log lines and metrics in memory.

use std::io;
use std::sync::Arc;

use opentelemetry::trace::{SpanId, TraceId, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use parking_lot::Mutex;
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

use crate::metrics::Metrics;
use crate::recorder::{RecordedIds, Recorder};
use crate::sampling::Sampling;

/// The spans that a recorder wrote, in order. Clones share them.
#[derive(Clone)]
pub struct SpanMemory {
    spans: Spans,
    metrics: Metrics,
}

#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<Vec<SpanData>>>);

impl Default for SpanMemory {
    fn default() -> Self {
        Self { spans: Spans::default(), metrics: Metrics::local() }
    }
}

impl SpanMemory {
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder that writes here, on the caller's thread.
    pub fn recorder(&self, capture_content: bool) -> Recorder {
        self.sampled(Sampling::all(), capture_content)
    }

    /// The same, with sampling.
    pub fn sampled(&self, sampling: Sampling, capture_content: bool) -> Recorder {
        let provider = SdkTracerProvider::builder()
            .with_id_generator(RecordedIds::default())
            .with_sampler(Sampler::AlwaysOn)
            .with_simple_exporter(self.spans.clone())
            .build();
        Recorder::new(Some(provider.tracer("tertulia")), capture_content, self.metrics.instruments()).sampled(sampling)
    }

    /// The metrics of its recorders.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn spans(&self) -> Vec<SpanData> {
        self.spans.0.lock().clone()
    }

    /// The spans with this name.
    pub fn named(&self, name: &str) -> Vec<SpanData> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

/// Renders spans as text, one trace after the other. Names are indented under their parents, in the order of time. A line shows the companion, a
/// turn's outcome, a decision, an error, and the trace that a turn follows. A span whose parent is missing is marked with `?`.
pub fn drawn(spans: &[SpanData]) -> String {
    let mut traces: Vec<TraceId> = Vec::new();
    for span in spans {
        if !traces.contains(&span.span_context.trace_id()) {
            traces.push(span.span_context.trace_id());
        }
    }
    let mut drawing = String::new();
    for trace in &traces {
        let mut here: Vec<&SpanData> = spans.iter().filter(|span| span.span_context.trace_id() == *trace).collect();
        here.sort_by_key(|span| (span.start_time, span.end_time));
        let is_known = |id| here.iter().any(|span| span.span_context.span_id() == id);
        for top in here.iter().filter(|span| !is_known(span.parent_span_id)) {
            let mark = if top.parent_span_id == SpanId::INVALID { "" } else { "? " };
            draw(top, &here, &traces, mark, 0, &mut drawing);
        }
    }
    drawing
}

fn draw(span: &SpanData, all: &[&SpanData], traces: &[TraceId], mark: &str, depth: usize, drawing: &mut String) {
    let values = ["companion.id", "turn.outcome", "decision", "error.type"].into_iter().filter_map(|name| attribute(span, name));
    let number =
        |trace| traces.iter().position(|other| *other == trace).map_or("elsewhere".to_owned(), |at| (at + 1).to_string());
    let follows = span.links.iter().map(|link| format!("follows {}", number(link.span_context.trace_id())));
    let words: Vec<_> = [span.name.to_string()].into_iter().chain(values).chain(follows).collect();
    drawing.push_str(&format!("{}{mark}{}\n", "  ".repeat(depth), words.join(" ")));
    for child in all.iter().filter(|child| child.parent_span_id == span.span_context.span_id()) {
        draw(child, all, traces, "", depth + 1, drawing);
    }
}

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().extend(batch);
        Ok(())
    }
}

/// Log lines as they were written. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    /// The part of each line after this mark. A line without the mark stays as it is.
    pub fn after(&self, mark: &str) -> Vec<String> {
        self.text().lines().map(|line| line.split_once(mark).map_or(line, |(_, rest)| rest).to_owned()).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Captures everything that the current thread logs until it is dropped.
pub struct Logged {
    lines: Lines,
    _subscribed: Subscribed,
}

impl Logged {
    /// Captures events of this level and those above it.
    pub fn from(level: Level) -> Self {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(lines.clone()).finish();
        Self { lines, _subscribed: subscribe(subscriber) }
    }

    /// The log so far.
    pub fn read(&self) -> String {
        self.lines.text()
    }
}

/// A subscriber of one thread, until it is dropped.
pub struct Subscribed {
    _guard: DefaultGuard,
    _second: Dispatch,
}

/// Sends the events of the current thread to this subscriber.
pub fn subscribe(subscriber: impl Subscriber + Send + Sync + 'static) -> Subscribed {
    // tracing caches for each call site whether any subscriber wants its events. With a single subscriber, another test's thread that logs
    // there first would make it cache that none does, for the rest of the process.
    let second = Dispatch::new(tracing_subscriber::registry());
    Subscribed { _guard: tracing::subscriber::set_default(subscriber), _second: second }
}

/// An attribute of a span as text, if it has it.
pub fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| attribute.value.to_string())
}
