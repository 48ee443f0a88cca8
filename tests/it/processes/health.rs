//! `tertulia health` for a server that runs, starts, has ended, is not ready, or is not a tertulia server.

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
async fn health_reports_a_running_server_as_ready() {
    let premises = Premises::new();
    let server = premises.start().await;

    let as_text = premises.run(&["health"]).await;
    let as_json = premises.run(&["health", "--json"]).await;
    let named = premises.run(&["health", "--server", &server.url]).await;

    assert_eq!((as_text.code, as_text.stdout.trim_end()), (Some(0), &*format!("{} is ready", server.url)), "{as_text:?}");
    let object = as_json.object();
    assert_eq!((&object["ready"], &object["server"]), (&true.into(), &Value::from(&*server.url)));
    assert_eq!(object["models"]["side"]["provider"], "rehearsal");
    assert_eq!(named.code, Some(0), "{named:?}");
    server.stop().await;
}

#[tokio::test]
async fn health_reports_that_no_server_runs() {
    let premises = Premises::new();

    let never = premises.run(&["health", "--json"]).await;
    premises.start().await.stop().await;
    let stopped = premises.run(&["health"]).await;
    premises.start().await.kill().await;
    let killed = premises.run(&["health"]).await;

    for health in [&never, &stopped, &killed] {
        assert_unhealthy(health, "no server runs on data: start it");
    }
    assert_eq!(never.object()["ready"], false);
}

#[tokio::test]
async fn a_starting_server_is_not_ready_yet() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    let lock = File::open(premises.data().join("lock")).expect("a lock");
    // A starting server locks the folder first, and writes its address later.
    lock.lock().expect("the lock is free");

    let health = premises.run(&["health", "--json"]).await;

    assert_unhealthy(&health, "its server has not reported its address yet");
    assert_eq!(health.object()["ready"], false);
}

#[tokio::test]
async fn a_start_removes_the_server_file_of_a_killed_server() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let mut premises = Premises::new();
    premises.start().await.kill().await;
    let server_file = premises.data().join("server.json");
    assert!(server_file.exists());
    premises.set("server.listen", &taken.local_addr().expect("bound").to_string());

    let refused = premises.run(&[]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!server_file.exists());
}

#[tokio::test]
async fn health_names_the_part_that_is_not_ready() {
    let premises = Premises::new();
    let body = r#"{"ready":false,"parts":[{"part":"store","ready":false,"detail":"it is full"}]}"#;
    let url = server_answering(StatusCode::SERVICE_UNAVAILABLE, body).await;

    let health = premises.run(&["health", "--server", &url, "--json"]).await;

    assert_unhealthy(&health, &format!("the server at {url} is not ready: store: it is full"));
    assert_eq!(health.object()["parts"][0]["part"], "store");
}

#[tokio::test]
async fn health_explains_why_an_address_is_no_tertulia_server() {
    let premises = Premises::new();
    let url = server_answering(StatusCode::OK, "<html>hello</html>").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("bound");

    let other_server = premises.run(&["health", "--server", &url]).await;
    let unreachable = premises.run(&["health", "--server", &format!("http://ana:secret@{gone}")]).await;
    let invalid = premises.run(&["health", "--server", "here"]).await;
    let with_tls = premises.run(&["health", "--server", &url.replace("http://", "https://ana:secret@")]).await;

    assert_unhealthy(&other_server, "but not like a tertulia server");
    assert_unhealthy(&unreachable, "Connection refused");
    assert!(!unreachable.stderr.contains("secret"), "{unreachable:?}");
    assert_eq!(invalid.code, Some(2), "{invalid:?}");
    let plain = format!("does not speak TLS: a tertulia server itself speaks plain HTTP, so use {url},");
    assert_unhealthy(&with_tls, &plain);
    assert!(!with_tls.stderr.contains("secret"), "{with_tls:?}");
}

#[tokio::test]
async fn health_needs_no_valid_token() {
    let mut premises =
        Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;

    let authorized = premises.run(&["health", "--json"]).await;
    premises.set("server.admin_token", "something-else-altogether");
    let unauthorized = premises.run(&["health", "--json"]).await;

    assert_eq!((authorized.code, unauthorized.code), (Some(0), Some(0)), "{authorized:?} {unauthorized:?}");
    assert!(authorized.object()["parts"].is_array());
    assert!(unauthorized.object()["parts"].is_null());
    server.stop().await;
}

#[tokio::test]
async fn health_reports_an_unreadable_data_folder() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    permit(premises.path(), 0o755);
    permit(&premises.data(), 0o000);
    // Root may read every folder.
    let is_root = File::open(premises.data().join("lock")).is_ok();
    let setpriv: &[&str] = if is_root { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] } else { &[] };
    let binary = env!("CARGO_BIN_EXE_tertulia");
    let version = ran(premises.command_of(&[setpriv, &[binary, "--version"]].concat())).await;
    if version.code != Some(0) {
        return skipped("this user can read every folder, and the program cannot be run as another user");
    }

    let health = ran(premises.command_of(&[setpriv, &[binary, "health"]].concat())).await;

    permit(&premises.data(), 0o700);
    assert_unhealthy(&health, "this user may not read data");
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions can be set");
}

/// Starts a server on loopback that gives this answer.
async fn server_answering(status: StatusCode, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let router = Router::new().route("/readyz", get(move || async move { (status, body) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn assert_unhealthy(health: &Ran, reason: &str) {
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.stderr.contains(reason), "{reason:?} is missing: {health:?}");
}
