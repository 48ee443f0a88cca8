//! Requests to other machines go through the proxies that the environment names, and requests to this machine never do.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::Value;

use crate::harness::model::Model;
use crate::harness::{Collector, Premises, serve};

/// A proxy that refuses everything. Returns its URL, and the URLs that were asked for.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = asked.clone();
    let refuse = async move |uri: Uri| {
        seen.lock().push(uri.to_string());
        StatusCode::BAD_GATEWAY
    };
    (serve(Router::new().fallback(refuse)).await, asked)
}

#[tokio::test]
async fn this_machine_is_never_asked_through_a_proxy() {
    let (proxy, asked) = proxy().await;
    let decides = |body: &Value| body.get("response_format").is_some();
    let model = Model::start(move |body| if decides(body) { r#"{"decision": "YES"}"# } else { "Hello." }).await;
    let collector = Collector::start().await;
    let mut premises = Premises::new().with("models.main.base_url", &model.url).with("models.main.model", "large");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        premises = premises.with_variable(name, &proxy);
    }
    let mut premises = premises.with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let server = premises.start().await;

    premises.run(&["health"]).await.exits_with(0);
    premises.run(&["health", "--server", &server.url]).await.exits_with(0);
    premises.run(&["models", "check"]).await.exits_with(0);
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, are you there?").await;
    watch.event("statement").await;
    server.stop().await;

    assert!(!collector.spans().is_empty() && !model.asked().is_empty());
    assert_eq!(*asked.lock(), [""; 0]);
    premises.set("models.main.base_url", "http://models.invalid/v1");
    let refused = premises.run(&["models", "check"]).await;
    assert!(refused.stdout.contains("502"), "{refused:?}");
    assert!(asked.lock().iter().all(|url| url.starts_with("http://models.invalid/v1/")) && !asked.lock().is_empty());
}
