//! Keeps spans in memory, and what was measured beside them, for tests that read what was recorded.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};

use super::SCOPE;
use super::metrics::Metrics;
use super::recorder::{RecordedIds, Recorder};

/// Spans written by one recorder, in the order in which they were written. Cloned, it is the same memory.
#[derive(Clone, Debug)]
pub struct SpanMemory {
    spans: Arc<Mutex<Vec<SpanData>>>,
    metrics: Metrics,
}

impl Default for SpanMemory {
    fn default() -> Self {
        Self { spans: Arc::default(), metrics: Metrics::local() }
    }
}

impl SpanMemory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder that writes here, on the caller's thread.
    pub fn recorder(&self, capture_content: bool) -> Recorder {
        let provider = SdkTracerProvider::builder()
            .with_id_generator(RecordedIds::default())
            .with_sampler(Sampler::AlwaysOn)
            .with_simple_exporter(self.clone())
            .build();
        Recorder::new(Some(provider.tracer(SCOPE)), capture_content, self.metrics.instruments())
    }

    /// What was measured by its recorders.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<SpanData> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spans of one name so far.
    pub fn named(&self, name: &str) -> Vec<SpanData> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

impl SpanExporter for SpanMemory {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

/// An attribute of a span as text, if it has it.
pub fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| attribute.value.to_string())
}
