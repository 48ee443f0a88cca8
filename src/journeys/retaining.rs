//! What is deleted because it was kept for long enough, and what goes on after.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::keeping::{dead_letter, one_turn};
use super::world::{World, room, said};
use crate::actors::erasure::retention::{self, PassReport};
use crate::actors::writer::requests::write_meta;
use crate::adapters::store::audit::{Audit, Problem};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Range, Reader};
use crate::journal::record::{encode, encode_number};
use crate::ports::backend::Backend;
use crate::ports::backend::decisions::{WhyAt, WhyQuery};
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Forget};
use crate::ports::language_model::NoAnswer;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Store, Value as Stored, Write};

const DAY: f64 = 86_400.0;

async fn lobby_keeping(storage: Value) -> World {
    World::with_lobby_set(json!({ "storage": storage })).await
}

fn lobby() -> ChannelKey {
    ChannelKey::new(&"home".into(), &room("lobby").channel())
}

async fn everything(world: &World) -> Vec<(Key, Stored)> {
    world.store.scan(Key::from_bytes(&[0]), Key::from_bytes(&[255, 255]), false, usize::MAX).await.unwrap()
}

/// How often a word stands anywhere in the store.
pub(super) async fn left_of(word: &str, world: &World) -> usize {
    let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(word);
    everything(world).await.iter().filter(|(key, value)| holds(key.as_bytes()) || holds(value)).count()
}

/// What a reading finds wrong with the store. (The one in memory does not count events.)
async fn problems(world: &World) -> Vec<Problem> {
    let records = everything(world).await.into_iter().map(Ok::<_, ()>);
    let mut problems = Audit::default().run(records, |_| {}).unwrap().problems;
    problems.retain(|problem| !matches!(problem, Problem::Miscounted { .. }));
    problems
}

async fn number_of(world: &World, channel_key: &ChannelKey) -> ChannelNo {
    Reader::new(&*world.store).channel_no(channel_key).await.unwrap().unwrap()
}

async fn numbers(world: &World) -> Vec<u64> {
    let range = Range { after: Seq::NONE, before: None, limit: usize::MAX, newest_first: false };
    Reader::new(&*world.store).events(&lobby(), range).await.unwrap().iter().map(|recorded| recorded.seq.0).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_for_long_enough_is_gone_and_the_room_goes_on() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.side.answers([Ok("A zebra.\nNO")]);
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari, a zebra", "id": "zebra-1" })).await;
    world.pass(3.0 * DAY).await;
    world.side.answers([Ok("News.\nNO")]);
    world.say("lobby", "news").await;
    world.pass(1_000.0).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 0));
    assert!(passed.events > 0);
    assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0]);
    assert_eq!(world.history("lobby").await, said(&[("Ana", "news")]));
    assert_eq!(problems(&world).await, []);
    assert_eq!(retention::pass(&world.context).await, PassReport::default());
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say("lobby", "Ari, are you there?").await;
    world.pass(60.0).await;
    assert_eq!(world.history("lobby").await, said(&[("Ana", "news"), ("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_room_in_which_nothing_was_said_for_long_is_empty_and_can_be_talked_in_again() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(3.0 * DAY).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, left_of("zebra", &world).await), (1, 0));
    assert_eq!(numbers(&world).await, [0; 0]);
    assert_eq!(problems(&world).await, []);
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    let seq = world.say("lobby", "Ari?").await;
    world.pass(60.0).await;
    assert!(seq > Seq(passed.events), "numbers go on");
    assert_eq!(world.history("lobby").await, said(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_companion_said_last_is_not_kept_for_being_the_last() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say("lobby", "Ari?").await;
    world.pass(3.0 * DAY).await;
    assert_eq!(world.history("lobby").await, said(&[("Ana", "Ari?"), ("aria", "Hello!")]));

    retention::pass(&world.context).await;

    assert_eq!(world.history("lobby").await, said(&[]));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_guild_keeps_its_talk_as_long_as_its_own_setting_says() {
    let kept = lobby_keeping(json!({ "retention_days": 2, "guild_retention_days": { "home": 0 } })).await;
    let gone = lobby_keeping(json!({ "guild_retention_days": { "home": 2 } })).await;
    for world in [&kept, &gone] {
        world.say("lobby", "zebra").await;
        world.pass(3.0 * DAY).await;

        retention::pass(&world.context).await;
    }

    assert_eq!(kept.history("lobby").await, said(&[("Ana", "zebra")]));
    assert_eq!(gone.history("lobby").await, said(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_never_slept_before_the_server_was_killed_and_stayed_quiet_since_is_emptied() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra", "id": "zebra-1" })).await;
    world.pass(20.0).await;
    let world = world.crash().await;
    world.pass(3.0 * DAY).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 0));
    assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0]);
    assert_eq!(numbers(&world).await, [0; 0]);
    assert_eq!(problems(&world).await, []);
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say("lobby", "Ari?").await;
    world.pass(60.0).await;
    assert_eq!(world.history("lobby").await, said(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_awake_has_nothing_older_in_mind_either() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(3.0 * DAY).await;
    world.say("lobby", "news").await;
    world.pass(20.0).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, left_of("zebra", &world).await), (1, 0));
    world.pass(1_000.0).await;
    assert_eq!(left_of("zebra", &world).await, 0, "it fell asleep meanwhile");
    assert_eq!(world.history("lobby").await, said(&[("Ana", "news")]));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_room_in_which_nobody_lives_any_more_is_emptied() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.open("lobby", &[]).await;
    let world = world.crash().await;
    world.pass(3.0 * DAY).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.failed, left_of("zebra", &world).await), (0, 0));
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_keeps_no_other_room_from_being_emptied() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.open("salon", &["aria"]).await;
    world.open("attic", &["aria"]).await;
    for room in ["lobby", "salon", "attic"] {
        world.say(room, &format!("zebra in the {room}")).await;
    }
    world.pass(3.0 * DAY).await;
    let salon = ChannelKey::new(&"home".into(), &room("salon").channel());
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
async fn what_a_deletion_left_that_was_interrupted_is_deleted() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(1_000.0).await;
    let (ward, no) = (lobby().ward(), number_of(&world, &lobby()).await);
    let lowest = Seq(numbers(&world).await.last().unwrap() + 1);
    let mut marks = vec![Write::Remove(key::snapshot(ward, no))];
    marks.extend([key::tombstone(ward, no), key::sweep(ward, no)].map(|key| Write::Put(key, encode_number(lowest))));
    write_meta(&world.context, ward, marks).await.unwrap();
    let world = world.crash().await;

    retention::pass(&world.context).await;

    assert_eq!(left_of("zebra", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_loss_has_left_below_a_mark_is_kept_and_forgotten_like_anything_else() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra one").await;
    world.pass(DAY).await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "zebra two" })).await;
    world.pass(1_000.0).await;
    let mark = Seq(numbers(&world).await.last().unwrap() + 1);
    let no = number_of(&world, &lobby()).await;
    let mark = Write::Put(key::tombstone(lobby().ward(), no), encode_number(mark));
    write_meta(&world.context, lobby().ward(), vec![mark]).await.unwrap();
    let world = world.crash().await;

    retention::pass(&world.context).await;
    assert_eq!(world.history("lobby").await, said(&[("Ana", "zebra one"), ("Ben", "zebra two")]));
    world.backend.forget(Forget { guild: "home".into(), person: "Ana".into(), answers: false }).await.unwrap();
    assert_eq!([left_of("zebra one", &world).await, left_of("Ana", &world).await], [0, 0]);
    world.pass(3.0 * DAY).await;
    retention::pass(&world.context).await;

    assert_eq!([left_of("zebra", &world).await, left_of("Ben", &world).await], [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_leads_nowhere_goes_with_its_stretch() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
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
async fn what_was_deleted_is_counted() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(3.0 * DAY).await;

    let passed = retention::pass(&world.context).await;

    let measured = |name| world.spans.metrics().total(name, &[]);
    assert_eq!(measured("tertulia_retention_events_total") as u64, passed.events);
    assert_eq!(measured("tertulia_retention_passed_seconds") as u64, world.context.clock.now().as_micros() / 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_dealt_with_yet_is_kept_however_old_it_is() {
    let world = lobby_keeping(json!({})).await;
    world.side.answers([Err(NoAnswer::Unreachable { endpoint: "scripted".into(), detail: "gone".into() })]);
    world.say("lobby", "zebra").await;
    world.pass(20.0).await;
    let later = Moment::from_micros(u64::MAX);

    retention::delete_before(&world.context, &lobby(), later).await.unwrap();

    assert_eq!(world.history("lobby").await, said(&[("Ana", "zebra")]));
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.pass(400.0).await;
    assert_eq!(world.history("lobby").await, said(&[("Ana", "zebra"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_busy_room_loses_what_is_old_and_not_what_goes_on() {
    let world = lobby_keeping(json!({})).await;
    for number in 0..200 {
        world.say("lobby", &format!("number {number}")).await;
        world.pass(20.0).await;
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
async fn whoever_said_nothing_that_is_kept_is_named_nowhere_and_the_others_are_found() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    for number in 0..400 {
        let from = ["Zoe", "Ana"][usize::from(number % 40 != 0)];
        world.say_with("lobby", json!({ "from": from, "text": format!("number {number}") })).await;
        world.pass(1.0).await;
    }
    world.pass(3.0 * DAY).await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "news" })).await;
    world.say("lobby", "news indeed").await;
    world.pass(1_000.0).await;

    retention::pass(&world.context).await;

    assert_eq!(left_of("Zoe", &world).await, 0);
    assert_eq!(world.history("lobby").await, said(&[("Ben", "news"), ("Ana", "news indeed")]));
    for (person, messages) in [("Ben", 1), ("Ana", 1)] {
        let forgotten =
            world.backend.forget(Forget { guild: "home".into(), person: person.into(), answers: false }).await.unwrap();
        assert_eq!(forgotten.messages, messages, "{person}");
        assert_eq!(left_of(person, &world).await, 0, "{person}");
    }
    assert_eq!(problems(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_while_deleting_leaves_a_whole_journal_and_the_next_pass_goes_on() {
    for steps in 0..12 {
        let world = lobby_keeping(json!({ "retention_days": 2 })).await;
        let old = world.say_with("lobby", json!({ "from": "Zoe", "text": "zebra", "id": "zebra-1" })).await;
        world.pass(3.0 * DAY).await;
        dead_letter(&world, &lobby(), old, "a zebra killed it").await;
        world.say("lobby", "news").await;
        world.pass(1_000.0).await;
        let context = world.context.clone();
        world.store.hold();
        let passing = tokio::spawn(async move { retention::pass(&context).await });
        let mut written = 0;
        while written < steps && !passing.is_finished() {
            one_turn().await;
            written += u32::from(world.store.commit_next());
        }
        passing.abort();
        world.store.release();

        let world = world.crash().await;

        assert_eq!(problems(&world).await, [], "after {steps} steps");
        assert_eq!(world.history("lobby").await.last(), said(&[("Ana", "news")]).last());
        retention::pass(&world.context).await;
        assert_eq!([left_of("zebra", &world).await, left_of("Zoe", &world).await], [0, 0], "after {steps} steps");
        assert_eq!(world.history("lobby").await, said(&[("Ana", "news")]));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_used_stays_and_who_addressed_somebody_does_not() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say_with("lobby", json!({ "from": "Zoe", "text": "Ari?" })).await;
    world.pass(3.0 * DAY).await;

    retention::pass(&world.context).await;

    assert_eq!(left_of("Zoe", &world).await, 0);
    assert!(left_of("input_tokens", &world).await > 0);
    assert!(left_of("address", &world).await > 0);
}

#[tokio::test(start_paused = true)]
async fn who_addresses_somebody_after_all_was_deleted_is_forgotten_in_time_too() {
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
async fn stories_and_scripts_of_what_is_left_are_told() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(3.0 * DAY).await;
    world.say("lobby", "news").await;
    world.pass(1_000.0).await;

    retention::pass(&world.context).await;

    let decision = &world.decisions("lobby").await[0];
    let at = WhyAt::Event(Seq(decision["seq"].as_u64().unwrap()));
    let why = world.backend.why(WhyQuery { room: room("lobby"), companion: None, at: Some(at) }).await.unwrap();
    assert_eq!(&*why.story[0].text, "Ana said: “news”");
    let query = ExportQuery { room: Some(room("lobby")), form: ExportForm::Replay };
    let script: Vec<_> = world.backend.export(query).await.unwrap().collect().await;
    let script: Value = serde_json::from_str(script[0].as_ref().unwrap()).unwrap();
    assert_eq!(script["events"].as_array().unwrap().len(), 1, "{script}");
    assert!(script["notes"][0].as_str().unwrap().starts_with("1 beginning"), "{script}");
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_deleted_meanwhile_stays_deleted() {
    let world = lobby_keeping(json!({ "retention_days": 2 })).await;
    world.say("lobby", "zebra").await;
    world.pass(3.0 * DAY).await;
    let context = world.context.clone();

    let lobby_room = room("lobby");
    let (_, deleted) = tokio::join!(retention::pass(&context), world.backend.delete_room(&lobby_room));

    deleted.unwrap();
    world.open("lobby", &["aria"]).await;
    assert_eq!(world.history("lobby").await, said(&[]));
    let events = Reader::new(&*world.store).restore(&lobby()).await.unwrap().events;
    assert!(matches!(events[0].event, Event::Joined { .. }), "{events:?}");
    assert_eq!(problems(&world).await, []);
}
