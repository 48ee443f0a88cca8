//! Handlers for liveness and readiness probes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Shared;
use super::auth::Admission;
use super::guard::Caller;

/// `GET /healthz`: always answers `ok`.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 when messages can be accepted, else 503. Anonymous clients get no details.
pub(super) async fn ready(State(console): State<Shared>, Extension(caller): Extension<Caller>) -> (StatusCode, Json<Value>) {
    let readiness = console.readiness().await;
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = match caller.admission {
        Admission::Anonymous => json!({ "ready": readiness.ready }),
        _ => json!(readiness),
    };
    (status, Json(body))
}
