//! A moderator keeps the bot from being heard, or from hearing.

use super::super::counterpart::{Kind, voice};
use super::*;

/// A scene in which Aria answers everything, and reads aloud what she answers.
async fn scene(model: &Model) -> Scene {
    Scene::with(rules(), |premises| model.serving(premises).with("voice.read_text_aloud", "true")).await
}

#[tokio::test]
async fn a_muted_or_deafened_bot_answers_in_writing_and_the_status_says_why() {
    let scene = scene(&Model::holding("nobody").await).await;
    let Scene { home, harbour, .. } = &scene;
    let discord = &home.discord;
    let ana = scene.call(home.ana, *harbour).await;

    discord.mute(home.guild, home.bot, true);
    discord.say(home.ana, *harbour, "hey aria, are you there?");
    assert_eq!(discord.post_in(*harbour).await.content, "I am here.");
    let status = scene.status().await;
    assert!(status.contains("A moderator has muted the bot: companions hear, and answer in writing."), "{status}");
    assert!(ana.heard().iter().all(|heard| heard.frame == SILENCE), "nothing is spoken into nothing");

    discord.mute(home.guild, home.bot, false);
    discord.deafen(home.guild, home.bot, true);
    discord.say(home.ana, *harbour, "hey aria, and now?");
    assert_eq!(discord.posts_in(*harbour, 2).await[1].content, "I am here.");
    assert!(scene.status().await.contains("A moderator has deafened the bot: companions hear nobody"));

    discord.deafen(home.guild, home.bot, false);
    discord.say(home.ana, *harbour, "hey aria, can you speak again?");
    ana.heard_from(home.bot, 10).await;
    assert!(!scene.status().await.contains("moderator"));
}

#[tokio::test]
async fn what_a_companion_says_while_it_is_muted_ends_in_writing() {
    let text = "I was in the harbour. The boats came in one after the other, and people talked for hours about the weather. Then it rained.";
    let model = Model::start(move |body| if body["model"] == "main" { text } else { "They call me.\nYES" }).await;
    let scene = scene(&model).await;
    let Scene { home, harbour, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    home.discord.say(home.ana, *harbour, "hey aria, how was your day?");
    watch.event("sentence_played").await;

    home.discord.mute(home.guild, home.bot, true);

    let rest = home.discord.post_in(*harbour).await.content;
    assert!(text.ends_with(rest.trim()) && rest.contains("Then it rained."), "{rest}");
    let message = watch.event_that("message", |event| event["from"] == "aria").await;
    assert_eq!((&message["text"], &message["modality"]), (&json!(text), &json!("voice")), "{message}");
    drop(ana);
}

#[tokio::test]
async fn in_the_audience_of_a_stage_companions_answer_in_writing_until_they_are_let_speak() {
    let scene = scene(&Model::holding("nobody").await).await;
    let Scene { home, kim, .. } = &scene;
    let stage = home.discord.channel_of(home.guild, Kind::Stage, "stage");
    scene.bring_aria(*kim, stage).await;
    let ana = home.discord.call(home.ana, stage).await;
    let options = json!([{ "type": 2, "name": "voice", "options": sub("join", json!([])) }]);
    let joined = final_answer(&home.discord, *kim, stage, options).await;
    assert!(joined.contains("The bot is in the audience of the stage: companions hear, and answer in writing."), "{joined}");
    ana.grouped(2).await;

    home.discord.say(home.ana, stage, "hey aria, are you there?");
    assert_eq!(home.discord.post_in(stage).await.content, "I am here.");

    home.discord.let_speak(home.guild, home.bot);
    home.discord.say(home.ana, stage, "hey aria, can you speak now?");
    ana.heard_from(home.bot, 10).await;
}

#[tokio::test]
async fn the_status_tells_that_a_call_was_downgraded() {
    let calls = voice::Rules { requires_dave: false, ..rules().voice };
    let scene = Scene::with(Rules { voice: calls, ..rules() }, |premises| premises).await;
    let Scene { home, harbour, server, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    ana.talk(&sentence()).await;
    watch.event_that("message", |event| event["modality"] == "voice").await;
    assert!(scene.status().await.contains(", encrypted end to end."));

    let old_app = home.discord.member(home.guild, "Old");
    let _old = Person::join(home.discord.admit(old_app, *harbour), 0).await;
    server.logs("a call is not encrypted end to end any more").await;

    let status = scene.status().await;
    assert!(status.contains("not encrypted end to end.\n• Discord has downgraded the call"), "{status}");
}
