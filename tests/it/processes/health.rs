//! `tertulia health` for a server that runs, starts, has ended, is not ready, or is not a tertulia server.

use std::fs::File;

use axum::http::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::harness::{Premises, Ran, UnprivilegedUser, permit, ran, serve_answer, skipped};

#[tokio::test]
async fn health_reports_a_running_server_as_ready() {
    let premises = Premises::new();
    let server = premises.start().await;

    let as_text = premises.run(&["health"]).await;
    let as_json = premises.run(&["health", "--json"]).await;
    premises.run(&["health", "--server", &server.url]).await.exits_with(0);

    let expected = format!("{} is ready; rehearsal (built in) answers and decides", server.url);
    assert_eq!((as_text.code, as_text.stdout.trim_end()), (Some(0), &*expected), "{as_text:?}");
    let object = as_json.object();
    assert_eq!((&object["ready"], &object["server"]), (&true.into(), &Value::from(&*server.url)));
    assert_eq!(object["models"]["side"]["provider"], "rehearsal");
    server.stop().await;
}

#[tokio::test]
async fn health_tells_a_server_that_never_ran_stopped_starts_or_was_killed() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let mut premises = Premises::new();
    let server_file = premises.data().join("server.json");

    let never = premises.run(&["health", "--json"]).await;
    premises.start().await.stop().await;
    let is_removed = !server_file.exists();
    let stopped = premises.run(&["health"]).await;
    let lock = File::open(premises.data().join("lock")).expect("a lock");
    // A starting server locks the folder first, and writes its address later.
    lock.lock().expect("the lock is free");
    let starting = premises.run(&["health", "--json"]).await;
    drop(lock);
    premises.start().await.kill().await;
    let killed = premises.run(&["health"]).await;
    let is_left = server_file.exists();
    // Commands ignore the server file of a killed server, and the next start removes it.
    premises.verified_events().await;
    premises.set("server.listen", &taken.local_addr().expect("bound").to_string());
    premises.run(&[]).await.exits_with(1);

    for health in [&never, &stopped, &killed] {
        assert_unhealthy(health, "no server runs on data, and none answers on 127.0.0.1:0");
    }
    assert_unhealthy(&starting, "its server has not reported its address yet");
    assert_eq!((&never.object()["ready"], &starting.object()["ready"]), (&false.into(), &false.into()));
    assert!(is_removed && is_left && !server_file.exists());
}

#[tokio::test]
async fn a_server_is_found_by_its_address_from_a_folder_without_a_store() {
    let premises = Premises::new().with("server.admin_token", "correct-horse-battery");
    let server = premises.start().await;
    let address = server.url.trim_start_matches("http://");
    let elsewhere = Premises::new().with("server.listen", address);

    let health = elsewhere.run(&["health"]).await.exits_with(0);
    let without_token = elsewhere.run(&["why", "lobby"]).await.exits_with(1);
    let elsewhere = elsewhere.with("server.admin_token", "correct-horse-battery");
    let found = elsewhere.run(&["usage"]).await.exits_with(1);
    let named = elsewhere.run(&["why", "lobby", "--server", address]).await.exits_with(0);

    assert_eq!(health.stdout.trim_end(), format!("{} is ready", server.url));
    for refused in [without_token, found] {
        assert!(refused.stderr.contains("name the server with --server"), "the token is not sent: {refused:?}");
    }
    assert!(named.stdout.contains("Aria"), "{named:?}");
    server.stop().await;
}

#[tokio::test]
async fn health_names_the_part_that_is_not_ready() {
    let premises = Premises::new();
    let body = r#"{"ready":false,"parts":[{"part":"store","ready":false,"detail":"it is full"}]}"#;
    let url = serve_answer(StatusCode::SERVICE_UNAVAILABLE, body).await;

    let health = premises.run(&["health", "--server", &url, "--json"]).await;

    assert_unhealthy(&health, &format!("the server at {url} is not ready: store: it is full"));
    assert_eq!(health.object()["parts"][0]["part"], "store");
}

#[tokio::test]
async fn health_explains_why_an_address_is_no_tertulia_server() {
    let premises = Premises::new();
    let url = serve_answer(StatusCode::OK, "<html>hello</html>").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("bound");

    let other_server = premises.run(&["health", "--server", &url]).await;
    let unreachable = premises.run(&["health", "--server", &format!("http://ana:secret@{gone}")]).await;
    premises.run(&["health", "--server", "here"]).await.exits_with(2);
    let with_tls = premises.run(&["health", "--server", &url.replace("http://", "https://ana:secret@")]).await;

    assert_unhealthy(&other_server, "but not like a tertulia server");
    assert_unhealthy(&unreachable, "nothing answers at this address");
    assert!(!unreachable.stderr.contains("secret"), "{unreachable:?}");
    let plain = format!("does not speak TLS: a tertulia server itself speaks plain HTTP, so use {url},");
    assert_unhealthy(&with_tls, &plain);
    assert!(!with_tls.stderr.contains("secret"), "{with_tls:?}");
}

#[tokio::test]
async fn health_reports_an_unreadable_data_folder() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    let Some(user) = UnprivilegedUser::find(&premises).await else {
        return skipped("this user can read every folder, and the program cannot be run as another user");
    };
    permit(&premises.data(), 0o000);

    let health = ran(user.command(&premises, &["health"])).await;

    permit(&premises.data(), 0o700);
    assert_unhealthy(&health, "this user may not read data");
}

fn assert_unhealthy(health: &Ran, reason: &str) {
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.stderr.contains(reason), "{reason:?} is missing: {health:?}");
}
