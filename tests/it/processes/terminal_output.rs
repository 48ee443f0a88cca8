//! Listings: no name controls the terminal or forges a line.

use std::fs;

use serde_json::json;

use crate::harness::Premises;
use crate::harness::hostile::{HOSTILE, controls_terminal};

/// Commands that work with and without a running server.
const COMMANDS: [&[&str]; 13] = [
    &["check"],
    &["check", "--json"],
    &["why", "lobby"],
    &["why", "lobby", "aria"],
    &["why", "lobby", "aria", "--json"],
    &["why", "lobby", "--message", "1"],
    &["why", HOSTILE, HOSTILE],
    &["usage", "--by", "model"],
    &["usage", "--by", "companion", "--json"],
    &["usage", "--guild", HOSTILE],
    &["history", "verify"],
    &["history", "export"],
    &["history", "forget", "--guild", HOSTILE, "--person", HOSTILE, "--yes"],
];

#[tokio::test]
async fn no_name_in_a_listing_controls_the_terminal() {
    let premises = Premises::new()
        .with("storage.path", &format!("data {HOSTILE}"))
        // Nothing listens there, so that the error names the endpoint.
        .with("models.main.base_url", "http://127.0.0.1:1/v1/\u{9b}2J\u{202e}")
        .with("models.main.model", HOSTILE)
        .with("models.pool.max_attempts", "1")
        .with_companion("aria", &format!("name = \"Aria\"\nchattiness = {}\npersona = {0}\n", json!(HOSTILE)));
    let folder = premises.path().join(format!("config {HOSTILE}"));
    fs::create_dir_all(folder.join("companions")).expect("a folder");
    fs::write(folder.join("companions/aria.toml"), "name = \"Aria\"\n").expect("a file");
    let (folder, backup) = (folder.to_str().expect("UTF-8"), format!("{HOSTILE}.backup"));
    let event = json!({ "at": 1, "channel": HOSTILE, "from": HOSTILE, "text": format!("Aria? {HOSTILE}") });
    let script = json!({ "companions": [{ "id": "aria" }], "events": [event], "models": { "main": [{ "text": HOSTILE }] } });
    fs::write(premises.path().join("night.json"), script.to_string()).expect("a file");
    let server = premises.start().await;
    // A name may contain this much: no control characters and no direction marks.
    server.say("lobby", "Ana decision=YES \u{e0041}\u{200b}", &format!("Aria?\n{}", HOSTILE.replace(char::is_control, ""))).await;
    server.logs("a model gives no answer").await;
    let starting = server.logs("starting").await;

    let mut shown = Vec::new();
    for command in COMMANDS.into_iter().chain([&["health"][..], &["history", "backup", &backup]]) {
        shown.push((command.to_vec(), premises.run(command).await));
    }
    server.stop().await;
    let offline_commands: [&[&str]; 8] = [
        &[HOSTILE],
        &["check", "--config", folder],
        &["replay", "night.json"],
        &["replay", "night.json", "--json"],
        &["health"],
        &["history", "verify", &backup],
        &["history", "restore", &backup],
        &["history", "compact"],
    ];
    for command in COMMANDS.into_iter().chain(offline_commands) {
        shown.push((command.to_vec(), premises.run(command).await));
    }

    for (command, ran) in &shown {
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!output.contains(controls_terminal) && !output.contains('\u{e0041}'), "{command:?}: {output:?}");
        assert!(!output.lines().any(|line| line.starts_with("2026-01-01")), "{command:?}: {output:?}");
        assert!(!output.is_empty(), "{command:?}");
    }
    assert!(starting.contains("desrever") && !starting.contains(controls_terminal), "{starting:?}");
    let named = shown.iter().filter(|(_, ran)| format!("{}{}", ran.stdout, ran.stderr).contains("desrever")).count();
    assert!(named >= 20, "only {named} listings show the names");
}
