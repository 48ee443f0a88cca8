//! Who reads the instruments: `/metrics` in Prometheus text, and an OTLP endpoint if one is named. Both read the same source.

mod process;
mod watched;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, PeriodicReader, SdkMeterProvider, Stream};
use prometheus::{Registry, TextEncoder};
use tokio::time::Instant;

use super::export::{Ledger, shown};
use super::instruments::{DISK_FREE, Instruments, STORE_SIZE, TELEMETRY_QUEUE, TELEMETRY_SPANS, kinds, series_at_most};
use watched::Watched;

#[cfg(test)]
mod tests;

/// How long what is known of the disk is taken for true.
pub const DISK_LASTS: Duration = Duration::from_secs(5);

/// The media type of [`Metrics::exposition`].
pub const EXPOSITION_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where metrics go besides `/metrics`.
#[derive(Clone, PartialEq, Eq)]
pub struct MetricsPlan {
    /// The whole URL that metrics are posted to.
    pub endpoint: String,
    /// `service.name`, if the environment gives one outside `OTEL_RESOURCE_ATTRIBUTES`.
    pub service_name: Option<String>,
}

impl fmt::Debug for MetricsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsPlan").field("endpoint", &shown(&self.endpoint)).finish_non_exhaustive()
    }
}

/// Why metrics cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The exporter cannot be made.
    #[error(
        "metrics cannot be exported to {endpoint} (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT): {error}"
    )]
    Export {
        /// Where to, without what may be secret in it.
        endpoint: String,
        /// What is wrong.
        error: String,
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
        let readers = SdkMeterProvider::builder().with_resource(resource).with_view(room).with_reader(prometheus);
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
        kinds::observe(&meter, TELEMETRY_SPANS, move |tell| {
            let fates = [("exported", ledger.exported()), ("failed", ledger.failed()), ("dropped", ledger.dropped())];
            fates.into_iter().for_each(|(fate, spans)| tell(spans as f64, &[fate]));
        });
        let ledger = spans.clone();
        kinds::observe(&meter, TELEMETRY_QUEUE, move |tell| tell(ledger.waiting() as f64, &[]));
    }

    /// Measures the disk as well: how many bytes the store takes up, and how many are free. None: it cannot be said now. Both are asked on
    /// the thread that reads, at most every [`DISK_LASTS`].
    pub fn observe_disk(
        &self,
        used: impl Fn() -> Option<u64> + Send + Sync + 'static,
        free: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) {
        let meter = self.provider.meter(super::SCOPE);
        for (entry, ask) in [(STORE_SIZE, Lasting::new(used)), (DISK_FREE, Lasting::new(free))] {
            kinds::observe(&meter, entry, move |tell| ask.get().into_iter().for_each(|bytes| tell(bytes as f64, &[])));
        }
    }

    /// Everything in Prometheus text, [`EXPOSITION_TYPE`].
    ///
    /// # Errors
    /// What was measured cannot be written down, in words.
    pub fn exposition(&self) -> Result<String, String> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(|error| error.to_string())
    }

    /// What the series of one name add up to, of those that have all of these labels; 0 if there are none. Named as [`Self::exposition`]
    /// names them; for a histogram, with `_count` or `_sum`. For tests: it writes everything down.
    pub fn total(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.exposition().unwrap_or_default();
        let wanted: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let of_it = text.lines().filter_map(|line| line.strip_prefix(name)).filter_map(|rest| match rest.strip_prefix('{') {
            Some(rest) => rest.rsplit_once("} "),
            None => rest.strip_prefix(' ').map(|value| ("", value)),
        });
        let wanted = of_it.filter(|(labels, _)| wanted.iter().all(|pair| labels.split(',').any(|label| label == pair)));
        wanted.filter_map(|(_, value)| value.parse::<f64>().ok()).fold(0.0, |sum, value| sum + value)
    }

    /// Sends what is to be sent, within this time. Blocks.
    pub(super) fn shutdown(&self, within: Duration) {
        // The provider heeds no time limit of ours: whoever is still sending after it is left to itself.
        let (done, ended) = mpsc::channel();
        let provider = self.provider.clone();
        let ending = thread::Builder::new().name("telemetry-end".to_owned()).spawn(move || {
            // Whoever still measures after this measures in vain; that the endpoint is gone was told by then.
            let _ = provider.shutdown_with_timeout(within);
            let _ = done.send(());
        });
        if ending.is_ok() {
            let _ = ended.recv_timeout(within);
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A value that is dear to ask for, kept for a while.
struct Lasting {
    ask: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    known: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Lasting {
    fn new(ask: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self { ask: Box::new(ask), known: Mutex::default() }
    }

    fn get(&self) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((asked, value)) if asked.elapsed() < DISK_LASTS => value,
            _ => {
                let value = (self.ask)();
                *known = Some((Instant::now(), value));
                value
            }
        }
    }
}

/// Room for as many series of an instrument as its labels allow, where they are closed: the SDK would make room for 2,000 of each, at once.
fn room(instrument: &Instrument) -> Option<Stream> {
    Stream::builder().with_cardinality_limit(series_at_most(instrument.name())?).build().ok()
}

fn sent(readers: MeterProviderBuilder, plan: &MetricsPlan) -> Result<MeterProviderBuilder, MetricsError> {
    let exporter = opentelemetry_otlp::MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&plan.endpoint)
        .build()
        .map_err(|error: ExporterBuildError| {
            let endpoint = shown(&plan.endpoint);
            MetricsError::Export { error: error.to_string().replace(&plan.endpoint, &endpoint), endpoint }
        })?;
    Ok(readers.with_reader(PeriodicReader::builder(Watched::new(exporter)).build()))
}
