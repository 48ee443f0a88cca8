//! A room's own words: instructions, new conversations, scenes, what people say of themselves, imported chats, and the prompts that were sent.

use futures_util::StreamExt as _;
use serde_json::json;

use super::retaining::left_of;
use super::world::{World, lines, purpose, room};
use crate::domain::id::Seq;
use crate::domain::message::{Author, ImportedMessage, Role};
use crate::domain::moment::Moment;
use crate::domain::question_context::Purpose;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::keeping::Person;
use crate::ports::backend::messages::{Greeting, Imported};

const LOBBY: &str = "lobby";

/// A room in which Aria answers whenever she is called.
async fn willing() -> World {
    let world = World::with_lobby().await;
    willingly(&world);
    world
}

fn willingly(world: &World) {
    world.side.answer_by(|request| {
        let is_summary = *purpose(request) == Purpose::Summary;
        Some(Ok(if is_summary { "They met a heron.".into() } else { "Me.\nYES".to_owned() }))
    });
    world.main.answers([Ok("Well.")]);
}

/// The prompt of Aria's answer to this.
async fn answered(world: &World, text: &str) -> String {
    let asked = world.main.asked.lock().len();
    world.say_then_pass(LOBBY, text, 60.0).await;
    let all = world.main.asked.lock();
    assert!(all.len() > asked, "she answers {text}");
    let messages = &all.last().unwrap().messages;
    messages.iter().map(|message| message.words().into_owned()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_rooms_words_are_in_its_prompts_at_once_and_after_a_restart() {
    let world = willing().await;
    let words = json!({ "instructions": "Speak in rhymes.", "style": "role-play", "note": "Night falls.", "note_depth": 0 });
    let changed = world.patch(LOBBY, json!({ "words": words })).await.unwrap();
    world.open("den", &["bruno"]).await;
    world.say_then_pass("den", "Bruno, hello?", 60.0).await;
    let elsewhere = format!("{:?}", world.main.asked.lock().last().unwrap().messages);
    let before = answered(&world, "Ari, hello?").await;
    let world = world.crash().await;
    willingly(&world);
    let after = answered(&world, "Ari, are you there?").await;
    world.patch(LOBBY, json!({ "words": { "instructions": "", "note": null } })).await.unwrap();
    let without = answered(&world, "Ari, and now?").await;

    assert_eq!(serde_json::to_value(changed.words).unwrap(), words);
    for prompt in [before, after] {
        assert!(["Speak in rhymes.", "Night falls.", "*asterisks*"].iter().all(|text| prompt.contains(text)), "{prompt}");
    }
    assert!(!elsewhere.contains("rhymes"), "{elsewhere}");
    assert!(!without.contains("rhymes") && !without.contains("Night") && without.contains("*asterisks*"), "{without}");
    let asked = format!("{:?}", world.side.asked.lock().first().unwrap().messages);
    assert!(asked.contains("Speak in rhymes.") && !asked.contains("Night falls."), "a decision has no note: {asked}");
}

#[tokio::test(start_paused = true)]
async fn a_new_conversation_shows_no_earlier_messages_and_keeps_the_summary() {
    let world = willing().await;
    answered(&world, "Ari, I saw a heron.").await;

    world.backend.rooms.begin_anew(&room(LOBBY)).await.unwrap();
    world.pass(60.0).await;
    let anew = answered(&world, "Ari, good morning.").await;
    let world = world.crash().await;
    willingly(&world);
    let restarted = answered(&world, "Ari, again?").await;
    world.backend.rooms.clear(&room(LOBBY)).await.unwrap();
    let cleared = answered(&world, "Ari, what?").await;

    for prompt in [anew, restarted] {
        assert!(prompt.contains("They met a heron.") && !prompt.contains("I saw"), "{prompt}");
    }
    assert!(!cleared.contains("heron"), "{cleared}");
    assert!(world.history(LOBBY).await.contains(&lines(&[("Ana", "Ari, I saw a heron.")])[0]), "it stays readable");
}

#[tokio::test(start_paused = true)]
async fn a_scene_is_read_and_nobody_is_asked_about_it() {
    let world = willing().await;
    answered(&world, "Ari, hello?").await;
    let asked = world.side.asked.lock().len();

    let ana = Author::of_name("Ana".into());
    let scene = world.backend.messages.set_scene(&room(LOBBY), ana, "Ari, a storm comes up.".into()).await.unwrap();
    world.pass(600.0).await;

    assert_eq!(world.side.asked.lock().len(), asked);
    let told = world.why(LOBBY, None, Some(WhyAt::Message(scene.to_string().into()))).await.unwrap();
    assert!(told.story.iter().any(|line| &*line.event == "background"), "{told:?}");
    let prompt = answered(&world, "Ari, what now?").await;
    assert!(prompt.contains("\"kind\":\"scene\"") && prompt.contains("a storm comes up"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn a_greeting_may_be_said_later_if_that_is_wanted() {
    let world = willing().await;
    world.reload_companion(json!({ "id": "aria", "greetings": ["The soup is hot."] }));
    world.say_then_pass(LOBBY, "Is anybody there?", 60.0).await;
    let greeting = |anyway| Greeting { companion: "aria".into(), text: "The soup is hot.".into(), anyway };

    let refused = world.backend.messages.greet(&room(LOBBY), greeting(false)).await;
    let said = world.backend.messages.greet(&room(LOBBY), greeting(true)).await;

    assert!(matches!(refused, Err(Refused::Conflict(_))) && said.is_ok(), "{refused:?} {said:?}");
    assert_eq!(world.history(LOBBY).await.last(), lines(&[("aria", "The soup is hot.")]).last());
}

#[tokio::test(start_paused = true)]
async fn what_a_person_says_of_themselves_is_known_in_that_room_exported_and_forgotten() {
    let world = willing().await;
    world.open("den", &["aria"]).await;
    let rooms = &world.backend.rooms;
    rooms.describe(&room(LOBBY), &"Ana".into(), Some("I paint zebras.".into())).await.unwrap();
    let here = answered(&world, "Ari, who am I?").await;
    world.say_then_pass("den", "Ari, who am I?", 60.0).await;
    let there = format!("{:?}", world.main.asked.lock().last().unwrap().messages);
    let seq = world.try_history(LOBBY).await.unwrap().messages.last().unwrap().seq;
    let sent = world.backend.records.prompt(&room(LOBBY), seq).await.unwrap();
    let person = Person { guild: "home".into(), id: "Ana".into() };
    let exported = world.backend.records.export_person(person).await.unwrap();
    let exported: String = exported.map(Result::unwrap).collect().await;

    world.forget("Ana", false).await.unwrap();

    assert!(here.contains("I paint zebras.") && !there.contains("zebras"), "{here}\n{there}");
    assert!(sent.messages.iter().any(|message| message.text.contains("I paint zebras.")), "{sent:?}");
    assert!(exported.contains("\"described\":{\"console:lobby\":\"I paint zebras.\"}"), "{exported}");
    assert_eq!(rooms.description(&room(LOBBY), &"Ana".into()).await.unwrap(), None);
    assert_eq!(left_of("zebras", &world).await, 0);
    assert!(matches!(world.backend.records.prompt(&room(LOBBY), seq).await, Err(Refused::NotFound(_))), "it is not kept either");
}

#[tokio::test(start_paused = true)]
async fn the_newest_prompts_can_be_read_for_an_hour() {
    let world = willing().await;
    let prompt = answered(&world, "Ari, hello?").await;
    let seq = world.try_history(LOBBY).await.unwrap().messages.last().unwrap().seq;

    let sent = world.backend.records.prompt(&room(LOBBY), seq).await.unwrap();
    let of_person = world.backend.records.prompt(&room(LOBBY), Seq(seq.0 - 4)).await;
    world.pass(3_700.0).await;
    let late = world.backend.records.prompt(&room(LOBBY), seq).await;

    assert_eq!(sent.messages.iter().map(|message| &*message.text).collect::<Vec<_>>().join("\n"), prompt);
    assert_eq!(&*sent.messages[0].role, "system");
    for refused in [of_person, late] {
        assert!(matches!(refused, Err(Refused::NotFound(_))), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_imported_chat_is_history_with_its_own_times_and_nobody_answers_it() {
    let world = willing().await;
    let line = |name: &str, role, text: &str, at| ImportedMessage {
        from: Author { id: name.into(), name: name.into(), role },
        text: text.into(),
        is_scene: false,
        at: Some(Moment::from_micros(at)),
    };
    let chat = [
        line("Ana", Role::Person, "Ari, I saw an otter.", 1_697_228_400_000_000),
        line("Aria", Role::Bot, "An otter!", 1_697_228_500_000_000),
        line("Zed", Role::Bot, "Hm.", u64::MAX),
    ];

    let imported = world.backend.messages.import(&room(LOBBY), chat.to_vec(), "a").await.unwrap();
    let again = world.backend.messages.import(&room(LOBBY), chat.to_vec(), "a").await.unwrap();
    let other = world.backend.messages.import(&room(LOBBY), chat.to_vec(), "b").await;
    world.pass(1_000.0).await;

    let expected = Imported { messages: 3, undated: 1, ..Imported::default() };
    assert_eq!((&imported, &again), (&expected, &expected));
    assert!(matches!(other, Err(Refused::Conflict(_))), "{other:?}");
    assert!(world.side.asked.lock().is_empty() && world.main.asked.lock().is_empty());
    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", "Ari, I saw an otter."), ("aria", "An otter!"), ("Zed", "Hm.")]));
    let history = serde_json::to_value(world.try_history(LOBBY).await.unwrap()).unwrap();
    assert_eq!(history["messages"][0]["at"], "2023-10-13T20:20:00.000Z");
    assert_eq!(history["messages"][2]["at"], history["messages"][1]["at"], "a time in the future is that of the message before");
    assert_eq!(history["messages"][1].get("reply"), None, "nobody can ask for another answer");
    let prompt = answered(&world, "Ari, what did I see?").await;
    assert!(prompt.contains("I saw an otter.") && prompt.contains("An otter!"), "{prompt}");
    world.forget("Ana", false).await.unwrap();
    assert_eq!(left_of("I saw", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_chats_that_are_imported_at_once_one_is_refused() {
    let world = willing().await;
    let chat = |name: &str| {
        let from = Author { id: name.into(), name: name.into(), role: Role::Person };
        vec![ImportedMessage { from, text: "Hello.".into(), is_scene: false, at: None }; 3]
    };
    let messages = &world.backend.messages;
    let lobby = room(LOBBY);

    let (first, second) = tokio::join!(messages.import(&lobby, chat("Ana"), "a"), messages.import(&lobby, chat("Ben"), "b"));

    assert!(
        first.as_ref().is_ok_and(|done| done.messages == 3) && matches!(second, Err(Refused::Conflict(_))),
        "{first:?} {second:?}"
    );
    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", "Hello."); 3]));
}
