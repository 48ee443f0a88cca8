//! Companions that are made, changed and removed while the server runs: in files, or in the store where files cannot be written.

use std::fs;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Premises, Server, UnprivilegedUser, permit};

async fn profile(server: &Server, id: &str) -> Value {
    server.get(&format!("/api/companions/{id}")).await
}

async fn invite(server: &Server, id: &str) {
    let plan = json!({ "guild": "home", "companions": ["aria", id] });
    server.done(Method::PUT, "/api/rooms/lobby", Some(plan)).await;
}

#[tokio::test]
async fn a_companion_is_made_speaks_is_changed_and_is_removed() {
    let premises = Premises::new();
    let server = premises.start().await;
    let file = premises.path().join("config/companions/grossmutter-hilde.toml");

    let made = json!({ "companion": { "name": "Großmutter Hilde", "aliases": ["Oma"], "persona": "You are Hilde.\nYou bake." } });
    let (status, made) = server.ask(Method::POST, "/api/companions", Some(made)).await;
    assert_eq!(
        (status, &made["id"], &made["kept"]["in"]),
        (StatusCode::CREATED, &json!("grossmutter-hilde"), &json!("file")),
        "{made}"
    );
    invite(&server, "grossmutter-hilde").await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Oma, what do you bake?").await;
    assert_eq!(watch.event("statement").await["companion"], "grossmutter-hilde");
    let commented = format!("# Ana's\n{}", fs::read_to_string(&file).expect("it was written"));
    fs::write(&file, &commented).expect("a file");

    // The file was changed by hand meanwhile.
    let mut change = json!({ "revision": made["revision"], "companion": made["companion"] });
    change["companion"]["tone"] = "warm".into();
    let (status, problem) = server.ask(Method::PUT, "/api/companions/grossmutter-hilde", Some(change.clone())).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    change["revision"] = profile(&server, "grossmutter-hilde").await["revision"].clone();
    let (status, changed) = server.ask(Method::PUT, "/api/companions/grossmutter-hilde", Some(change)).await;
    assert_eq!((status, &changed["companion"]["tone"]), (StatusCode::OK, &json!("warm")), "{changed}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), format!("{commented}tone = \"warm\"\n"));
    server.signal("HUP").await;
    // Two changes and the signal.
    server.logs_many("companions were reloaded", 3).await;
    assert_eq!(profile(&server, "grossmutter-hilde").await, changed);
    assert_eq!(server.get("/api/quarantine").await.get("reload"), None);
    server.stop().await;

    let server = premises.start().await;
    assert_eq!(profile(&server, "grossmutter-hilde").await, changed);
    let revision = changed["revision"].as_str().expect("a revision");
    let (status, problem) =
        server.ask(Method::DELETE, &format!("/api/companions/grossmutter-hilde?revision={revision}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{problem}");
    assert!(!file.exists() && file.with_file_name("aria.toml").exists());
    let room = server.get("/api/rooms/lobby").await;
    assert_eq!(room["companions"].as_array().map(Vec::len), Some(1), "{room}");
    server.stop().await;
}

#[tokio::test]
async fn where_files_cannot_be_written_companions_are_kept_in_the_store() {
    let premises = Premises::new();
    let Some(user) = UnprivilegedUser::find(&premises).await else {
        eprintln!("skipped: this user may write everywhere, and no other user can run the program");
        return;
    };
    let config = premises.path().join("config");
    permit(&config, 0o555);
    let server = Server::of(user.command(&premises, &[])).await;

    let (status, made) = server.ask(Method::POST, "/api/companions", Some(json!({ "companion": { "name": "Nova" } }))).await;
    assert_eq!((status, &made["kept"]["in"]), (StatusCode::CREATED, &json!("store")), "{made}");
    let why = made["kept"]["why"].as_str().expect("a reason");
    assert!(why.contains("companions/nova.toml cannot be written"), "{why}");
    invite(&server, "nova").await;
    server.stop().await;
    // The settings may name it, because the store has it.
    permit(&config, 0o755);
    let premises = premises.with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = ["aria", "nova"] }]"#);
    permit(&config, 0o555);
    let checked = user.command(&premises, &["check"]).output().await.expect("it runs");
    let server = Server::of(user.command(&premises, &[])).await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Nova, are you there?").await;

    assert_eq!(watch.event("statement").await["companion"], "nova");
    let shown = String::from_utf8_lossy(&checked.stdout);
    assert!(shown.contains("kept in the store, and not in files: nova"), "{checked:?}");
    let beside = premises.run(&["check"]).await;
    assert!(beside.code == Some(0) && beside.stdout.contains("the page shows them"), "{beside:?}");
    server.stop().await;
    permit(&config, 0o755);
}
