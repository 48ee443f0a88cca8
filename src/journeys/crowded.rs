//! Overload: refused requests say so, shed calls are counted, and one guild does not affect another.

use std::time::Duration;

use serde_json::json;

use super::world::{World, lines, room};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::ports::backend::Refused;

#[tokio::test(start_paused = true)]
async fn a_full_channel_mailbox_is_bounded_and_other_channels_continue() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.open("den", &["bruno"]).await;
    world.side.answers([Ok("Me.\nYES")]);
    let before = world.context.directory.find(&ChannelActorKey(room("lobby").channel())).unwrap();
    let stuck = world.replace(ChannelActorKey(room("lobby").channel()), true).await;

    let mut accepted = 0;
    let refused = loop {
        match world.try_say("lobby", json!({ "from": "Ana", "text": format!("number {accepted}") })).await {
            Ok(_) => accepted += 1,
            Err(refused) => break refused,
        }
    };

    assert!(matches!(refused, Refused::TooMany { .. }), "{refused:?}");
    assert_eq!(accepted, 4_096);
    world.say_then_pass("den", "Bruno?", 10.0).await;
    assert_eq!(world.history("den").await, lines(&[("Ana", "Bruno?"), ("bruno", "Hello!")]));

    // A restarted channel begins with the record, and catches up.
    stuck.kill();
    before.kill();
    world.rest().await;
    world.say_then_pass("lobby", "Ari, are you back?", 60.0).await;
    assert_eq!(world.history("lobby").await.last(), Some(&("aria".to_owned(), "Hello!".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_floods_the_models_sheds_its_own_calls_and_others_are_answered() {
    let overlay = json!({
        "gate": { "addresses_per_minute": 1_000 },
        "models": {
            "pool": { "queue_capacity": 16 },
            "side": { "max_concurrent": 4, "guild_max_concurrent": 4 },
            "breaker": { "failures": 1_000 },
        },
    });
    let world = World::with_overlay(overlay).await;
    let flood: Vec<String> = (0..60).map(|number| format!("flood-{number}")).collect();
    world.open_in("flood", flood.clone()).await;
    world.open_in("calm", (0..3).map(|number| format!("calm-{number}"))).await;
    world.side.answers([Ok("Me.\nYES")]);

    futures_util::future::join_all(flood.iter().map(|id| world.say(id, "Ari?"))).await;
    world.pass(0.1).await;
    for number in 0..3 {
        world.say(&format!("calm-{number}"), "Ari?").await;
    }
    world.pass(4.0).await;

    for number in 0..3 {
        let history = world.history(&format!("calm-{number}")).await;
        assert_eq!(history, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]), "calm-{number}");
    }
    let shed = world.spans.metrics().total("tertulia_pool_shed_total", &[("pool_priority", "direct_address")]);
    assert!(shed >= 40.0, "{shed}");
    // Nothing that was shed is lost: it is asked again, with growing back-offs.
    world.pass(300.0).await;
    for id in &flood {
        assert_eq!(world.history(id).await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn lulls_are_shed_first_and_direct_addresses_last() {
    let overlay = json!({
        "models": {
            "pool": { "queue_capacity": 8, "max_attempts": 1 },
            "side": { "max_concurrent": 1, "guild_max_concurrent": 1 },
            "breaker": { "failures": 1_000 },
        },
    });
    let world = World::with_overlay(overlay).await;
    world.side.set_delay(Duration::from_secs(2));
    world.open_in("home", (0..24).map(|number| format!("room-{number}"))).await;
    // Eight rooms whose lulls are due at one moment, and eight direct addresses at that moment.
    for number in 0..10 {
        world.say(&format!("room-{number}"), "well").await;
    }
    world.pass(10.1).await;
    for number in 10..18 {
        world.say(&format!("room-{number}"), "Ari?").await;
    }
    world.pass(1.0).await;

    let shed = |priority| world.total("tertulia_pool_shed_total", &[("pool_priority", priority)]);
    assert!(shed("lull") >= 8, "{}", shed("lull"));
    assert_eq!(shed("direct_address"), 0);
}
