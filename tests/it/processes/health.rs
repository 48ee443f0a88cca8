//! `tertulia health`: what it says of a server that runs, starts, is gone, is not ready, or is none.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::harness::{Premises, Ran, ran, skipped};

#[tokio::test]
async fn a_server_that_can_be_talked_to_is_ready() {
    let premises = Premises::new();
    let server = premises.start().await;

    let told = premises.run(&["health"]).await;
    let for_programs = premises.run(&["health", "--json"]).await;
    let named = premises.run(&["health", "--server", &server.url]).await;

    assert_eq!((told.code, told.stdout.trim_end()), (Some(0), &*format!("{} is ready", server.url)), "{told:?}");
    let object = for_programs.object();
    assert_eq!((&object["ready"], &object["server"]), (&true.into(), &Value::from(&*server.url)));
    assert_eq!(object["models"]["side"]["provider"], "rehearsal");
    assert_eq!(named.code, Some(0), "{named:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_was_stopped_or_never_started_is_not_there() {
    let premises = Premises::new();

    let never = premises.run(&["health", "--json"]).await;
    premises.start().await.stop().await;
    let stopped = premises.run(&["health"]).await;
    premises.start().await.kill().await;
    let killed = premises.run(&["health"]).await;

    for health in [&never, &stopped, &killed] {
        assert_unwell(health, "no server runs on data: start it");
    }
    assert_eq!(never.object()["ready"], false);
}

#[tokio::test]
async fn a_server_that_starts_is_not_ready_yet() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    let lock = File::open(premises.data().join("lock")).expect("a lock");
    // Whoever starts holds the folder first, and says later where it listens.
    lock.lock().expect("nobody holds it");

    let health = premises.run(&["health", "--json"]).await;

    assert_unwell(&health, "its server has not reported its address yet");
    assert_eq!(health.object()["ready"], false);
}

#[tokio::test]
async fn a_start_takes_away_where_a_killed_server_listened() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let mut premises = Premises::new();
    premises.start().await.kill().await;
    let note = premises.data().join("server.json");
    assert!(note.exists());
    premises.set("server.listen", &taken.local_addr().expect("bound").to_string());

    let refused = premises.run(&[]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!note.exists());
}

#[tokio::test]
async fn a_server_that_is_not_ready_says_what_is_in_the_way() {
    let premises = Premises::new();
    let body = r#"{"ready":false,"parts":[{"part":"store","ready":false,"detail":"it is full"}]}"#;
    let url = answering(StatusCode::SERVICE_UNAVAILABLE, body).await;

    let health = premises.run(&["health", "--server", &url, "--json"]).await;

    assert_unwell(&health, &format!("the server at {url} is not ready: store: it is full"));
    assert_eq!(health.object()["parts"][0]["part"], "store");
}

#[tokio::test]
async fn what_is_no_such_server_is_told() {
    let premises = Premises::new();
    let url = answering(StatusCode::OK, "<html>hello</html>").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("bound");

    let stranger = premises.run(&["health", "--server", &url]).await;
    let nobody = premises.run(&["health", "--server", &format!("http://ana:secret@{gone}")]).await;
    let unnamed = premises.run(&["health", "--server", "here"]).await;
    let in_tls = premises.run(&["health", "--server", &url.replace("http://", "https://ana:secret@")]).await;

    assert_unwell(&stranger, "but not like a tertulia server");
    assert_unwell(&nobody, "Connection refused");
    assert!(!nobody.stderr.contains("secret"), "{nobody:?}");
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    let plain = format!("does not speak TLS: a tertulia server itself speaks plain HTTP, so use {url},");
    assert_unwell(&in_tls, &plain);
    assert!(!in_tls.stderr.contains("secret"), "{in_tls:?}");
}

#[tokio::test]
async fn a_server_whose_token_was_changed_is_not_taken_for_a_sick_one() {
    let mut premises =
        Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;

    let known = premises.run(&["health", "--json"]).await;
    premises.set("server.admin_token", "something-else-altogether");
    let unknown = premises.run(&["health", "--json"]).await;

    assert_eq!((known.code, unknown.code), (Some(0), Some(0)), "{known:?} {unknown:?}");
    assert!(known.object()["parts"].is_array());
    assert!(unknown.object()["parts"].is_null());
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_look_into_the_data_folder_is_told_so() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    permit(premises.path(), 0o755);
    permit(&premises.data(), 0o000);
    // Root may look everywhere.
    let is_all_powerful = File::open(premises.data().join("lock")).is_ok();
    let nobody: &[&str] = if is_all_powerful { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] } else { &[] };
    let binary = env!("CARGO_BIN_EXE_tertulia");
    let able = ran(premises.command_of(&[nobody, &[binary, "--version"]].concat())).await;
    if able.code != Some(0) {
        return skipped("this user may look everywhere, and the program cannot be run as another one");
    }

    let health = ran(premises.command_of(&[nobody, &[binary, "health"]].concat())).await;

    permit(&premises.data(), 0o700);
    assert_unwell(&health, "this user may not read data");
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions can be set");
}

/// A server on loopback that answers like this, as long as the test lasts.
async fn answering(status: StatusCode, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let router = Router::new().route("/readyz", get(move || async move { (status, body) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn assert_unwell(health: &Ran, because: &str) {
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.stderr.contains(because), "{because:?} is not said: {health:?}");
}
