//! Sessions are resumed, in the same process and in the next one.

use std::sync::Arc;

use opentelemetry::trace::Status;
use tertulia::telemetry::fake::attribute;

use super::super::client::{Client, Handling, Notepad, rules};
use super::super::counterpart::{Closed, Counterpart};
use super::super::home::Home;
use super::Scene;

/// A home, the notes of a process, and its connected client.
async fn first_process() -> (Home, Arc<Notepad>, Client) {
    let home = Home::with_rules(rules()).await;
    let notes = Notepad::new();
    let client = Client::connected(&home.discord, &notes).await;
    (home, notes, client)
}

#[tokio::test]
async fn spans_record_handshakes_and_the_time_without_a_connection() {
    let Scene { home: Home { discord, .. }, client } = Scene::new().await;
    discord.fail_resumes(1, true);

    discord.cut(0);
    client.inbox.until_kind("RESUMED", 1).await;

    let spans = |name: &str| client.recorded.named(name);
    let [identify] = &spans("discord.gateway.identify")[..] else { panic!("not one span") };
    assert_eq!(identify.status, Status::Unset);
    let [refused, resumed] = &spans("discord.gateway.resume")[..] else { panic!("not two spans") };
    assert_eq!(refused.status, Status::error("Discord does not know the session any more"));
    assert_eq!(resumed.status, Status::Unset);
    let [reconnect] = &spans("discord.gateway.reconnect")[..] else { panic!("not one span") };
    let value = |name: &str| attribute(reconnect, name);
    assert_eq!(value("discord.gateway.cause").as_deref(), Some("cut"));
    assert_eq!(value("discord.gateway.attempts").as_deref(), Some("2"));
    assert_eq!(value("discord.gateway.shard").as_deref(), Some("0"));
}

#[tokio::test]
async fn the_presence_changes_with_the_settings_in_a_resumed_session() {
    let discord = Counterpart::with_rules(rules()).await;
    let notes = Notepad::new();
    let states = ["/tertulia help", "ask Mira", "ask Mira"].map(|words| Some(words.to_owned())).into_iter().chain([None]);
    for (number, presence) in states.enumerate() {
        let mut client = Client::with(&discord, &notes, |options| options.section.presence.clone_from(&presence));
        client.connect().await;
        client.inbox.until_kind(if number == 0 { "READY" } else { "RESUMED" }, 1).await;
        let is_stored =
            |session: &serde_json::Value| session["accepted"] == number + 1 && session["presence"] == serde_json::json!(presence);
        notes.until_session(0, is_stored).await;
        client.stop().await;
        discord.sessions(0).await;
    }

    let shown = discord.look(|state| state.journal.presences.iter().map(|shown| shown["activities"].clone()).collect::<Vec<_>>());
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!((&shown[0][0]["state"], shown[1].as_array().map(Vec::len)), (&"ask Mira".into(), Some(0)));
    assert_eq!(discord.identifies(), 1);
}

#[tokio::test]
async fn a_connection_that_is_dropped_is_closed_so_that_it_can_be_resumed() {
    let Scene { home: Home { discord, .. }, mut client } = Scene::new().await;

    client.stop().await;

    let closed = discord.until("the end", |state| state.journal.connections[0].closed.clone()).await;
    assert_eq!(closed, Closed::Client(Some(4_900)));
    assert_eq!(discord.look(|state| state.gateway.sessions.len()), 1);
}

#[tokio::test]
async fn unacknowledged_events_are_replayed_to_the_next_process() {
    let (Home { discord, general, ana, .. }, notes, mut first) = first_process().await;
    first.inbox.until_kind("GUILD_CREATE", 1).await;
    notes.until_session(0, |session| session["accepted"] == 2).await;
    first.inbox.set(Handling::Holds);
    discord.say(ana, general, "one");
    discord.say(ana, general, "two");
    first.inbox.until_text("two").await;

    first.stop().await;
    let second = Client::connected(&discord, &notes).await;
    second.inbox.until_text("two").await;

    assert_eq!(second.inbox.texts(), ["one", "two"]);
    assert_eq!(discord.look(|state| state.journal.resumes[0].sequence), 2);
}

#[tokio::test]
async fn a_session_for_another_number_of_connections_is_abandoned() {
    let (Home { discord, .. }, notes, mut first) = first_process().await;
    notes.until_session(0, |session| session["accepted"] == 2).await;
    first.stop().await;
    discord.sessions(0).await;

    let mut second = Client::with(&discord, &notes, |options| options.section.shards = std::num::NonZeroU32::new(2));
    second.connect().await;
    discord.sessions(2).await;

    assert_eq!(discord.look(|state| (state.journal.identifies.len(), state.journal.resumes.len())), (3, 0));
}

#[tokio::test]
async fn a_session_whose_ready_was_not_accepted_is_abandoned() {
    let discord = Counterpart::with_rules(rules()).await;
    let notes = Notepad::new();
    let mut first = Client::new(&discord, &notes);
    first.inbox.set(Handling::Holds);
    first.connect().await;
    notes.until_session(0, |session| session["accepted"] == 0).await;
    first.stop().await;
    discord.sessions(0).await;

    let second = Client::connected(&discord, &notes).await;
    second.inbox.until_kind("READY", 1).await;

    // Discord does not document whether a resumed session replays READY.
    assert_eq!(discord.look(|state| (state.journal.identifies.len(), state.journal.resumes.len())), (2, 0));
}

#[tokio::test]
async fn a_session_of_another_application_is_abandoned() {
    let (Home { discord, .. }, notes, mut first) = first_process().await;
    let mut session = notes.until_session(0, |session| session["accepted"] == 2).await;
    first.stop().await;
    session["application"] = "12345".into();
    notes.store("discord/session/0", session.to_string().as_bytes());

    let second = Client::connected(&discord, &notes).await;
    second.inbox.until_kind("READY", 1).await;

    assert_eq!(discord.look(|state| (state.journal.identifies.len(), state.journal.resumes.len())), (2, 0));
}

#[tokio::test]
async fn malformed_notes_are_ignored() {
    let discord = Counterpart::with_rules(rules()).await;
    for note in ["", "{", "null", r#"{"id":1}"#, r#"{"id":"x","resume_url":"http://evil.example","accepted":-1}"#] {
        let notes = Notepad::new();
        notes.store("discord/session/0", note.as_bytes());
        notes.store("discord/identifies", note.as_bytes());
        let mut client = Client::connected(&discord, &notes).await;
        client.inbox.until_kind("READY", 1).await;
        client.stop().await;
    }
}
