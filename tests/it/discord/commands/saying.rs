//! What people say to companions by commands: others see it, and it is on record as theirs.

use std::time::Duration;

use serde_json::{Value, json};
use tertulia::adapters::system::SystemClock;
use tertulia::domain::message::Role;
use tertulia::ports::clock::Clock as _;

use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::faults::{Does, On};
use super::super::counterpart::id::Id;
use super::super::counterpart::permissions::{SEND_MESSAGES, VIEW_CHANNEL};
use super::super::counterpart::rules::Rules;
use super::{Scene, companion, me, rules, snowflake, sub, until};

const ASK: &str = "Ask a companion about this";

fn say(to: &str, text: &str) -> Value {
    sub("say", json!([companion(to), { "type": 3, "name": "text", "value": text }]))
}

impl Scene {
    /// Aria and Ben live in the channel.
    async fn with_both() -> Self {
        let scene = Self::new().await;
        for name in ["aria", "ben"] {
            scene.told(scene.kim, scene.general, sub("join", json!([companion(name)]))).await;
        }
        scene
    }

    /// The message that everybody sees in answer to an interaction, at last: its id and its words.
    async fn shown(&self, asked: Id) -> (Id, String) {
        assert!(!self.discord.answer_to(asked).await.ephemeral, "everybody sees it");
        let shown = |state: &super::State| {
            let interaction = &state.world.interactions[&asked];
            let message = state.world.message(interaction.channel, interaction.original?)?;
            (message.flags & super::LOADING == 0).then(|| (message.id, message.content.clone()))
        };
        self.discord.until("the words", shown).await
    }

    /// Whether what was said has come to this, after something else was asked and answered.
    async fn helps_and_has_counted(&self, outcome: &str) -> bool {
        self.told(self.ana, self.general, sub("help", json!([]))).await;
        self.counted("say", outcome) > 0.0
    }

    fn said(&self) -> Vec<(String, String, String, Vec<String>)> {
        let inside = self.backend.inside();
        let plain = inside.said.iter().map(|(channel_ref, said)| {
            assert_eq!((said.from.role, said.to_all, &*said.own_words), (Role::Person, false, ""));
            let mentions = said.mentions.iter().map(ToString::to_string).collect();
            (channel_ref.channel.to_string(), said.from.name.to_string(), said.text.to_string(), mentions)
        });
        plain.collect()
    }
}

#[tokio::test]
async fn what_is_said_to_a_companion_is_shown_to_all_and_on_record_as_the_persons() {
    let scene = Scene::with_both().await;

    let asked =
        scene.discord.invoke(scene.ana, scene.general, "tertulia", say("Aria", "what does **Ben** say?\n@everyone")).unwrap();
    let (message, words) = scene.shown(asked).await;

    assert_eq!(words, "**Ana** to **Aria**:\n> what does **Ben** say?\n> @everyone");
    let told = scene.discord.look(|state| state.world.message(scene.general, message).expect("it is there").mentions.clone());
    assert!(!told.everyone && told.users.is_empty(), "nobody is called");
    let channel = snowflake(scene.general).channel().to_string();
    let text = "what does **Ben** say?\n@everyone".to_owned();
    assert_eq!(scene.said(), [(channel, "Ana".to_owned(), text, vec!["aria".to_owned()])]);
    // Whoever deletes what is shown takes it back: it is on record under that id.
    let (id, from) = {
        let inside = scene.backend.inside();
        (inside.said[0].1.id.to_string(), inside.said[0].1.from.id.to_string())
    };
    assert_eq!((id, from), (message.to_string(), format!("discord:{}", scene.ana)));
    // What it comes to is counted when all of it is done with.
    until("the count", async || scene.helps_and_has_counted("done").await).await;
}

#[tokio::test]
async fn who_cannot_say_anything_is_told_so_alone() {
    let scene = Scene::with_both().await;
    let (quiet, empty) = (scene.discord.channel(scene.guild, "quiet"), scene.discord.channel(scene.guild, "empty"));
    scene.told(scene.kim, quiet, sub("join", json!([companion("aria")]))).await;
    scene.discord.overwrite(quiet, Overwrite::member(scene.ana, VIEW_CHANNEL, SEND_MESSAGES));

    for (channel, to, expected) in [
        (scene.general, "cleo", "“cleo” is not in this channel. In this channel: Aria and Ben."),
        (empty, "aria", "No companion is here yet."),
        (quiet, "aria", "You may not write messages here"),
    ] {
        let told = scene.told(scene.ana, channel, say(to, "hi")).await;
        assert!(told.contains(expected), "{told}");
    }
    scene.told(scene.ana, scene.general, me("ignore", json!([]))).await;
    let told = scene.told(scene.ana, scene.general, say("aria", "hi")).await;
    assert!(told.starts_with("You asked companions not to listen to you."), "{told}");
    assert!(scene.said().is_empty());
}

#[tokio::test]
async fn what_cannot_be_shown_whole_is_not_said() {
    let scene = Scene::with_both().await;

    let told = scene.told(scene.ana, scene.general, say("aria", &"a\n".repeat(700))).await;

    assert!(told.starts_with("That has too many lines to be shown completely"), "{told}");
    assert!(scene.said().is_empty());
}

#[tokio::test]
async fn what_is_said_has_the_time_of_this_machines_clock() {
    let behind = Duration::from_secs(5_400);
    let scene = Scene::with_rules(Rules { behind, ..rules() }).await;
    scene.told(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let before = SystemClock.now();

    let asked = scene.discord.invoke(scene.ana, scene.general, "tertulia", say("aria", "hi")).unwrap();
    scene.shown(asked).await;

    let at = scene.backend.inside().said[0].1.at;
    // `Date` has whole seconds.
    let tolerance = Duration::from_secs(10);
    assert!(at + tolerance >= before && at <= SystemClock.now() + tolerance, "{at:?}, {before:?}");
}

#[tokio::test]
async fn in_threads_and_direct_messages_it_is_said_there() {
    let scene = Scene::with_both().await;
    let thread = scene.discord.thread(scene.general, Kind::PublicThread, "aside", scene.ana);
    let (direct, _) = scene.discord.direct(scene.ana, "hi");

    for channel in [thread, direct] {
        let asked = scene.discord.invoke(scene.ana, channel, "tertulia", say("aria", "hi")).unwrap();
        scene.shown(asked).await;
    }

    let inside = scene.backend.inside();
    let channel_refs: Vec<_> =
        inside.said.iter().map(|(channel_ref, _)| (channel_ref.channel.clone(), channel_ref.parent.clone())).collect();
    assert_eq!(
        channel_refs,
        [(snowflake(thread).channel(), Some(snowflake(scene.general).channel())), (snowflake(direct).channel(), None)]
    );
}

#[tokio::test]
async fn what_nobody_is_shown_in_the_end_is_taken_back() {
    let scene = Scene::with_both().await;
    scene.discord.spoil_next(1, On { route: Some("edit_webhook_message"), ..On::default() }, Does::Status(404));

    let asked = scene.discord.invoke(scene.ana, scene.general, "tertulia", say("aria", "hi")).unwrap();
    scene.discord.until("the refusal", |state| state.journal.refused().next().map(|_| ())).await;
    // What it comes to is counted when all of it is done with.
    until("the count", async || scene.helps_and_has_counted("unanswered").await).await;

    let message = scene.discord.look(|state| state.world.interactions[&asked].original).expect("it was to come");
    assert_eq!(scene.backend.inside().deleted, [message.to_string().into()]);
}

#[tokio::test]
async fn a_message_is_asked_about_in_its_own_words() {
    let scene = Scene::new().await;
    scene.told(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    // Nothing of it is delivered but with the command.
    scene.discord.set_privileged(0);
    let message = scene.discord.say(scene.kim, scene.general, "Tea is better than coffee,\nor <@1>?");

    let asked = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let (_, words) = scene.shown(asked).await;

    let link = format!("https://discord.com/channels/{}/{}/{message}", scene.guild, scene.general);
    assert_eq!(words, format!("**Ana** asks **Aria** about {link}"));
    let said = scene.said();
    assert_eq!(said[0].2, "What do you say to this message by Kim?\n> Tea is better than coffee,\n> or @unknown-user?");
    assert_eq!((&*said[0].1, &said[0].3), ("Ana", &vec!["aria".to_owned()]));
}

#[tokio::test]
async fn of_several_companions_whoever_asks_chooses_one_once() {
    let scene = Scene::with_both().await;
    let message = scene.discord.say(scene.kim, scene.general, "Tea?");

    let asked = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let answer = scene.discord.answer_to(asked).await;
    assert!(answer.ephemeral, "{answer:?}");
    let options = answer.data["components"][0]["components"][0]["options"].as_array().expect("a list").clone();
    assert_eq!(options.iter().map(|option| option["value"].as_str().unwrap()).collect::<Vec<_>>(), ["aria", "ben"]);
    let chosen = scene.discord.choose(asked, "ben").unwrap();
    let (_, words) = scene.shown(chosen).await;
    let again = scene.discord.choose(asked, "aria").unwrap();
    let refused = scene.discord.answer_to(again).await;

    assert!(words.starts_with("**Ana** asks **Ben** about https://"), "{words}");
    assert!(refused.ephemeral && refused.data["content"].as_str().unwrap().starts_with("That was asked already"), "{refused:?}");
    let said = scene.said();
    assert_eq!((said.len(), &said[0].3), (1, &vec!["ben".to_owned()]));
}

#[tokio::test]
async fn whoever_does_not_want_to_be_heard_is_not_asked_about() {
    let scene = Scene::with_both().await;
    scene.told(scene.kim, scene.general, me("ignore", json!([]))).await;
    let message = scene.discord.say(scene.kim, scene.general, "Tea?");

    let asked = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let answer = scene.discord.answer_to(asked).await;

    assert!(
        answer.ephemeral && answer.data["content"].as_str().unwrap().contains("does not want companions to listen"),
        "{answer:?}"
    );
    assert!(scene.said().is_empty());
}
