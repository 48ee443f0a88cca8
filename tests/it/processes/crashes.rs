//! A server that is killed in the middle of an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::harness::{PATIENCE, Premises};

#[tokio::test]
async fn a_reply_interrupted_by_a_kill_is_made_once_after_the_restart() {
    let model = Model::start().await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    server.say("lobby", "Ana", "hey aria, are you there?").await;
    let mut asked = model.statements_asked.subscribe();
    wait(&mut asked, 1).await;
    let late = server.say("lobby", "Bob", "she is slow today").await;
    let before = server.history("lobby").await;

    server.kill().await;
    model.holds_back.store(false, Ordering::SeqCst);
    let server = premises.start().await;

    // This happens without any request for the room.
    wait(&mut asked, 2).await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let statement = lobby.event("statement").await;
    assert_eq!(statement["text"], "I am here.");
    assert_eq!(before.last().map(|(seq, ..)| *seq), Some(late));
    let after = server.history("lobby").await;
    assert_eq!(after[..before.len()], before);
    server.stop().await;
    // A reply that is made twice is made again by the next start at the latest.
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let end = server.say("lobby", "Bob", "so much for that").await;
    let mut statements = 0;
    while let Some(event) = lobby.next().await {
        statements += usize::from(event["event"] == "statement");
        if event["event"] == "message" && event["seq"] == end {
            break;
        }
    }
    assert_eq!(statements, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_question_interrupted_by_a_kill_is_asked_again() {
    let model = Model::start().await;
    model.holds_decisions_back.store(true, Ordering::SeqCst);
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    server.say("lobby", "Ana", "hey aria, are you there?").await;
    let mut asked = model.decisions_asked.subscribe();
    wait(&mut asked, 1).await;

    server.kill().await;
    model.holds_decisions_back.store(false, Ordering::SeqCst);
    model.holds_back.store(false, Ordering::SeqCst);
    let server = premises.start().await;

    // This happens without any request for the room.
    wait(&mut asked, 2).await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    assert_eq!(lobby.event("decision").await["decision"], "YES");
    assert_eq!(lobby.event("statement").await["text"], "I am here.");
    server.stop().await;
}

/// Waits until the model was asked this many times.
pub async fn wait(asked: &mut watch::Receiver<usize>, times: usize) {
    let asked = tokio::time::timeout(PATIENCE, asked.wait_for(|asked| *asked == times)).await;
    asked.expect("the model is asked").expect("the model is there");
}

/// A model that decides YES. While a flag is set, it does not answer.
pub struct Model {
    pub url: String,
    pub holds_back: Arc<AtomicBool>,
    pub holds_decisions_back: Arc<AtomicBool>,
    pub statements_asked: Arc<watch::Sender<usize>>,
    pub decisions_asked: Arc<watch::Sender<usize>>,
}

#[derive(Clone)]
struct Behaviour {
    holds_back: Arc<AtomicBool>,
    holds_decisions_back: Arc<AtomicBool>,
    statements_asked: Arc<watch::Sender<usize>>,
    decisions_asked: Arc<watch::Sender<usize>>,
    answers: Arc<AtomicUsize>,
}

impl Model {
    pub async fn start() -> Self {
        let behaviour = Behaviour {
            holds_back: Arc::new(AtomicBool::new(true)),
            holds_decisions_back: Arc::default(),
            statements_asked: Arc::new(watch::Sender::new(0)),
            decisions_asked: Arc::new(watch::Sender::new(0)),
            answers: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(behaviour.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url,
            holds_back: behaviour.holds_back,
            holds_decisions_back: behaviour.holds_decisions_back,
            statements_asked: behaviour.statements_asked,
            decisions_asked: behaviour.decisions_asked,
        }
    }

    pub fn serving(&self, premises: Premises) -> Premises {
        premises
            .with("models.side.base_url", &self.url)
            .with("models.side.model", "side")
            .with("models.main.base_url", &self.url)
            .with("models.main.model", "main")
    }
}

async fn answer(State(behaviour): State<Behaviour>, Json(body): Json<Value>) -> Json<Value> {
    let is_statement = body["model"] == "main";
    let asked = if is_statement { &behaviour.statements_asked } else { &behaviour.decisions_asked };
    asked.send_modify(|asked| *asked += 1);
    let holds = if is_statement { &behaviour.holds_back } else { &behaviour.holds_decisions_back };
    if holds.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let words = if is_statement { "I am here." } else { "They call me.\nYES" };
    let number = behaviour.answers.fetch_add(1, Ordering::SeqCst);
    Json(json!({
        "id": format!("answer-{number}"),
        "model": body["model"],
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    }))
}
