//! The readers of the instruments: `/metrics` in Prometheus text, and an OTLP endpoint if one is set. Both read the same
//! instruments.

mod monitored;
mod process;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, PeriodicReader, SdkMeterProvider, Stream};
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use tokio::time::Instant;

use super::TelemetryError;
use super::export::{ExportError, Ledger, Target};
use super::instruments::{DISK_FREE, Instruments, STORE_SIZE, TELEMETRY_QUEUE, TELEMETRY_SPANS, kinds, series_at_most};
use monitored::Monitored;

#[cfg(test)]
mod tests;

/// How long figures about the disk are cached.
pub const DISK_LASTS: Duration = Duration::from_secs(5);

/// The media type of [`Metrics::exposition`].
pub const EXPOSITION_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The instruments and their readers. Cheap to clone; clones share them.
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
    /// Returns an error if a reader cannot be created.
    pub fn new(resource: Resource, plan: Option<&Target>) -> Result<Self, TelemetryError> {
        let registry = Arc::new(Registry::new());
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry((*registry).clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| TelemetryError::Prometheus(error.to_string()))?;
        let readers = SdkMeterProvider::builder().with_resource(resource).with_view(cardinality_limit).with_reader(prometheus);
        let provider = match plan {
            Some(plan) => with_otlp_reader(readers, plan)?,
            None => readers,
        }
        .build();
        let instruments = Instruments::new(&provider);
        Ok(Self { provider, registry, instruments })
    }

    /// Instruments that are read only at `/metrics`.
    ///
    /// # Panics
    /// Never, because the reader has its own registry.
    pub fn local() -> Self {
        Self::new(Resource::builder_empty().build(), None).expect("a new registry accepts the reader")
    }

    pub fn instruments(&self) -> Instruments {
        self.instruments.clone()
    }

    /// Adds metrics of the process itself and of exported spans.
    pub fn observe_process(&self, spans: &Ledger) {
        let meter = self.provider.meter(super::SCOPE);
        process::observe(&meter);
        let ledger = spans.clone();
        kinds::observe(&meter, TELEMETRY_SPANS, move |report| {
            let fates = [("exported", ledger.exported()), ("failed", ledger.failed()), ("dropped", ledger.dropped())];
            fates.into_iter().for_each(|(fate, spans)| report(spans as f64, &[fate]));
        });
        let ledger = spans.clone();
        kinds::observe(&meter, TELEMETRY_QUEUE, move |report| report(ledger.waiting() as f64, &[]));
    }

    /// Adds metrics of the disk: the bytes that the store uses, and the free bytes. `None` means unknown. Both functions are
    /// called on the thread that reads, and their values are cached for [`DISK_LASTS`].
    pub fn observe_disk(
        &self,
        used: impl Fn() -> Option<u64> + Send + Sync + 'static,
        free: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) {
        let meter = self.provider.meter(super::SCOPE);
        for (entry, cached) in [(STORE_SIZE, Cached::new(used)), (DISK_FREE, Cached::new(free))] {
            kinds::observe(&meter, entry, move |report| cached.get().into_iter().for_each(|bytes| report(bytes as f64, &[])));
        }
    }

    /// All metrics in Prometheus text, [`EXPOSITION_TYPE`].
    ///
    /// # Errors
    /// Returns an error if the metrics cannot be encoded.
    pub fn exposition(&self) -> Result<String, String> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(|error| error.to_string())
    }

    /// The sum of the series with this name and all of these labels, or 0 without any. The name is the one in [`Self::exposition`]; for a histogram
    /// it ends in `_count` or `_sum`. For tests only, because it encodes all metrics.
    pub fn total(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.exposition().unwrap_or_default();
        let wanted: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let series = text.lines().filter_map(|line| line.strip_prefix(name)).filter_map(|rest| match rest.strip_prefix('{') {
            Some(rest) => rest.rsplit_once("} "),
            None => rest.strip_prefix(' ').map(|value| ("", value)),
        });
        let wanted = series.filter(|(labels, _)| wanted.iter().all(|pair| labels.split(',').any(|label| label == pair)));
        wanted.filter_map(|(_, value)| value.parse::<f64>().ok()).fold(0.0, |sum, value| sum + value)
    }

    /// Sends pending metrics within this time. Blocks.
    pub(super) fn shutdown(&self, within: Duration) {
        // The provider ignores the time limit. So it runs on a thread that is abandoned if it takes longer.
        let (done, ended) = mpsc::channel();
        let provider = self.provider.clone();
        let ending = thread::Builder::new().name("telemetry-end".to_owned()).spawn(move || {
            // Later measurements are lost. A failing endpoint has been logged before.
            let _ = provider.shutdown_with_timeout(within);
            let _ = done.send(());
        });
        if ending.is_ok() {
            let _ = ended.recv_timeout(within);
        }
    }
}

/// A value that is expensive to compute, cached for [`DISK_LASTS`].
struct Cached {
    compute: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    newest: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Cached {
    fn new(compute: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self { compute: Box::new(compute), newest: Mutex::default() }
    }

    fn get(&self) -> Option<u64> {
        let mut newest = self.newest.lock();
        match *newest {
            Some((computed, value)) if computed.elapsed() < DISK_LASTS => value,
            _ => {
                let value = (self.compute)();
                *newest = Some((Instant::now(), value));
                value
            }
        }
    }
}

/// Limits an instrument to the number of series that its closed labels allow. The SDK's default allocates space for 2,000 series at once.
fn cardinality_limit(instrument: &Instrument) -> Option<Stream> {
    Stream::builder().with_cardinality_limit(series_at_most(instrument.name())?).build().ok()
}

fn with_otlp_reader(readers: MeterProviderBuilder, target: &Target) -> Result<MeterProviderBuilder, ExportError> {
    let (exporter, rejections) =
        target.exporter(opentelemetry_otlp::MetricExporter::builder().with_http(), |builder| builder.build())?;
    Ok(readers.with_reader(PeriodicReader::builder(Monitored::new(exporter, target.shown_endpoint(), rejections)).build()))
}
