//! Limits and what the server is are set on the page: in force at once, below files, which are named; a mistake in a file is mended and read again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Premises, Server};

async fn keep(server: &Server, values: Value) -> (StatusCode, Value) {
    server.ask(Method::PATCH, "/api/settings", Some(json!({ "values": values }))).await
}

#[tokio::test]
async fn a_limit_that_is_set_on_the_page_holds_at_once_and_a_file_goes_before_it() {
    let premises = Premises::new();
    fs::write(premises.path().join("config/default.toml"), "[safety]\noperator = \"The Book Club\"\n").expect("a file");
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    watch.event("statement").await;

    let (status, kept) = keep(&server, json!({ "gate.guild_statements_per_day": 1, "safety.operator": "Somebody" })).await;
    let (_, wrong) = keep(&server, json!({ "guests.each.messages_per_day": 0 })).await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    let decision = watch.event_that("decision", |event| event["reason"] == "budget").await;

    assert_eq!(status, StatusCode::OK, "{kept}");
    assert_eq!(decision["budget"], "guild_statements", "{decision}");
    let operator = &kept["fields"]["safety.operator"];
    assert_eq!((&operator["value"], &operator["on_page"]), (&json!("The Book Club"), &json!(true)), "{operator}");
    assert!(operator["place"].as_str().is_some_and(|place| place.ends_with("default.toml:2")), "{operator}");
    assert_eq!(wrong["field"], "guests.each.messages_per_day", "{wrong}");
    let file = premises.data().join("settings.json");
    assert_eq!(fs::metadata(&file).expect("it is kept").permissions().mode() & 0o777, 0o600);
    let checked = premises.run(&["check"]).await.exits_with(0).stdout;
    assert!(checked.contains("safety.operator: the value that was set on the page is not used, because"), "{checked}");
    keep(&server, json!({ "gate.guild_statements_per_day": null, "safety.operator": null })).await;
    assert!(!file.exists());
    server.say("lobby", "Ana", "Aria, again?").await;
    watch.event("statement").await;
    server.stop().await;
}

#[tokio::test]
async fn a_mistake_in_a_file_is_named_and_what_is_mended_is_read_again() {
    let premises = Premises::new();
    let path = premises.path().join("config/default.toml");
    let write = |text: &str| fs::write(&path, text).expect("a file");
    write("");
    let server = premises.start().await;
    let read = async || server.done(Method::POST, "/api/settings/read", Some(json!({}))).await;

    write("[guests.each]\nmessages_per_day = 0\n");
    let wrong = read().await;
    write("[guests.each]\nmessages_per_day = 3\n");
    let mended = read().await;

    assert!(wrong["problems"][0].as_str().is_some_and(|problem| problem.contains("default.toml:2")), "{wrong}");
    assert_eq!(wrong["fields"]["guests.each.messages_per_day"]["value"], 500);
    assert_eq!(
        (&mended["problems"], &mended["fields"]["guests.each.messages_per_day"]["value"]),
        (&json!([]), &json!(3)),
        "{mended}"
    );
    server.stop().await;
}
