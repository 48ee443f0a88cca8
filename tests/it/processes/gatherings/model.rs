//! A model that votes this way and that, ends conversations, and fails now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub struct Model {
    pub url: String,
    conduct: Conduct,
}

#[derive(Clone, Default)]
struct Conduct {
    asked: Arc<AtomicUsize>,
    is_well: Arc<AtomicBool>,
}

impl Model {
    pub async fn start() -> Self {
        let conduct = Conduct::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(conduct.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, conduct }
    }

    /// From now on it does not fail.
    pub fn recover(&self) {
        self.conduct.is_well.store(true, Ordering::SeqCst);
    }
}

/// What it answers goes by the number of the question alone; the numbers have no common divisors, so that all comes together in time.
async fn answer(State(conduct): State<Conduct>, Json(body): Json<Value>) -> Result<Json<Value>, StatusCode> {
    let number = conduct.asked.fetch_add(1, Ordering::SeqCst);
    let is_vote = body["messages"].to_string().contains("Answer with one JSON object");
    if !conduct.is_well.load(Ordering::SeqCst) && (number % 61 == 60 || !is_vote && number.is_multiple_of(11)) {
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
    let words = if is_vote { vote.to_string() } else { format!("I have said {number} things, and each was another one.") };
    Ok(Json(json!({
        "id": format!("answer-{number}"),
        "model": body["model"],
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })))
}
