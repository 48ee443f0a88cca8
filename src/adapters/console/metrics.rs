//! `/metrics`: all metrics in Prometheus's text format.

use std::borrow::Cow;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::problem::Problem;
use crate::telemetry::instruments::{NONE, status_label};
use crate::telemetry::metrics::EXPOSITION_TYPE;

/// `GET /metrics`
pub(super) async fn metrics(State(console): State<Shared>) -> Response {
    let metrics = console.metrics.clone();
    // Making the exposition takes milliseconds and reads the disk.
    let exposition = tokio::task::spawn_blocking(move || metrics.exposition()).await;
    match exposition.unwrap_or_else(|panic| Err(panic.to_string())) {
        Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static(EXPOSITION_TYPE))], text).into_response(),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
    }
}

/// Counts a response. The route is `none` if no route matched.
pub(super) fn count_response(console: &Shared, route: Cow<'static, str>, status: StatusCode, took: Duration) {
    console.instruments.http_requests.add(1, [status_label(status.as_u16())]);
    console.instruments.http_duration.record(took.as_secs_f64(), [route]);
}

pub(super) fn count_panic(console: &Shared) {
    console.instruments.http_panics.add(1, NONE);
}
