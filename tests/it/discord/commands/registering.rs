//! Commands are registered once, and only if Discord does not have them in the current form.

use std::sync::Arc;

use serde_json::json;
use tertulia::telemetry::metrics::Metrics;

use super::super::counterpart::tests::client::Rest;
use super::super::counterpart::{Counterpart, Does, On};
use super::{SmallBackend, commands, platform, rules};

/// How many requests registered a command.
fn registered(discord: &Counterpart) -> usize {
    discord.look(|state| state.journal.requests_of("create_command").filter(|request| request.outcome.is_some()).count())
}

/// Waits until the list of commands was read so many times.
async fn wait_for_reads(discord: &Counterpart, count: usize) {
    discord
        .until("a read of the commands", |state| {
            let reads = state.journal.requests_of("commands").filter(|request| request.outcome.is_some());
            (reads.count() >= count).then_some(())
        })
        .await;
}

#[tokio::test]
async fn the_commands_are_registered_once_for_all_connections() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallBackend::default());
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let path = format!("/applications/{application}/commands");
    rest.post(&path, json!({ "name": "other", "description": "Of somebody else" })).await;

    let first = commands(&platform(&discord), &backend, &Metrics::local());
    (0..3).for_each(|_| first.ready());
    discord.wait_for("all commands", |state| state.world.commands.len() == 7).await;
    // The same application after a restart.
    commands(&platform(&discord), &backend, &Metrics::local()).ready();
    wait_for_reads(&discord, 2).await;

    // Requests that follow from that read were sent before this one is answered.
    rest.get(&path).await;
    let commands = rest.get(&path).await.body;
    assert_eq!(registered(&discord), 7, "the other one, and our six");
    assert_eq!(commands[0]["name"], "other");
    assert_eq!((&commands[1]["name"], &commands[1]["contexts"]), (&json!("tertulia"), &json!([0, 1])));
    assert_eq!(commands[1]["options"].as_array().map(Vec::len), Some(25));
    assert_eq!((&commands[2]["name"], &commands[2]["type"]), (&json!("Ask a companion about this"), &json!(3)));
    assert_eq!((&commands[6]["name"], &commands[6]["type"]), (&json!("Pause for me"), &json!(2)));
}

#[tokio::test]
async fn a_command_that_somebody_changed_is_corrected() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallBackend::default());
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let path = format!("/applications/{application}/commands");
    let old = rest.post(&path, json!({ "name": "tertulia", "description": "An old one" })).await;

    commands(&platform(&discord), &backend, &Metrics::local()).ready();

    let changed = discord.until("the change", |state| {
        let command = &state.world.commands[0];
        (command.data["description"] != "An old one").then_some(command.id)
    });
    assert_eq!(changed.await, old.id(), "it is the same command");
}

#[tokio::test]
async fn a_failed_registration_is_retried() {
    let discord = Counterpart::with_rules(rules()).await;
    let backend = Arc::new(SmallBackend::default());
    discord.spoil_next(1, On::route("create_command"), Does::Status(500));
    let commands = commands(&platform(&discord), &backend, &Metrics::local());

    commands.ready();
    discord.wait_for("the failure", |state| state.journal.refused().next().is_some()).await;
    commands.ready();

    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    assert_eq!(registered(&discord), 7);
}
