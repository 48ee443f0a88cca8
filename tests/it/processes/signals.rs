//! Signals: stop, stop at once, reload the companions.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{PATIENCE, Premises, QUICK, Server};

#[tokio::test]
async fn a_second_signal_ends_a_draining_server_at_once() {
    let premises = Premises::new().with("server.drain_secs", "600").with("server.body_timeout_secs", "3600");
    let server = premises.start().await;
    let request = unfinished_request(&server).await;
    server.signal("TERM").await;
    server.logs("a second signal ends the process at once").await;

    server.signal("TERM").await;
    let (status, _) = server.ended().await;

    assert_eq!(status.code(), Some(130));
    drop(request);
}

#[tokio::test]
async fn companions_are_reloaded_without_a_restart_and_a_failed_reload_changes_nothing() {
    let premises = Premises::new().with_companion("aria", QUICK);
    let server = premises.start().await;
    let mut policies = vec![policy(&server).await];

    premises.write_companion("aria", &QUICK.replace("average", "very_eager"));
    server.signal("HUP").await;
    server.logs("companions were reloaded").await;
    policies.push(policy(&server).await);
    premises.write_companion("aria", &QUICK.replace("average", "chatty"));
    server.signal("HUP").await;
    let wrong = server.logs("stays as it was").await;
    policies.push(policy(&server).await);
    let shown = server.get("/api/quarantine").await["reload"]["problems"][0].clone();
    // A pipe blocks neither the reload nor the shutdown.
    premises.write_companion("aria", QUICK);
    let fifo = premises.path().join("config/companions/bruno.toml");
    let created = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo can be run");
    assert!(created.success());
    server.signal("HUP").await;
    server.logs_many("stays as it was", 2).await;
    let pipe = server.logs("is not a regular file").await;
    std::fs::remove_file(&fifo).expect("the pipe can be removed");
    server.signal("HUP").await;
    // Also where a file has errors, the others are.
    server.logs_many("companions were reloaded", 4).await;
    let after = server.get("/api/quarantine").await["reload"].clone();
    server.stop().await;

    assert_eq!(policies, ["average", "very_eager", "very_eager"]);
    assert!(shown.as_str().is_some_and(|text| text.contains("aria.toml") && text.contains("chatty")), "{shown}");
    assert_eq!(after, Value::Null);
    assert!(wrong.contains("chatty") && pipe.contains("bruno.toml"), "{wrong}\n{pipe}");
}

#[tokio::test]
async fn a_companion_with_errors_is_left_out_and_keeps_nobody_else_from_starting() {
    let premises = Premises::new().with_companion("aria", QUICK).with_companion("bruno", "interjection = \"loud\"\n");
    premises.run(&["check"]).await.exits_with(2);
    let server = premises.start().await;
    let ids = async || {
        let companions = server.get("/api/companions").await["companions"].clone();
        companions.as_array().expect("a list").iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };

    let at_first = ids().await;
    let shown = server.get("/api/quarantine").await["reload"]["problems"][0].clone();
    premises.write_companion("bruno", QUICK);
    server.signal("HUP").await;
    server.logs("companions were reloaded").await;
    let mended = ids().await;
    server.stop().await;

    assert_eq!((at_first, mended), (vec![Value::from("aria")], vec![Value::from("aria"), Value::from("bruno")]));
    assert!(shown.as_str().is_some_and(|text| text.contains("bruno.toml") && text.contains("loud")), "{shown}");
}

async fn policy(server: &Server) -> Value {
    server.get("/api/companions").await["companions"][0]["interjection"].clone()
}

/// Sends the head of a request. The server waits for its body, which never comes.
async fn unfinished_request(server: &Server) -> TcpStream {
    let address = server.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\
         Expect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await;
    read.expect("an answer in time").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 100");
    stream
}
