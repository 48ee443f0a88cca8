//! Replace this answer: another statement in the place of the newest one (docs/design/speaking.md S-17).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::retaining::left_of;
use super::world::{World, channel_key, lines, room};
use crate::domain::id::Seq;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::messages::{Drafting, Edit};
use crate::ports::chat_platform::NotSent;
use crate::ports::chat_platform::fake::{FakePlatform, Fate};

const LOBBY: &str = "lobby";
const YES: &str = "They mean me.\nYES";
const QUESTION: &str = "Ari, how far is it?";

/// Ana's question has been answered, and the room has come to rest.
async fn answered(overlay: Value) -> (World, Seq) {
    let world = World::with_lobby_settings(overlay).await;
    world.side.answers([Ok(YES)]);
    world.main.answers([Ok("It is far."), Ok("It is an hour by train.")]);
    world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
    let statement = newest(&world).await;
    (world, statement)
}

async fn newest(world: &World) -> Seq {
    let messages = world.recorded(LOBBY, "message").await;
    Seq(messages.last().and_then(|message| message["seq"].as_u64()).expect("a message"))
}

async fn try_again(world: &World, statement: Seq) -> Result<(), Refused> {
    world.backend.messages.answer_again(&room(LOBBY), statement, false, None).await
}

async fn refused(world: &World, statement: Seq) -> String {
    let before = world.history(LOBBY).await;
    let Err(Refused::Conflict(detail)) = try_again(world, statement).await else { panic!("it is not refused") };
    world.pass(60.0).await;
    assert_eq!(world.history(LOBBY).await, before, "what is refused changes nothing");
    detail.to_string()
}

#[tokio::test(start_paused = true)]
async fn another_statement_takes_the_place_of_the_newest_one() {
    let (world, statement) = answered(json!({})).await;

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    assert_eq!(world.decisions(LOBBY).await.len(), 1, "nobody is asked");
    let responds = world.recorded(LOBBY, "respond").await;
    assert_eq!((&responds[1]["again"], &responds[1]["messages"]), (&json!(statement), &json!([QUESTION])));
    let prompt = world.main.asked.lock()[1].user().into_owned();
    assert!(prompt.contains(QUESTION) && !prompt.contains("It is far."), "{prompt}");
    let kept = world.backend.records.prompt(&room(LOBBY), newest(&world).await).await;
    assert!(kept.is_ok_and(|kept| kept.messages.iter().any(|message| *message.text == *prompt)));
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    let story: Vec<_> = why.story.iter().map(|line| &*line.text).collect();
    assert!(story.iter().any(|text| text.contains("pressed “Replace this answer”")), "{story:#?}");
    let asked = world.recorded(LOBBY, "message").await[0]["seq"].to_string();
    let why = world.why(LOBBY, None, Some(WhyAt::Message(asked.into()))).await.unwrap();
    let ending = "Aria answered. That answer was replaced later, and this one stands: “It is an hour by train.”";
    assert!(why.companions[0].text.ends_with(ending), "{}", why.companions[0].text);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_tried_again_is_not_deleted() {
    let (world, statement) = answered(json!({})).await;

    let messages = world.recorded(LOBBY, "message").await;
    let of_person = refused(&world, Seq(messages[0]["seq"].as_u64().unwrap())).await;
    world.patch(LOBBY, json!({ "paused": true })).await.unwrap();
    let paused = refused(&world, statement).await;
    world.patch(LOBBY, json!({ "paused": false })).await.unwrap();
    world.say_then_pass(LOBBY, "I take the train.", 1_000.0).await;
    let not_newest = refused(&world, statement).await;
    let unknown = try_again(&world, Seq(9_999)).await;

    assert!(paused.contains("is paused"), "{paused}");
    for detail in [of_person, not_newest] {
        assert!(detail.starts_with("only a companion’s message after which nobody has said more"), "{detail}");
    }
    assert!(matches!(unknown, Err(Refused::NotFound(_))), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_press_survives_a_crash_and_is_answered_once() {
    let (world, statement) = answered(json!({})).await;
    world.main.set_delay(Duration::from_secs(20));

    try_again(&world, statement).await.unwrap();
    let world = world.crash().await;
    world.main.answers([Ok("It is an hour by train.")]);
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    assert_eq!(world.recorded(LOBBY, "respond").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn over_the_budget_it_stays_and_may_be_tried_again_later() {
    let (world, statement) = answered(json!({ "gate": { "guild_statements_per_day": 1 } })).await;

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is far.")]));
    assert_eq!(world.recorded(LOBBY, "deleted").await, [Value::Null; 0]);
    assert!(try_again(&world, statement).await.is_ok());
    assert_eq!(world.recorded(LOBBY, "failed").await[0]["error"], "budget");
    assert_eq!(world.main.asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn on_another_platform_the_former_statement_is_deleted_in_all_its_parts() {
    for crashes in [false, true] {
        let (platform, world, statement) = answered_on_platform().await;
        platform.takes_at_most(2_000);
        world.main.set_delay(Duration::from_secs(20));

        try_again(&world, statement).await.unwrap();
        let world = if crashes { world.crash().await } else { world };
        world.main.answers([Ok("It is an hour by train.")]);
        world.pass(60.0).await;

        assert_eq!(platform.posted(), lines(&[("Aria", "It is an hour by train.")]));
        assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_the_platform_keeps_stays_on_record() {
    let (platform, world, statement) = answered_on_platform().await;
    platform.takes_at_most(2_000);
    platform.will([Fate::Fails(NotSent::Refused("for a test".into()))]);
    world.main.answers([Ok("It is an hour by train.")]);

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    let texts: Vec<_> = world.history(LOBBY).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [QUESTION, "It is very far. It takes a whole day.", "It is an hour by train."]);
    assert_eq!(platform.posted().len(), 3);
}

/// The fates of two deletions that succeed, and of a part that is sent only half a minute later.
fn sent_late() -> [Fate; 3] {
    let later = NotSent::Later { after: Some(Duration::from_secs(30)), detail: "for a test".into() };
    [Fate::Silent, Fate::Silent, Fate::Fails(later)]
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_former_parts_were_deleted_posts_the_new_statement_once() {
    let (platform, world, statement) = answered_on_platform().await;
    platform.takes_at_most(2_000);
    platform.will(sent_late());
    world.main.answers([Ok("It is an hour by train.")]);

    try_again(&world, statement).await.unwrap();
    world.pass(10.0).await;
    let between = platform.posted();
    let world = world.crash().await;
    world.pass(600.0).await;

    assert_eq!(between, []);
    assert_eq!(platform.posted(), lines(&[("Aria", "It is an hour by train.")]));
    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    assert_eq!(versions(&world).await.0.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_deletes_no_former_part_before_it_can_send_the_new_one() {
    let (platform, world, statement) = answered_on_platform().await;
    platform.takes_at_most(2_000);
    world.main.answers([Ok("It is an hour by train.")]);
    world.context.postings.close(Duration::ZERO).await;

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;
    let stopping = platform.posted().len();
    let world = world.crash().await;
    world.main.answers([Ok("It is an hour by train.")]);
    world.pass(600.0).await;

    assert_eq!(stopping, 2);
    assert_eq!(platform.posted(), lines(&[("Aria", "It is an hour by train.")]));
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_the_platform_keeps_stays_on_record_after_a_stop_too() {
    let (platform, world, statement) = answered_on_platform().await;
    platform.takes_at_most(2_000);
    let [.., late] = sent_late();
    platform.will([Fate::Fails(NotSent::Refused("for a test".into())), late]);
    world.main.answers([Ok("It is an hour by train.")]);

    try_again(&world, statement).await.unwrap();
    world.pass(10.0).await;
    let world = world.crash().await;
    world.pass(600.0).await;

    let texts: Vec<_> = world.history(LOBBY).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [QUESTION, "It is very far. It takes a whole day.", "It is an hour by train."]);
    assert_eq!(platform.posted().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_former_answer_to_a_message_that_is_deleted_during_the_delivery_is_no_version() {
    for crashes in [false, true] {
        let platform = Arc::new(FakePlatform::default());
        let world = World::with_platform(platform.clone()).await;
        platform.takes_at_most(32);
        world.side.answers([Ok(YES)]);
        world.main.answers([Ok("It is very far. It takes a whole day."), Ok("It is an hour by train.")]);
        world.say(LOBBY, "I want to travel.").await;
        world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
        let statement = newest(&world).await;
        let first = Seq(world.recorded(LOBBY, "message").await[0]["seq"].as_u64().unwrap());
        platform.takes_at_most(2_000);
        platform.will(sent_late());

        try_again(&world, statement).await.unwrap();
        world.pass(10.0).await;
        world.backend.messages.delete(&room(LOBBY), first).await.unwrap();
        let world = if crashes { world.crash().await } else { world };
        world.pass(600.0).await;

        assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
        assert_eq!(left_of("very far", &world).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_continuation_that_only_repeats_what_stands_is_asked_for_once_more() {
    for more in ["But a train goes there.", "It is far."] {
        let (world, statement) = answered(json!({})).await;
        world.main.answers([Ok("It is far."), Ok(more)]);

        world.backend.messages.answer_again(&room(LOBBY), statement, true, None).await.unwrap();
        world.pass(60.0).await;

        let is_more = more != "It is far.";
        let whole = if is_more { "It is far. But a train goes there." } else { "It is far." };
        assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", whole)]));
        assert_eq!(world.main.asked.lock().len(), 3);
        assert_eq!(world.recorded(LOBBY, "failed").await.len(), usize::from(!is_more));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scene_after_a_statement_leaves_it_as_it_is() {
    let (world, statement) = answered(json!({})).await;

    let narrator = crate::domain::message::Author::of_name("Ana".into());
    world.backend.messages.set_scene(&room(LOBBY), narrator, "Night falls.".into()).await.unwrap();
    let detail = refused(&world, statement).await;

    assert!(detail.starts_with("only a companion’s message after which nobody has said more"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn only_who_was_answered_may_ask_for_another_answer() {
    let (world, statement) = answered(json!({})).await;
    let by = async |person: &str| world.backend.messages.answer_again(&room(LOBBY), statement, false, Some(&person.into())).await;

    let Err(Refused::Conflict(detail)) = by("Ben").await else { panic!("it is not refused") };
    let answered = by("Ana").await;

    assert!(detail.to_string().starts_with("that answer is to others"), "{detail}");
    assert!(answered.is_ok(), "{answered:?}");
}

/// All texts of the newest prompt of the main model.
fn newest_prompt(world: &World) -> String {
    let asked = world.main.asked.lock();
    asked.last().unwrap().messages.iter().map(|message| message.words().into_owned()).collect::<Vec<_>>().join("\n")
}

/// The versions of the newest message, and which of them stands.
async fn versions(world: &World) -> (Vec<String>, usize) {
    let messages = world.try_history(LOBBY).await.unwrap().messages;
    let versions = messages.last().and_then(|newest| newest.versions.clone()).expect("versions");
    (versions.texts.iter().map(ToString::to_string).collect(), versions.standing)
}

#[tokio::test(start_paused = true)]
async fn the_former_answers_stay_as_versions_of_which_one_stands() {
    let (world, statement) = answered(json!({})).await;
    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;
    let both = versions(&world).await;
    let statement = newest(&world).await;

    world.backend.messages.stand(&room(LOBBY), statement, 0).await.unwrap();
    let unknown = world.backend.messages.stand(&room(LOBBY), statement, 2).await;
    let world = world.crash().await;
    let first = versions(&world).await;
    let exported = world.export(LOBBY, ExportForm::Markdown).await.join("\n");
    world.main.answers([Ok("By train, then.")]);
    world.side.answers([Ok(YES)]);
    world.say_then_pass(LOBBY, "Ari, and then?", 60.0).await;
    let later = world.backend.messages.stand(&room(LOBBY), statement, 1).await;

    let texts = vec!["It is far.".to_owned(), "It is an hour by train.".to_owned()];
    assert_eq!((both, first), ((texts.clone(), 1), (texts, 0)));
    assert!(matches!(unknown, Err(Refused::Invalid { .. })), "{unknown:?}");
    assert!(exported.contains("version 1 of 2") && !exported.contains("an hour by train"), "{exported}");
    let prompt = newest_prompt(&world);
    assert!(prompt.contains("It is far.") && !prompt.contains("an hour by train"), "{prompt}");
    assert!(matches!(later, Err(Refused::Conflict(_))), "{later:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_version_that_somebody_edited_is_marked_as_edited() {
    let (world, statement) = answered(json!({})).await;
    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;
    let messages = &world.backend.messages;
    let (lobby, statement, mut marks) = (room(LOBBY), newest(&world).await, Vec::new());
    let mut edits = Vec::new();
    for step in ["first", "edit", "second", "first", "continue"] {
        // What was recorded of a replaced statement is redacted.
        edits = if step == "continue" { world.recorded(LOBBY, "edited").await } else { edits };
        match step {
            "edit" => drop(messages.edit(&lobby, statement, Edit { text: "It is near.".into() }).await.unwrap()),
            "continue" => messages.answer_again(&lobby, statement, true, None).await.unwrap(),
            _ => messages.stand(&lobby, statement, usize::from(step == "second")).await.unwrap(),
        }
        world.main.answers([Ok("By train.")]);
        world.pass(60.0).await;
        let is_marked = world.try_history(LOBBY).await.unwrap().messages.pop().unwrap().edited;
        let is_exported = world.export(LOBBY, ExportForm::Markdown).await.join("").contains("· edited");
        marks.push((is_marked, is_exported));
    }

    assert_eq!(marks, [false, true, false, true, true].map(|is_marked| (is_marked, is_marked)));
    let told: Vec<_> = edits.iter().map(|edit| (edit["version"].as_u64(), edit["edited"].as_bool())).collect();
    assert_eq!(told, [(Some(0), Some(false)), (None, Some(true)), (Some(1), Some(false)), (Some(0), Some(true))]);
}

#[tokio::test(start_paused = true)]
async fn versions_are_erased_with_what_they_answer() {
    let (world, statement) = answered(json!({})).await;
    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;
    let question = Seq(world.recorded(LOBBY, "message").await[0]["seq"].as_u64().unwrap());

    world.backend.messages.delete(&room(LOBBY), question).await.unwrap();
    world.pass(60.0).await;

    let history = world.try_history(LOBBY).await.unwrap().messages;
    assert_eq!((history.len(), &*history[0].text, &history[0].versions), (1, "It is an hour by train.", &None));
    assert_eq!(left_of("It is far.", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_commit_of_another_answer_loses_and_doubles_nothing() {
    for groups in 0..8 {
        let (world, statement) = answered(json!({})).await;
        world.main.answers([Ok("It is an hour by train.")]);
        let (messages, lobby) = (world.backend.messages.clone(), room(LOBBY));
        world.store.hold();
        let asking = tokio::spawn(async move {
            let _ = messages.answer_again(&lobby, statement, false, None).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
        });
        world.commit_groups(groups, &asking).await;
        asking.abort();
        world.store.release();

        let world = world.crash().await;
        world.main.answers([Ok("It is an hour by train.")]);
        world.pass(600.0).await;

        let history = world.history(LOBBY).await;
        let is_new = history == lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]);
        assert!(is_new || history == lines(&[("Ana", QUESTION), ("aria", "It is far.")]), "{groups}: {history:?}");
        if is_new {
            let texts = vec!["It is far.".to_owned(), "It is an hour by train.".to_owned()];
            assert_eq!(versions(&world).await, (texts, 1), "{groups}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_continuation_follows_the_answer_and_is_no_version() {
    let (world, statement) = answered(json!({})).await;
    world.main.answers([Ok("It is far. But a train goes there.")]);

    world.backend.messages.answer_again(&room(LOBBY), statement, true, None).await.unwrap();
    world.pass(60.0).await;

    let whole = "It is far. But a train goes there.";
    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", whole)]));
    let prompt = newest_prompt(&world);
    assert!(prompt.contains("It is far.") && prompt.contains("Write only what follows it"), "{prompt}");
    assert_eq!(world.try_history(LOBBY).await.unwrap().messages[1].versions, None);
}

#[tokio::test(start_paused = true)]
async fn on_another_platform_a_short_post_is_edited_in_place() {
    for crashes in [false, true] {
        let platform = Arc::new(FakePlatform::default());
        let world = World::with_platform(platform.clone()).await;
        world.side.answers([Ok(YES)]);
        world.main.answers([Ok("It is far.")]);
        world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
        let statement = newest(&world).await;
        let before = world.reader().ids_of(&channel_key(LOBBY), statement).await.unwrap();
        world.main.set_delay(Duration::from_secs(20));
        world.main.answers([Ok("It is an hour by train.")]);

        try_again(&world, statement).await.unwrap();
        let world = if crashes { world.crash().await } else { world };
        world.main.answers([Ok("It is an hour by train.")]);
        world.pass(60.0).await;

        assert_eq!(platform.posted(), lines(&[("Aria", "It is an hour by train.")]));
        let statement = newest(&world).await;
        assert_eq!(world.reader().ids_of(&channel_key(LOBBY), statement).await.unwrap(), before, "it is the same post");
        assert_eq!(versions(&world).await.0.len(), 2);

        world.backend.messages.stand(&room(LOBBY), statement, 0).await.unwrap();

        assert_eq!(platform.posted(), lines(&[("Aria", "It is far.")]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_draft_is_for_the_person_and_on_no_record() {
    let (world, _) = answered(json!({})).await;
    world.main.answers([Ok("Ana: Is there a train?")]);
    let before = world.journal(&channel_key(LOBBY)).await;
    let drafting = |companion: &str| Drafting { companion: companion.into(), from: "Ana".into() };

    let drafted = world.backend.messages.draft(&room(LOBBY), drafting("aria"), None).await.unwrap();
    world.pass(1.0).await;
    let unknown = world.backend.messages.draft(&room(LOBBY), drafting("bruno"), None).await;

    assert_eq!(&*drafted.text, "Is there a train?");
    assert_eq!(world.journal(&channel_key(LOBBY)).await, before);
    let prompt = newest_prompt(&world);
    assert!(prompt.contains("write what Ana could say next"), "{prompt}");
    assert!(matches!(unknown, Err(Refused::NotFound(_))), "{unknown:?}");
}

/// Ana's question has been answered on a platform, in two parts.
async fn answered_on_platform() -> (Arc<FakePlatform>, World, Seq) {
    let platform = Arc::new(FakePlatform::default());
    let world = World::with_platform(platform.clone()).await;
    platform.takes_at_most(32);
    world.side.answers([Ok(YES)]);
    world.main.answers([Ok("It is very far. It takes a whole day.")]);
    world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
    assert_eq!(platform.posted().len(), 2);
    let statement = newest(&world).await;
    (platform, world, statement)
}
