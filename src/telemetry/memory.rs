//! Keeps spans in memory, for tests that read what was recorded.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};

use super::SCOPE;
use super::instruments::Instruments;
use super::recorder::{RecordedIds, Recorder};

/// Spans written by one recorder, in the order in which they were written. Cloned, it is the same memory.
#[derive(Clone, Debug, Default)]
pub struct SpanMemory(Arc<Mutex<Vec<SpanData>>>);

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
        Recorder::new(Some(provider.tracer(SCOPE)), capture_content, Instruments::unread())
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<SpanData> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spans of one name so far.
    pub fn named(&self, name: &str) -> Vec<SpanData> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

impl SpanExporter for SpanMemory {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

/// An attribute of a span as text, if it has it.
pub fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| attribute.value.to_string())
}
