//! The view of all rooms, across a kill of the server.

use crate::harness::{Premises, Watch};

#[tokio::test]
async fn a_cursor_continues_each_room_after_a_kill() {
    let rooms =
        r#"[{ id = "lobby", guild = "home", companions = ["aria"] }, { id = "den", guild = "away", companions = ["bruno"] }]"#;
    let premises = Premises::new().with("console.rooms", rooms);
    let server = premises.start().await;
    let mut all = server.watch_rooms("").await;
    let lobby = server.say("lobby", "Ana", "one").await;
    let den = server.say("den", "Ben", "two").await;
    let first = [message(&mut all).await, message(&mut all).await];
    server.say("den", "Ben", "three").await;
    server.kill().await;

    let server = premises.start().await;
    let mut all = server.watch_rooms(&format!("lobby.{lobby},console:den.{den}")).await;
    let missed = message(&mut all).await;
    server.say("lobby", "Ana", "four").await;
    let new = message(&mut all).await;

    assert_eq!(first, [("console:lobby".to_owned(), "one".to_owned()), ("console:den".to_owned(), "two".to_owned())]);
    assert_eq!(missed, ("console:den".to_owned(), "three".to_owned()));
    assert_eq!(new, ("console:lobby".to_owned(), "four".to_owned()));
    server.stop().await;
}

/// The room and the text of the next message by a person.
async fn message(watch: &mut Watch) -> (String, String) {
    let event = watch.event_that("message", |event| event["role"] == "user").await;
    let text = |field: &str| event[field].as_str().expect("text").to_owned();
    (text("channel"), text("text"))
}
