//! Calls by command, with the real binary: companions are brought in and sent out, people are told and asked, and a restart changes nothing.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::counterpart::{Author, Id, Kind, Permissions};
use super::super::home::Home;
use super::{at, companion, final_answer, me, rules, sub, switch, until};
use crate::harness::call::sentence;
use crate::harness::{Premises, Server};

fn voice(name: &str, options: Value) -> Value {
    json!([{ "type": 2, "name": "voice", "options": sub(name, options) }])
}

/// A guild with a voice channel, and people of whom Kim may manage channels.
struct Scene {
    home: Home,
    harbour: Id,
    kim: Id,
    premises: Premises,
    server: Server,
}

impl Scene {
    async fn new(change: impl FnOnce(Premises, Id) -> Premises) -> Self {
        let home = Home::with_rules(rules()).await;
        let kim = home.discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
        let harbour = home.discord.voice_channel(home.guild, "harbour");
        let premises = change(Premises::shipped().for_discord(&home.discord), harbour);
        let server = premises.start().await;
        home.discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
        home.discord.sessions(1).await;
        Self { home, harbour, kim, premises, server }
    }

    /// A person uses a command in the channel of the guild that has no call.
    async fn ask(&self, user: Id, options: Value) -> String {
        final_answer(&self.home.discord, user, self.home.general, options).await
    }

    async fn add_aria(&self) {
        let welcome = self.ask(self.kim, sub("join", json!([companion("aria"), at(self.harbour)]))).await;
        assert!(welcome.starts_with("**Aria** is in"), "{welcome}");
    }

    async fn bot_is_in(&self, channel: Option<Id>) {
        let (guild, bot) = (self.home.guild, self.home.bot);
        let is_there = |state: &super::super::counterpart::State| {
            state.world.voice_states.get(&(guild, bot)).map(|state| state.channel) == channel
        };
        self.home.discord.wait_for("the bot", is_there).await;
    }

    /// What the bot wrote into the text of the voice channel by itself.
    fn notices(&self) -> Vec<String> {
        let is_notice = |author: &Author| matches!(author, Author::User(user) if *user == self.home.bot);
        let posts = self.home.discord.posts().into_iter();
        posts.filter(|post| post.channel == self.harbour && is_notice(&post.author)).map(|post| post.content).collect()
    }
}

#[tokio::test]
async fn commands_bring_companions_into_a_call_tell_who_is_heard_and_send_them_out() {
    let mut scene = Scene::new(|premises, _| premises).await;
    let (discord, place, ana, kim) = (&scene.home.discord, format!("<#{}>", scene.harbour), scene.home.ana, scene.kim);

    let answer = scene.ask(kim, voice("join", json!([]))).await;
    assert_eq!(answer, "Enter a voice channel first, or name one: `/tertulia voice join where:…`");
    let (anas_call, kims_call) = (discord.call(ana, scene.harbour).await, discord.call(kim, scene.harbour).await);
    let answer = scene.ask(kim, voice("join", json!([]))).await;
    assert_eq!(answer, format!("No companion is in {place} yet. Add one first: `/tertulia join where:` {place}"));
    scene.add_aria().await;
    let answer = scene.ask(ana, voice("join", json!([]))).await;
    assert!(answer.contains(&format!("**Manage Channels** in {place}")), "{answer}");
    let answer = scene.ask(kim, voice("status", json!([]))).await;
    assert!(answer.starts_with("The companions are in no call of this server."), "{answer}");

    let answer = scene.ask(kim, voice("join", json!([]))).await;
    assert!(answer.starts_with(&format!("In the call of {place} now: Aria.")), "{answer}");
    let answer = scene.ask(kim, voice("join", json!([at(scene.harbour)]))).await;
    assert_eq!(answer, format!("The companions are in the call of {place} already."));
    let notice = discord.post_in(scene.harbour).await.content;
    assert!(
        notice.starts_with("The AI companion **Aria** is in this call now") && notice.contains("`/tertulia ignore me`"),
        "{notice}"
    );
    anas_call.grouped(3).await;
    kims_call.grouped(3).await;
    let mut watch = scene.server.watch(&format!("discord:{}", scene.harbour), Some(0)).await;
    anas_call.talk(&sentence()).await;
    watch.event_that("message", |event| event["modality"] == "voice").await;
    let status = scene.ask(ana, voice("status", json!([]))).await;
    assert!(status.starts_with(&format!("**In the call of {place}** for less than a minute, encrypted end to end.")), "{status}");
    assert!(
        status.contains("\nHeard: Ana and Kim.\nCompanions: Aria.\nEars: **rehearsal** on the machine of the bot; "),
        "{status}"
    );
    assert!(status.contains(" received, 0 lost (0.0 %)."), "{status}");
    let packets = scene.server.measured("tertulia_discord_voice_packets_total").await;
    assert!(packets["{discord_packet_fate=\"received\"}"] >= 50.0, "{packets:?}");

    scene.ask(ana, me("ignore", json!([]))).await;
    let status = scene.ask(kim, voice("status", json!([]))).await;
    assert!(status.contains("Heard: Kim. One more is there, and is not listened to.") && !status.contains("Ana"), "{status}");

    // The process that follows comes back, and does not tell people again.
    scene.server.stop().await;
    scene.server = scene.premises.start().await;
    discord.resumes(1).await;
    until("the call", async || scene.ask(kim, voice("status", json!([]))).await.starts_with("**In the call of")).await;
    assert_eq!(scene.notices().len(), 1);

    let answer = scene.ask(kim, voice("leave", json!([]))).await;
    assert!(answer.starts_with(&format!("The companions have left the call of {place}.")), "{answer}");
    scene.bot_is_in(None).await;
    let answer = scene.ask(kim, voice("leave", json!([]))).await;
    assert_eq!(answer, "The companions are in no call of this server.");
}

#[tokio::test]
async fn the_bot_enters_once_a_companion_is_added_and_stays_out_until_everybody_has_left() {
    let scene = Scene::new(|premises, harbour| {
        premises.with("discord.voice_channels", &format!("[\"{harbour}\"]")).with("discord.voice_notice", "false")
    })
    .await;
    let (discord, guild, kim) = (&scene.home.discord, scene.home.guild, scene.kim);
    let anas_call = discord.call(scene.home.ana, scene.harbour).await;
    let status = scene.ask(kim, voice("status", json!([]))).await;
    assert!(status.starts_with("The companions are in no call"), "{status}");

    scene.add_aria().await;
    discord.bot_called(scene.harbour).await;
    let status = scene.ask(kim, voice("status", json!([]))).await;
    assert!(status.contains("The settings of the bot bring it into this call"), "{status}");

    let left = scene.ask(kim, voice("leave", json!([]))).await;
    assert!(left.contains("once everybody else has left it"), "{left}");
    scene.bot_is_in(None).await;
    let kims_call = discord.call(kim, scene.harbour).await;
    let status = scene.ask(kim, voice("status", json!([]))).await;
    assert!(status.starts_with("The companions are in no call"), "{status}");

    discord.hang_up(guild, anas_call).await;
    discord.hang_up(guild, kims_call).await;
    discord.enter(kim, scene.harbour);
    discord.bot_called(scene.harbour).await;
    assert_eq!(scene.notices(), Vec::<String>::new());
}

#[tokio::test]
async fn who_opts_out_during_a_call_is_not_heard_until_they_change_their_mind() {
    let scene = Scene::new(|premises, harbour| premises.with("discord.voice_channels", &format!("[\"{harbour}\"]"))).await;
    scene.add_aria().await;
    let (discord, ana) = (&scene.home.discord, scene.home.ana);
    let (anas_call, kims_call) = (discord.call(ana, scene.harbour).await, discord.call(scene.kim, scene.harbour).await);
    discord.bot_called(scene.harbour).await;
    anas_call.grouped(3).await;
    kims_call.grouped(3).await;
    let mut watch = scene.server.watch(&format!("discord:{}", scene.harbour), Some(0)).await;
    anas_call.talk(&sentence()).await;
    watch.event_that("segment", |event| event["from"] == "Ana").await;

    scene.ask(ana, me("ignore", json!([]))).await;
    #[expect(clippy::disallowed_methods, reason = "it is compared with the times of events")]
    let ignored = Timestamp::now();
    anas_call.talk(&sentence()).await;
    kims_call.talk(&sentence()).await;
    // On a busy machine her first sentence is heard in pieces.
    let is_later = |event: &Value| event["started"].as_str().unwrap().parse::<Timestamp>().unwrap() >= ignored;
    let heard = watch.event_that("segment", is_later).await;
    assert_eq!(heard["from"], "Kim", "{heard}");

    scene.ask(ana, me("ignore", json!([switch("off")]))).await;
    anas_call.talk(&sentence()).await;
    watch.event_that("segment", |event| event["from"] == "Ana").await;
}

#[tokio::test]
async fn a_missing_permission_is_named_with_what_to_click() {
    let scene = Scene::new(|premises, _| premises).await;
    scene.add_aria().await;
    let (discord, role) = (&scene.home.discord, scene.home.discord.bot_role(scene.home.guild));
    discord.enter(scene.kim, scene.harbour);

    for (denied, click) in [
        (Permissions::SPEAK, "allow Speak"),
        (Permissions::CONNECT, "allow Connect"),
        (Permissions::VIEW_CHANNEL, "allow View Channel"),
    ] {
        discord.deny(scene.harbour, role, denied);
        for options in [json!([]), json!([at(scene.harbour)])] {
            let answer = scene.ask(scene.kim, voice("join", options)).await;
            assert!(answer.contains(click), "{denied:?}: {answer}");
        }
    }
    let general = scene.home.general;
    assert!(discord.invoke(scene.kim, general, "tertulia", voice("join", json!([at(general)]))).is_ok());
}

#[tokio::test]
async fn calls_in_several_guilds_go_on_side_by_side() {
    let scene = Scene::new(|premises, _| premises).await;
    let discord = &scene.home.discord;
    let away = discord.guild("Away");
    let (attic, zoe) = (discord.voice_channel(away, "attic"), discord.member_with(away, "Zoe", Permissions::MANAGE_CHANNELS));
    scene.add_aria().await;
    final_answer(discord, zoe, attic, sub("join", json!([companion("bruno")]))).await;
    discord.enter(scene.kim, scene.harbour);
    discord.enter(zoe, attic);

    let here = scene.ask(scene.kim, voice("join", json!([]))).await;
    // In the text of a voice channel, that channel is meant.
    let there = final_answer(discord, zoe, attic, voice("join", json!([]))).await;

    assert!(here.contains(&format!("<#{}>", scene.harbour)), "{here}");
    assert!(there.starts_with(&format!("In the call of <#{attic}> now: Bruno.")), "{there}");
    discord.bot_called(scene.harbour).await;
    discord.bot_called(attic).await;
    let status = scene.ask(scene.kim, voice("status", json!([]))).await;
    assert!(status.contains("Heard: Kim.\nCompanions: Aria.") && !status.contains("Zoe"), "{status}");
    assert!(final_answer(discord, zoe, attic, voice("leave", json!([]))).await.contains("have left"));
    scene.bot_is_in(Some(scene.harbour)).await;
}

#[tokio::test]
async fn on_a_stage_the_bot_asks_to_speak_and_says_that_it_is_not_heard_yet() {
    let scene = Scene::new(|premises, _| premises).await;
    let (discord, guild, kim) = (&scene.home.discord, scene.home.guild, scene.kim);
    let stage = discord.channel_of(guild, Kind::Stage, "stage");
    discord.allow(stage, discord.bot_role(guild), Permissions::REQUEST_TO_SPEAK);
    final_answer(discord, kim, stage, sub("join", json!([companion("aria")]))).await;
    discord.enter(kim, stage);

    let answer = scene.ask(kim, voice("join", json!([]))).await;

    assert!(answer.contains("in the audience of the stage") && answer.contains("Invite to Speak."), "{answer}");
    discord.wait_for("the request to speak", |state| state.journal.requests_of("ask_to_speak").count() == 1).await;
    discord.let_speak(guild, scene.home.bot);
    let status = scene.ask(kim, voice("status", json!([]))).await;
    assert!(status.starts_with("**In the call of") && !status.contains("audience"), "{status}");
}
