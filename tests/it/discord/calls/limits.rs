//! Calls that are full, and channels that are.

use serde_json::json;

use super::super::commands::{final_answer, rules, sub};
use super::super::counterpart::Permissions;
use super::{Scene, sentence, spoken};

#[tokio::test]
async fn who_finds_no_room_in_a_call_is_heard_once_somebody_has_left() {
    let scene = Scene::with(rules(), |premises| premises.with("voice.max_people", "1")).await;
    let Scene { home, harbour, server, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    watch.event_that("voice_joined", |event| event["name"] == "Ana").await;

    let ben = home.discord.call(ben, *harbour).await;
    server.logs("1 people are in this call, which is the limit; try again, or raise voice.max_people").await;
    let refusals = server.measured("tertulia_voice_refusals_total").await;
    assert!(refusals.iter().any(|(labels, count)| labels.contains("people") && *count == 1.0), "{refusals:?}");

    home.discord.hang_up(home.guild, ana).await;
    watch.event_that("voice_joined", |event| event["name"] == "Ben").await;
    ben.grouped(2).await;
    ben.talk(&sentence()).await;
    assert_eq!(spoken(&mut watch).await["from"], "Ben");
}

#[tokio::test]
async fn a_call_too_many_is_refused_and_the_others_go_on() {
    let scene = Scene::in_guilds(&["Away"], rules(), |premises| premises.with("voice.max_calls", "1")).await;
    let Scene { home, harbour, server, away, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;

    let _zoe = home.discord.call(away[0].zoe, away[0].channel).await;
    server.logs("1 calls are going on, which is the limit; try again, or raise voice.max_calls").await;
    let refusals = server.measured("tertulia_voice_refusals_total").await;
    assert!(refusals.iter().any(|(labels, count)| labels.contains("calls") && *count >= 1.0), "{refusals:?}");
    ana.talk(&sentence()).await;
    assert_eq!(spoken(&mut watch).await["from"], "Ana");
}

#[tokio::test]
async fn with_as_many_calls_as_there_may_be_the_bot_may_still_change_the_channel() {
    let scene = Scene::with(rules(), |premises| premises.with("voice.max_calls", "1")).await;
    let Scene { home, harbour, attic, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    let mut watch = scene.watch(*attic).await;
    let _ana = scene.call(home.ana, *harbour).await;
    let ben = home.discord.call(ben, *attic).await;

    home.discord.move_bot(home.guild, *attic);
    home.discord.bot_called(*attic).await;
    ben.grouped(2).await;
    ben.talk(&sentence()).await;

    assert_eq!(spoken(&mut watch).await["from"], "Ben");
}

#[tokio::test]
async fn the_bot_enters_a_full_channel_as_soon_as_there_is_room() {
    let scene = Scene::new().await;
    let Scene { home, harbour, server, .. } = &scene;
    home.discord.limit_users(*harbour, 1);

    let ana = home.discord.call(home.ana, *harbour).await;
    server.logs("or make room in the channel; `tertulia discord check` shows").await;
    let refusals = server.measured("tertulia_voice_refusals_total").await;
    assert!(refusals.iter().any(|(labels, count)| labels.contains("channel") && *count == 1.0), "{refusals:?}");
    home.discord.limit_users(*harbour, 0);

    home.discord.bot_called(*harbour).await;
    ana.grouped(2).await;
}

/// Waits until the bot has given up a place that it may have had, and asked to be let in. Discord answers nothing.
async fn asked(scene: &Scene) {
    scene.home.discord.wait_for("the bot to ask", |state| state.journal.voice_states.len() == 2).await;
}

#[tokio::test]
async fn a_bot_that_asks_in_vain_asks_again_when_somebody_leaves() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    home.discord.limit_users(*harbour, 2);
    home.discord.enter(ben, *harbour);
    let _ana = home.discord.call(home.ana, *harbour).await;
    asked(&scene).await;

    home.discord.disconnect(home.guild, ben);

    home.discord.bot_called(*harbour).await;
    let log = scene.server.stop().await;
    assert!(!log.contains("is made again"), "{log}");
}

#[tokio::test]
async fn a_bot_that_asks_in_vain_asks_again_when_it_gets_the_permission() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    home.discord.deny(*harbour, home.bot, Permissions::CONNECT);
    let _ana = home.discord.call(home.ana, *harbour).await;
    asked(&scene).await;

    home.discord.allow(*harbour, home.bot, Permissions::CONNECT);

    home.discord.bot_called(*harbour).await;
    let log = scene.server.stop().await;
    assert!(!log.contains("is made again"), "{log}");
}

#[tokio::test]
async fn a_bot_that_asks_in_vain_asks_again_when_it_is_told_to_come() {
    let scene = Scene::new().await;
    let Scene { home, kim, harbour, .. } = &scene;
    let other = home.discord.foreign_bot("Other");
    home.discord.join(home.guild, other);
    home.discord.limit_users(*harbour, 3);
    home.discord.enter(other, *harbour);
    home.discord.enter(*kim, *harbour);
    let _ana = home.discord.call(home.ana, *harbour).await;
    asked(&scene).await;

    // Nobody counts other bots, so this alone is no reason to ask again.
    home.discord.disconnect(home.guild, other);
    let join = json!([{ "type": 2, "name": "voice", "options": sub("join", json!([])) }]);
    let answer = final_answer(&home.discord, *kim, *harbour, join).await;

    assert!(answer.contains("Aria"), "{answer}");
    home.discord.bot_called(*harbour).await;
    let log = scene.server.stop().await;
    assert!(!log.contains("is made again"), "{log}");
}
