//! A stand-in for a collector of spans, on loopback.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use parking_lot::Mutex;
use prost::Message as _;

use super::serve;

/// Accepts every span, and keeps it.
pub struct Collector {
    pub url: String,
    exports: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let exports = Arc::<Mutex<Vec<_>>>::default();
        let received = Arc::clone(&exports);
        let take = async move |headers: HeaderMap, body: Bytes| received.lock().push((headers, body));
        Self { url: serve(Router::new().route("/v1/traces", post(take))).await, exports }
    }

    /// The exported spans in their debug format.
    pub fn spans(&self) -> String {
        let exports = self.exports.lock();
        let decoded = exports.iter().map(|(_, body)| ExportTraceServiceRequest::decode(body.clone()).expect("it is OTLP"));
        decoded.map(|request| format!("{request:?}\n")).collect()
    }

    /// The headers of each export.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.exports.lock().iter().map(|(headers, _)| headers.clone()).collect()
    }
}
