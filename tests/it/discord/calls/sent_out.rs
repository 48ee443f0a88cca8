//! The bot is sent out of a call, or does not belong there any more.

use axum::http::Method;
use serde_json::json;

use super::super::commands::{companion, final_answer, sub};
use super::{Scene, sentence, spoken};

#[tokio::test]
async fn the_bot_leaves_with_the_last_companion_and_comes_back_with_one() {
    let scene = Scene::new().await;
    let Scene { home, kim, harbour, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;

    let farewell = final_answer(&home.discord, *kim, *harbour, sub("leave", json!([companion("aria")]))).await;
    assert!(farewell.contains("Aria"), "{farewell}");
    home.discord.voice().members(*harbour, 1).await;
    home.discord.wait_for("the bot to leave", |state| !state.world.voice_states.contains_key(&(home.guild, home.bot))).await;

    scene.bring_aria(*kim, *harbour).await;
    home.discord.bot_called(*harbour).await;
    ana.grouped(2).await;
    ana.talk(&sentence()).await;
    assert_eq!(spoken(&mut watch).await["from"], "Ana");
}

#[tokio::test]
async fn the_bot_leaves_a_call_although_its_connection_is_down_at_that_moment() {
    let scene = Scene::new().await;
    let Scene { home, harbour, server, .. } = &scene;
    scene.call(home.ana, *harbour).await;

    home.discord.cut(0);
    server.done(Method::DELETE, &format!("/api/rooms/discord:{harbour}"), None).await;

    home.discord.wait_for("the bot to leave", |state| !state.world.voice_states.contains_key(&(home.guild, home.bot))).await;
}

#[tokio::test]
async fn the_bot_leaves_the_call_of_a_room_that_is_deleted_and_returns_with_the_room() {
    let scene = Scene::new().await;
    let Scene { home, harbour, server, .. } = &scene;
    let ana = scene.call(home.ana, *harbour).await;

    server.done(Method::DELETE, &format!("/api/rooms/discord:{harbour}"), None).await;
    home.discord.voice().members(*harbour, 1).await;
    home.discord.wait_for("the bot to leave", |state| !state.world.voice_states.contains_key(&(home.guild, home.bot))).await;

    home.discord.hang_up(home.guild, ana).await;
    server.done(Method::POST, &format!("/api/rooms/discord:{harbour}/undelete"), None).await;
    scene.call(home.ana, *harbour).await;
}
