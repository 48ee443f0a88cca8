//! Received events go to the intake, and are replayed until they are acknowledged.

use std::time::Duration;

use super::super::counterpart::Counterpart;
use super::super::counterpart::rules::Rules;
use super::super::counterpart::state::State;
use super::world::{Client, Handling, Notepad, discord, discord_with_fast_heartbeat};

#[tokio::test]
async fn after_a_cut_the_session_resumes_from_the_last_acknowledged_event() {
    let discord = discord().await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.receipts = Duration::from_millis(50));
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
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
    let discord = discord().await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let mut client = Client::new(&discord, &Notepad::new());
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
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
    let discord = discord().await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let mut client = Client::new(&discord, &Notepad::new());
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
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
    assert!(client.total("tertulia_discord_reconnects_total", &[("discord_gateway_cause", "lost")]) >= 1.0);
    assert_eq!(discord.look(|state| state.journal.identifies.len()), 1);
}

#[tokio::test]
async fn heartbeats_continue_while_the_intake_waits() {
    let discord = discord_with_fast_heartbeat().await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let mut client = Client::new(&discord, &Notepad::new());
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
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
    let rules = Rules { heartbeat_tolerance: Duration::from_secs(10), resume_buffer: 10_000, ..Rules::roomy() };
    let discord = Counterpart::with_rules(rules).await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let mut client = Client::new(&discord, &Notepad::new());
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
    client.inbox.set(Handling::Blocks);

    let texts: Vec<String> = (0..2_000).map(|number| format!("message {number}")).collect();
    for text in &texts {
        discord.say(ana, general, text);
        tokio::task::yield_now().await;
    }
    let heartbeats = |state: &State| state.gateway.sessions.values().map(|session| session.heartbeats).sum::<usize>();
    let before = discord.look(heartbeats);
    discord.until("heartbeats", |state| (heartbeats(state) >= before + 10).then_some(())).await;
    let is_held_back = |state: &State| state.gateway.sessions.values().all(|session| session.acknowledged < session.sequence);
    assert!(discord.look(is_held_back), "some events are still unread on the socket");
    client.inbox.set(Handling::Acknowledges);
    client.inbox.until_text("message 1999").await;

    assert_eq!(client.inbox.texts(), texts);
    let connections =
        |state: &State| (state.journal.closed_here().len(), state.journal.identifies.len(), state.journal.resumes.len());
    assert_eq!(discord.look(connections), (0, 1, 0));
}
