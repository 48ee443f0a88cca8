//! The command is registered once, and only if it is not there as it should be.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use tertulia::telemetry::metrics::Metrics;

use super::super::counterpart::Counterpart;
use super::super::counterpart::faults::{Does, On};
use super::super::counterpart::tests::client::Rest;
use super::{SmallHouse, commands, platform, rules};

/// How often the command was registered.
fn registered(discord: &Counterpart) -> usize {
    discord.look(|state| state.journal.requests_of("create_command").filter(|request| request.outcome.is_some()).count())
}

/// Waits for so many looks at what is registered, all of them over.
async fn looked(discord: &Counterpart, count: usize) {
    discord
        .until("a look at the commands", |state| {
            let looks = state.journal.requests_of("commands").filter(|request| request.outcome.is_some());
            (looks.count() >= count).then_some(())
        })
        .await;
}

#[tokio::test]
async fn it_is_registered_once_however_many_connections_are_ready() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallHouse::default());
    let rest = Rest::new(&discord);
    let application = discord.look(|state| state.world.application.id);
    let path = format!("/applications/{application}/commands");
    rest.post(&path, json!({ "name": "other", "description": "Of somebody else" })).await;

    let first = commands(&platform(&discord), &backend, &Metrics::local());
    (0..3).for_each(|_| first.ready());
    discord.until("three commands", |state| (state.world.commands.len() == 3).then_some(())).await;
    // The same application, started anew.
    commands(&platform(&discord), &backend, &Metrics::local()).ready();
    looked(&discord, 2).await;

    // Whatever follows from that look has left before this is answered.
    rest.get(&path).await;
    let commands = rest.get(&path).await.body;
    assert_eq!(registered(&discord), 3, "the other one, and our two");
    assert_eq!(commands[0]["name"], "other");
    assert_eq!((&commands[1]["name"], &commands[1]["contexts"]), (&json!("tertulia"), &json!([0, 1])));
    assert_eq!(commands[1]["options"].as_array().map(Vec::len), Some(10));
    assert_eq!((&commands[2]["name"], &commands[2]["type"]), (&json!("Ask a companion about this"), &json!(3)));
}

#[tokio::test]
async fn one_that_somebody_changed_is_put_right() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallHouse::default());
    let rest = Rest::new(&discord);
    let application = discord.look(|state| state.world.application.id);
    let path = format!("/applications/{application}/commands");
    let old = rest.ask(Method::PUT, &path, json!([{ "name": "tertulia", "description": "An old one" }])).await;

    commands(&platform(&discord), &backend, &Metrics::local()).ready();

    let changed = discord.until("the change", |state| {
        let command = &state.world.commands[0];
        (command.data["description"] != "An old one").then_some(command.id)
    });
    assert_eq!(json!(changed.await), old.body[0]["id"], "it is the same command");
}

#[tokio::test]
async fn one_that_could_not_be_registered_is_tried_again() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallHouse::default());
    discord.spoil_next(1, On { route: Some("create_command"), ..On::default() }, Does::Status(500));
    let commands = commands(&platform(&discord), &backend, &Metrics::local());

    commands.ready();
    discord.until("the failure", |state| state.journal.refused().next().map(|_| ())).await;
    commands.ready();

    discord.until("the commands", |state| (state.world.commands.len() == 2).then_some(())).await;
    assert_eq!(registered(&discord), 3);
}
