//! Forgetting people, deleting messages, and what remains after an interruption.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::keeping::{one_turn, write_dead_letter};
use super::retaining::left_of;
use super::world::{World, channel_key, lines, purpose, room};
use crate::actors::erasure::deletion::{append_deletion, redact_traces, traces_of};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::writer::requests::{drained, look, write_meta};
use crate::backend;
use crate::domain::id::{Seq, Ward};
use crate::domain::question_context::Purpose;
use crate::journal::key;
use crate::journal::record::encode_number;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{ExportForm, Forget};
use crate::ports::store::Write;

#[tokio::test(start_paused = true)]
async fn a_forgotten_person_leaves_no_word_in_the_store() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Ana told me zebra.\nNO")]);
    world.say("lobby", "zebra one").await;
    world.say("lobby", "Ari, zebra two").await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "hello" })).await;
    world.pass(1_000.0).await;

    let first = world.forget("Ana", false).await.unwrap();
    let again = world.forget("Ana", false).await;

    assert_eq!(first.messages, 2);
    assert!(first.decisions > 0);
    assert!(matches!(again, Err(Refused::NotFound(_))), "{again:?}");
    assert_eq!(world.history("lobby").await, lines(&[("Ben", "hello")]));
    let export = world.export("lobby", ExportForm::Json).await.join("\n");
    assert!(!export.contains("zebra") && !export.contains("Ana"), "{export}");
    let channel_key = channel_key("lobby");
    let snapshot = world.reader().restore(&channel_key).await.unwrap().snapshot.expect("the channel went to sleep");
    let snapshot = serde_json::to_string(&snapshot).unwrap();
    assert!(!snapshot.contains("zebra") && !snapshot.contains("Ana"), "{snapshot}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_made_after_its_sender_was_forgotten_is_stored_without_words() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Ana told me zebra.\nNO")]);
    world.say_with("lobby", json!({ "from": "Ben", "text": "hello" })).await;
    world.say("lobby", "Ari, zebra").await;
    world.rest().await;

    world.forget("Ana", false).await.unwrap();
    world.pass(1_000.0).await;

    assert_eq!(world.decisions("lobby").await[0]["decision"], "NO");
    assert_eq!(left_of("zebra", &world).await, 0);
    assert_eq!(left_of("Ana", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_thoughts_from_a_summary_are_forgotten_with_it() {
    let world = World::with_lobby_settings(json!({ "prompt": { "summary_after": 2 } })).await;
    world.side.answers([Ok("As I heard: zebra.\nNO")]);
    world.say("lobby", "zebra one").await;
    world.say_then_pass("lobby", "zebra two", 60.0).await;
    for number in 0..16 {
        world.say_with("lobby", json!({ "from": "Ben", "text": format!("number {number}") })).await;
        world.pass(60.0).await;
    }
    assert!(left_of("zebra", &world).await > 8);

    // The summary is made again, from what is left.
    world.side.answers([Ok("Nothing new.\nNO")]);
    let forgotten = world.forget("Ana", false).await.unwrap();
    world.pass(1_000.0).await;

    assert!(forgotten.summaries > 0 && forgotten.decisions > 6, "{forgotten:?}");
    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn no_summary_restores_words_that_are_being_redacted() {
    let world = World::with_overlay(json!({ "prompt": { "summary_after": 5 } })).await;
    world.open("lobby", &["aria"]).await;
    world.side.answer_by(|request| (*purpose(request) == Purpose::Summary).then(|| Ok(format!("They said: {}", request.user()))));
    world.side.set_delay(Duration::from_secs(5));
    let mut ana = Vec::new();
    for number in 0..8 {
        ana.push(world.say("lobby", &format!("zebra {number}")).await);
        world.say_with("lobby", json!({ "from": "Ben", "text": format!("hello {number}") })).await;
    }
    let summaries = || world.side.asked.lock().iter().filter(|asked| *purpose(asked) == Purpose::Summary).count();
    while summaries() == 0 {
        world.pass(1.0).await;
    }
    let (channel_key, gone) = (channel_key("lobby"), ana.into_iter().collect());

    let turn = world.context.rewrite_locks.lock(&channel_key).await;
    append_deletion(&world.context, &channel_key, &gone, Vec::new()).await.unwrap();
    let traces = traces_of(&world.reader(), &channel_key, &gone).await.unwrap();
    world.pass(20.0).await;
    redact_traces(&world.context, &channel_key, traces.redacted, Vec::new()).await.unwrap();
    drop(turn);
    world.pass(60.0).await;

    assert_eq!(summaries(), 2, "it was requested again");
    assert_eq!(left_of("zebra", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_repetition_judgement_are_forgotten_with_the_statements() {
    let gate = json!({ "skip_when_other_addressed": false });
    let world = World::with_salon(json!({ "repetition": { "judge": "model" }, "gate": gate })).await;
    world.side.answer_by(|request| {
        let is_judging = request.companion.is_none();
        Some(Ok(if is_judging { "They repeat zebra.\n0.1".into() } else { "Me.\nYES".to_owned() }))
    });
    world.say_then_pass("salon", "Ari: zebra", 600.0).await;
    assert!(left_of("They repeat zebra", &world).await > 0);

    world.forget("Ana", true).await.unwrap();
    world.pass(1_000.0).await;

    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn answers_can_still_be_deleted_after_the_person_was_forgotten() {
    let world = World::with_willing_lobby().await;
    world.main.answers([Ok("A zebra, Ana?")]);
    world.say_then_pass("lobby", "Ari, a zebra!", 1_000.0).await;

    world.forget("Ana", false).await.unwrap();
    let again = [world.forget("Ana", true).await, world.forget("Ana", false).await];

    let [Err(Refused::NotFound(with)), Err(Refused::NotFound(without))] = again else { panic!("{again:?}") };
    assert!(with.contains("delete them one by one") && !without.contains("one by one"), "{with}; {without}");
    assert_eq!(world.history("lobby").await, lines(&[("aria", "A zebra, Ana?")]));
    let exported = world.export("lobby", ExportForm::Json).await;
    let lines = exported.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let named: Vec<u64> = lines.filter(|line| line.to_string().contains("Ana")).filter_map(|line| line["seq"].as_u64()).collect();
    for seq in &named {
        world.backend.messages.delete(&room("lobby"), Seq(*seq)).await.unwrap();
    }
    assert_eq!(named.len(), 1, "{exported:?}");
    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_deleted_with_its_message_and_its_person_and_not_shown() {
    for forgets in [true, false] {
        let world = World::with_lobby().await;
        let seq = world.say("lobby", "zebra").await;
        write_dead_letter(&world, seq).await;
        let world = world.crash().await;

        if forgets {
            world.forget("Ana", false).await.unwrap();
        } else {
            world.backend.messages.delete(&room("lobby"), seq).await.unwrap();
        }

        assert_eq!(world.backend.maintenance.quarantine().await.unwrap().messages, []);
        assert_eq!([left_of("a bug", &world).await, left_of("zebra", &world).await, left_of("Ana", &world).await], [0; 3]);
        let world = world.crash().await;
        world.pass(60.0).await;
        assert_eq!(world.decisions("lobby").await, Vec::<Value>::new(), "forgets: {forgets}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_long_forgetting_leaves_no_word_once_it_is_repeated() {
    let world = World::with_lobby().await;
    for number in 0..1_100 {
        world.say("lobby", &format!("zebra {number}")).await;
    }
    world.pass(1_000.0).await;
    let all = left_of("zebra", &world).await;
    let (context, store) = (world.context.clone(), world.store.clone());
    store.hold();
    let forget = Forget { guild: "home".into(), person: "Ana".into(), answers: false };
    let forgetting = tokio::spawn(async move { drop(backend::backend(context, store).maintenance.forget(forget).await) });
    // Until a part of it is written.
    while left_of("zebra", &world).await == all {
        world.pass(0.001).await;
        world.store.commit_next();
    }
    forgetting.abort();
    world.store.release();
    let left = left_of("zebra", &world).await;
    assert!((1..all).contains(&left), "it has more than one part: {left} of {all}");

    let world = world.crash().await;
    world.forget("Ana", false).await.unwrap();

    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn forgetting_needs_few_store_reads_however_much_was_said() {
    let world = World::with_lobby().await;
    for number in 0..2_000 {
        world.say("lobby", &format!("zebra {number}")).await;
    }
    world.pass(1_000.0).await;
    let before = world.store.asked();

    world.forget("Ana", false).await.unwrap();

    let asked = world.store.asked() - before;
    assert!(asked < 200, "{asked}");
    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_message_is_deleted_leaves_no_person_listed_without_messages() {
    let mut interrupted = 0;
    for steps in 0..8 {
        let world = World::with_lobby().await;
        let seq = world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra" })).await;
        world.say_then_pass("lobby", "news", 1_000.0).await;
        let (context, store) = (world.context.clone(), world.store.clone());
        store.hold();
        let deletion = tokio::spawn(async move { backend::backend(context, store).messages.delete(&room("lobby"), seq).await });
        world.commit_groups(steps, &deletion).await;
        let is_over = deletion.is_finished();
        deletion.abort();
        let is_half = left_of("zebra", &world).await == 0 && left_of("Zoe", &world).await > 0;
        world.store.release();

        let world = world.crash().await;

        interrupted += u32::from(is_half && !is_over);
        let is_gone = [left_of("zebra", &world).await, left_of("Zoe", &world).await] == [0, 0];
        assert_eq!(is_gone, steps > 0, "the noted deletion is done: after {steps} steps");
        world.backend.messages.delete(&room("lobby"), seq).await.unwrap();
        assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0], "after {steps} steps");
        assert_eq!(left_of("unlisting", &world).await, 0, "after {steps} steps");
        assert_eq!(world.history("lobby").await, lines(&[("Ana", "news")]));
        let forgotten = world.forget("Ana", false).await;
        assert_eq!(forgotten.unwrap().messages, 1, "a person with a message left is found");
    }
    assert!(interrupted > 0, "it was interrupted between the words and the name");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_deletes_their_only_address_is_not_listed_any_more() {
    let world = World::with_lobby().await;
    let seq = world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari, zebra" })).await;
    let other = world.say_with("lobby", json!({ "from": "Ana", "text": "Ari?" })).await;
    world.pass(1_000.0).await;
    let counted = left_of("address", &world).await;

    world.backend.messages.delete(&room("lobby"), seq).await.unwrap();

    assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0]);
    assert_eq!(left_of("address", &world).await, counted, "the count stays");
    assert!(left_of("Ana", &world).await > 2 && other > seq);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_deletes_a_retried_message_is_not_listed_any_more() {
    let world = World::with_lobby().await;
    let seq = world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra" })).await;
    for number in 0..300 {
        world.say("lobby", &format!("number {number}")).await;
    }
    write_dead_letter(&world, seq).await;
    let world = world.crash().await;
    let entry = world.backend.maintenance.quarantine().await.unwrap().messages[0].id.clone();
    world.backend.maintenance.retry(&entry).await.unwrap();
    world.pass(60.0).await;
    let channel_key = channel_key("lobby");
    let again = world.reader().message(&channel_key, &format!("retry:{entry}")).await.unwrap().unwrap();

    world.backend.messages.delete(&room("lobby"), again).await.unwrap();

    assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await, left_of("a bug", &world).await], [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn no_word_is_left_in_a_room_whose_deletion_was_interrupted_after_the_next_start_or_when_a_person_is_forgotten() {
    for restarts in [true, false] {
        let mut world = half_deleted().await;
        assert!(left_of("zebra", &world).await > 0);

        if restarts {
            world = world.crash().await;
            world.rest().await;
        } else {
            world.forget("Ana", false).await.unwrap();
        }

        assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0], "restarts: {restarts}");
    }
}

/// The lobby was deleted, and nothing was swept before the crash.
async fn half_deleted() -> World {
    let world = World::with_lobby().await;
    let last = world.say_then_pass("lobby", "zebra", 1_000.0).await;
    let channel_key = channel_key("lobby");
    let head = world.reader().head(&channel_key).await.unwrap();
    let (ward, no, lowest) = (channel_key.ward(), head.no.unwrap(), encode_number(head.last.next()));
    let marks = [key::tombstone(ward, no), key::sweep(ward, no)].map(|key| Write::Put(key, lowest.clone()));
    let gone = [key::snapshot(ward, no), key::pending(ward, no)].map(Write::Remove);
    world.write(ward, marks.into_iter().chain(gone).collect()).await;
    assert!(last < head.last);
    world
}

#[tokio::test(start_paused = true)]
async fn forgetting_fails_if_a_room_with_the_persons_words_cannot_be_found() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say("lobby", "zebra one").await;
    world.say_then_pass("den", "zebra two", 1_000.0).await;
    let name = world.key(&channel_key("lobby"), key::channel_of).await;
    world.write(channel_key("lobby").ward(), vec![Write::Remove(name)]).await;

    let forgotten = world.forget("Ana", false).await;

    assert!(matches!(&forgotten, Err(Refused::Damaged(detail)) if detail.contains("history restore")), "{forgotten:?}");
    assert_eq!(left_of("zebra two", &world).await, 0, "what can be found is deleted");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_making_is_forgotten_too_or_forgetting_fails() {
    let world = World::with_willing_lobby().await;
    world.main.answers([Ok("A zebra, Ana?")]);
    world.main.set_delay(Duration::from_secs(20));
    world.say_then_pass("lobby", "Ari, a zebra!", 5.0).await;

    let early = world.forget("Ana", true).await;
    world.pass(60.0).await;
    let later = world.forget("Ana", true).await;

    assert!(matches!(early, Err(Refused::Unavailable { .. })), "{early:?}");
    later.unwrap();
    world.pass(1_000.0).await;
    assert_eq!([left_of("zebra", &world).await, left_of("Ana", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn words_are_not_redacted_before_a_starting_channel_knows_of_the_deletion() {
    let mut world = World::with_lobby().await;
    world.say("lobby", "zebra").await;
    world.rest().await;
    let channel_key = channel_key("lobby");
    world.store.hold();
    let context = world.context.clone();
    let saying = tokio::spawn(async move { write_meta(&context, Ward(0), Vec::new()).await });
    world.kill(&ChannelActorKey(channel_key.channel.clone())).await;
    while world.context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_none() {
        one_turn().await;
    }

    let patience = Duration::from_secs(60);
    let early = timeout(patience, drained(&world.context, &channel_key)).await.expect("the wait is limited");
    world.store.release();
    saying.await.unwrap().unwrap();
    let later = drained(&world.context, &channel_key).await;

    assert!(matches!(early, Err(WriteError::Unavailable(_))), "{early:?}");
    assert_eq!(later, Ok(()));
    assert!(look(&world.context, &channel_key.channel).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_compaction_no_date_is_given_for_removing_words_from_the_file() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("NO")]);
    let mut has_date = Vec::new();
    for has_failed in [false, true] {
        world.context.compaction_failed.store(has_failed, std::sync::atomic::Ordering::Relaxed);
        world.say("lobby", "hello").await;
        world.rest().await;
        has_date.push(world.forget("Ana", false).await.unwrap().in_file_until.is_some());
    }

    assert_eq!(has_date, [true, false]);
}
