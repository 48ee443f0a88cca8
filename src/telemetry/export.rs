//! Sends spans to an OTLP endpoint, from a thread of its own; a slow or missing endpoint costs spans, counted, and nothing else.

use std::fmt;
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

/// When no span was lost for so long, the trouble is over.
const CALM: Duration = Duration::from_secs(30);

/// Room that the exporter's own queue has beyond our limit, so that it is always ours that decides, and counts.
const SLACK: usize = 256;

/// Where spans go.
#[derive(Clone, PartialEq)]
pub struct ExportPlan {
    /// The whole URL that spans are posted to.
    pub endpoint: String,
    /// `service.name`, if the environment gives one outside `OTEL_RESOURCE_ATTRIBUTES`.
    pub service_name: Option<String>,
    /// The share of traces to export, if `OTEL_TRACES_SAMPLER` says it.
    pub sample_ratio: Option<f64>,
    /// What `OTEL_TRACES_SAMPLER` says, if that is nothing we know.
    pub unknown_sampler: Option<String>,
}

impl fmt::Debug for ExportPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportPlan").field("endpoint", &self.shown_endpoint()).finish_non_exhaustive()
    }
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("spans cannot be exported to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT): {error}")]
pub struct ExportError {
    endpoint: String,
    error: String,
}

impl ExportPlan {
    /// Under this name, unless the environment gave another.
    pub fn called(mut self, service_name: &str) -> Self {
        self.service_name.get_or_insert_with(|| service_name.to_owned());
        self
    }

    /// To this URL, all of it.
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), service_name: None, sample_ratio: None, unknown_sampler: None }
    }

    /// The endpoint without what may be secret in it: user, password and query.
    pub fn shown_endpoint(&self) -> String {
        shown(&self.endpoint)
    }

    /// What the standard variables say: none unless an endpoint is named, and neither `OTEL_SDK_DISABLED` is `true` nor
    /// `OTEL_TRACES_EXPORTER` is `none` nor `OTEL_TRACES_SAMPLER` is `always_off`. Headers and timeouts are read by the exporter itself.
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
        let plan = Self { service_name: set("OTEL_SERVICE_NAME"), ..Self::to(endpoint) };
        let Some(named) = set("OTEL_TRACES_SAMPLER") else { return Some(plan) };
        // Nobody hands us a trace to go on with, so what a parent would decide is decided by the rest of the name.
        let ratio = set("OTEL_TRACES_SAMPLER_ARG").map_or(Some(1.0), |ratio| ratio.parse().ok());
        match named.strip_prefix("parentbased_").unwrap_or(&named) {
            "always_off" => None,
            "always_on" => Some(Self { sample_ratio: Some(1.0), ..plan }),
            "traceidratio" if ratio.is_some_and(|ratio| (0.0..=1.0).contains(&ratio)) => {
                Some(Self { sample_ratio: ratio, ..plan })
            }
            _ => Some(Self { unknown_sampler: Some(named), ..plan }),
        }
    }

    /// A provider whose spans are exported in batches, `span_queue` waiting at most.
    pub(super) fn provider(&self, span_queue: usize, ledger: &Ledger) -> Result<SdkTracerProvider, ExportError> {
        // The exporter makes its blocking HTTP client on a thread of its own, so this is safe on an async thread too.
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&self.endpoint)
            .build()
            .map_err(|error| self.unusable(&error))?;
        Ok(SdkTracerProvider::builder()
            .with_id_generator(RecordedIds::default())
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource(self.service_name.as_deref().unwrap_or(DEFAULT_NAME)))
            .with_span_processor(CountedProcessor::new(Watched::new(exporter, ledger.clone()), span_queue, ledger.clone()))
            .build())
    }
}

impl ExportPlan {
    fn unusable(&self, error: &ExporterBuildError) -> ExportError {
        let endpoint = self.shown_endpoint();
        ExportError { error: error.to_string().replace(&self.endpoint, &endpoint), endpoint }
    }
}

/// An endpoint without what may be secret in it: user, password and query. Where a password with a `/` or `?` in it, as no URL may have,
/// leaves open what is what, rather too little is shown.
pub(super) fn shown(endpoint: &str) -> String {
    let (scheme, rest) = match endpoint.split_once("//") {
        Some((scheme, rest)) => (format!("{scheme}//"), rest),
        None => (String::new(), endpoint),
    };
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let place = if query.contains('@') { "…" } else { place };
    format!("{scheme}{}", place.rsplit('@').next().unwrap_or_default())
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
    losses: Mutex<Losses>,
}

impl<E> Watched<E> {
    fn new(exporter: E, ledger: Ledger) -> Self {
        Self { exporter, ledger, losses: Mutex::default() }
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        let counter = if outcome.is_ok() { &self.ledger.0.exported } else { &self.ledger.0.failed };
        counter.fetch_add(spans, Ordering::Relaxed);
        let lost = self.ledger.failed() + self.ledger.dropped();
        let (failed, dropped) = (self.ledger.failed(), self.ledger.dropped());
        match self.losses.lock().unwrap_or_else(PoisonError::into_inner).learn(lost, Instant::now()) {
            Some(Word::Begins) => {
                let error = outcome.as_ref().err().map(tracing::field::display);
                tracing::warn!(failed, dropped, error, "spans are lost on the way to the OTLP endpoint");
            }
            Some(Word::Ends) => tracing::info!(failed, dropped, "no more spans are lost on the way to the OTLP endpoint"),
            None => {}
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

/// Whether spans, or exports of metrics, are being lost: told when it begins and when it is over, however long it takes.
#[derive(Debug, Default)]
pub(super) struct Losses {
    known: u64,
    /// When it was noticed last, while it goes on.
    last: Option<Instant>,
}

/// What is to be said.
#[derive(Debug, PartialEq)]
pub(super) enum Word {
    Begins,
    Ends,
}

impl Losses {
    /// So many were lost until now.
    pub(super) fn learn(&mut self, lost: u64, now: Instant) -> Option<Word> {
        if lost > self.known {
            self.known = lost;
            return self.last.replace(now).is_none().then_some(Word::Begins);
        }
        self.last.take_if(|last| now.duration_since(*last) >= CALM).map(|_| Word::Ends)
    }
}
