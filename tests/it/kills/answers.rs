//! A server that is killed between a question to a model and its answer.

use serde_json::Value;
use tokio::sync::watch;

use crate::harness::Premises;
use crate::harness::model::{Answer, Model};

#[tokio::test]
async fn a_reply_interrupted_by_a_kill_is_made_once_after_the_restart() {
    let (release, released) = watch::channel(false);
    let model = Model::start(move |body: &Value| match body["model"].as_str() {
        Some("main") => Answer::Once(released.clone(), "I am here."),
        // What Bob says is for nobody.
        _ if body.to_string().contains("slow today") => "They talk about me.\nNO".into(),
        _ => "They call me.\nYES".into(),
    })
    .await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    server.say("lobby", "Ana", "hey aria, are you there?").await;
    model.wait_for_requests("main", 1).await;
    let late = server.say("lobby", "Bob", "she is slow today").await;
    let before = server.history("lobby").await;

    server.kill().await;
    release.send_replace(true);
    let server = premises.start().await;

    // This happens without any request for the room.
    model.wait_for_requests("main", 2).await;
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
    let model = Model::holding("side").await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    server.say("lobby", "Ana", "hey aria, are you there?").await;
    model.wait_for_requests("side", 1).await;

    server.kill().await;
    model.release();
    let server = premises.start().await;

    // This happens without any request for the room.
    model.wait_for_requests("side", 2).await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    assert_eq!(lobby.event("decision").await["decision"], "YES");
    assert_eq!(lobby.event("statement").await["text"], "I am here.");
    server.stop().await;
}
