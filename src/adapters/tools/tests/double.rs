//! A test double of an MCP server: JSON-RPC over HTTP, as the specification of 2025-11-25 has it.

use std::future::pending;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// What the server does when a tool is called.
pub(super) enum Reply {
    Result(Value),
    Error(&'static str),
    /// Events, with other messages before the result.
    Events(Vec<Value>, Value),
    Status(u16),
    Html,
    Hang,
    /// The connection ends without a response.
    Cut,
}

/// Its tools, and whether each page of them leads to another one.
#[derive(Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Value>,
    pub(super) is_endless: bool,
    /// Whether its only page leads to itself.
    pub(super) is_repeated: bool,
    pub(super) calls: usize,
}

pub(super) struct Double {
    port: u16,
    pub(super) offer: Arc<Mutex<Offer>>,
    serving: JoinHandle<()>,
}

type Calls = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

impl Double {
    pub(super) async fn new(tools: Vec<Value>, calls: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let offer = Arc::new(Mutex::new(Offer { tools, ..Offer::default() }));
        let calls: Calls = Arc::new(calls);
        let router = Router::new().fallback(answer).with_state((offer.clone(), calls));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, offer, serving }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State((offer, calls)): State<(Arc<Mutex<Offer>>, Calls)>, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::METHOD_NOT_ALLOWED.into_response() };
    let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let error = |text: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": text } });
    let json = |body: Value| ([("content-type", "application/json")], body.to_string()).into_response();
    let params = &message["params"];
    match method {
        "initialize" => json(result(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "double", "version": "1" },
        }))),
        "tools/list" => {
            let offer = offer.lock();
            let cursor = params["cursor"].as_str().and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or_default();
            match offer.is_endless {
                true => {
                    json(result(json!({ "tools": [tool(&format!("t{cursor}"), "")], "nextCursor": (cursor + 1).to_string() })))
                }
                false if offer.is_repeated => json(result(json!({ "tools": offer.tools, "nextCursor": "" }))),
                false => json(result(json!({ "tools": offer.tools }))),
            }
        }
        "tools/call" => {
            offer.lock().calls += 1;
            match calls(params["name"].as_str().unwrap()) {
                Reply::Result(value) => json(result(value)),
                Reply::Error(text) => json(error(text)),
                Reply::Events(others, value) => {
                    let messages = others.into_iter().chain([result(value)]);
                    let events: String = messages.map(|message| format!(": comment\n\ndata: {message}\n\n")).collect();
                    ([("content-type", "text/event-stream")], events).into_response()
                }
                Reply::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
                Reply::Html => ([("content-type", "text/html")], "<p>hello").into_response(),
                Reply::Hang => pending().await,
                Reply::Cut => {
                    let broken = broken_body();
                    ([("content-type", "application/json")], broken).into_response()
                }
            }
        }
        _ => json(error("unknown method")),
    }
}

/// A body that breaks at its beginning.
fn broken_body() -> Body {
    Body::from_stream(futures_util::stream::once(async { Err::<Bytes, _>(std::io::Error::other("gone")) }))
}
