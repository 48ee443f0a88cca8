//! Identifies are limited, in order, and counted across restarts.

use std::time::Duration;

use serde_json::Value;
use tertulia::ports::gateway::Gateway as _;
use tertulia::ports::notes::Notes as _;

use super::super::client::{Client, Notepad, rules};
use super::super::counterpart::{Counterpart, Rules};
use super::Scene;
use crate::harness::PATIENCE;

#[tokio::test]
async fn connections_identify_one_after_the_other_in_order() {
    for (max_concurrency, keys) in [(1, 1), (2, 2)] {
        let rules = Rules { recommended_shards: Some(4), max_concurrency, ..rules() };
        let discord = Counterpart::with_rules(rules).await;
        let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.apart = Duration::from_millis(500));

        client.connect().await;
        discord.sessions(4).await;

        let identifies = discord.look(|state| state.journal.identifies.clone());
        assert!(identifies.iter().all(|identify| identify.session.is_some()), "an identify was sent too soon: {identifies:?}");
        for key in 0..max_concurrency {
            let shards_of_key: Vec<u64> =
                identifies.iter().map(|identify| identify.shard.0).filter(|shard| shard % max_concurrency == key).collect();
            assert!(shards_of_key.is_sorted(), "{shards_of_key:?}");
            assert_eq!(shards_of_key.len(), 4 / keys);
        }
    }
}

#[tokio::test]
async fn short_lived_sessions_do_not_use_up_the_identifies() {
    let discord = Counterpart::with_rules(rules()).await;
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.lasting = PATIENCE);
    client.connect().await;

    for ready in 1..=5 {
        client.inbox.until_kind("READY", ready).await;
        discord.invalidate(0, false);
    }
    client.inbox.until_kind("READY", 6).await;

    let at = discord.look(|state| state.journal.identifies.iter().map(|identify| identify.at).collect::<Vec<_>>());
    assert_eq!(at.len(), 6);
    assert!(at[5] - at[4] >= Duration::from_millis(37 * 16), "{at:?}");
}

#[tokio::test]
async fn an_identify_is_counted_before_it_is_sent_and_across_restarts() {
    let discord = Counterpart::with_rules(rules()).await;
    let notes = Notepad::new();
    for starts in 1..=3 {
        let mut client = Client::connected(&discord, &notes).await;
        client.inbox.until_kind("READY", 1).await;
        let counted = counted(&notes).await;
        client.stop().await;
        discord.sessions(0).await;
        discord.forget_left_sessions();
        notes.store("discord/session/0", b"gone");

        assert_eq!(counted, starts);
    }
}

#[tokio::test]
async fn without_identifies_left_the_client_waits_and_reports_until_when() {
    // Exactly the number of identifies that is reserved.
    let window = Duration::from_millis(300);
    let rules = Rules { session_starts: 20, session_start_window: window, ..rules() };
    let discord = Counterpart::with_rules(rules).await;
    let client = Client::connected(&discord, &Notepad::new()).await;
    // The client keeps asking whether identifies are available again.
    discord.wait_for("questions", |state| state.journal.requests_of("gateway").count() >= 4).await;

    let condition = client.gateway.condition();
    assert!(!condition.ready);
    assert!(condition.detail.contains("no new session before 2"), "{condition:?}");
    assert_eq!(discord.identifies(), 0);

    discord.with(|state| state.rules.session_starts = 1_000);
    client.inbox.until_kind("READY", 1).await;
    assert!(client.gateway.condition().ready);
}

#[tokio::test]
async fn the_remaining_identifies_are_measured() {
    let scene = Scene::new().await;

    assert_eq!(scene.client.total("tertulia_discord_identifies_left", &[]), 1_000.0 - 1.0 - 20.0);
}

/// How many identifies the notes record.
async fn counted(notes: &Notepad) -> usize {
    let bytes = notes.read(None, "discord/identifies").await.expect("readable notes").expect("a note");
    let starts: Vec<Value> = serde_json::from_slice(&bytes).expect("a list");
    starts.len()
}
