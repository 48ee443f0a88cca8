//! A room that is deleted can be brought back for a while, also after a kill.

use reqwest::{Method, StatusCode};

use crate::harness::{Premises, Server};

#[tokio::test]
async fn a_kill_neither_loses_a_deletion_nor_the_way_back() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;
    server.rest("lobby").await;
    let before = server.history("lobby").await;

    let deletion = server.done(Method::DELETE, "/api/rooms/lobby", None).await;
    server.kill().await;
    let server = premises.start().await;
    let hidden = status(&server, Method::GET, "/api/rooms/lobby").await;
    server.done(Method::POST, "/api/rooms/lobby/undelete", None).await;
    let back = server.history("lobby").await;
    server.exchange("lobby", "hey aria, are you there?").await;
    server.done(Method::DELETE, "/api/rooms/lobby", None).await;
    server.kill().await;
    let server = premises.start().await;
    server.logs("a room was deleted with its history").await;
    let late = status(&server, Method::POST, "/api/rooms/lobby/undelete").await;
    server.kill().await;
    let server = premises.start().await;

    assert_eq!(deletion["messages"], before.len());
    assert_eq!((hidden, late), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(back, before);
    assert_eq!(server.history("lobby").await, [], "the settings create the room again");
    server.stop().await;
}

async fn status(server: &Server, method: Method, path: &str) -> StatusCode {
    server.ask(method, path, None).await.0
}
