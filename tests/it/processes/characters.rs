//! Companions in folders, and the briefs of long personas, with a model that keeps what it is asked.

use axum::extract::State;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::harness::{PATIENCE, Premises, QUICK};

#[tokio::test]
async fn the_folder_of_a_companion_is_reloaded_and_a_wrong_file_in_it_changes_nothing() {
    let (premises, mut model) = premises_with_model().await;
    premises.write_companion_file("aria", "companion.toml", QUICK);
    premises.write_companion_file("aria", "1-self.md", "You are Aria, from a folder.\n");
    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    let first = model.decision().await;
    premises.write_companion_file("aria", "2-more.md", "You paint.\n");

    server.signal("HUP").await;
    server.logs("companions were reloaded").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    let second = model.decision().await;
    premises.write_companion_file("aria", "3-bytes.md", b"\xff");
    server.signal("HUP").await;
    let line = server.logs("nothing was changed").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and then?").await;
    let third = model.decision().await;

    assert!(first.starts_with("You are Aria.\n\nYou are Aria, from a folder.\n\nYour conversational"), "{first}");
    let both = "You are Aria.\n\nYou are Aria, from a folder.\n\nYou paint.\n\nYour conversational";
    assert!(second.starts_with(both) && third.starts_with(both), "{second}\n{third}");
    assert!(line.contains("aria/3-bytes.md") && line.contains("is not UTF-8 text"), "{line}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_and_a_folder_of_one_companion_do_not_start() {
    let premises = Premises::new().with_companion("aria", QUICK);
    premises.write_companion_file("aria", "companion.toml", QUICK);

    let checked = premises.run(&["check"]).await;

    assert_eq!(checked.code, Some(2), "{checked:?}");
    let expected = "config/companions/aria.toml: and the folder config/companions/aria are both the companion aria; remove one\n";
    assert!(checked.stderr.ends_with(expected), "{checked:?}");
}

#[tokio::test]
async fn the_brief_of_a_long_persona_is_made_once_and_outlives_a_restart() {
    let (premises, mut model) = premises_with_model().await;
    let persona: String = (0..400).map(|n| format!("You own clock number {n}. ")).collect();
    premises.write_companion_file("aria", "companion.toml", QUICK);
    premises.write_companion_file("aria", "self.md", persona);
    let checked = premises.run(&["check"]).await;
    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    let beginning = model.decision().await;
    server.logs("the side model made the brief of a long persona").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    let brief = model.decision().await;
    server.rest("lobby").await;
    server.stop().await;

    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, are you still there?").await;
    let restarted = model.decision().await;
    let briefs = model.briefs;
    server.stop().await;
    let verified = premises.run(&["history", "verify", "--json"]).await;

    assert!(
        checked.stdout.contains("companion aria: its persona of about")
            && checked.stdout.contains("a brief that the side model makes"),
        "{checked:?}"
    );
    assert!(beginning.contains("You own clock number 1.") && beginning.contains("characters left out]"), "{beginning}");
    assert!(
        brief.starts_with("You are Aria.\n\nYou own clocks.\n\n")
            && restarted.starts_with("You are Aria.\n\nYou own clocks.\n\n")
    );
    assert_eq!(briefs, 1);
    assert_eq!(verified.object()["sound"], true, "{verified:?}");
}

/// A server that uses a model, and the model's side of it.
async fn premises_with_model() -> (Premises, Model) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let (asked, requests) = mpsc::unbounded_channel();
    let router = Router::new().fallback(answer).with_state(asked);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let premises = Premises::new().with("models.side.base_url", &url).with("models.side.model", "side");
    (premises, Model { requests, briefs: 0 })
}

struct Model {
    requests: UnboundedReceiver<Value>,
    /// How many briefs were asked for so far.
    briefs: usize,
}

impl Model {
    /// The instructions of the next decision that is asked for. An address asks for one if no statement is being made: else that is begun again.
    async fn decision(&mut self) -> String {
        loop {
            let request =
                tokio::time::timeout(PATIENCE, self.requests.recv()).await.expect("a request in time").expect("the model serves");
            let [system, user] = [0, 1].map(|at| request["messages"][at]["content"].as_str().unwrap_or_default());
            self.briefs += usize::from(is_brief(&request));
            if user.contains("Would you like to respond?") {
                return system.to_owned();
            }
        }
    }
}

fn is_brief(request: &Value) -> bool {
    request["messages"][1]["content"].as_str().is_some_and(|user| user.contains("Write this description again"))
}

async fn answer(State(asked): State<UnboundedSender<Value>>, Json(request): Json<Value>) -> Json<Value> {
    let content = if is_brief(&request) { "You own clocks." } else { "Me.\nYES" };
    // The test may have ended.
    let _ = asked.send(request);
    Json(json!({
        "id": "answer",
        "model": "side",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12 },
    }))
}
