//! Handlers for liveness and readiness probes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};

use super::Shared;
use super::guard::Caller;
use crate::ports::backend::keeping::Readiness;

/// `GET /healthz`: always answers `ok`.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 when messages can be accepted, else 503. Anonymous clients get no details.
pub(super) async fn ready(State(console): State<Shared>, Extension(caller): Extension<Caller>) -> (StatusCode, Json<Readiness>) {
    let mut readiness = console.readiness().await;
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if !caller.is_operator() {
        readiness = Readiness { ready: readiness.ready, ..Readiness::default() };
    }
    (status, Json(readiness))
}
