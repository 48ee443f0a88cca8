//! Every route: the table of docs/design/interfaces.md I-9, the page, probes and metrics.

use std::any::Any;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::problem::Problem;
use super::{
    Shared, external, guard, health, keeping, live, messages, metrics, models, page, records, rooms, signin, usage, voice,
};

pub(super) fn routes(console: Shared) -> Router {
    let counted = console.clone();
    Router::new()
        .route("/api/rooms", get(rooms::list))
        .route("/api/rooms/{room}", get(rooms::get).put(rooms::put).patch(rooms::patch).delete(rooms::delete))
        .route("/api/rooms/{room}/messages", post(messages::say))
        .route("/api/rooms/{room}/messages/{seq}", patch(messages::edit).delete(messages::delete))
        .route("/api/rooms/{room}/messages/{seq}/again", post(messages::try_again))
        .route("/api/rooms/{room}/replies/{companion}/stop", post(messages::stop_reply))
        .route("/api/rooms/{room}/events", post(messages::event))
        .route("/api/rooms/{room}/states", post(external::vote))
        .route("/api/rooms/{room}/statements", post(external::speak))
        .route("/api/rooms/{room}/clear", post(rooms::clear))
        .route("/api/rooms/{room}/history", get(messages::history))
        .route("/api/rooms/{room}/state", get(rooms::state))
        .route("/api/decisions", get(records::decisions))
        .route("/api/why", get(records::why))
        .route("/api/usage", get(usage::usage))
        .route("/api/companions", get(rooms::companions))
        .route("/api/quarantine", get(keeping::quarantine))
        .route("/api/quarantine/{id}/release", post(keeping::release))
        .route("/api/quarantine/{id}/retry", post(keeping::retry))
        .route("/api/quarantine/{id}/drop", post(keeping::drop_entry))
        .route("/api/models", get(models::get).put(models::connect).delete(models::disconnect))
        .route("/api/models/names", post(models::names))
        .route("/api/models/try", post(models::try_out))
        .route("/api/export", get(keeping::export))
        .route("/api/backup", post(keeping::backup))
        .route("/api/forget", post(keeping::forget))
        .route("/api/live", get(live::live))
        .route("/api/rooms/{room}/voice", get(voice::describe))
        .route("/api/voice", get(voice::voice))
        .route("/", get(page::index))
        .route("/signin", get(page::sign_in).post(signin::sign_in))
        .route("/signout", post(signin::sign_out))
        .route("/page/{name}", get(page::file))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(CatchPanicLayer::custom(move |_: Box<dyn Any + Send>| panicked(&counted)))
        .layer(from_fn_with_state(console.clone(), guard::guard))
        .with_state(console)
}

/// The response for a handler that panicked. The panic hook has logged the panic itself.
fn panicked(console: &Shared) -> Response {
    metrics::count_panic(console);
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed on this request; see its log").into_response()
}

async fn not_found(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no {}", uri.path()))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{method} cannot be used on {}; the Allow header lists the methods that can", uri.path()),
    )
}
