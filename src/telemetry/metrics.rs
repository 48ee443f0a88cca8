//! Who reads the instruments: `/metrics` in Prometheus text, and an OTLP endpoint if one is named. Both read the same source.

mod process;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider};
use prometheus::{Registry, TextEncoder};

use super::attributes as name;
use super::export::Ledger;
use super::instruments::Instruments;

#[cfg(test)]
mod tests;

/// The media type of [`Metrics::exposition`].
pub const EXPOSITION_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where metrics go besides `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsPlan {
    /// The whole URL that metrics are posted to.
    pub endpoint: String,
    /// `service.name`, if the environment gives one outside `OTEL_RESOURCE_ATTRIBUTES`.
    pub service_name: Option<String>,
}

/// Why metrics cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The exporter cannot be made.
    #[error(
        "metrics cannot be exported to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT): {error}"
    )]
    Export {
        /// Where to.
        endpoint: String,
        /// What is wrong.
        error: ExporterBuildError,
    },
    /// The reader for `/metrics` cannot be made.
    #[error("metrics cannot be made readable for Prometheus: {0}")]
    Prometheus(String),
}

impl MetricsPlan {
    /// What the standard variables say: none unless an endpoint is named, and neither `OTEL_SDK_DISABLED` is `true` nor
    /// `OTEL_METRICS_EXPORTER` is `none`. Headers, timeouts and the interval (`OTEL_METRIC_EXPORT_INTERVAL`, in milliseconds, 60,000 by
    /// default) are read by the exporter itself.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is = |name: &str, wanted: &str| set(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_METRICS_EXPORTER", "none") {
            return None;
        }
        let base = || set("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/metrics", base.trim_end_matches('/')));
        let endpoint = set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").or_else(base)?;
        Some(Self { endpoint, service_name: set("OTEL_SERVICE_NAME") })
    }
}

/// What is measured, and whoever reads it. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Metrics {
    provider: SdkMeterProvider,
    registry: Arc<Registry>,
    instruments: Instruments,
}

impl Metrics {
    /// Instruments that are read at `/metrics`, and sent to an endpoint if there is a plan.
    ///
    /// # Errors
    /// A reader cannot be made.
    pub fn new(resource: Resource, plan: Option<&MetricsPlan>) -> Result<Self, MetricsError> {
        let registry = Arc::new(Registry::new());
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry((*registry).clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| MetricsError::Prometheus(error.to_string()))?;
        let readers = SdkMeterProvider::builder().with_resource(resource).with_reader(prometheus);
        let provider = match plan {
            Some(plan) => sent(readers, plan)?,
            None => readers,
        }
        .build();
        let instruments = Instruments::new(&provider);
        Ok(Self { provider, registry, instruments })
    }

    /// Instruments that are read at `/metrics` alone.
    ///
    /// # Panics
    /// Never: the reader has a registry of its own.
    #[cfg(test)]
    pub fn local() -> Self {
        Self::new(Resource::builder_empty().build(), None).expect("a registry of its own takes everything")
    }

    /// To be handed to whoever measures something.
    pub fn instruments(&self) -> Instruments {
        self.instruments.clone()
    }

    /// Measures the process itself as well, and what became of the spans.
    pub fn observe_process(&self, spans: &Ledger) {
        let meter = self.provider.meter(super::SCOPE);
        process::observe(&meter);
        let ledger = spans.clone();
        meter
            .u64_observable_counter("tertulia.telemetry.spans")
            .with_unit("{span}")
            .with_description("Spans that were written, by what became of them; dropped ones found the queue full.")
            .with_callback(move |observer| {
                let fates = [("exported", ledger.exported()), ("failed", ledger.failed()), ("dropped", ledger.dropped())];
                fates.into_iter().for_each(|(fate, spans)| observer.observe(spans, &[KeyValue::new(name::SPAN_FATE, fate)]));
            })
            .build();
        let ledger = spans.clone();
        meter
            .u64_observable_gauge("tertulia.telemetry.queue")
            .with_unit("{span}")
            .with_description("Spans that wait to be exported.")
            .with_callback(move |observer| observer.observe(ledger.waiting(), &[]))
            .build();
    }

    /// Everything in Prometheus text, [`EXPOSITION_TYPE`].
    ///
    /// # Errors
    /// What was measured cannot be written down, in words.
    pub fn exposition(&self) -> Result<String, String> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(|error| error.to_string())
    }

    /// Sends what is to be sent, within this time. Blocks.
    pub(super) fn shutdown(&self, within: Duration) {
        // Whoever still measures after this measures in vain; that the endpoint is gone was told by then.
        let _ = self.provider.shutdown_with_timeout(within);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn sent(readers: MeterProviderBuilder, plan: &MetricsPlan) -> Result<MeterProviderBuilder, MetricsError> {
    let exporter = opentelemetry_otlp::MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&plan.endpoint)
        .build()
        .map_err(|error| MetricsError::Export { endpoint: plan.endpoint.clone(), error })?;
    Ok(readers.with_reader(PeriodicReader::builder(exporter).build()))
}
