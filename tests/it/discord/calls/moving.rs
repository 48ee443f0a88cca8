//! The bot is moved to another channel, and its call to another voice server.

use super::{Scene, sentence, spoken};

#[tokio::test]
async fn where_a_moderator_moves_the_bot_it_goes_on() {
    let scene = Scene::new().await;
    let Scene { home, harbour, attic, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    let (mut watch, mut watch_harbour) = (scene.watch(*attic).await, scene.watch(*harbour).await);
    let _ana = scene.call(home.ana, *harbour).await;
    let ben = home.discord.call(ben, *attic).await;
    let asked = scene.asked();

    home.discord.move_bot(home.guild, *attic);
    home.discord.bot_called(*attic).await;
    ben.grouped(2).await;
    ben.talk(&sentence()).await;

    assert_eq!(spoken(&mut watch).await["from"], "Ben");
    watch_harbour.event("voice_left").await;
    home.discord.voice().members(*harbour, 1).await;
    assert_eq!(scene.asked(), asked, "the bot went where it was put, with what it was told");
}

#[tokio::test]
async fn a_call_goes_on_at_another_voice_server() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    ana.talk(&sentence()).await;
    spoken(&mut watch).await;
    let asked = scene.asked();

    home.discord.move_voice_server(*harbour);
    let ana = scene.call(home.ana, *harbour).await;
    ana.talk(&sentence()).await;
    spoken(&mut watch).await;

    // For a while there is none.
    home.discord.lose_voice_server(*harbour);
    home.discord.voice().members(*harbour, 0).await;
    home.discord.allocate_voice_server(*harbour);
    let ana = scene.call(home.ana, *harbour).await;
    ana.talk(&sentence()).await;
    let last = spoken(&mut watch).await;

    assert_eq!(last["from"], "Ana");
    assert_eq!(scene.asked(), asked, "Discord named each server by itself");
    let history = scene.server.history(&format!("discord:{harbour}")).await;
    assert_eq!(history.iter().filter(|(.., text)| text.starts_with("(speech, ")).count(), 3, "{history:?}");
    let (_, log) = (drop(ana), scene.server.stop().await);
    assert!(!log.contains("is made again"), "{log}");
}
