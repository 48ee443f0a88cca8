//! A server that is halted for a while, as by a debugger or a sleeping machine: it gets no notice, and time continues.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::model::Model;
use crate::harness::{PATIENCE, Premises, Server, parameter};
use crate::kills::record::{Counts, Record};

/// The default of `turn_taking.max_companion_streak`.
const STREAK: u64 = 4;

#[tokio::test]
async fn a_halted_server_continues_where_it_was() {
    let server = halted_for(Duration::from_millis(500)).await;

    server.stop().await;
}

/// `cargo test --release --test it -- --ignored --nocapture halted_for_long` halts it for 45 seconds: longer than the watchdog
/// tolerates a hung server, and than every deadline of a model. `SECS` sets another time.
#[tokio::test]
#[ignore = "takes a minute"]
async fn a_server_halted_for_long_is_not_taken_for_hung_and_answers_nothing_twice() {
    let server = halted_for(Duration::from_secs(parameter("SECS", 45))).await;

    // The watchdog checks every second, and has reported nothing.
    let log = server.log_lines_with("stalls");
    assert!(!log.iter().any(|line| line.contains("ERROR")), "{log:#?}");
    server.stop().await;
}

/// Halts a server in the middle of a reply, while a request waits. Nothing may be lost or duplicated: each message settles once, and the statements
/// in the room are those on record.
async fn halted_for(time: Duration) -> Server {
    let model = Model::holding("main").await;
    let timeouts = ["timeout_secs", "first_token_timeout_secs", "idle_timeout_secs"];
    let premises =
        timeouts.iter().fold(model.serving(Premises::new()), |premises, key| premises.with(&format!("models.main.{key}"), "1"));
    // What is said meanwhile is not taken in, so that the first turn ends at its deadline.
    let premises = premises.with("reply.max_replans", "0");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let first = server.say("lobby", "Ana", "hey aria, are you there?").await;
    model.wait_for_requests("main", 1).await;

    server.signal("STOP").await;
    let message = json!({ "from": "Bob", "text": "is anybody there?", "id": "bobs" });
    let url = format!("{}/api/rooms/lobby/messages", server.url);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let response = tokio::spawn(http.post(&url).json(&message).send());
    // This is the time for which the server is halted.
    let _ = timeout(time, std::future::pending::<()>()).await;
    model.release();
    server.signal("CONT").await;

    let answered = timeout(PATIENCE, response).await.expect("an answer in time").expect("it is sent");
    let answered = answered.expect("the waiting request is answered");
    assert_eq!(answered.status(), 202);
    let second = answered.json::<serde_json::Value>().await.expect("JSON")["seq"].as_u64().expect("a number");
    // The watching connection still works.
    let third = server.say("lobby", "Ana", "hey aria, and now?").await;
    lobby.event("statement").await;
    let accepted = [(first, "hey aria, are you there?"), (second, "is anybody there?"), (third, "hey aria, and now?")];
    let record = assert_all_answered(&server, &accepted, &message).await;
    // The model never answers the first request. That turn ends at its deadline, as the record must say.
    assert_eq!(record.answer(first), Err("timeout"));
    assert!(record.answer(third).is_ok_and(|answer| answer > third));
    server
}

/// Waits until nothing is open in the lobby. Its messages must be these, each settled once, and its statements those on record. `repeated` is one
/// of the messages; sent again it changes nothing, and is answered only once every event of the room is on record.
pub(super) async fn assert_all_answered(server: &Server, accepted: &[(u64, &str)], repeated: &Value) -> Record<'static> {
    let state = server.rest("lobby").await;
    server.done(Method::POST, "/api/rooms/lobby/messages", Some(repeated.clone())).await;
    let mut record = Record::of(server, "lobby", &state, &["aria"], STREAK, Counts::default()).await;
    record.compare_accepted(&accepted.iter().copied().collect());
    assert!(record.faults.are_none(), "{:#?}", record.faults);
    let history = server.history("lobby").await;
    let statements: Vec<_> = history.iter().filter(|(_, from, _)| from == "aria").map(|(seq, ..)| *seq).collect();
    assert_eq!(statements, record.statements(), "{history:?}");
    record
}
