//! Companions in the calls of voice channels, with the real binary and people who are in the call.

mod failing;
mod guilds;
mod limits;
mod moving;
mod naming;
mod restarting;
mod sent_out;
mod silenced;

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::commands::{companion, final_answer, rules, sub};
use super::counterpart::voice::Person;
use super::counterpart::{Id, Permissions, Rules};
use super::home::Home;
use crate::harness::call::sentence;
use crate::harness::model::Model;
use crate::harness::{Premises, Server, Watch, serve_answer};

/// The frame that stands for silence.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

/// A guild in which Aria is in two voice channels. The bot enters the harbour by itself.
struct Scene {
    home: Home,
    kim: Id,
    harbour: Id,
    attic: Id,
    away: Vec<Away>,
    server: Server,
    premises: Premises,
}

/// A voice channel of another guild, in which Aria is. The bot enters it by itself.
struct Away {
    channel: Id,
    zoe: Id,
}

/// A server with this model, whose ear hears nothing but a question for Aria: without one, what people say is no message for a model.
pub(super) async fn with_ear(model: &Model) -> impl FnOnce(Premises) -> Premises {
    let ear = serve_answer(StatusCode::OK, Json(json!({ "text": "hey aria, are you there?" }))).await;
    move |premises| {
        let premises = model.serving(premises).with("speech.recognition", r#"["ear"]"#).with("speech.services.ear.api", "openai");
        premises.with("speech.services.ear.base_url", &format!("{ear}/v1")).with("speech.services.ear.model", "whisper-1")
    }
}

impl Scene {
    async fn new() -> Self {
        Self::with(rules(), |premises| premises).await
    }

    async fn with(rules: Rules, set: impl FnOnce(Premises) -> Premises) -> Self {
        Self::in_guilds(&[], rules, set).await
    }

    /// There are further guilds of these names.
    async fn in_guilds(names: &[&str], rules: Rules, set: impl FnOnce(Premises) -> Premises) -> Self {
        let home = Home::with_rules(rules).await;
        let kim = home.discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
        let [harbour, attic] = ["harbour", "attic"].map(|name| home.discord.voice_channel(home.guild, name));
        let away = |name: &&str| {
            let guild = home.discord.guild(name);
            let zoe = home.discord.member_with(guild, "Zoe", Permissions::MANAGE_CHANNELS);
            Away { channel: home.discord.voice_channel(guild, "harbour"), zoe }
        };
        let away: Vec<Away> = names.iter().map(away).collect();
        let automatic: Vec<String> = away.iter().map(|away| away.channel).chain([harbour]).map(|id| id.to_string()).collect();
        let premises = Premises::shipped().for_discord(&home.discord).with("discord.voice_channels", &format!("{automatic:?}"));
        // What is posted is what companions say.
        let premises = premises.with("discord.voice_notice", "false");
        let premises = set(premises);
        let server = premises.start().await;
        home.discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
        home.discord.sessions(1).await;
        let scene = Self { home, kim, harbour, attic, away, server, premises };
        for channel in [harbour, attic] {
            scene.bring_aria(scene.kim, channel).await;
        }
        for away in &scene.away {
            scene.bring_aria(away.zoe, away.channel).await;
        }
        scene
    }

    /// Adds Aria to a channel.
    async fn bring_aria(&self, manager: Id, channel: Id) {
        let welcome = final_answer(&self.home.discord, manager, channel, sub("join", json!([companion("aria")]))).await;
        assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    }

    /// Watches the record of a channel from its beginning.
    async fn watch(&self, channel: Id) -> Watch {
        self.server.watch(&format!("discord:{channel}"), Some(0)).await
    }

    /// Somebody enters a channel, and the bot is there, too, and can be heard.
    async fn call(&self, person: Id, channel: Id) -> Person {
        let person = self.home.discord.call(person, channel).await;
        self.home.discord.bot_called(channel).await;
        person.grouped(2).await;
        person
    }

    /// What `/tertulia voice status` answers in the harbour.
    async fn status(&self) -> String {
        let options = json!([{ "type": 2, "name": "voice", "options": sub("status", json!([])) }]);
        final_answer(&self.home.discord, self.kim, self.harbour, options).await
    }

    /// How often the bot asked Discord for another place.
    fn asked(&self) -> usize {
        self.home.discord.look(|state| state.journal.voice_states.len())
    }
}

/// Waits until something that a person said is on record.
async fn spoken(watch: &mut Watch) -> Value {
    let is_speech = |event: &Value| event["text"].as_str().is_some_and(|text| text.starts_with("(speech, "));
    watch.event_that("message", |event| event["modality"] == "voice" && is_speech(event)).await
}

#[tokio::test]
async fn people_in_a_voice_channel_are_heard_and_answered_aloud() {
    let scene = Scene::with(rules(), |premises| premises.with("voice.read_text_aloud", "true")).await;
    let Scene { home, harbour, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = home.discord.call(home.ana, *harbour).await;
    home.discord.bot_called(*harbour).await;
    ana.grouped(2).await;

    ana.talk(&sentence()).await;
    assert_eq!(spoken(&mut watch).await["from"], "Ana");

    // The built-in ears know no words. What is typed is read aloud here.
    home.discord.say(home.ana, *harbour, "hey aria, how was your day?");
    let heard = ana.heard_from(home.bot, 25).await;
    assert!(
        heard.iter().all(|frame| frame.end_to_end || frame.frame == SILENCE),
        "nothing is sent without end-to-end encryption"
    );
    let played = watch.event("sentence_played").await;
    assert_eq!(played["companion"], "aria", "{played}");
}

#[tokio::test]
async fn what_is_typed_is_answered_in_writing_and_what_is_spoken_aloud() {
    let model = Model::holding("nobody").await;
    let scene = Scene::with(rules(), with_ear(&model).await).await;
    let Scene { home, harbour, .. } = &scene;
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;

    home.discord.say(home.ana, *harbour, "hey aria, are you there?");
    assert_eq!(home.discord.post_in(*harbour).await.content, "I am here.");
    assert!(ana.heard().iter().all(|heard| heard.frame == SILENCE), "nothing was spoken");

    ana.talk(&sentence()).await;
    ana.heard_from(home.bot, 10).await;
    watch.event_that("message", |event| event["modality"] == "voice" && event["text"] == "I am here.").await;
    assert_eq!(home.discord.posts().len(), 1, "nothing was written");
}
