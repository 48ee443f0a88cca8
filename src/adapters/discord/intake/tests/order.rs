//! Order, waiting and loss.

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
async fn what_is_not_taken_yet_is_told_again_before_what_came_after_it() {
    let mut world = World::new().await;
    for _ in 0..3 {
        world.core.answer_next(GENERAL, later(2));
    }
    let began = Instant::now();

    let first = world.tell("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    let second = world.tell("MESSAGE_CREATE", message(51, GENERAL, "two")).await;

    assert_eq!((fate(first).await, fate(second).await), (Fate::Kept, Fate::Kept));
    assert_eq!(world.core.texts(GENERAL), ["one", "two"]);
    assert_eq!(began.elapsed().as_secs(), 6);
}

#[tokio::test]
async fn what_is_broken_is_left_out_and_kept_so_that_nothing_turns_in_circles() {
    let mut world = World::new().await;
    world.core.answer_next(GENERAL, InboundError::Broken("for a test".to_owned()));

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    world.kept("MESSAGE_CREATE", message(51, GENERAL, "two")).await;

    assert_eq!(world.core.texts(GENERAL), ["two"]);
}

#[tokio::test]
async fn a_channel_that_hangs_holds_up_no_other() {
    let mut world = World::new().await;
    world.core.with_members.lock().unwrap().insert(id(OTHER).channel());
    world.core.hold(GENERAL);

    let held: Vec<_> = [
        world.tell("MESSAGE_CREATE", message(50, GENERAL, "one")).await,
        world.tell("MESSAGE_CREATE", message(51, GENERAL, "two")).await,
    ]
    .into();
    world.kept("MESSAGE_CREATE", message(52, OTHER, "three")).await;
    assert_eq!(world.core.texts(GENERAL), [""; 0]);
    world.core.release(GENERAL);

    for told in held {
        assert_eq!(fate(told).await, Fate::Kept);
    }
    assert_eq!(world.core.texts(GENERAL), ["one", "two"]);
}

#[tokio::test]
async fn edits_and_deletions_keep_their_place_among_the_messages_of_their_channel() {
    let mut world = World::new().await;
    world.core.hold(GENERAL);

    let edit = json!({ "edited_timestamp": "2026-01-01T00:01:00.000000+00:00", "content": "won" });
    let gone = json!({ "id": "50", "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string() });
    world.tell("MESSAGE_CREATE", message(50, GENERAL, "one")).await;
    world.tell("MESSAGE_UPDATE", with(message(50, GENERAL, ""), edit)).await;
    world.tell("MESSAGE_DELETE", gone).await;
    world.tell("CHANNEL_DELETE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string() })).await;
    world.core.release(GENERAL);

    let told = world.core.told(4).await;
    assert!(matches!(&told[..], [Call::Said(..), Call::Edited(..), Call::Deleted(..), Call::ChannelGone(..)]), "{told:?}");
}

#[tokio::test]
async fn an_intake_that_is_dropped_loses_what_is_not_kept_and_nothing_else() {
    let mut world = World::new().await;
    world.core.hold(GENERAL);
    let kept = world.tell("MESSAGE_CREATE", message(50, OTHER, "elsewhere")).await;
    let under_way = world.tell("MESSAGE_CREATE", message(51, GENERAL, "one")).await;
    let waiting = world.tell("MESSAGE_CREATE", message(52, GENERAL, "two")).await;

    let World { core, intake, .. } = world;
    drop(intake);

    assert_eq!(fate(kept).await, Fate::Kept);
    assert_eq!((fate(under_way).await, fate(waiting).await), (Fate::Lost, Fate::Lost));
    core.release(GENERAL);
    tokio::task::yield_now().await;
    assert_eq!(core.calls(), []);
}

#[tokio::test]
async fn with_too_much_under_way_an_intake_waits_and_goes_on() {
    let mut world = World::new().await;
    world.core.hold(GENERAL);
    let mut told = Vec::new();
    for number in 0..MAX_IN_FLIGHT as u64 {
        told.push(world.tell("MESSAGE_CREATE", message(1_000 + number, GENERAL, &number.to_string())).await);
    }

    let (last, its_fate) = dispatch("MESSAGE_CREATE", &message(9_999, GENERAL, "last").to_string());
    let mut taking = world.intake.take(last);
    assert!(taking.as_mut().now_or_never().is_none());
    world.core.release(GENERAL);
    taking.await;

    told.push(its_fate);
    for told in told {
        assert_eq!(fate(told).await, Fate::Kept);
    }
    let texts = world.core.texts(GENERAL);
    assert_eq!((texts.len(), texts.last().map(String::as_str)), (MAX_IN_FLIGHT + 1, Some("last")));
    assert!(texts[..MAX_IN_FLIGHT].iter().enumerate().all(|(number, text)| *text == number.to_string()));
}

#[tokio::test]
async fn an_event_with_several_consequences_is_kept_when_all_of_them_are() {
    let mut world = World::new().await;
    world
        .kept("THREAD_CREATE", json!({ "id": "400", "guild_id": HOME.to_string(), "parent_id": GENERAL.to_string(), "type": 11 }))
        .await;
    world.core.hold(400);

    let mut told = world.tell("CHANNEL_DELETE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string() })).await;
    world.core.told(1).await;
    tokio::task::yield_now().await;
    assert!(told.try_recv().is_err());
    world.core.release(400);

    assert_eq!(fate(told).await, Fate::Kept);
}

#[tokio::test]
async fn what_makes_this_program_panic_is_left_out_and_what_comes_after_it_is_heard() {
    let mut world = World::new().await;
    world.core.poison.lock().unwrap().extend(["poison".to_owned(), id(OTHER).channel().to_string()]);

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "poison")).await;
    world.kept("MESSAGE_CREATE", message(51, OTHER, "hi")).await;
    world.kept("MESSAGE_CREATE", message(52, GENERAL, "still there")).await;

    assert_eq!(world.core.texts(GENERAL), ["still there"]);
}
