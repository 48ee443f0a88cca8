//! Reads the partial success of an export from a collector's answer, which the SDK ignores, and logs it once.

use std::sync::Arc;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use parking_lot::Mutex;
use prost::Message as _;
use reqwest::blocking::Client;
use tokio::time::Instant;

use super::{Change, Losses, Signal};

/// The maximum number of logged characters of a collector's message.
const LONGEST_MESSAGE: usize = 300;

/// The partial success of an export: the number of rejected spans or data points, and why. With the number 0 it is a remark.
#[derive(Debug, PartialEq)]
struct PartialSuccess {
    rejected: u64,
    message: String,
}

/// What one collector rejects of successful exports.
#[derive(Debug)]
pub(crate) struct Rejections {
    signal: Signal,
    endpoint: String,
    newest: Newest,
    state: Mutex<State>,
}

/// The partial success that the newest answer reported.
type Newest = Arc<Mutex<Option<PartialSuccess>>>;

#[derive(Debug, Default)]
struct State {
    rejected: u64,
    losses: Losses,
    /// The remark that was logged last.
    remark: String,
}

impl Rejections {
    pub(crate) fn new(signal: Signal, endpoint: String) -> Self {
        Self { signal, endpoint, newest: Newest::default(), state: Mutex::default() }
    }

    /// A client that also reads the answers.
    pub(super) fn read_by(&self, client: Client) -> ReadClient {
        ReadClient { client, signal: self.signal, newest: self.newest.clone() }
    }

    /// The number of spans or data points that the answer to a successful export rejected. Logs when this begins and when it is over.
    pub(crate) fn of_export(&self) -> u64 {
        let newest = self.newest.lock().take();
        let PartialSuccess { rejected, message } = newest.unwrap_or(PartialSuccess { rejected: 0, message: String::new() });
        let ((what, _), endpoint) = (self.signal.names(), &self.endpoint);
        let mut state = self.state.lock();
        let State { rejected: total, losses, remark } = &mut *state;
        *total += rejected;
        match losses.update(*total, Instant::now()) {
            // Its `Debug` form cannot look like another line or field.
            Some(Change::Begin) => {
                tracing::warn!(rejected, reason = ?message, endpoint, "the OTLP endpoint accepts only a part of the {what}");
            }
            Some(Change::End) => tracing::info!(rejected = *total, endpoint, "the OTLP endpoint accepts all {what} again"),
            None if rejected == 0 && !message.is_empty() && message != *remark => {
                tracing::info!(remark = ?message, endpoint, "the OTLP endpoint accepts the {what} with a remark");
                *remark = message;
            }
            None => {}
        }
        rejected
    }
}

/// An HTTP client that reads the answers to exports.
#[derive(Debug)]
pub(super) struct ReadClient {
    client: Client,
    signal: Signal,
    newest: Newest,
}

#[async_trait]
impl HttpClient for ReadClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.send_bytes(request).await?;
        *self.newest.lock() = partial_success(self.signal, response.body()).filter(|_| response.status().is_success());
        Ok(response)
    }
}

/// The partial success in an answer. `None`: everything was accepted, or the answer is not readable.
fn partial_success(signal: Signal, answer: &[u8]) -> Option<PartialSuccess> {
    let (rejected, message) = match signal {
        Signal::Spans => {
            let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
            (partial.rejected_spans, partial.error_message)
        }
        Signal::Metrics => {
            let partial = ExportMetricsServiceResponse::decode(answer).ok()?.partial_success?;
            (partial.rejected_data_points, partial.error_message)
        }
    };
    let rejected = u64::try_from(rejected).unwrap_or_default();
    let message: String = message.chars().take(LONGEST_MESSAGE).collect();
    (rejected > 0 || !message.is_empty()).then_some(PartialSuccess { rejected, message })
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use std::time::Duration;
    use tracing::Level;

    use super::*;
    use crate::fake::Logged;

    #[tokio::test(start_paused = true)]
    async fn an_hour_of_rejections_is_two_lines_of_log() {
        let logged = Logged::from(Level::INFO);
        let rejections = Rejections::new(Signal::Spans, "http://here/v1/traces".to_owned());

        for export in 0..720 {
            *rejections.newest.lock() = (export < 360).then(|| PartialSuccess { rejected: 2, message: "no\nroom".to_owned() });
            assert_eq!(rejections.of_export(), if export < 360 { 2 } else { 0 });
            tokio::time::advance(Duration::from_secs(5)).await;
        }

        let log = logged.read();
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{log}");
        assert!(lines[0].contains("WARN") && lines[0].contains(r#"a part of the spans rejected=2 reason="no\nroom""#), "{log}");
        assert!(lines[1].contains("INFO") && lines[1].contains("all spans again rejected=720"), "{log}");
    }

    #[test]
    fn the_same_remark_is_logged_once() {
        let logged = Logged::from(Level::INFO);
        let rejections = Rejections::new(Signal::Metrics, String::new());

        for message in ["old names", "old names", "new names"] {
            *rejections.newest.lock() = Some(PartialSuccess { rejected: 0, message: message.to_owned() });
            assert_eq!(rejections.of_export(), 0);
        }

        assert_eq!(logged.read().lines().count(), 2, "{}", logged.read());
    }

    #[test]
    fn a_partial_success_is_read_whatever_it_says() {
        let spans = |rejected_spans, message: &str| {
            let partial = ExportTracePartialSuccess { rejected_spans, error_message: message.to_owned() };
            partial_success(Signal::Spans, &ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec())
        };
        let partial = |rejected, message: &str| Some(PartialSuccess { rejected, message: message.to_owned() });

        assert_eq!(spans(3, "too old"), partial(3, "too old"));
        assert_eq!(spans(0, "deprecated"), partial(0, "deprecated"));
        assert_eq!((spans(0, ""), spans(-7, "")), (None, None), "as good as a success");
        assert_eq!(spans(1, &"x".repeat(5_000)), partial(1, &"x".repeat(LONGEST_MESSAGE)));
        let points = ExportMetricsPartialSuccess { rejected_data_points: 9, error_message: String::new() };
        let points = ExportMetricsServiceResponse { partial_success: Some(points) }.encode_to_vec();
        assert_eq!(partial_success(Signal::Metrics, &points), partial(9, ""));
        assert_eq!(partial_success(Signal::Spans, b"<html>"), None);
        assert_eq!(partial_success(Signal::Spans, b""), None);
    }
}
