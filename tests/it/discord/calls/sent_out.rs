//! The bot is sent out of a call, or does not belong there any more.

use axum::http::Method;
use serde_json::json;

use super::super::commands::{companion, final_answer, sub};
use super::{Scene, sentence, spoken};

#[tokio::test]
async fn a_bot_that_was_sent_out_stays_out_until_everybody_has_left() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    let ana = scene.call(home.ana, *harbour).await;
    let asked = scene.asked();

    home.discord.disconnect(home.guild, home.bot);
    home.discord.voice().members(*harbour, 1).await;
    let ben = home.discord.call(ben, *harbour).await;
    // What comes after this was handled after it.
    home.discord.say(home.ana, *harbour, "hey aria, where are you?");
    home.discord.post_in(*harbour).await;
    assert_eq!(scene.asked(), asked, "it does not come back");

    home.discord.hang_up(home.guild, ana).await;
    home.discord.hang_up(home.guild, ben).await;
    scene.call(home.ana, *harbour).await;
}

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
async fn the_bot_leaves_the_call_of_a_room_that_is_deleted() {
    let scene = Scene::new().await;
    let Scene { home, kim, harbour, server, .. } = &scene;
    let ana = scene.call(home.ana, *harbour).await;

    server.done(Method::DELETE, &format!("/api/rooms/discord:{harbour}"), None).await;
    home.discord.voice().members(*harbour, 1).await;
    home.discord.wait_for("the bot to leave", |state| !state.world.voice_states.contains_key(&(home.guild, home.bot))).await;

    home.discord.hang_up(home.guild, ana).await;
    scene.bring_aria(*kim, *harbour).await;
    scene.call(home.ana, *harbour).await;
}
