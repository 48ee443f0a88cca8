//! A journal that lost its last event and its head: a server that accepts the loss continues after the lost numbers.

use std::fs::File;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::json;
use tertulia::ports::backend::DAMAGED;
use tertulia::ports::store::key::Kind;

use crate::harness::{Premises, Server, serve};

#[tokio::test]
async fn serving_with_accept_loss_lists_what_is_missing_and_reuses_no_number() {
    // In a room without companions, messages are the only events.
    let premises = Premises::new().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = [] }]"#);
    let server = premises.start().await;
    let mut numbers = Vec::new();
    for id in ["one", "two", "three"] {
        numbers.push(say(&server, id).await);
    }
    server.stop().await;

    remove_end(&premises.data());
    let refused = premises.run(&["serve"]).await.exits_with(3);
    let server = Server::of(premises.command(&["serve", "--accept-loss"])).await;
    server.logs(&format!("channel console:lobby of guild home): the events {0} to {0} are missing", numbers[2])).await;
    let repeated = [say(&server, "one").await, say(&server, "two").await];
    let next = say(&server, "four").await;
    server.stop().await;
    premises.run(&["history", "verify"]).await.exits_with(0);

    assert!(refused.stderr.contains("--accept-loss") && refused.stderr.contains("there is no backup in"), "{refused:?}");
    assert_eq!(repeated, numbers[..2]);
    assert!(next > numbers[2], "{next} was given to another message before: {numbers:?}");
}

#[tokio::test]
async fn an_interrupted_export_exits_as_damaged_only_if_the_server_reports_damage() {
    let premises = Premises::new();
    for (kind, code) in [(DAMAGED, 3), ("about:blank", 1)] {
        let problem = json!({ "type": kind, "title": "…", "status": 500, "detail": "the record 4711 cannot be read" });
        let export = move || async move {
            let lines = [Ok("{\"event\":1}\n".to_owned()), Ok(format!("{problem}\n"))];
            let broken = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("it breaks off"))
            });
            Body::from_stream(stream::iter(lines).chain(broken))
        };
        let router = Router::new().route("/api/export", get(export)).fallback(|| async { "{}" });
        let url = serve(router).await;

        let ran = premises.run(&["history", "export", "--server", &url]).await;

        assert_eq!((ran.code, ran.stderr.contains("4711")), (Some(code), code == 3), "{ran:?}");
        assert!(ran.stdout.starts_with("{\"event\":1}\n") || ran.stdout.is_empty(), "{ran:?}");
        assert!(!ran.stdout.contains("4711"), "{ran:?}");
    }
}

/// Sends a message with this id. Returns its number.
async fn say(server: &Server, id: &str) -> u64 {
    let message = json!({ "from": "Ana", "text": "is anybody there?", "id": id });
    let body = server.done(Method::POST, "/api/rooms/lobby/messages", Some(message)).await;
    body["seq"].as_u64().expect("a number")
}

/// Removes from a store the last event of its journal, and the heads.
fn remove_end(data: &Path) {
    change_store(data, |db| {
        let last = keys_of(db, Kind::Journal).pop().expect("an event");
        for key in [vec![last], keys_of(db, Kind::Head)].concat() {
            db.remove(key).expect("it is sound");
        }
    });
}

/// All keys of a kind.
fn keys_of(db: &sled::Db, kind: Kind) -> Vec<sled::IVec> {
    let keys = db.iter().keys().map(|key| key.expect("a key"));
    keys.filter(|key| key.get(1) == Some(&(kind as u8))).collect()
}

/// Changes a store directly through sled.
fn change_store(data: &Path, work: impl FnOnce(&sled::Db)) {
    let db = sled::Config::new().path(data.join("store")).open().expect("it is sound");
    work(&db);
    db.flush().expect("it is sound");
    drop(db);
    // sled's threads lock the file until their work is finished.
    let file = File::options().write(true).open(data.join("store/db")).expect("it is there");
    file.lock().and_then(|()| file.unlock()).expect("the lock is released");
}
