//! A small server on loopback that answers chat completions from a script, and records the requests.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// The server's reaction to one request.
pub enum Does {
    Answers(Response),
    Hangs,
}

/// One request as it was received.
pub struct Received {
    pub path: String,
    pub authorization: Option<String>,
    pub body: Value,
}

/// The server. It stops when it is dropped.
pub struct Fake {
    pub url: String,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    script: Mutex<VecDeque<Does>>,
    received: Mutex<Vec<Received>>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub async fn new(script: impl IntoIterator<Item = Does>) -> Self {
        let shared = Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), received: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, shared, task }
    }

    pub fn received(&self) -> Vec<Received> {
        std::mem::take(&mut self.shared.received.lock())
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers.get("authorization").map(|value| value.to_str().expect("text").to_owned());
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("requests are JSON") };
    shared.received.lock().push(Received { path: uri.path().to_owned(), authorization, body });
    let does = shared.script.lock().pop_front();
    match does.expect("a request that the test expects") {
        Does::Answers(response) => response,
        Does::Hangs => std::future::pending().await,
    }
}

/// A response in one piece.
pub fn plain(status: u16, kind: &str, body: impl Into<Body>) -> Does {
    let response = Response::builder().status(status).header("content-type", kind).body(body.into());
    Does::Answers(response.expect("a response"))
}

/// An error in OpenAI's format.
pub fn error(status: u16, message: &str, headers: &[(&str, &str)]) -> Does {
    let builder = headers.iter().fold(Response::builder().status(status), |builder, (name, value)| builder.header(*name, *value));
    let body = json!({ "error": { "message": message } }).to_string();
    Does::Answers(builder.header("content-type", "application/json").body(body.into()).expect("a response"))
}

/// What a stream does after its last event.
#[derive(Clone, Copy)]
pub enum Then {
    Ends,
    Breaks,
    Hangs,
}

/// A stream of events.
pub fn streamed(events: impl IntoIterator<Item = String>, then: Then) -> Does {
    let events: Vec<Result<String, std::io::Error>> = events.into_iter().map(|event| Ok(format!("data: {event}\n\n"))).collect();
    let broken = async {
        // The events so far are sent when the body has nothing to add for a moment.
        tokio::task::yield_now().await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    };
    let body = match then {
        Then::Ends => Body::from_stream(stream::iter(events)),
        Then::Breaks => Body::from_stream(stream::iter(events).chain(stream::once(broken))),
        Then::Hangs => Body::from_stream(stream::iter(events).chain(stream::pending())),
    };
    plain(200, "text/event-stream; charset=utf-8", body)
}

/// A piece of a streamed answer.
pub fn piece(text: &str) -> String {
    json!({ "id": "chatcmpl-1", "model": "m-2026", "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] })
        .to_string()
}

/// The end of a streamed answer.
pub fn stop() -> String {
    json!({ "id": "chatcmpl-1", "model": "m-2026", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })
        .to_string()
}

/// The tokens of a streamed answer.
pub fn usage() -> String {
    json!({ "choices": [], "usage": { "prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25 } }).to_string()
}

/// The last event of every stream.
pub fn done() -> String {
    "[DONE]".to_owned()
}
