//! Stories, exports, copies and quarantine.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::world::{World, ballot, channel_key, lines, room};
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{DeadLetterRecord, encode};
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Why, WhyAt};
use crate::ports::backend::keeping::{ExportForm, Person};
use crate::replay::{ReplayEventKind, Script, run};

async fn why(world: &World, at: Option<WhyAt>) -> Why {
    world.why("lobby", None, at).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_story_of_a_yes_covers_the_messages_and_the_statement() {
    let world = World::with_willing_lobby().await;
    world.say_then_pass("lobby", "Ari, are you there?", 5.0).await;

    let explanation = why(&world, None).await;

    let events: Vec<&str> = explanation.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events, ["message", "evaluate", "decision", "respond", "statement"]);
    assert_eq!(explanation.story[0].text, "Ana said to Aria: “Ari, are you there?”");
    assert_eq!(explanation.story[2].text, "Aria wanted to speak: “Me.”");
    assert_eq!(explanation.decision.unwrap().more["messages"], json!(["Ari, are you there?"]));
}

#[tokio::test(start_paused = true)]
async fn before_the_first_decision_a_story_tells_what_is_waited_for() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "one", 2.0).await;

    let explanation = why(&world, None).await;

    let waiting = explanation.waiting_for.unwrap();
    assert!(explanation.story.is_empty());
    assert_eq!(waiting.messages, Some(8));
    assert!(waiting.lull_at.is_some());
    assert!(waiting.text.starts_with("Aria thinks about an answer after 8 more messages"), "{}", waiting.text);
}

#[tokio::test(start_paused = true)]
async fn a_story_is_found_by_its_number_and_by_its_time() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "one", 60.0).await;
    let first = world.context.clock.now();
    world.say_then_pass("lobby", "two", 60.0).await;
    let decisions = world.decisions("lobby").await;

    let by_time = why(&world, Some(WhyAt::Moment(first))).await;
    let by_number = why(&world, Some(WhyAt::Event(Seq(decisions[1]["seq"].as_u64().unwrap())))).await;

    assert_eq!(json!(by_time.decision.unwrap().seq), decisions[0]["seq"]);
    assert_eq!(json!(by_number.decision.unwrap().seq), decisions[1]["seq"]);
}

#[tokio::test(start_paused = true)]
async fn every_event_is_exported() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "one", 60.0).await;

    let lines = world.export("lobby", ExportForm::Json).await;

    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["joined", "said", "jitter_drawn", "lull_fired", "evaluated", "decided"]);
    assert_eq!(events[1]["seq"], 2);
    assert_eq!(events[1]["channel"], "console:lobby");
}

#[tokio::test(start_paused = true)]
async fn a_script_exported_after_a_deletion_decides_the_same_without_the_words() {
    let world = World::with_lobby().await;
    world.open("lobby", &["aria", "bruno"]).await;
    world.side.answer_by(|request| {
        let is_about = |words| request.user().contains(words);
        let is_one = |name| request.companion.as_ref().is_some_and(|companion| &*companion.name == name);
        let speaks = (is_one("Aria") && is_about("Ari?") && !is_about("ask Bruno"))
            || (is_one("Bruno") && is_about("ask Bruno") && !is_about("Hello!"));
        Some(Ok(ballot(if speaks { "YES" } else { "NO" }, 5, "none")))
    });
    world.main.answers([Ok("I would ask Bruno."), Ok("Hello!")]);
    let zebra = world.say_then_pass("lobby", "a zebra", 60.0).await;
    world.say_then_pass("lobby", "Ari?", 60.0).await;
    let decided = decided(&world).await;
    let messages = world.recorded("lobby", "message").await;
    let answer = messages.iter().find(|message| message["from"] == "aria").and_then(|answer| answer["seq"].as_u64());
    for seq in [zebra, Seq(answer.unwrap())] {
        world.backend.messages.delete(&room("lobby"), seq).await.unwrap();
    }

    let (replayed, statements) = replayed(&world).await;

    assert_eq!(replayed, decided);
    assert_eq!(statements, ["… Bruno", "Hello!"]);
    assert!(!world.export("lobby", ExportForm::Replay).await[0].contains("zebra"));
}

/// The decisions, and their reasons.
async fn decided(world: &World) -> Vec<(String, String)> {
    let explanation =
        |decision: &Value| (decision["trigger"].as_str().unwrap().into(), decision["decision"].as_str().unwrap().into());
    world.decisions("lobby").await.iter().map(explanation).collect()
}

/// The decisions and statements of a replay of the export.
async fn replayed(world: &World) -> (Vec<(String, String)>, Vec<String>) {
    let lines = world.export("lobby", ExportForm::Replay).await;
    let (mut decided, mut statements) = (Vec::new(), Vec::new());
    for happening in run(&Script::from_json(&lines[0]).unwrap()).unwrap() {
        match happening.kind {
            ReplayEventKind::Decision { trigger, decision, .. } => decided.push((trigger.to_string(), decision.to_string())),
            ReplayEventKind::Statement { text, .. } => statements.push(text),
            ReplayEventKind::Failed { companion, .. } => panic!("{companion} fails"),
            _ => {}
        }
    }
    (decided, statements)
}

#[tokio::test(start_paused = true)]
async fn an_export_of_a_person_in_a_guild_has_their_messages_and_nothing_else() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say("lobby", "zebra one").await;
    world.say("den", "zebra two").await;
    world.say_with("den", json!({ "from": "Ben", "text": "hello" })).await;
    let seq = world.say("den", "taken back").await;
    world.backend.messages.delete(&room("den"), seq).await.unwrap();
    let ana = || Person { guild: "home".into(), id: "Ana".into() };

    let lines: Vec<_> = world.backend.records.export_person(ana()).await.unwrap().map(Result::unwrap).collect().await;

    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<_> = lines.iter().map(|line| line["message"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["zebra one", "zebra two"]);
    assert_eq!(lines[1]["channel"], "console:den");
    world.forget("Ana", false).await.unwrap();
    assert!(matches!(world.backend.records.export_person(ana()).await, Err(Refused::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_answered_with_the_existing_ones() {
    let world = World::with_lobby().await;
    let refused = world.backend.records.export_person(Person { guild: "home".into(), id: "Zoe".into() }).await.map(drop);
    let nobody = "no message of Zoe in home is on record, nor of anybody else there";
    assert!(matches!(refused, Err(Refused::NotFound(detail)) if &*detail == nobody));
    world.say("lobby", "zebra").await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "hello" })).await;
    world.rest().await;
    let asked = [
        ("hoem", "Ana", "there is no guild hoem: no room belongs to it, and it never used anything; did you mean home?"),
        ("home", "Anna", "no message of Anna in home is on record; did you mean Ana?"),
        ("home", "Zoe", "no message of Zoe in home is on record; there are Ana, Ben"),
    ];

    for (guild, person, words) in asked {
        let forgotten = world.forget_in(guild, person, false).await.map(drop);
        let exported = world.backend.records.export_person(Person { guild: guild.into(), id: person.into() }).await.map(drop);

        for refused in [forgotten, exported] {
            assert!(matches!(refused, Err(Refused::NotFound(detail)) if &*detail == words));
        }
    }
    assert_eq!(world.history("lobby").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_can_be_retried_and_dropped() {
    let world = World::with_lobby().await;
    let seq = world.say("lobby", "one").await;
    let given_up = world.say("lobby", "two").await;
    write_dead_letter(&world, seq).await;
    write_dead_letter(&world, given_up).await;
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.pass(60.0).await;
    assert_eq!(world.decisions("lobby").await, Vec::<Value>::new());
    let listed = world.backend.maintenance.quarantine().await.unwrap().messages;

    world.backend.maintenance.drop_entry(&listed[1].id).await.unwrap();
    world.backend.maintenance.retry(&listed[0].id).await.unwrap();
    world.pass(60.0).await;

    assert_eq!([listed[0].seq, listed[1].seq], [seq, given_up]);
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().messages, []);
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "two"), ("Ana", "one"), ("aria", "Hello!")]));
    let explanation = why(&world, Some(WhyAt::Message(seq.to_string().into()))).await;
    let explanation: Vec<_> =
        explanation.story.iter().map(|line| &*line.text).chain(explanation.companions.iter().map(|brief| &*brief.text)).collect();
    let channel_key = channel_key("lobby");
    let again = world.reader().message(&channel_key, &format!("retry:{}", listed[0].id)).await.unwrap().unwrap();
    assert!(explanation.iter().any(|text| text.contains(&format!("tried again as message {again}"))), "{explanation:?}");
    assert!(matches!(world.backend.maintenance.retry(&listed[0].id).await, Err(Refused::NotFound(_))));
    assert!(matches!(world.backend.maintenance.release("home").await, Err(Refused::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_is_no_message_can_be_dropped_and_not_retried() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("No.\nNO")]);
    world.say_then_pass("lobby", "Ari, one", 60.0).await;
    let decision = Seq(world.decisions("lobby").await[0]["seq"].as_u64().unwrap());
    write_dead_letter(&world, decision).await;
    let listed = world.backend.maintenance.quarantine().await.unwrap().messages;

    let refused = world.backend.maintenance.retry(&listed[0].id).await;

    assert!(matches!(&refused, Err(Refused::Conflict(detail)) if detail.contains("drop it instead")), "{refused:?}");
    world.backend.maintenance.drop_entry(&listed[0].id).await.unwrap();
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().messages, []);
}

/// Waits until every task that can run has run one step. (`yield_now` waits until no task can run.)
pub(super) async fn one_turn() {
    let mut has_waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

pub(super) async fn write_dead_letter(world: &World, seq: Seq) {
    dead_letter(world, &channel_key("lobby"), seq, "a bug").await;
}

pub(super) async fn dead_letter(world: &World, channel_key: &ChannelKey, seq: Seq, error: &str) {
    let record = DeadLetterRecord {
        guild: channel_key.guild.clone(),
        channel: channel_key.channel.clone(),
        seq,
        at: world.context.clock.now() + std::time::Duration::from_secs(seq.0),
        deaths: 3,
        error: error.into(),
        is_closed: false,
    };
    world.put(channel_key, |ward, no| key::dead_letter(ward, no, seq), encode(&record)).await;
}

#[tokio::test(start_paused = true)]
async fn readiness_lists_the_parts_and_the_models() {
    let world = World::new().await;

    let readiness = world.backend.maintenance.readiness().await;

    assert!(readiness.ready);
    assert_eq!(readiness.parts.iter().map(|part| &*part.part).collect::<Vec<_>>(), ["store", "models"]);
    assert_eq!(&*readiness.models.unwrap().main.provider, "scripted");
}
