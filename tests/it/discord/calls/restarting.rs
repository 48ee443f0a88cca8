//! A server that is killed comes back into its calls.

use super::{Scene, sentence, spoken};

#[tokio::test]
async fn a_killed_server_comes_back_into_its_call_and_hears_who_is_there() {
    let scene = Scene::new().await;
    let mut watch = scene.watch(scene.harbour).await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    ana.talk(&sentence()).await;
    spoken(&mut watch).await;
    let (asked, epoch) = (scene.asked(), ana.look(|noted| noted.epoch));
    let Scene { home, harbour, server, premises, .. } = scene;
    let room = format!("discord:{harbour}");
    let before = server.history(&room).await;

    server.kill().await;
    let server = premises.start().await;
    home.discord.resumes(1).await;
    home.discord.wait_for("the bot\u{2019}s request", |state| state.journal.voice_states.len() > asked).await;
    ana.until("the bot", |noted| (noted.can_encrypt && noted.epoch > epoch && noted.group.len() == 2).then_some(())).await;
    let mut watch = server.watch(&room, before.last().map(|(seq, ..)| *seq)).await;
    // Discord tells nobody\u{2019}s place anew in a session that is resumed. The voice server names Ana, and she is looked up.
    watch.event_that("voice_joined", |event| event["name"] == "Ana").await;
    ana.talk(&sentence()).await;

    assert_eq!(spoken(&mut watch).await["from"], "Ana");
    let history = server.history(&room).await;
    assert_eq!(history[..before.len()], before, "nothing is said twice");
    assert_eq!(history.iter().filter(|(.., text)| text.starts_with("(speech, ")).count(), 2, "{history:?}");
    assert_eq!(home.discord.identifies(), 1);
}
