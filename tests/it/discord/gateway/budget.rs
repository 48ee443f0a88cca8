//! Identifies are few, in order, and counted over restarts.

use std::time::Duration;

use serde_json::Value;
use tertulia::ports::gateway::Gateway as _;
use tertulia::ports::notes::Notes as _;

use super::super::counterpart::Counterpart;
use super::super::counterpart::rules::Rules;
use super::world::{Client, Notepad, discord};
use crate::harness::PATIENCE;

#[tokio::test]
async fn connections_begin_one_after_the_other_in_their_order() {
    for (max_concurrency, same_place) in [(1, 1), (2, 2)] {
        let rules = Rules { recommended_shards: Some(4), max_concurrency, ..Rules::roomy() };
        let discord = Counterpart::with_rules(rules).await;
        let mut client = Client::with(&discord, &Notepad::new(), |wanted| wanted.times.apart = Duration::from_millis(500));

        client.connect().await;
        discord.sessions(4).await;

        let identifies = discord.look(|state| state.journal.identifies.clone());
        assert!(identifies.iter().all(|identify| identify.session.is_some()), "one came too soon: {identifies:?}");
        for place in 0..max_concurrency {
            let in_place: Vec<u64> =
                identifies.iter().map(|identify| identify.shard.0).filter(|shard| shard % max_concurrency == place).collect();
            assert!(in_place.is_sorted(), "{in_place:?}");
            assert_eq!(in_place.len(), 4 / same_place);
        }
    }
}

#[tokio::test]
async fn identifies_in_vain_become_rare() {
    let discord = discord().await;
    discord.fail_identifies(6);
    let mut client = Client::with(&discord, &Notepad::new(), |wanted| wanted.times.lasting = PATIENCE);

    client.connect().await;
    client.ears.until_kind("READY", 1).await;

    let at = discord.look(|state| state.journal.identifies.iter().map(|identify| identify.at).collect::<Vec<_>>());
    let pauses: Vec<Duration> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 6);
    // At a hundredth of their length: at least 3.75 s, 7.5 s, … 120 s, with half by chance.
    for (doublings, pause) in pauses.iter().enumerate() {
        assert!(*pause >= Duration::from_millis(37) * (1 << doublings), "{pauses:?}");
    }
}

#[tokio::test]
async fn sessions_that_end_as_soon_as_they_begin_do_not_use_up_the_identifies() {
    let discord = discord().await;
    let mut client = Client::with(&discord, &Notepad::new(), |wanted| wanted.times.lasting = PATIENCE);
    client.connect().await;

    for ready in 1..=5 {
        client.ears.until_kind("READY", ready).await;
        discord.invalidate(0, false);
    }
    client.ears.until_kind("READY", 6).await;

    let at = discord.look(|state| state.journal.identifies.iter().map(|identify| identify.at).collect::<Vec<_>>());
    assert_eq!(at.len(), 6);
    assert!(at[5] - at[4] >= Duration::from_millis(37 * 16), "{at:?}");
}

#[tokio::test]
async fn an_identify_is_counted_before_it_leaves_and_over_restarts() {
    let discord = discord().await;
    let notes = Notepad::new();
    for starts in 1..=3 {
        let mut client = Client::new(&discord, &notes);
        client.connect().await;
        client.ears.until_kind("READY", 1).await;
        let counted = counted(&notes).await;
        client.stop().await;
        discord.sessions(0).await;
        discord.forget_left_sessions();
        notes.leave("discord/session/0", b"gone");

        assert_eq!(counted, starts);
    }
}

#[tokio::test]
async fn when_none_are_left_it_waits_and_says_until_when() {
    // As many as are held back.
    let window = Duration::from_millis(300);
    let rules = Rules { session_starts: 20, session_start_window: window, ..Rules::roomy() };
    let discord = Counterpart::with_rules(rules).await;
    let mut client = Client::new(&discord, &Notepad::new());
    client.connect().await;
    // It goes on asking whether there are any again.
    discord.until("questions", |state| (state.journal.requests_of("gateway_bot").count() >= 4).then_some(())).await;

    let condition = client.gateway.condition();
    assert!(!condition.ready);
    assert!(condition.detail.contains("no new session before 2"), "{condition:?}");
    assert_eq!(discord.look(|state| state.journal.identifies.len()), 0);

    discord.with(|state| state.rules.session_starts = 1_000);
    client.ears.until_kind("READY", 1).await;
    assert!(client.gateway.condition().ready);
}

#[tokio::test]
async fn what_is_left_is_told() {
    let discord = discord().await;
    let mut client = Client::new(&discord, &Notepad::new());

    client.connect().await;
    client.ears.until_kind("READY", 1).await;

    assert_eq!(client.total("tertulia_discord_identifies_left", &[]), 1_000.0 - 1.0 - 20.0);
}

/// How many identifies are on record.
async fn counted(notes: &Notepad) -> usize {
    let bytes = notes.read(None, "discord/identifies").await.expect("notes").expect("a note");
    let starts: Vec<Value> = serde_json::from_slice(&bytes).expect("a list");
    starts.len()
}
