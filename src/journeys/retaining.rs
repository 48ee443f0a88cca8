//! Retention: what is deleted when it has expired, and what continues after that.

use serde_json::{Value, json};

use super::keeping::dead_letter;
use super::world::{World, channel_key, lines, room};
use crate::actors::erasure::retention::{self, PassReport};
use crate::actors::writer::requests::write_meta;
use crate::adapters::store::audit::{Audit, Problem};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{encode, encode_number, json_of};
use crate::journal::{erased, key};
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::language_model::NoAnswer;
use crate::ports::store::Write;
use crate::ports::store::key::ChannelNo;
use crate::samples::lobby;

const DAY: f64 = 86_400.0;

async fn lobby_keeping(storage: Value) -> World {
    World::with_lobby_settings(json!({ "storage": storage })).await
}

async fn lobby_for_two_days() -> World {
    lobby_keeping(json!({ "retention_days": 2 })).await
}

/// Ana said "zebra" three days ago, and what is said is kept for two days.
async fn with_expired_zebra() -> World {
    let world = lobby_for_two_days().await;
    world.say_then_pass("lobby", "zebra", 3.0 * DAY).await;
    world
}

/// The record is whole, and Aria answers after a restart. Returns the number of the message that she answers.
async fn continues(world: World, before: &[(&str, &str)]) -> Seq {
    assert_eq!(problems(&world).await, []);
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    let seq = world.say_then_pass("lobby", "Ari?", 60.0).await;
    let expected = [before, &[("Ana", "Ari?"), ("aria", "Hello!")]].concat();
    assert_eq!(world.history("lobby").await, lines(&expected));
    assert_eq!(problems(&world).await, []);
    seq
}

/// How often a word is found in the store.
pub(super) async fn left_of(word: &str, world: &World) -> usize {
    let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(word);
    world.everything().await.iter().filter(|(key, value)| holds(key.as_bytes()) || holds(&json_of(value))).count()
}

/// The problems that a check of the store finds. (The store in memory does not count events.)
async fn problems(world: &World) -> Vec<Problem> {
    let records = world.everything().await.into_iter().map(Ok::<_, ()>);
    let mut problems = Audit::default().run(records, |_| {}).unwrap().problems;
    problems.retain(|problem| !matches!(problem, Problem::Miscounted { .. }));
    problems
}

async fn number_of(world: &World, channel_key: &ChannelKey) -> ChannelNo {
    world.reader().channel_no(channel_key).await.unwrap().unwrap()
}

async fn numbers(world: &World) -> Vec<u64> {
    world.journal(&lobby()).await.iter().map(|recorded| recorded.seq.0).collect()
}

#[tokio::test(start_paused = true)]
async fn expired_events_are_deleted_and_the_room_continues() {
    let world = lobby_for_two_days().await;
    world.side.answers([Ok("A zebra.\nNO")]);
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari, a zebra", "id": "zebra-1" })).await;
    world.pass(3.0 * DAY).await;
    world.side.answers([Ok("News.\nNO")]);
    world.say_then_pass("lobby", "news", 1_000.0).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 0));
    assert!(passed.events > 0);
    assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0]);
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "news")]));
    assert_eq!(world.total("tertulia_retention_events_total", &[]), passed.events);
    let passed_at = world.context.clock.now().as_micros() / 1_000_000;
    assert_eq!(world.total("tertulia_retention_passed_seconds", &[]), passed_at);
    assert_eq!(retention::pass(&world.context).await, PassReport::default());
    continues(world, &[("Ana", "news")]).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_expires_by_a_clock_that_is_wrong_at_one_start() {
    let world = lobby_keeping(json!({ "retention_days": 30 })).await;
    retention::run_daily(world.context.clone());
    world.say_then_pass("lobby", "zebra", 2.0 * DAY).await;
    let world = world.crash().await;
    world.set_clock(60 * 86_400);
    retention::run_daily(world.context.clone());
    world.pass(0.9 * DAY).await;
    let by_the_wrong_clock = world.history("lobby").await;

    let world = world.crash().await;
    world.set_clock(-60 * 86_400);
    retention::run_daily(world.context.clone());
    world.pass(20.0 * DAY).await;

    let expected = lines(&[("Ana", "zebra")]);
    assert_eq!((by_the_wrong_clock, world.history("lobby").await), (expected.clone(), expected));
    world.pass(10.0 * DAY).await;
    assert_eq!(world.history("lobby").await, [], "it has expired by now");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_deletes_much_at_once_is_noted_before() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    let is_noted = async || erased::last(&*world.store).await.unwrap().large_expiry.is_some();
    world.say_then_pass("lobby", "zebra", 8.0 * DAY).await;
    retention::pass(&world.context).await;
    let after_six_days = is_noted().await;

    world.say_then_pass("lobby", "zebra", 10.0 * DAY).await;
    retention::pass(&world.context).await;

    assert_eq!((after_six_days, is_noted().await), (false, true));
    let requested = erased::last(&*world.store).await.unwrap().requested;
    assert_eq!((requested, left_of("zebra", &world).await), (None, 0), "nobody asked for it");
}

#[tokio::test(start_paused = true)]
async fn a_room_silent_for_long_is_empty_and_can_be_used_again() {
    // In a room that is killed soon it is not on record that it fell asleep.
    for is_killed in [false, true] {
        let mut world = lobby_for_two_days().await;
        world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra", "id": "zebra-1" })).await;
        world.pass(20.0).await;
        if is_killed {
            world = world.crash().await;
        }
        world.pass(3.0 * DAY).await;

        let passed = retention::pass(&world.context).await;

        assert_eq!((passed.channels, passed.failed), (1, 0), "killed: {is_killed}");
        assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0], "killed: {is_killed}");
        assert_eq!(numbers(&world).await, [0; 0]);
        assert!(continues(world, &[]).await > Seq(passed.events), "numbers continue");
    }
}

#[tokio::test(start_paused = true)]
async fn the_retention_of_a_guild_follows_its_own_setting() {
    let kept = lobby_keeping(json!({ "retention_days": 2, "guild_retention_days": { "home": 0 } })).await;
    let gone = lobby_keeping(json!({ "guild_retention_days": { "home": 2 } })).await;
    for world in [&kept, &gone] {
        world.say_then_pass("lobby", "zebra", 3.0 * DAY).await;

        retention::pass(&world.context).await;
    }

    assert_eq!(kept.history("lobby").await, lines(&[("Ana", "zebra")]));
    assert_eq!(gone.history("lobby").await, lines(&[]));
}

#[tokio::test(start_paused = true)]
async fn an_awake_room_remembers_nothing_that_has_expired_and_tells_stories_and_scripts_of_the_rest() {
    let world = with_expired_zebra().await;
    world.say_then_pass("lobby", "news", 20.0).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, left_of("zebra", &world).await), (1, 0));
    world.pass(1_000.0).await;
    assert_eq!(left_of("zebra", &world).await, 0, "it fell asleep meanwhile");
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "news")]));
    assert_eq!(problems(&world).await, []);
    let decision = &world.decisions("lobby").await[0];
    let at = WhyAt::Event(Seq(decision["seq"].as_u64().unwrap()));
    let why = world.why("lobby", None, Some(at)).await.unwrap();
    assert_eq!(&*why.story[0].text, "Ana said: “news”");
    let script: Value = serde_json::from_str(&world.export("lobby", ExportForm::Replay).await[0]).unwrap();
    assert_eq!(script["events"].as_array().unwrap().len(), 1, "{script}");
    assert!(script["notes"][0].as_str().unwrap().starts_with("1 beginning"), "{script}");
}

#[tokio::test(start_paused = true)]
async fn a_room_without_members_is_emptied() {
    let world = lobby_for_two_days().await;
    world.say("lobby", "zebra").await;
    world.open("lobby", &[]).await;
    let world = world.crash().await;
    world.pass(3.0 * DAY).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.failed, left_of("zebra", &world).await), (0, 0));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_room_keeps_no_other_room_from_being_emptied() {
    let world = lobby_for_two_days().await;
    world.open("salon", &["aria"]).await;
    world.open("attic", &["aria"]).await;
    for room in ["lobby", "salon", "attic"] {
        world.say(room, &format!("zebra in the {room}")).await;
    }
    world.pass(3.0 * DAY).await;
    let salon = channel_key("salon");
    let (lobby_no, salon_no) = (number_of(&world, &lobby()).await, number_of(&world, &salon).await);
    let ward = lobby().ward();
    let garbled = [key::channel_of(ward, lobby_no), key::snapshot(ward, salon_no)];
    let writes = garbled.into_iter().map(|key| Write::Put(key, b"?".to_vec())).collect();
    write_meta(&world.context, ward, writes).await.unwrap();

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 2));
    assert_eq!(left_of("zebra in the attic", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn events_below_the_mark_after_a_loss_are_kept_and_forgotten_like_others() {
    let world = lobby_for_two_days().await;
    world.say_then_pass("lobby", "zebra one", DAY).await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "zebra two" })).await;
    world.pass(1_000.0).await;
    let mark = Seq(numbers(&world).await.last().unwrap() + 1);
    let no = number_of(&world, &lobby()).await;
    let mark = Write::Put(key::tombstone(lobby().ward(), no), encode_number(mark));
    write_meta(&world.context, lobby().ward(), vec![mark]).await.unwrap();
    let world = world.crash().await;

    retention::pass(&world.context).await;
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "zebra one"), ("Ben", "zebra two")]));
    world.forget("Ana", false).await.unwrap();
    assert_eq!([left_of("zebra one", &world).await, left_of("Ana", &world).await], [0, 0]);
    world.pass(3.0 * DAY).await;
    retention::pass(&world.context).await;

    assert_eq!([left_of("zebra", &world).await, left_of("Ben", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_index_entry_without_an_event_is_deleted_with_its_range() {
    let world = lobby_for_two_days().await;
    for number in 0..300 {
        world.say_with("lobby", json!({ "from": "Ben", "text": format!("number {number}") })).await;
    }
    world.pass(3.0 * DAY).await;
    let no = number_of(&world, &lobby()).await;
    let entry = Write::Put(key::person(&"home".into(), &"Zoe".into(), no, Seq(1)), encode(&()));
    write_meta(&world.context, lobby().ward(), vec![entry]).await.unwrap();

    retention::pass(&world.context).await;

    assert_eq!([left_of("Zoe", &world).await, left_of("Ben", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn unfinished_work_is_kept_however_old_it_is() {
    let world = lobby_keeping(json!({})).await;
    world.side.answers([Err(NoAnswer::Unreachable { endpoint: "scripted".into(), detail: "gone".into() })]);
    world.say_then_pass("lobby", "zebra", 20.0).await;
    let later = Moment::from_micros(u64::MAX);

    retention::delete_before(&world.context, &lobby(), later).await.unwrap();

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "zebra")]));
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.pass(400.0).await;
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "zebra"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_busy_room_loses_old_events_and_no_work_in_progress() {
    let world = lobby_keeping(json!({})).await;
    for number in 0..200 {
        world.say_then_pass("lobby", &format!("number {number}"), 20.0).await;
    }
    let seq = world.say("lobby", "the last one").await;
    let later = Moment::from_micros(u64::MAX);

    let gone = retention::delete_before(&world.context, &lobby(), later).await.unwrap();

    assert!(gone > 100, "{gone}");
    let first = numbers(&world).await[0];
    assert!(first == gone + 1 && first < seq.0, "{first}");
    let before = world.decisions("lobby").await.len();
    let world = world.crash().await;
    world.pass(60.0).await;
    assert_eq!(world.decisions("lobby").await.len(), before + 1);
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_person_without_stored_messages_is_not_listed_and_others_are_found() {
    let world = lobby_for_two_days().await;
    for number in 0..400 {
        let from = ["Zoe", "Ana"][usize::from(number % 40 != 0)];
        world.say_with("lobby", json!({ "from": from, "text": format!("number {number}") })).await;
        world.pass(1.0).await;
    }
    world.pass(3.0 * DAY).await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "news" })).await;
    world.say_then_pass("lobby", "news indeed", 1_000.0).await;

    retention::pass(&world.context).await;

    assert_eq!(left_of("Zoe", &world).await, 0);
    assert_eq!(world.history("lobby").await, lines(&[("Ben", "news"), ("Ana", "news indeed")]));
    for (person, messages) in [("Ben", 1), ("Ana", 1)] {
        let forgotten = world.forget(person, false).await.unwrap();
        assert_eq!(forgotten.messages, messages, "{person}");
        assert_eq!(left_of(person, &world).await, 0, "{person}");
    }
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_expiring_leaves_a_whole_journal_and_the_next_pass_continues() {
    for steps in 0..12 {
        let world = lobby_for_two_days().await;
        let old = world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra", "id": "zebra-1" })).await;
        world.pass(3.0 * DAY).await;
        dead_letter(&world, &lobby(), old, "a zebra killed it").await;
        world.say_then_pass("lobby", "news", 1_000.0).await;
        let context = world.context.clone();
        world.store.hold();
        let passing = tokio::spawn(async move { retention::pass(&context).await });
        world.commit_groups(steps, &passing).await;
        passing.abort();
        world.store.release();

        let world = world.crash().await;

        assert_eq!(problems(&world).await, [], "after {steps} steps");
        assert_eq!(world.history("lobby").await.last(), lines(&[("Ana", "news")]).last());
        retention::pass(&world.context).await;
        assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0], "after {steps} steps");
        assert_eq!(world.history("lobby").await, lines(&[("Ana", "news")]));
    }
}

#[tokio::test(start_paused = true)]
async fn usage_stays_and_a_statement_and_the_addresses_of_a_person_do_not() {
    let world = lobby_for_two_days().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari?" })).await;
    world.pass(3.0 * DAY).await;
    assert_eq!(world.history("lobby").await, lines(&[("Zoe", "Ari?"), ("aria", "Hello!")]));

    retention::pass(&world.context).await;

    assert_eq!((world.history("lobby").await, left_of("Zoe", &world).await), (lines(&[]), 0));
    assert!(left_of("input_tokens", &world).await > 0);
    assert!(left_of("address", &world).await > 0);
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn addresses_made_after_everything_expired_are_forgotten_in_time_too() {
    let world = World::with_lobby().await;
    let delete_all = async || {
        world.pass(60.0).await;
        retention::pass_older(&world.context, &|_| Some(Moment::from_micros(u64::MAX))).await;
        left_of("Zoe", &world).await
    };
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari?" })).await;
    let first = delete_all().await;
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari?" })).await;

    assert_eq!([first, delete_all().await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_room_deleted_meanwhile_stays_deleted() {
    let world = with_expired_zebra().await;
    let context = world.context.clone();

    let lobby_room = room("lobby");
    let (_, deleted) = tokio::join!(retention::pass(&context), world.backend.rooms.delete(&lobby_room));

    deleted.unwrap();
    world.pass(60.0).await;
    world.rest().await;
    world.open("lobby", &["aria"]).await;
    assert_eq!(world.history("lobby").await, lines(&[]));
    let events = world.reader().restore(&lobby()).await.unwrap().events;
    assert!(matches!(events[0].event, Event::Joined { .. }), "{events:?}");
    assert_eq!(problems(&world).await, []);
}
