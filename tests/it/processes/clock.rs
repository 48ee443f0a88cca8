//! A machine whose clock is set back, and forward, while the server runs and while it does not.
//!
//! libfaketime (Debian: `faketime`) replaces the program's clock. Only the wall clock is set. The monotonic clock continues, as on a real machine
//! whose clock is set.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::{Premises, Server};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// `cargo test --test it -- --ignored clock_that_is_set`, with Debian's package `faketime`.
#[tokio::test]
#[ignore = "needs libfaketime"]
async fn a_clock_that_is_set_back_and_forward_loses_nothing_and_stops_nobody() {
    let library = std::env::var("LIBFAKETIME").unwrap_or_else(|_| LIBRARY.to_owned());
    assert!(Path::new(&library).exists(), "{library} is missing: install faketime, or name it in LIBFAKETIME");
    let premises = Premises::new();
    let clock = premises.path().join("clock");
    fs::write(&clock, "+0").expect("written");
    let premises = premises
        .with_variable("LD_PRELOAD", &library)
        .with_variable("FAKETIME_TIMESTAMP_FILE", &clock.to_string_lossy())
        .with_variable("FAKETIME_NO_CACHE", "1")
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .with_variable("DONT_FAKE_MONOTONIC", "1")
        .with_companion("aria", crate::harness::QUICK);
    let mut accepted = Vec::new();
    let mut server = premises.start().await;
    converse(&server, "before", &mut accepted).await;
    for offset in ["-1d", "+2d", "-400d", "-1d", "+0"] {
        fs::write(&clock, offset).expect("written");
        converse(&server, &format!("at {offset}, it runs"), &mut accepted).await;
        server.kill().await;
        server = premises.start().await;
        converse(&server, &format!("at {offset}, after a restart"), &mut accepted).await;
    }
    // The clock is also set while the server is stopped.
    for offset in ["-2d", "+3d", "+0"] {
        server.stop().await;
        fs::write(&clock, offset).expect("written");
        server = premises.start().await;
        converse(&server, &format!("started at {offset}"), &mut accepted).await;
    }

    let history = server.history("lobby").await;
    let messages: Vec<_> = history.iter().filter(|(_, from, _)| from == "Ana").cloned().collect();
    assert_eq!(messages.iter().map(|(seq, _, text)| (*seq, text.clone())).collect::<Vec<_>>(), accepted);
    let export = server.get("/api/export?room=lobby").await;
    let events =
        export.as_str().expect("lines").lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let replies: Vec<_> = events.filter_map(|event| event["reply"].as_u64()).collect();
    let distinct: BTreeSet<_> = replies.iter().collect();
    assert!(replies.len() >= accepted.len() / 2, "not every message to Aria is answered: {history:?}");
    assert_eq!(distinct.len(), replies.len(), "a reply was made twice: {history:?}");
    let page = server.get("/api/rooms/lobby/history?limit=1000").await;
    let times: Vec<_> = page["messages"].as_array().expect("messages").iter().map(|message| message["at"].clone()).collect();
    assert!(times.windows(2).all(|pair| pair[0].as_str() <= pair[1].as_str()), "the record goes back in time: {times:?}");
    server.stop().await;
    premises.run(&["history", "verify"]).await.exits_with(0);
}

/// Sends an unaddressed message, which is decided at the next lull, and then one to Aria.
async fn converse(server: &Server, when: &str, accepted: &mut Vec<(u64, String)>) {
    let mut lobby = server.watch("lobby", None).await;
    for text in [format!("{when}, it rains."), format!("hey aria, what is it {when}?")] {
        let seq = server.say("lobby", "Ana", &text).await;
        let is_addressed = text.starts_with("hey aria");
        accepted.push((seq, text));
        lobby.event(if is_addressed { "statement" } else { "decision" }).await;
    }
    server.rest("lobby").await;
}
