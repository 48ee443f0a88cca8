//! Sends spans to an OTLP endpoint from a separate thread. If the endpoint is slow or missing, spans are lost and counted,
//! without any other effect.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::time::Instant;

use super::recorder::RecordedIds;
use crate::http_client;
use rejections::Rejections;

pub(crate) mod rejections;
#[cfg(test)]
mod tests;

/// The standard variable with the address of a collector.
pub(super) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// How long an export may take, if no variable sets the timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The losses count as over once no span was lost for this duration.
const CALM: Duration = Duration::from_secs(30);

/// How much larger the exporter's own queue is than our limit. So spans are always dropped by our limit, which counts them.
const SLACK: usize = 256;

/// The kind of exported data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Spans,
    Metrics,
}

impl Signal {
    /// Its name in messages, and its part of the variables' names.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Spans => ("spans", "TRACES"),
            Self::Metrics => ("metrics", "METRICS"),
        }
    }
}

/// The destination of spans or metrics.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub signal: Signal,
    /// The complete URL of the endpoint.
    pub endpoint: String,
    /// `service.name`, if the environment sets it elsewhere than in `OTEL_RESOURCE_ATTRIBUTES`.
    pub service_name: Option<String>,
    /// How long an export may take.
    pub timeout: Duration,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("endpoint", &self.shown_endpoint()).finish_non_exhaustive()
    }
}

/// Why spans or metrics cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} cannot be exported to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_{variable}_ENDPOINT, or telemetry.otlp_endpoint): {error}"
)]
pub struct ExportError {
    what: &'static str,
    variable: &'static str,
    endpoint: String,
    error: String,
}

impl Target {
    /// Exports to this complete URL.
    pub fn new(signal: Signal, endpoint: impl Into<String>) -> Self {
        Self { signal, endpoint: endpoint.into(), service_name: None, timeout: TIMEOUT }
    }

    /// Reads the standard OTEL variables. `None`: no endpoint is set, `OTEL_SDK_DISABLED` is `true`, or the exporter of the signal is `none`. The
    /// exporter itself reads headers, and for metrics the temporality and the interval (`OTEL_METRIC_EXPORT_INTERVAL`, in milliseconds, 60,000 by
    /// default).
    pub fn from_variables(signal: Signal, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (_, name) = signal.names();
        let is = |name: &str, wanted: &str| set(&variable, name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
        if is("OTEL_SDK_DISABLED", "true") || is(&format!("OTEL_{name}_EXPORTER"), "none") {
            return None;
        }
        let base = || Some(format!("{}/v1/{}", set(&variable, ENDPOINT)?.trim_end_matches('/'), name.to_lowercase()));
        let endpoint = set(&variable, &format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT")).or_else(base)?;
        let timeouts = [format!("OTEL_EXPORTER_OTLP_{name}_TIMEOUT"), "OTEL_EXPORTER_OTLP_TIMEOUT".to_owned()];
        let timeout = timeouts.iter().find_map(|name| set(&variable, name)?.parse().ok()).map_or(TIMEOUT, Duration::from_millis);
        Some(Self { signal, endpoint, service_name: set(&variable, "OTEL_SERVICE_NAME"), timeout })
    }

    /// The endpoint without user, password and query, which may be secret.
    pub fn shown_endpoint(&self) -> String {
        shown(&self.endpoint)
    }

    /// Makes an exporter with the protocol, the endpoint and the HTTP client, and the reader of what the endpoint rejects.
    pub(super) fn exporter<B: WithExportConfig + WithHttpConfig, E>(
        &self,
        builder: B,
        build: impl FnOnce(B) -> Result<E, ExporterBuildError>,
    ) -> Result<(E, Rejections), ExportError> {
        let rejections = Rejections::new(self.signal, self.shown_endpoint());
        let url = Url::parse(&self.endpoint).map_err(|error| format!("{error}; it must begin with http:// or https://"));
        let client = url.and_then(|url| match url.scheme() {
            "http" | "https" => http_client::blocking(&url, self.timeout),
            _ => Err("it must begin with http:// or https://".to_owned()),
        });
        let builder = builder.with_protocol(Protocol::HttpBinary).with_endpoint(&self.endpoint).with_timeout(self.timeout);
        let exporter = client.and_then(|client| {
            let client = rejections.read_by(client);
            build(builder.with_http_client(client)).map_err(|error| error.to_string())
        });
        exporter.map(|exporter| (exporter, rejections)).map_err(|error| {
            let ((what, variable), endpoint) = (self.signal.names(), self.shown_endpoint());
            ExportError { what, variable, error: error.replace(&self.endpoint, &endpoint), endpoint }
        })
    }
}

/// A hint about the general address, if it already ends in the path that is added to it. `name` is the variable or setting that it is from.
pub(super) fn doubled_path(name: &str, endpoint: &str) -> Option<String> {
    let endpoint = shown(endpoint.trim());
    let endpoint = endpoint.trim_end_matches('/');
    let (end, base) = ["/v1/traces", "/v1/metrics"].into_iter().find_map(|end| Some((end, endpoint.strip_suffix(end)?)))?;
    Some(format!(
        "{name} is {endpoint}, but {end} is added to it by itself: set it to {base}, or set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or \
         OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, to which nothing is added"
    ))
}

/// Why the exports that the variables request are not possible.
pub(super) fn refused(signal: Signal, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (what, name) = signal.names();
    let protocols = [format!("OTEL_EXPORTER_OTLP_{name}_PROTOCOL"), "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned()];
    let (name, protocol) = protocols.into_iter().find_map(|name| variable(&name).map(|protocol| (name, protocol)))?;
    protocol.trim().eq_ignore_ascii_case("grpc").then(|| {
        format!(
            "{what} are not exported: {name}=grpc is not possible; set it to http/protobuf, and the endpoint to where the collector accepts HTTP \
             (usually port 4318, not 4317)"
        )
    })
}

/// The value of a variable, unless it is blank.
fn set(variable: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The destination of spans, and their sampling.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPlan {
    pub target: Target,
    /// The share of traces to export, if `OTEL_TRACES_SAMPLER` sets it.
    pub sample_ratio: Option<f64>,
    /// The value of `OTEL_TRACES_SAMPLER`, if it is not a known one.
    pub unknown_sampler: Option<String>,
}

impl ExportPlan {
    /// Exports to this complete URL.
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self { target: Target::new(Signal::Spans, endpoint), sample_ratio: None, unknown_sampler: None }
    }

    /// Reads the standard OTEL variables. `None`: there is no [`Target`], or `OTEL_TRACES_SAMPLER` is `always_off`.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let target = Target::from_variables(Signal::Spans, &variable)?;
        let plan = Self { target, sample_ratio: None, unknown_sampler: None };
        let Some(sampler) = set(&variable, "OTEL_TRACES_SAMPLER") else { return Some(plan) };
        // Our traces have no parent in another service. So `parentbased_` has no effect, and the rest of the name decides.
        let ratio = set(&variable, "OTEL_TRACES_SAMPLER_ARG").map_or(Some(1.0), |ratio| ratio.parse().ok());
        match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
            "always_off" => None,
            "always_on" => Some(Self { sample_ratio: Some(1.0), ..plan }),
            "traceidratio" if ratio.is_some_and(|ratio| (0.0..=1.0).contains(&ratio)) => {
                Some(Self { sample_ratio: ratio, ..plan })
            }
            _ => Some(Self { unknown_sampler: Some(sampler), ..plan }),
        }
    }

    /// A provider that exports spans in batches, with at most `span_queue` waiting. The service has this name, unless the environment sets one.
    pub(super) fn provider(
        &self,
        service_name: &str,
        span_queue: usize,
        ledger: &Ledger,
    ) -> Result<SdkTracerProvider, ExportError> {
        let (exporter, rejections) =
            self.target.exporter(opentelemetry_otlp::SpanExporter::builder().with_http(), |builder| builder.build())?;
        Ok(SdkTracerProvider::builder()
            .with_id_generator(RecordedIds::default())
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource(self.target.service_name.as_deref().unwrap_or(service_name)))
            .with_span_processor(CountedProcessor::new(
                Monitored::new(exporter, self.target.shown_endpoint(), rejections, ledger.clone()),
                span_queue,
                ledger.clone(),
            ))
            .build())
    }
}

/// An endpoint without user, password and query, which may be secret. An invalid URL with a `/` or `?` in its password is
/// ambiguous. Then the result omits more than necessary, so that it never shows a secret.
fn shown(endpoint: &str) -> String {
    let (scheme, rest) = match endpoint.split_once("//") {
        Some((scheme, rest)) => (format!("{scheme}//"), rest),
        None => (String::new(), endpoint),
    };
    let (location, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let location = if query.contains('@') { "…" } else { location };
    format!("{scheme}{}", location.rsplit('@').next().unwrap_or_default())
}

/// The service's name, if nothing else sets it.
const DEFAULT_NAME: &str = "tertulia";

/// The exporting service: its name, its version, and the attributes from `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`.
pub(super) fn resource(service_name: &str) -> Resource {
    let own = [KeyValue::new("service.name", DEFAULT_NAME), KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    Resource::builder_empty()
        .with_attributes(own)
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())])
        .with_attributes([KeyValue::new("service.name", service_name.to_owned())])
        .build()
}

/// Counts exported and lost spans. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    queued: AtomicU64,
    exported: AtomicU64,
    failed: AtomicU64,
    /// Of the failed ones, those that the endpoint rejected although it accepted the export.
    rejected: AtomicU64,
    dropped: AtomicU64,
}

impl Ledger {
    /// Spans that the endpoint accepted.
    pub fn exported(&self) -> u64 {
        self.0.exported.load(Ordering::Relaxed)
    }

    /// Spans that could not be sent, or that the endpoint rejected.
    pub fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::Relaxed)
    }

    /// Spans that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Spans that wait for export.
    pub fn waiting(&self) -> u64 {
        let finished = self.exported() + self.failed();
        self.0.queued.load(Ordering::Relaxed).saturating_sub(finished)
    }
}

/// Limits the number of waiting spans, and counts the dropped ones.
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

/// An exporter that counts failures, and logs when losses begin and end.
#[derive(Debug)]
struct Monitored<E> {
    exporter: E,
    endpoint: String,
    rejections: Rejections,
    ledger: Ledger,
    losses: Mutex<Losses>,
}

impl<E> Monitored<E> {
    fn new(exporter: E, endpoint: String, rejections: Rejections, ledger: Ledger) -> Self {
        Self { exporter, endpoint, rejections, ledger, losses: Mutex::default() }
    }
}

impl<E: SpanExporter> SpanExporter for Monitored<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        let counts = &self.ledger.0;
        let rejected = if outcome.is_ok() { self.rejections.of_export().min(spans) } else { 0 };
        let accepted = if outcome.is_ok() { spans - rejected } else { 0 };
        counts.exported.fetch_add(accepted, Ordering::Relaxed);
        counts.failed.fetch_add(spans - accepted, Ordering::Relaxed);
        counts.rejected.fetch_add(rejected, Ordering::Relaxed);
        let (failed, dropped) = (self.ledger.failed(), self.ledger.dropped());
        // Rejected spans have lines of their own.
        let lost = failed - counts.rejected.load(Ordering::Relaxed) + dropped;
        match self.losses.lock().update(lost, Instant::now()) {
            Some(Change::Begin) => {
                let error = outcome.as_ref().err().map(tracing::field::display);
                let endpoint = &self.endpoint;
                tracing::warn!(
                    failed,
                    dropped,
                    error,
                    endpoint,
                    "spans are being lost: the OTLP endpoint is failing or too slow, or accepts gRPC and not HTTP"
                );
            }
            Some(Change::End) => tracing::info!(failed, dropped, "spans are no longer being lost"),
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

/// Detects when losses of spans, or of exports of metrics, begin and end. Each is reported once.
#[derive(Debug, Default)]
pub(super) struct Losses {
    lost: u64,
    /// The time of the last loss, until the losses count as over.
    last: Option<Instant>,
}

/// A change to report.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    Begin,
    End,
}

impl Losses {
    /// Updates the total number of losses.
    pub(super) fn update(&mut self, lost: u64, now: Instant) -> Option<Change> {
        if lost > self.lost {
            self.lost = lost;
            return self.last.replace(now).is_none().then_some(Change::Begin);
        }
        self.last.take_if(|last| now.duration_since(*last) >= CALM).map(|_| Change::End)
    }
}
