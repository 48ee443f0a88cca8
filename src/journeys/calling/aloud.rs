//! Spoken replies: what `why` tells of them, and what is left of them when somebody is forgotten or a statement is deleted.

use std::time::Duration;

use super::super::retaining::left_of;
use super::super::world::{World, room};
use super::{call, events, inbound, lobby, notice, says, user};
use crate::domain::conversation::{Aloud, Notice};
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::domain::voice::interruption;
use crate::domain::voice::utterance;
use crate::ports::backend::decisions::{Why, WhyAt};
use crate::ports::backend::keeping::ExportForm;
use crate::ports::voice_call::{CallEffect, CallEvents};

const ANSWER: &str = "A zebra has stripes. It also runs fast.";

/// The reply whose sentences are to be spoken, and these.
fn asked_to_say(world: &World) -> (Ticket, Vec<std::sync::Arc<str>>) {
    let effects = world.call_effects().into_iter();
    let said = effects.filter_map(|effect| match effect {
        CallEffect::Reply { ticket, aloud: Aloud::Say { text, .. }, .. } => Some((ticket, text)),
        _ => None,
    });
    let said: Vec<_> = said.collect();
    let newest = said.last().unwrap_or_else(|| panic!("{:?}", world.call_effects())).0;
    (newest, said.into_iter().filter(|(ticket, _)| *ticket == newest).map(|(_, text)| text).collect())
}

async fn tell(world: &World, ticket: Ticket, told: impl IntoIterator<Item = interruption::Input>) {
    for told in told {
        assert!(inbound(world).noticed(&lobby().channel, Notice::Reply { ticket, told }));
    }
    world.rest().await;
}

/// Ben has asked, and Aria's answer is to be spoken.
async fn asked() -> World {
    let world = call(&["Zora", "Ben"]).await;
    world.side.answer_by(|_| Some(Ok("Yes.\nYES".to_owned())));
    world.main.answer_by(|_| Some(Ok(ANSWER.to_owned())));
    says(&world, "Ben", "Ari, what is striped?").await;
    world.pass(3.5).await;
    world
}

/// Aria speaks: half of its first sentence has been heard.
async fn speaking() -> (World, Ticket) {
    let world = asked().await;
    let (ticket, sentences) = asked_to_say(&world);
    assert_eq!(sentences.concat().trim(), ANSWER);
    let sentences = sentences.into_iter().map(|text| interruption::Input::Sentence { text, words: Vec::new() });
    tell(&world, ticket, sentences.chain([interruption::Input::FirstAudio])).await;
    let audio = interruption::Input::Audio { sentence: 0, length: Duration::from_secs(4) };
    tell(&world, ticket, [audio, interruption::Input::Whole { sentence: 0 }]).await;
    world.pass(2.0).await;
    tell(&world, ticket, [interruption::Input::Played { position: Duration::from_secs(2) }]).await;
    (world, ticket)
}

/// Zora says a stop word into it.
async fn cut_by_zora() -> World {
    let (world, _) = speaking().await;
    notice(&world, utterance::Input::Started { user: user("Zora"), started: world.context.clock.now() });
    world.pass(1.2).await;
    says(&world, "Zora", "Stop that, please").await;
    world.pass(20.0).await;
    world
}

/// The number of the newest statement on record, and how it was cut: its whole text and by whom.
async fn statement(world: &World) -> (Seq, Option<(String, Option<String>)>) {
    let statements = events(world).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::Said { message, reply: Some(_), .. } => {
            let cut = message.cut.map(|cut| (cut.full.to_string(), cut.by.map(|by| by.name.to_string())));
            Some((recorded.seq, cut))
        }
        _ => None,
    });
    statements.last().unwrap()
}

async fn why(world: &World, at: WhyAt) -> Why {
    world.why("lobby", Some("aria"), Some(at)).await.unwrap()
}

async fn first_yes(world: &World) -> Seq {
    let yes = events(world).await.into_iter().find(|recorded| matches!(recorded.event, Event::Decided(_)));
    yes.unwrap().seq
}

#[tokio::test(start_paused = true)]
async fn why_tells_who_cut_a_spoken_reply_and_what_nobody_heard() {
    let world = cut_by_zora().await;

    let story = why(&world, WhyAt::Event(first_yes(&world).await)).await.story;

    let told = |event: &str| {
        let line = story.iter().rfind(|line| &*line.event == event);
        line.unwrap_or_else(|| panic!("{event}: {story:?}")).text.to_string()
    };
    assert!(told("respond").ends_with("began to prepare a spoken answer."), "{}", told("respond"));
    assert!(story.iter().any(|line| line.text.ends_with("began to speak.")), "{story:?}");
    assert!(told("interrupted").starts_with("Zora Doe said a word that means stop"), "{}", told("interrupted"));
    let statement = told("statement");
    assert!(statement.contains(" said aloud: “A zebra") && statement.contains("Zora Doe interrupted there"), "{statement}");
    assert!(statement.contains("Nobody heard the rest: “") && statement.contains("It also runs fast."), "{statement}");
    let spans = world.spans.named("voice.interruption");
    let [_, cut] = &spans[..] else { panic!("{spans:?}") };
    let attribute = |name| crate::telemetry::fake::attribute(cut, name);
    assert_eq!(attribute("interruption.verdict").as_deref(), Some("stop_word"));
    assert!(!format!("{spans:?}").contains("Zora"), "{spans:?}");
}

#[tokio::test(start_paused = true)]
async fn why_tells_that_nothing_was_heard() {
    let world = asked().await;
    let (ticket, _) = asked_to_say(&world);

    tell(&world, ticket, [interruption::Input::StopPressed]).await;
    world.pass(5.0).await;

    let story = why(&world, WhyAt::Event(first_yes(&world).await)).await.story;
    let texts: Vec<_> = story.iter().map(|line| &*line.text).collect();
    assert!(texts.iter().any(|text| text.starts_with("Somebody asked Aria to stop")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("before anybody had heard a word")), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn who_cut_a_statement_is_forgotten_and_the_statement_stays() {
    let world = cut_by_zora().await;
    let before = statement(&world).await.1.unwrap();
    assert_eq!((&*before.0, before.1.as_deref()), (ANSWER, Some("Zora Doe")));

    world.forget("Zora", false).await.unwrap();
    world.pass(10.0).await;

    assert_eq!(left_of("Zora", &world).await, 0);
    assert_eq!(statement(&world).await.1, Some((ANSWER.to_owned(), None)));
    for form in [ExportForm::Json, ExportForm::Replay] {
        let export = world.export("lobby", form).await.join("\n");
        assert!(!export.contains("Zora"), "{export}");
    }
    let world = world.crash().await;
    world.pass(10.0).await;
    assert_eq!(left_of("Zora", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_statement_takes_what_nobody_heard_along() {
    let world = cut_by_zora().await;
    assert!(left_of("zebra", &world).await > 1);

    world.backend.messages.delete(&room("lobby"), statement(&world).await.0).await.unwrap();
    world.pass(10.0).await;

    let left = left_of("zebra", &world).await;
    assert_eq!([left, left_of("runs fast", &world).await], [0, 0], "{:?}", events(&world).await);
}

#[tokio::test(start_paused = true)]
async fn who_was_answered_is_forgotten_with_the_sentences_of_the_reply() {
    for has_ended in [false, true] {
        let (world, ticket) = speaking().await;
        if has_ended {
            tell(&world, ticket, [interruption::Input::StopPressed]).await;
            world.pass(5.0).await;
        }
        assert!(!sentences(&world).await.is_empty());

        world.forget("Ben", has_ended).await.unwrap();
        world.pass(20.0).await;

        assert_eq!(left_of("Ben", &world).await, 0, "ended: {has_ended}");
        assert_eq!(sentences(&world).await, Vec::<String>::new(), "ended: {has_ended}");
        if has_ended {
            assert_eq!([left_of("zebra", &world).await, left_of("runs fast", &world).await], [0, 0]);
        }
    }
}

/// The words of the sentences on record that were about to be heard.
async fn sentences(world: &World) -> Vec<String> {
    let texts = events(world).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::SentenceStarting { text, .. } if !text.is_empty() => Some(text.to_string()),
        _ => None,
    });
    texts.collect()
}
