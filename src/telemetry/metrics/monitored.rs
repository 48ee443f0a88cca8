//! A metrics exporter that logs when failures begin and end. The SDK itself logs nothing.

use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::export::rejections::Rejections;
use crate::export::{Change, Losses};

#[derive(Debug)]
pub(super) struct Monitored<E> {
    exporter: E,
    endpoint: String,
    rejections: Rejections,
    /// The number of failed exports, and the state of their logging.
    failed: Mutex<(u64, Losses)>,
}

impl<E> Monitored<E> {
    pub(super) fn new(exporter: E, endpoint: String, rejections: Rejections) -> Self {
        Self { exporter, endpoint, rejections, failed: Mutex::default() }
    }

    fn log(&self, outcome: &OTelSdkResult) {
        let mut failed = self.failed.lock();
        let (exports, losses) = &mut *failed;
        *exports += u64::from(outcome.is_err());
        match (losses.update(*exports, Instant::now()), outcome) {
            // Nothing is lost yet: the next export sends the new totals.
            (Some(Change::Begin), Err(error)) => {
                tracing::warn!(%error, endpoint = self.endpoint, "metrics cannot be exported to the OTLP endpoint");
            }
            (Some(Change::End), _) => tracing::info!(failed = *exports, "metrics are exported to the OTLP endpoint again"),
            _ => {}
        }
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Monitored<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let outcome = self.exporter.export(metrics).await;
        if outcome.is_ok() {
            self.rejections.of_export();
        }
        self.log(&outcome);
        outcome
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use opentelemetry_sdk::error::OTelSdkError;
    use tracing::Level;

    use super::*;
    use crate::export::Signal;
    use crate::fake::Logged;

    #[tokio::test(start_paused = true)]
    async fn an_hour_without_a_collector_of_metrics_is_two_lines_of_log() {
        let logged = Logged::from(Level::INFO);
        let rejections = Rejections::new(Signal::Metrics, String::new());
        let monitored = Monitored::new(Endpoint(AtomicBool::new(false)), String::new(), rejections);

        for minute in 0..120 {
            monitored.exporter.0.store(minute >= 60, Ordering::Relaxed);
            let _ = monitored.export(&ResourceMetrics::default()).await;
            tokio::time::advance(Duration::from_secs(60)).await;
        }

        let log = logged.read();
        let levels: Vec<_> = log.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(levels, ["WARN", "INFO"], "{log}");
        assert!(log.contains("it is off"), "{log}");
    }

    /// Accepts metrics if the flag is set.
    struct Endpoint(AtomicBool);

    impl PushMetricExporter for Endpoint {
        async fn export(&self, _: &ResourceMetrics) -> OTelSdkResult {
            if self.0.load(Ordering::Relaxed) { Ok(()) } else { Err(OTelSdkError::InternalFailure("it is off".to_owned())) }
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }

        fn temporality(&self) -> Temporality {
            Temporality::Cumulative
        }
    }
}
