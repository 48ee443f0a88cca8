//! Messages to companions by commands: everybody in the channel sees them, and they are recorded as the person's.

use std::time::Duration;

use serde_json::{Value, json};
use tertulia::adapters::system::SystemClock;
use tertulia::domain::message::Role;
use tertulia::ports::clock::Clock as _;

use super::super::counterpart::{Does, Id, Intents, On, Permissions, Rules};
use super::super::home::snowflake;
use super::{Scene, companion, me, rules, sub, until};

const ASK: &str = "Ask a companion about this";

fn say(to: &str, text: &str) -> Value {
    sub("say", json!([companion(to), { "type": 3, "name": "text", "value": text }]))
}

impl Scene {
    /// A scene with Aria and Ben in the channel.
    async fn with_both() -> Self {
        let scene = Self::new().await;
        for name in ["aria", "ben"] {
            scene.final_answer(scene.kim, scene.general, sub("join", json!([companion(name)]))).await;
        }
        scene
    }

    /// The public message that finally answers an interaction: its id and its text.
    async fn shown(&self, interaction: Id) -> (Id, String) {
        assert!(!self.discord.answer_to(interaction).await.ephemeral, "the answer is public");
        let message = self.discord.final_answer(interaction).await;
        (message.id, message.content)
    }

    /// Uses another command, and returns whether a message by command was counted with this outcome.
    async fn has_counted_after_help(&self, outcome: &str) -> bool {
        self.final_answer(self.ana, self.general, sub("help", json!([]))).await;
        self.counted("say", outcome) > 0.0
    }

    fn messages(&self) -> Vec<(String, String, String, Vec<String>)> {
        let messages = self.backend.core.messages().into_iter();
        let plain = messages.map(|(channel_ref, message)| {
            assert_eq!((message.from.role, message.to_all, message.own_words.as_deref()), (Role::Person, false, Some("")));
            let mentions = message.mentions.iter().map(ToString::to_string).collect();
            (channel_ref.channel.to_string(), message.from.name.to_string(), message.text.to_string(), mentions)
        });
        plain.collect()
    }
}

#[tokio::test]
async fn a_message_by_command_is_shown_to_all_and_recorded_as_the_persons() {
    let scene = Scene::with_both().await;

    let interaction = scene.discord.command(scene.ana, scene.general, say("Aria", "what does **Ben** say?\n@everyone"));
    let (message, words) = scene.shown(interaction).await;

    assert_eq!(words, "**Ana** to **Aria**:\n> what does **Ben** say?\n> @everyone");
    let mentions = scene.discord.look(|state| state.world.message(scene.general, message).expect("a message").mentions.clone());
    assert!(!mentions.everyone && mentions.users.is_empty(), "nobody is notified");
    let channel = snowflake(scene.general).channel().to_string();
    let text = "what does **Ben** say?\n@everyone".to_owned();
    assert_eq!(scene.messages(), [(channel, "Ana".to_owned(), text, vec!["aria".to_owned()])]);
    // The message is recorded under the id of the public answer. So deleting the answer deletes it.
    let (_, recorded) = scene.backend.core.last(scene.general);
    assert_eq!(
        (recorded.id.unwrap().to_string(), recorded.from.id.to_string()),
        (message.to_string(), format!("discord:{}", scene.ana))
    );
    // The outcome is counted when the command has ended.
    until("the count", async || scene.has_counted_after_help("done").await).await;
}

#[tokio::test]
async fn a_person_who_may_not_speak_gets_a_private_refusal() {
    let scene = Scene::with_both().await;
    let (quiet, empty) = (scene.discord.channel(scene.guild, "quiet"), scene.discord.channel(scene.guild, "empty"));
    scene.final_answer(scene.kim, quiet, sub("join", json!([companion("aria")]))).await;
    scene.discord.overwrite(quiet, scene.ana, Permissions::VIEW_CHANNEL, Permissions::SEND_MESSAGES);

    for (channel, to, expected) in [
        (scene.general, "cleo", "“cleo” is not in this channel. In this channel: Aria and Ben."),
        (empty, "aria", "No companion is here yet."),
        (quiet, "aria", "You may not write messages here"),
    ] {
        let answer = scene.final_answer(scene.ana, channel, say(to, "hi")).await;
        assert!(answer.contains(expected), "{answer}");
    }
    scene.final_answer(scene.ana, scene.general, me("ignore", json!([]))).await;
    let answer = scene.final_answer(scene.ana, scene.general, say("aria", "hi")).await;
    assert!(answer.starts_with("You asked companions not to listen to you."), "{answer}");
    assert!(scene.messages().is_empty());
}

#[tokio::test]
async fn a_message_that_is_too_long_to_show_is_not_delivered() {
    let scene = Scene::with_both().await;

    let answer = scene.final_answer(scene.ana, scene.general, say("aria", &"a\n".repeat(700))).await;

    assert!(answer.starts_with("That has too many lines to be shown completely"), "{answer}");
    assert!(scene.messages().is_empty());
}

#[tokio::test]
async fn a_message_by_command_has_the_time_of_this_machines_clock() {
    let behind = Duration::from_secs(5_400);
    let scene = Scene::with_rules(Rules { behind, ..rules() }).await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let before = SystemClock.now();

    let interaction = scene.discord.command(scene.ana, scene.general, say("aria", "hi"));
    scene.shown(interaction).await;

    let at = scene.backend.core.last(scene.general).1.said_at.unwrap();
    // `Date` has whole seconds.
    let tolerance = Duration::from_secs(10);
    assert!(at + tolerance >= before && at <= SystemClock.now() + tolerance, "{at:?}, {before:?}");
}

#[tokio::test]
async fn messages_by_command_work_in_threads_and_direct_messages() {
    let scene = Scene::with_both().await;
    let thread = scene.discord.thread(scene.general, "aside", scene.ana);
    let (direct, _) = scene.discord.direct(scene.ana, "hi");

    for channel in [thread, direct] {
        let interaction = scene.discord.command(scene.ana, channel, say("aria", "hi"));
        scene.shown(interaction).await;
    }

    let messages = scene.backend.core.messages().into_iter();
    let channel_refs: Vec<_> = messages.map(|(channel_ref, _)| (channel_ref.channel, channel_ref.parent)).collect();
    assert_eq!(
        channel_refs,
        [(snowflake(thread).channel(), Some(snowflake(scene.general).channel())), (snowflake(direct).channel(), None)]
    );
}

#[tokio::test]
async fn a_message_that_cannot_be_shown_is_deleted() {
    let scene = Scene::with_both().await;
    scene.discord.spoil_next(1, On::route("edit_webhook_message"), Does::Status(404));

    let interaction = scene.discord.command(scene.ana, scene.general, say("aria", "hi"));
    scene.discord.wait_for("the refusal", |state| state.journal.refused().next().is_some()).await;
    // The outcome is counted when the command has ended.
    until("the count", async || scene.has_counted_after_help("unanswered").await).await;

    let message = scene.discord.look(|state| state.world.interactions[&interaction].original).expect("a deferred answer");
    assert_eq!(scene.backend.core.deleted(), [message.to_string().into()]);
}

#[tokio::test]
async fn a_companion_is_asked_about_a_message_with_its_text() {
    let scene = Scene::new().await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    // Without the intent, only the command delivers the text of the message.
    scene.discord.set_privileged(Intents::empty());
    let message = scene.discord.say(scene.kim, scene.general, "Tea is better than coffee,\nor <@1>?");

    let interaction = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let (_, words) = scene.shown(interaction).await;

    let link = format!("https://discord.com/channels/{}/{}/{message}", scene.guild, scene.general);
    assert_eq!(words, format!("**Ana** asks **Aria** about {link}"));
    let messages = scene.messages();
    assert_eq!(messages[0].2, "What do you say to this message by Kim?\n> Tea is better than coffee,\n> or @unknown-user?");
    assert_eq!((&*messages[0].1, &messages[0].3), ("Ana", &vec!["aria".to_owned()]));
}

#[tokio::test]
async fn with_several_companions_the_person_chooses_one_once() {
    let scene = Scene::with_both().await;
    let message = scene.discord.say(scene.kim, scene.general, "Tea?");

    let interaction = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let answer = scene.discord.answer_to(interaction).await;
    assert!(answer.ephemeral, "{answer:?}");
    let options = answer.data["components"][0]["components"][0]["options"].as_array().expect("a list").clone();
    assert_eq!(options.iter().map(|option| option["value"].as_str().unwrap()).collect::<Vec<_>>(), ["aria", "ben"]);
    let chosen = scene.discord.choose(interaction, "ben").unwrap();
    let (_, words) = scene.shown(chosen).await;
    let again = scene.discord.choose(interaction, "aria").unwrap();
    let refused = scene.discord.answer_to(again).await;

    assert!(words.starts_with("**Ana** asks **Ben** about https://"), "{words}");
    assert!(refused.ephemeral && refused.data["content"].as_str().unwrap().starts_with("That was asked already"), "{refused:?}");
    let messages = scene.messages();
    assert_eq!((messages.len(), &messages[0].3), (1, &vec!["ben".to_owned()]));
}

#[tokio::test]
async fn messages_of_people_who_opted_out_are_not_asked_about() {
    let scene = Scene::with_both().await;
    scene.final_answer(scene.kim, scene.general, me("ignore", json!([]))).await;
    let message = scene.discord.say(scene.kim, scene.general, "Tea?");

    let interaction = scene.discord.invoke_on(scene.ana, scene.general, ASK, message).unwrap();
    let answer = scene.discord.answer_to(interaction).await;

    assert!(
        answer.ephemeral && answer.data["content"].as_str().unwrap().contains("does not want companions to listen"),
        "{answer:?}"
    );
    assert!(scene.messages().is_empty());
}
