//! A language model on loopback that answers as a test says, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The answer to a request: a text, or the text of a refusal with status 400.
type Answer = Result<String, String>;

/// An OpenAI-compatible endpoint. Each answer takes 10 input tokens and 5 output tokens.
#[derive(Clone)]
pub struct Model {
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    key: Arc<Mutex<Option<String>>>,
}

struct Behaviour {
    answer: Box<dyn Fn(&Value) -> Answer + Send + Sync>,
    asked: Arc<Mutex<Vec<Value>>>,
    key: Arc<Mutex<Option<String>>>,
}

impl Model {
    pub async fn start(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        let (asked, key) = (Arc::default(), Arc::default());
        let behaviour = Behaviour { answer: Box::new(answer), asked: Arc::clone(&asked), key: Arc::clone(&key) };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(respond).with_state(Arc::new(behaviour));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked, key }
    }

    /// Refuses requests without this key from now on.
    pub fn wants_key(&self, key: &str) {
        *self.key.lock().expect("not poisoned") = Some(key.to_owned());
    }

    /// The bodies of all requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

/// The text of a prompt: of all its messages.
pub fn prompt(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

async fn respond(
    State(behaviour): State<Arc<Behaviour>>,
    method: Method,
    headers: HeaderMap,
    body: Option<Json<Value>>,
) -> (StatusCode, Json<Value>) {
    let wanted = behaviour.key.lock().expect("not poisoned").clone().map(|key| format!("Bearer {key}"));
    if wanted.is_some() && headers.get(AUTHORIZATION).and_then(|given| given.to_str().ok()) != wanted.as_deref() {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": { "message": "Incorrect API key" } })));
    }
    if method == Method::GET {
        return (StatusCode::OK, Json(json!({ "data": [{ "id": "small" }, { "id": "large" }] })));
    }
    let Some(Json(body)) = body else { return (StatusCode::BAD_REQUEST, Json(Value::Null)) };
    behaviour.asked.lock().expect("not poisoned").push(body.clone());
    match (behaviour.answer)(&body) {
        Err(refusal) => (StatusCode::BAD_REQUEST, Json(json!({ "error": { "message": refusal } }))),
        Ok(text) => {
            let choice = json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
            let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
            (StatusCode::OK, Json(json!({ "id": "answer", "model": body["model"], "choices": [choice], "usage": usage })))
        }
    }
}
