//! A server that stands still for a while, as a machine that sleeps or a debugger leaves it: nobody is told, and time goes on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::record::Record;
use crate::harness::{Premises, Server, chosen};
use crate::processes::crashes::{Model, wait};

#[tokio::test]
async fn a_server_that_stood_still_goes_on_where_it_was() {
    let server = halted_for(Duration::from_millis(500)).await;

    server.stop().await;
}

/// `cargo test --release --test it -- --ignored --nocapture stood_still_for_long` halts it for 45 seconds, in which the watchdog would have
/// ended a server that hangs, and every deadline of a model passes. `SECS` is another time.
#[tokio::test]
#[ignore = "takes a minute"]
async fn a_server_that_stood_still_for_long_is_no_hang_and_owes_nothing_twice() {
    let server = halted_for(Duration::from_secs(chosen("SECS", 45))).await;

    // Its watchdog looks every second, and has found nothing.
    let log = server.told_of("stalls");
    assert!(!log.iter().any(|line| line.contains("ERROR")), "{log:#?}");
    server.stop().await;
}

/// Halts a server in the middle of a reply, with people waiting; nothing of it is lost, and nothing comes twice: each message settles once, and
/// what she says are the turns on record.
async fn halted_for(time: Duration) -> Server {
    let model = Model::start().await;
    let quick = ["timeout_secs", "first_token_timeout_secs", "idle_timeout_secs"];
    let premises =
        quick.iter().fold(model.serving(Premises::new()), |premises, key| premises.with(&format!("models.main.{key}"), "1"));
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let first = server.say("lobby", "Ana", "hey aria, are you there?").await;
    let mut asked = model.statements_asked.subscribe();
    wait(&mut asked, 1).await;

    server.signal("STOP").await;
    let said = json!({ "from": "Bob", "text": "is anybody there?", "id": "bobs" });
    let url = format!("{}/api/rooms/lobby/messages", server.url);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let waiting = tokio::spawn(http.post(&url).json(&said).send());
    // How long it stands still is what this is about.
    let _ = timeout(time, std::future::pending::<()>()).await;
    model.holds_back.store(false, Ordering::SeqCst);
    server.signal("CONT").await;

    let answered = timeout(crate::harness::PATIENCE, waiting).await.expect("an answer in time").expect("it is sent");
    let answered = answered.expect("whoever waited is answered");
    assert_eq!(answered.status(), 202);
    let second = answered.json::<serde_json::Value>().await.expect("JSON")["seq"].as_u64().expect("a number");
    // The connection that watched is still there.
    let third = server.say("lobby", "Ana", "hey aria, and now?").await;
    lobby.event("statement").await;
    let record = Record::at_rest(&server, "lobby", &said).await;
    record.assert_exact(&[first, second, third]);
    // The model holds back what it was asked before for good: that turn is over by its deadline, as the record says.
    assert_eq!(record.answer(first), Err("timeout"), "{record:#?}");
    assert!(record.answer(third).is_ok_and(|answer| answer > third), "{record:#?}");
    let history = server.history("lobby").await;
    let told: Vec<_> = history.iter().filter(|(_, from, _)| from == "aria").map(|(seq, ..)| *seq).collect();
    assert_eq!(told, record.statements(), "{history:?}");
    server
}
