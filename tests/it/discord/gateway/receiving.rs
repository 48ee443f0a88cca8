//! Received events go to the intake, and are replayed until they are acknowledged.

use std::time::Duration;

use super::super::client::{Handling, rules};
use super::super::counterpart::{Rules, State};
use super::super::home::Home;
use super::{Scene, ended_by};

#[tokio::test]
async fn after_a_cut_the_session_resumes_from_the_last_acknowledged_event() {
    let Scene { home: Home { discord, general, ana, .. }, client } =
        Scene::with(rules(), |options| options.times.receipts = Duration::from_millis(50)).await;
    client.inbox.set(Handling::Holds);
    discord.say(ana, general, "one");
    discord.say(ana, general, "two");
    client.inbox.until_text("two").await;

    discord.cut(0);
    discord.resumes(1).await;
    client.inbox.until(|events| events.iter().filter(|event| event.data["content"] == "two").count() == 2).await;

    let resume = discord.look(|state| state.journal.resumes[0].clone());
    assert_eq!((resume.sequence, resume.replayed), (2, Some(2)));
    assert_eq!(client.inbox.texts(), ["one", "two", "one", "two"]);
}

#[tokio::test]
async fn pending_receipts_are_awaited_before_the_session_is_resumed() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;
    client.inbox.set(Handling::Holds);
    discord.say(ana, general, "one");
    client.inbox.until_text("one").await;

    discord.cut(0);
    discord.sessions(0).await;
    client.inbox.set(Handling::Acknowledges);
    client.inbox.acknowledge_held();
    discord.resumes(1).await;

    assert_eq!(discord.look(|state| state.journal.resumes[0].sequence), 3);
}

#[tokio::test]
async fn an_event_that_the_intake_dropped_is_replayed() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;
    client.inbox.set(Handling::Drops("two"));

    discord.say(ana, general, "one");
    discord.say(ana, general, "two");
    client.inbox.until_text("two").await;
    client.inbox.set(Handling::Acknowledges);
    discord.say(ana, general, "three");
    client.inbox.until_text("three").await;

    assert_eq!(discord.look(|state| state.journal.resumes[0].sequence), 3);
    assert_eq!(client.inbox.texts().iter().filter(|text| *text == "one").count(), 1);
    assert!(client.inbox.texts().iter().filter(|text| *text == "two").count() > 1);
    assert!(ended_by(&client, "lost") >= 1.0);
    assert_eq!(discord.identifies(), 1);
}

#[tokio::test]
async fn heartbeats_continue_while_the_intake_waits() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::with_fast_heartbeat().await;
    client.inbox.set(Handling::Blocks);

    discord.say(ana, general, "one");
    discord.say(ana, general, "two");
    // Only a heartbeat reports to Discord what was received.
    discord
        .until("a heartbeat", |state| state.gateway.sessions.values().any(|session| session.acknowledged == 4).then_some(()))
        .await;

    assert_eq!(client.inbox.texts(), [""; 0]);
    client.inbox.set(Handling::Acknowledges);
    client.inbox.until_text("two").await;
}

#[tokio::test]
async fn a_full_intake_applies_backpressure_without_missing_heartbeats_or_events() {
    let (heartbeat_interval, heartbeat_tolerance) = (Duration::from_millis(200), Duration::from_secs(10));
    let rules = Rules { heartbeat_interval, heartbeat_tolerance, resume_buffer: 10_000, ..Rules::roomy() };
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::with(rules, |_| {}).await;
    client.inbox.set(Handling::Blocks);

    let texts: Vec<String> = (0..2_000).map(|number| format!("message {number}")).collect();
    for text in &texts {
        discord.say(ana, general, text);
        tokio::task::yield_now().await;
    }
    let heartbeats = |state: &State| state.gateway.sessions.values().map(|session| session.heartbeats).sum::<usize>();
    let before = discord.look(heartbeats);
    discord.wait_for("heartbeats", |state| heartbeats(state) >= before + 10).await;
    let is_held_back = |state: &State| state.gateway.sessions.values().all(|session| session.acknowledged < session.sequence);
    assert!(discord.look(is_held_back), "some events are still unread on the socket");
    client.inbox.set(Handling::Acknowledges);
    client.inbox.until_text("message 1999").await;

    assert_eq!(client.inbox.texts(), texts);
    let connections =
        |state: &State| (state.journal.closed_here().len(), state.journal.identifies.len(), state.journal.resumes.len());
    assert_eq!(discord.look(connections), (0, 1, 0));
}
