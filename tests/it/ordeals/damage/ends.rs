//! A journal that lost its end, with what says how far it went: who accepts that goes on behind it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::{StreamExt as _, stream};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tertulia::ports::backend::DAMAGED;
use tertulia::ports::store::key::Kind;

use crate::harness::{Premises, Server};

#[tokio::test]
async fn who_serves_with_a_loss_accepted_gives_no_number_twice_and_knows_what_was_said() {
    // Where nobody listens, what is said is all that is on record.
    let premises = Premises::new().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = [] }]"#);
    let server = premises.start().await;
    let mut said = BTreeMap::new();
    for id in ["one", "two", "three"] {
        said.insert(id, say(&server, id).await);
    }
    server.stop().await;

    lose(&premises.data());
    let refused = premises.run(&["serve"]).await;
    let server = Server::of(premises.command(&["serve", "--accept-loss"])).await;
    let again = [say(&server, "one").await, say(&server, "two").await];
    let next = say(&server, "four").await;
    server.stop().await;
    let sound = premises.run(&["history", "verify"]).await;

    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("--accept-loss"), "{refused:?}");
    assert_eq!(again, [said["one"], said["two"]]);
    assert!(next > said["three"], "{next} was given to another message before: {said:?}");
    assert_eq!(sound.code, Some(0), "{sound:?}");
}

#[tokio::test]
async fn an_export_that_breaks_off_ends_as_one_of_a_damaged_store_where_the_server_says_so() {
    let premises = Premises::new();
    for (kind, code) in [(DAMAGED, 3), ("about:blank", 1)] {
        let why = json!({ "type": kind, "title": "…", "status": 500, "detail": "the record 4711 cannot be read" });
        let export = move || async move {
            let lines = [Ok("{\"event\":1}\n".to_owned()), Ok(format!("{why}\n"))];
            let broken = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("it breaks off"))
            });
            Body::from_stream(stream::iter(lines).chain(broken))
        };
        let router = Router::new().route("/api/export", get(export)).fallback(|| async { "{}" });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(axum::serve(listener, router).into_future());

        let ran = premises.run(&["history", "export", "--server", &url]).await;

        assert_eq!((ran.code, ran.stderr.contains("4711")), (Some(code), code == 3), "{ran:?}");
        assert!(ran.stdout.starts_with("{\"event\":1}\n") || ran.stdout.is_empty(), "{ran:?}");
        assert!(!ran.stdout.contains("4711"), "{ran:?}");
    }
}

/// Says something under an id of its own; the number it was given.
async fn say(server: &Server, id: &str) -> u64 {
    let said = json!({ "from": "Ana", "text": "is anybody there?", "id": id });
    let (status, body) = server.ask(Method::POST, "/api/rooms/lobby/messages", Some(said)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    body["seq"].as_u64().expect("a number")
}

/// Takes out of a store the last event of its journal, how far that went, and under which ids what was said.
fn lose(data: &Path) {
    changed(data, |db| {
        let last = of(db, Kind::Journal).pop().expect("an event");
        for key in [vec![last], of(db, Kind::Head), of(db, Kind::MessageId)].concat() {
            db.remove(key).expect("it is sound");
        }
    });
}

/// All keys of a kind.
fn of(db: &sled::Db, kind: Kind) -> Vec<sled::IVec> {
    let keys = db.iter().keys().map(|key| key.expect("a key"));
    keys.filter(|key| key.get(1) == Some(&(kind as u8))).collect()
}

/// Does something to a store that nobody of ours would.
fn changed(data: &Path, work: impl FnOnce(&sled::Db)) {
    let db = sled::Config::new().path(data.join("store")).open().expect("it is sound");
    work(&db);
    db.flush().expect("it is sound");
    drop(db);
    // sled's own threads hold the file until the last of its work is done.
    let file = File::options().write(true).open(data.join("store/db")).expect("it is there");
    file.lock().and_then(|()| file.unlock()).expect("it is let go");
}
