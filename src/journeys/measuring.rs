//! Metrics agree with the running actors, whatever dies meanwhile. (The simulation compares them with the record.)

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;

use super::world::{World, asking_companion, ballot, purpose, refusal, room};
use crate::actors::runtime::actor_keys::{
    ChannelActorKey, CompanionKey, GuildKey, GuildsKey, PoolKey, SwitchboardKey, TurnTakingManagerKey, WriterKey,
};
use crate::domain::question_context::Purpose;
use crate::ports::backend::live::Watched;
use crate::ports::language_model::Request;

#[tokio::test(start_paused = true)]
async fn neither_models_nor_a_lull_nor_the_turn_delay_count_as_the_servers_own_time() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|request| (asking_companion(request) == "aria").then(|| Ok("Me.\nYES".to_owned())));

    world.say_then_pass("salon", "Ari and Bruno, what of it?", 5.0).await;
    world.say_then_pass("salon", "well, well", 9.9).await;

    let metrics = world.spans.metrics();
    // A second for the votes, two of delay, and one for the statement.
    let posted = metrics.total("tertulia_turn_duration_seconds_sum", &[("decision_trigger", "direct_address")]);
    assert!((4.0..4.1).contains(&posted), "{posted}");
    assert!(metrics.total("tertulia_turn_duration_seconds_count", &[]) >= 2.0);
    let own = metrics.total("tertulia_turn_overhead_seconds_sum", &[]);
    assert!((0.0..0.1).contains(&own), "{own}");
}

#[tokio::test(start_paused = true)]
async fn running_actors_are_counted_and_dead_ones_are_not() {
    let mut world = World::with_salon(json!({})).await;
    world.expect_deaths();
    agree(&world);
    world.side.set_delay(Duration::from_secs(2));
    world.main.set_delay(Duration::from_secs(2));
    world.say_then_pass("salon", "Ari and Bruno, what of it?", 1.0).await;
    let in_a_round = json!({
        "scribe": 1, "side_models": 1, "switchboard": 1, "guilds": 1, "guild": 1, "companion": 3, "channel": 1,
        "turn_taking_manager": 1, "reply": 0,
    });
    assert_eq!(alive(&world), in_a_round);
    assert_eq!(world.total("tertulia_channels_known", &[]), 1);

    let channel = room("salon").channel();
    for _ in 0..3 {
        world.kill(&TurnTakingManagerKey(channel.clone())).await;
        world.kill(&CompanionKey("home".into(), "bruno".into())).await;
        world.kill(&ChannelActorKey(channel.clone())).await;
        world.kill(&PoolKey()).await;
        world.kill(&WriterKey()).await;
        world.kill(&SwitchboardKey()).await;
        world.pass(2.0).await;
    }
    world.kill(&GuildKey("home".into())).await;
    world.pass(1.0).await;
    world.kill(&GuildsKey()).await;
    world.pass(60.0).await;

    let restarts = |sort| world.total("tertulia_actor_restarts_total", &[("actor_sort", sort)]);
    let sorts = ["turn_taking_manager", "companion", "channel", "side_models", "scribe", "switchboard", "guild", "guilds"];
    assert_eq!(sorts.map(restarts), [3, 3, 3, 3, 3, 3, 1, 1]);
    agree_no_more(&world);
    world.pass(120.0).await;
    let mut at_rest = in_a_round;
    at_rest["turn_taking_manager"] = 0.into();
    assert_eq!(alive(&world), at_rest);
    world.pass(1_200.0).await;
    at_rest["channel"] = 0.into();
    assert_eq!(alive(&world), at_rest, "a channel that sleeps is no actor");

    world.root().kill();
    world.rest().await;
    assert!(alive(&world).as_object().unwrap().values().all(|number| number == 0), "{}", alive(&world));
}

#[tokio::test(start_paused = true)]
async fn a_killed_reply_is_not_counted_any_more_and_started_again() {
    let mut world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari, one", 1.5).await;
    assert_eq!(alive(&world)["reply"], 1);

    world.kill_replies("lobby").await;

    assert_eq!(alive(&world)["reply"], 1);
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "reply")]), 1);
    world.pass(10.0).await;
    assert_eq!(alive(&world)["reply"], 0);
    assert_eq!(world.total("tertulia_platform_sends_total", &[("platform", "console"), ("send_outcome", "posted")]), 1);
    assert_eq!(world.total("tertulia_platform_send_duration_seconds_count", &[]), 1);
    assert_eq!(world.total("tertulia_platform_sends_total", &[]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_guild_is_counted_until_it_is_released() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.side.set_delay(Duration::from_secs(10_000));
    for times in 1..=2 {
        // The pending work wakes the channel again and again.
        world.say("lobby", "Ari, one").await;
        world.kill_until_quarantine("lobby").await;

        assert_eq!(world.total("tertulia_guilds_quarantined", &[]), 1);
        assert_eq!(world.total("tertulia_guild_quarantines_total", &[]), times);
        assert_eq!(world.total("tertulia_supervisor_escalations_total", &[("actor_sort", "guild")]), times);
        assert_eq!(alive(&world)["guild"], 0);
        if times == 1 {
            world.pass(301.0).await;
        } else {
            world.backend.maintenance.release("home").await.unwrap();
            world.rest().await;
        }
        assert_eq!(world.total("tertulia_guilds_quarantined", &[]), 0);
        assert_eq!(alive(&world)["guild"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_whose_commit_is_lost_is_a_send_that_failed() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari, one", 1.9).await;
    world.store.hold();
    world.pass(0.5).await;

    world.kill(&WriterKey()).await;
    world.store.release();
    world.pass(60.0).await;

    let sends = |outcome| world.total("tertulia_platform_sends_total", &[("platform", "console"), ("send_outcome", outcome)]);
    assert_eq!((sends("failed"), sends("posted")), (1, 1), "it was sent again, and stored once");
    assert_eq!(world.history("lobby").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_measured_like_others() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "Ari, one", 0.5).await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(5.0).await;

    world.say_then_pass("lobby", "Ari, two", 5.0).await;

    let calls = |labels| world.total("gen_ai_client_operation_duration_seconds_count", labels);
    assert_eq!((calls(&[("error_type", "cancelled")]), calls(&[])), (1, 2));
    assert_eq!(world.total("tertulia_pool_calls_total", &[]), 2);
}

#[tokio::test(start_paused = true)]
async fn events_missed_by_a_slow_watcher_are_counted() {
    let world = World::with_lobby().await;
    agree_no_more(&world);
    let mut watching = world.backend.rooms.live(Watched::Room(room("lobby"), None)).await.unwrap();
    for number in 0..400 {
        world.say("lobby", &number.to_string()).await;
    }

    let mut received = 0;
    while let Some(live) = watching.next().await {
        received += 1;
        if live.is_err() {
            break;
        }
    }

    assert!(received < 400);
    assert!(world.total("tertulia_live_missed_total", &[]) >= 400 - 256);
}

#[tokio::test(start_paused = true)]
async fn no_outside_input_creates_a_series() {
    // No caller waits until a question times out, which would be another series.
    let world = World::with_salon(json!({ "models": { "side": { "guild_max_concurrent": 8 } } })).await;
    agree_no_more(&world);
    play(&world).await;
    let before = series(&world);

    for number in 0..60 {
        let id = format!("room{number}");
        world.open(&id, &["aria"]).await;
        for (from, text) in [
            (format!("person{number}"), "Ari?"),
            (format!("\"}} 1\nevil{number}"), "tertulia_evil_total{a=\"b\"} 1"),
            (format!("{{{number}\\"), "\u{0}\u{7f}\u{202e}"),
            ("x".repeat(200 + number), "Ari, x"),
            (format!("ñ{number}\u{1F600}"), "hm"),
        ] {
            world.say_with(&id, json!({ "from": from, "text": text, "id": format!("{from}-{number}") })).await;
        }
    }
    world.pass(120.0).await;

    assert_eq!(series(&world), before);
    assert!(world.total("tertulia_messages_total", &[]) >= 300);
}

/// Everything that can happen in a channel, at least once: rounds, silence, a lost floor, an error, a talk that lasts too long.
async fn play(world: &World) {
    world.say_then_pass("salon", "Ari and Bruno, what of it?", 120.0).await;
    agree_no_more(world);
    for text in ["one", "two", "three"] {
        world.say_then_pass("salon", text, 30.0).await;
    }
    world.side.answer_by(|_| Some(Err(refusal())));
    world.say_then_pass("salon", "Cleo?", 20.0).await;
    agree(world);
    world.main.answer_by(|_| Some(Err(refusal())));
    world.pass(60.0).await;
    agree(world);
    world.say_with("salon", json!({ "from": "Ben", "text": "Good night, Bruno" })).await;
    world.pass(300.0).await;
}

fn votes(request: &Request, decision: &str) -> String {
    ballot(decision, if asking_companion(request) == "bruno" { 8 } else { 4 }, "none")
}

fn agree(world: &World) {
    world.side.answer_by(|request| match purpose(request) {
        Purpose::Judgement => Some(Ok("No.\n0".to_owned())),
        _ => Some(Ok(votes(request, "YES"))),
    });
    world.main.answer_by(|request| Some(Ok(format!("So says {}.", asking_companion(request)))));
}

fn agree_no_more(world: &World) {
    world.side.answer_by(|request| Some(Ok(votes(request, "NO"))));
}

/// The number of running actors, by sort.
fn alive(world: &World) -> serde_json::Value {
    let sorts =
        ["scribe", "side_models", "switchboard", "guilds", "guild", "companion", "channel", "turn_taking_manager", "reply"];
    let alive = |sort: &str| world.total("tertulia_actors", &[("actor_sort", sort)]);
    sorts.into_iter().map(|sort| (sort.to_owned(), json!(alive(sort)))).collect::<serde_json::Map<_, _>>().into()
}

/// All names with their labels.
fn series(world: &World) -> std::collections::BTreeSet<String> {
    let text = world.spans.metrics().exposition().unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').map_or(line, |(series, _)| series).to_owned()).collect()
}
