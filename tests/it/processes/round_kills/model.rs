//! A model with varied votes, which ends conversations and fails now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub struct Model {
    pub url: String,
    behaviour: Behaviour,
}

#[derive(Clone, Default)]
struct Behaviour {
    asked: Arc<AtomicUsize>,
    is_healthy: Arc<AtomicBool>,
}

impl Model {
    pub async fn start() -> Self {
        let behaviour = Behaviour::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(behaviour.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, behaviour }
    }

    /// Stops the failures.
    pub fn recover(&self) {
        self.behaviour.is_healthy.store(true, Ordering::SeqCst);
    }
}

/// The answer depends on the number of the request alone. The divisors are coprime, so that every combination occurs sooner or later.
async fn answer(State(behaviour): State<Behaviour>, Json(body): Json<Value>) -> Result<Json<Value>, StatusCode> {
    let number = behaviour.asked.fetch_add(1, Ordering::SeqCst);
    let is_vote = body["messages"].to_string().contains("Answer with one JSON object");
    if !behaviour.is_healthy.load(Ordering::SeqCst) && (number % 61 == 60 || !is_vote && number.is_multiple_of(11)) {
        return Err(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let closing = match number % 29 {
        7 | 8 => "pre-closing",
        17 => "closing",
        25 => "terminal",
        _ => "none",
    };
    let vote = json!({
        "reason": "It goes by the number.",
        "decision": if number % 5 < 3 { "YES" } else { "NO" },
        "importance": number % 11,
        "selected": number % 7 == 3,
        "closing": closing,
    });
    let text = if is_vote { vote.to_string() } else { format!("I have said {number} things, and each was another one.") };
    Ok(Json(json!({
        "id": format!("answer-{number}"),
        "model": body["model"],
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })))
}
