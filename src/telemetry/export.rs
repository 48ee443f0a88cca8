//! Sends spans to an OTLP endpoint, from a thread of its own; a slow or missing endpoint costs spans, counted, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};
use tokio::time::Instant;

use super::recorder::RecordedIds;

#[cfg(test)]
mod tests;

/// Failures and drops are logged at most so often.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// Room that the exporter's own queue has beyond our limit, so that it is always ours that decides, and counts.
const SLACK: usize = 256;

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPlan {
    /// The whole URL that spans are posted to.
    pub endpoint: String,
    /// `service.name`, if the environment gives one outside `OTEL_RESOURCE_ATTRIBUTES`.
    pub service_name: Option<String>,
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("spans cannot be exported to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT): {error}")]
pub struct ExportError {
    endpoint: String,
    error: ExporterBuildError,
}

impl ExportPlan {
    /// Under this name, unless the environment gave another.
    pub fn called(mut self, service_name: &str) -> Self {
        self.service_name.get_or_insert_with(|| service_name.to_owned());
        self
    }

    /// What the standard variables say: none unless an endpoint is named, and neither `OTEL_SDK_DISABLED` is `true` nor
    /// `OTEL_TRACES_EXPORTER` is `none`. Headers and timeouts are read by the exporter itself.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        if set("OTEL_TRACES_EXPORTER").is_some_and(|value| value.eq_ignore_ascii_case("none")) {
            return None;
        }
        let endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/'))))?;
        Some(Self { endpoint, service_name: set("OTEL_SERVICE_NAME") })
    }

    /// A provider whose spans are exported in batches, `span_queue` waiting at most.
    pub(super) fn provider(&self, span_queue: usize, ledger: &Ledger) -> Result<SdkTracerProvider, ExportError> {
        // The exporter makes its blocking HTTP client on a thread of its own, so this is safe on an async thread too.
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&self.endpoint)
            .build()
            .map_err(|error| ExportError { endpoint: self.endpoint.clone(), error })?;
        Ok(SdkTracerProvider::builder()
            .with_id_generator(RecordedIds::default())
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource(self.service_name.as_deref().unwrap_or(DEFAULT_NAME)))
            .with_span_processor(CountedProcessor::new(Watched::new(exporter, ledger.clone()), span_queue, ledger.clone()))
            .build())
    }
}

/// What a server without a name of its own is called.
const DEFAULT_NAME: &str = "tertulia";

/// Who exports: the service's name, its version, and what `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` add.
pub(super) fn resource(service_name: &str) -> Resource {
    let own = [KeyValue::new("service.name", DEFAULT_NAME), KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    Resource::builder_empty()
        .with_attributes(own)
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())])
        .with_attributes([KeyValue::new("service.name", service_name.to_owned())])
        .build()
}

/// What became of the spans. Cloned, it is the same ledger.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    queued: AtomicU64,
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl Ledger {
    /// Spans that an endpoint took.
    pub fn exported(&self) -> u64 {
        self.0.exported.load(Ordering::Relaxed)
    }

    /// Spans that were sent in vain.
    pub fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::Relaxed)
    }

    /// Spans that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Spans that wait.
    pub fn waiting(&self) -> u64 {
        let settled = self.exported() + self.failed();
        self.0.queued.load(Ordering::Relaxed).saturating_sub(settled)
    }
}

/// Lets no more spans wait than the limit, and counts those it turns away.
#[derive(Debug)]
struct CountedProcessor {
    batches: BatchSpanProcessor,
    limit: u64,
    ledger: Ledger,
}

impl CountedProcessor {
    fn new(exporter: impl SpanExporter + 'static, limit: usize, ledger: Ledger) -> Self {
        let config = BatchConfigBuilder::default().with_max_queue_size(limit.max(1).saturating_add(SLACK)).build();
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        Self { batches, limit: limit.max(1) as u64, ledger }
    }
}

impl SpanProcessor for CountedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.ledger.waiting() >= self.limit {
            self.ledger.0.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.ledger.0.queued.fetch_add(1, Ordering::Relaxed);
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// An exporter whose failures are counted, and told now and then.
#[derive(Debug)]
struct Watched<E> {
    exporter: E,
    ledger: Ledger,
    complaints: Mutex<Complaints>,
}

impl<E> Watched<E> {
    fn new(exporter: E, ledger: Ledger) -> Self {
        Self { exporter, ledger, complaints: Mutex::default() }
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        let counter = if outcome.is_ok() { &self.ledger.0.exported } else { &self.ledger.0.failed };
        counter.fetch_add(spans, Ordering::Relaxed);
        let lost = self.ledger.failed() + self.ledger.dropped();
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.is_due(lost, Instant::now()) {
            let (failed, dropped) = (self.ledger.failed(), self.ledger.dropped());
            let error = outcome.as_ref().err().map(tracing::field::display);
            tracing::warn!(failed, dropped, error, "spans were lost on the way to the OTLP endpoint");
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// When to say that spans are lost: when there are more than last time, and that is a while ago.
#[derive(Debug, Default)]
struct Complaints {
    told: u64,
    last: Option<Instant>,
}

impl Complaints {
    fn is_due(&mut self, lost: u64, now: Instant) -> bool {
        let is_due = lost > self.told && self.last.is_none_or(|last| now.duration_since(last) >= COMPLAINT_INTERVAL);
        if is_due {
            self.told = lost;
            self.last = Some(now);
        }
        is_due
    }
}
