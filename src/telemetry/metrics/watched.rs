//! An exporter of metrics whose trouble is told when it begins and when it is over: the SDK itself says nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use tokio::time::Instant;

use crate::telemetry::export::{Losses, Word};

/// Sends through another, and tells of it.
#[derive(Debug)]
pub(super) struct Watched<E> {
    exporter: E,
    /// Exports that failed, and what was said of them.
    failed: Mutex<(u64, Losses)>,
}

impl<E> Watched<E> {
    pub(super) fn new(exporter: E) -> Self {
        Self { exporter, failed: Mutex::default() }
    }

    fn tell(&self, outcome: &OTelSdkResult) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (exports, losses) = &mut *failed;
        *exports += u64::from(outcome.is_err());
        match (losses.learn(*exports, Instant::now()), outcome) {
            // What was measured is sent with the next one.
            (Some(Word::Begins), Err(error)) => tracing::warn!(%error, "the OTLP endpoint does not take metrics"),
            (Some(Word::Ends), _) => tracing::info!(failed = *exports, "the OTLP endpoint takes metrics again"),
            _ => {}
        }
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let outcome = self.exporter.export(metrics).await;
        self.tell(&outcome);
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

    use super::*;
    use crate::telemetry::memory::Lines;

    #[tokio::test(start_paused = true)]
    async fn an_hour_without_a_collector_of_metrics_is_two_lines_of_log() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        let _told = tracing::subscriber::set_default(subscriber);
        let watched = Watched::new(Endpoint(AtomicBool::new(false)));

        for minute in 0..120 {
            watched.exporter.0.store(minute >= 60, Ordering::Relaxed);
            let _ = watched.export(&ResourceMetrics::default()).await;
            tokio::time::advance(Duration::from_secs(60)).await;
        }

        let said = lines.text();
        let levels: Vec<_> = said.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(levels, ["WARN", "INFO"], "{said}");
        assert!(said.contains("it is off"), "{said}");
    }

    /// Takes metrics, or not.
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
