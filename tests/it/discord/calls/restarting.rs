//! A server that is killed comes back into its calls.

use super::super::commands::rules;
use super::super::counterpart::voice::Voice;
use super::{SILENCE, Scene, sentence, spoken, with_ear};
use crate::harness::model::Model;

#[tokio::test]
async fn a_killed_server_comes_back_into_its_call_and_hears_who_is_there() {
    let scene = Scene::new().await;
    let mut watch = scene.watch(scene.harbour).await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    ana.talk(&sentence()).await;
    spoken(&mut watch).await;
    let Scene { home, harbour, server, premises, .. } = scene;
    let room = format!("discord:{harbour}");
    let before = server.history(&room).await;

    server.kill().await;
    let server = premises.start().await;
    home.discord.resumes(1).await;
    let voice = home.discord.voice();
    let identified = |voice: &Voice| voice.journal.identifies.iter().filter(|identified| identified.user == home.bot).count();
    voice.until("the bot", |voice| (identified(voice) == 2).then_some(())).await;
    voice.grouped(harbour, 2).await;
    let mut watch = server.watch(&room, before.last().map(|(seq, ..)| *seq)).await;
    // Discord tells nobody\u{2019}s place anew in a session that is resumed. The voice server names Ana, and she is looked up.
    watch.event_that("voice_joined", |event| event["name"] == "Ana").await;
    ana.grouped(2).await;
    ana.talk(&sentence()).await;

    assert_eq!(spoken(&mut watch).await["from"], "Ana");
    let history = server.history(&room).await;
    assert_eq!(history[..before.len()], before, "nothing is said twice");
    assert_eq!(history.iter().filter(|(.., text)| text.starts_with("(speech, ")).count(), 2, "{history:?}");
    assert_eq!(home.discord.identifies(), 1);
}

#[tokio::test]
async fn a_server_that_begins_a_new_session_knows_the_names_of_those_in_the_call() {
    let scene = Scene::new().await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    let Scene { home, harbour, server, premises, .. } = scene;
    let room = format!("discord:{harbour}");
    let joined = server.watch(&room, Some(0)).await.event_that("voice_joined", |event| event["name"] == "Ana").await;

    server.stop().await;
    home.discord.voice().members(harbour, 1).await;
    let before = home.discord.identifies();
    home.discord.forget_left_sessions();
    let server = premises.start().await;
    let mut watch = server.watch(&room, joined["seq"].as_u64()).await;
    watch.event_that("voice_joined", |event| event["name"] == "Ana").await;
    assert_eq!(home.discord.identifies(), before + 1);
    drop(ana);
}

#[tokio::test]
async fn a_server_that_is_stopped_while_a_companion_speaks_writes_the_rest_before_it_ends() {
    let text = "I was in the harbour. The boats came in one after the other, and people talked for hours about the weather. Then it rained.";
    let model = Model::start(move |body| if body["model"] == "main" { text } else { "They call me.\nYES" }).await;
    let scene = Scene::with(rules(), with_ear(&model).await).await;
    let mut watch = scene.watch(scene.harbour).await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    ana.talk(&sentence()).await;
    watch.event("sentence_played").await;

    let Scene { home, harbour, server, premises, .. } = scene;
    server.stop().await;

    let posts = home.discord.posts();
    let [rest] = &posts[..] else { panic!("{posts:?}") };
    assert!(text.ends_with(rest.content.trim()) && rest.content.contains("Then it rained."), "{rest:?}");
    let server = premises.start().await;
    let history = server.history(&format!("discord:{harbour}")).await;
    assert_eq!(history.last().map(|(.., said)| &**said), Some(text), "{history:?}");
}

#[tokio::test]
async fn a_server_that_is_killed_while_a_companion_prepares_an_answer_speaks_it_when_it_is_back() {
    let model = Model::losing_the_first("main").await;
    let scene = Scene::with(rules(), with_ear(&model).await).await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    ana.talk(&sentence()).await;
    model.wait_for_requests("main", 1).await;
    let Scene { home, harbour, server, premises, .. } = scene;

    server.kill().await;
    let server = premises.start().await;
    let mut watch = server.watch(&format!("discord:{harbour}"), Some(0)).await;

    let heard = ana.heard_from(home.bot, 10).await;
    assert!(heard.iter().any(|frame| frame.frame != SILENCE));
    watch.event_that("message", |event| event["modality"] == "voice" && event["text"] == "I am here.").await;
    assert!(home.discord.posts().is_empty(), "nothing was written");
}
