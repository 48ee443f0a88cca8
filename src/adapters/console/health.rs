//! Handlers for liveness and readiness probes, and for the list of nodes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};

use super::Shared;
use super::guard::Caller;
use super::problem::Problem;
use crate::ports::backend::keeping::Readiness;
use crate::ports::nodes::NodesView;

/// `GET /api/nodes`: the servers that share the store.
pub(super) async fn nodes(State(console): State<Shared>) -> Result<Json<NodesView>, Problem> {
    Ok(Json(console.nodes()?))
}

/// `GET /healthz`: always answers `ok`.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 if messages can be accepted, otherwise 503. Anonymous clients get no details except the address of the active node.
pub(super) async fn ready(State(console): State<Shared>, Extension(caller): Extension<Caller>) -> (StatusCode, Json<Readiness>) {
    let mut readiness = console.readiness().await;
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if !caller.is_operator() {
        let Readiness { ready, stands_by, active, .. } = readiness;
        readiness = Readiness { ready, stands_by, active, ..Readiness::default() };
    }
    (status, Json(readiness))
}
