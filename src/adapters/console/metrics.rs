//! What the console counts, and `/metrics` in Prometheus text (format 0.0.4). Every name is in this file.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::Shared;

/// Status codes that are told apart; what is none of them is `other`.
const STATUSES: [u16; 22] =
    [101, 200, 201, 202, 204, 303, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 426, 429, 500, 501, 503];

/// Counts since the start.
#[derive(Default)]
pub(super) struct Counts {
    by_status: [AtomicU64; STATUSES.len()],
    other_status: AtomicU64,
    connections: AtomicU64,
    connections_refused: AtomicU64,
    panics: AtomicU64,
}

impl Counts {
    pub(super) fn answered(&self, status: StatusCode) {
        let place = STATUSES.iter().position(|known| *known == status.as_u16());
        place.map_or(&self.other_status, |place| &self.by_status[place]).fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// `GET /metrics`
pub(super) async fn metrics(State(console): State<Shared>) -> impl IntoResponse {
    let counts = &console.counts;
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut text = String::with_capacity(4_096);

    family(&mut text, "tertulia_up", "gauge", "The process is up.");
    sample(&mut text, "tertulia_up", "", 1);
    family(&mut text, "tertulia_build_info", "gauge", "What was built.");
    sample(&mut text, "tertulia_build_info", concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1);
    family(&mut text, "tertulia_http_requests_total", "counter", "HTTP requests answered, by status.");
    for (status, count) in STATUSES.iter().zip(&counts.by_status) {
        sample(&mut text, "tertulia_http_requests_total", &format!("{{status=\"{status}\"}}"), load(count));
    }
    sample(&mut text, "tertulia_http_requests_total", "{status=\"other\"}", load(&counts.other_status));
    family(&mut text, "tertulia_http_panics_total", "counter", "HTTP requests whose handler panicked.");
    sample(&mut text, "tertulia_http_panics_total", "", load(&counts.panics));
    family(&mut text, "tertulia_http_connections_total", "counter", "HTTP connections accepted.");
    sample(&mut text, "tertulia_http_connections_total", "", load(&counts.connections));
    family(
        &mut text,
        "tertulia_http_connections_refused_total",
        "counter",
        "HTTP connections refused because too many were open.",
    );
    sample(&mut text, "tertulia_http_connections_refused_total", "", load(&counts.connections_refused));
    family(&mut text, "tertulia_live_sockets", "gauge", "WebSockets that watch a room.");
    sample(&mut text, "tertulia_live_sockets", "", console.places.taken() as u64);

    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

// Writing to a String does not fail.
fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(text, "{name}{labels} {value}");
}
