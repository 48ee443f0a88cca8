//! Order of events, waiting, and loss.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::time::Instant;

use super::super::super::dispatch::{Fate, Intake as _};
use super::super::lanes::MAX_IN_FLIGHT;
use super::world::{Call, GENERAL, HOME, OTHER, World, dispatch, fate, id, message, with};
use crate::ports::inbound_events::InboundError;

fn later(secs: u64) -> InboundError {
    InboundError::Later { after: Duration::from_secs(secs), detail: "for a test".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_not_accepted_yet_is_retried_before_later_ones() {
    let mut world = World::new().await;
    for _ in 0..3 {
        world.core.answer_next(GENERAL, later(2));
    }
    let began = Instant::now();

    let first = world.send("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    let second = world.send("MESSAGE_CREATE", message(51, GENERAL, "two")).await;

    assert_eq!((fate(first).await, fate(second).await), (Fate::Kept, Fate::Kept));
    assert_eq!(world.core.texts(GENERAL), ["one", "two"]);
    assert_eq!(began.elapsed().as_secs(), 6);
}

#[tokio::test]
async fn a_broken_event_is_dropped_and_its_receipt_stored_so_that_it_does_not_come_again() {
    let mut world = World::new().await;
    world.core.answer_next(GENERAL, InboundError::Broken("for a test".to_owned()));

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    world.kept("MESSAGE_CREATE", message(51, GENERAL, "two")).await;

    assert_eq!(world.core.texts(GENERAL), ["two"]);
}

#[tokio::test]
async fn edits_and_deletions_keep_their_order_among_messages() {
    let mut world = World::new().await;
    world.core.hold(GENERAL);

    let edit = json!({ "edited_timestamp": "2026-01-01T00:01:00.000000+00:00", "content": "won" });
    let gone = json!({ "id": "50", "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string() });
    world.send("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    world.send("MESSAGE_UPDATE", with(message(50, GENERAL, ""), edit)).await;
    world.send("MESSAGE_DELETE", gone).await;
    world.send("CHANNEL_DELETE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string() })).await;
    world.core.release(GENERAL);

    let calls = world.core.wait_for_calls(4).await;
    assert!(matches!(&calls[..], [Call::Said(..), Call::Edited(..), Call::Deleted(..), Call::ChannelGone(..)]), "{calls:?}");
}

#[tokio::test]
async fn an_intake_waits_when_too_many_events_are_in_flight() {
    let mut world = World::new().await;
    world.core.hold(GENERAL);
    let mut receivers = Vec::new();
    for number in 0..MAX_IN_FLIGHT as u64 {
        receivers.push(world.send("MESSAGE_CREATE", message(1_000 + number, GENERAL, &number.to_string())).await);
    }

    let (last, its_fate) = dispatch("MESSAGE_CREATE", &message(9_999, GENERAL, "last").to_string());
    let mut taking = world.intake.handle_dispatch(last);
    assert!(taking.as_mut().now_or_never().is_none());
    world.core.release(GENERAL);
    taking.await;

    receivers.push(its_fate);
    for receiver in receivers {
        assert_eq!(fate(receiver).await, Fate::Kept);
    }
    let texts = world.core.texts(GENERAL);
    assert_eq!((texts.len(), texts.last().map(String::as_str)), (MAX_IN_FLIGHT + 1, Some("last")));
    assert!(texts[..MAX_IN_FLIGHT].iter().enumerate().all(|(number, text)| *text == number.to_string()));
}

#[tokio::test]
async fn an_event_is_kept_once_all_work_that_follows_is_done() {
    let mut world = World::new().await;
    world
        .kept("THREAD_CREATE", json!({ "id": "400", "guild_id": HOME.to_string(), "parent_id": GENERAL.to_string(), "type": 11 }))
        .await;
    world.core.hold(400);

    let mut receiver = world.send("CHANNEL_DELETE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string() })).await;
    world.core.wait_for_calls(1).await;
    tokio::task::yield_now().await;
    assert!(receiver.try_recv().is_err());
    world.core.release(400);

    assert_eq!(fate(receiver).await, Fate::Kept);
}

#[tokio::test]
async fn an_event_that_panics_is_dropped_and_later_ones_are_handed_over() {
    let mut world = World::new().await;
    world.core.poison.lock().extend(["poison".to_owned(), id(OTHER).channel().to_string()]);

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "poison")).await;
    world.kept("MESSAGE_CREATE", message(51, OTHER, "hi")).await;
    world.kept("MESSAGE_CREATE", message(52, GENERAL, "still there")).await;

    assert_eq!(world.core.texts(GENERAL), ["still there"]);
}
