//! How people receive statements: a change of the model shows, and erased messages no longer count.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::{World, purpose, room};
use crate::domain::id::Seq;
use crate::domain::question_context::Purpose;
use crate::domain::reception::Reception::{self, *};
use crate::domain::trigger::Trigger;
use crate::ports::backend::Refused;
use crate::ports::backend::usage::{GuildReceptions, ReceptionQuery};

const DAY: u64 = 86_400_000_000;
/// The days of the week before another model answers, and the exchanges of a day.
const BEFORE: usize = 3;
const WEEK: usize = 7;
const EXCHANGES: usize = 5;
/// How the exchanges of a day end, before and after the change. Aria also answers Ben's reply, and that exchange ends there.
const GOOD: [(Reception, u64); 4] = [(Replied, 1), (Reacted, 1), (Answered, 2), (NothingSeen, 2)];
const BESIDE_THE_POINT: [(Reception, u64); 4] = [(Stopped, 1), (Paused, 1), (TalkedPast, 2), (NothingSeen, 1)];

#[tokio::test(start_paused = true)]
async fn another_model_that_answers_beside_the_point_shows_from_its_first_day_on_and_not_before() {
    let world = week().await;

    let counted = receptions(&world, None).await;

    let days: Vec<_> = counted.by.iter().map(|by| (by.day.to_string(), by.model.as_deref(), by.received.clone())).collect();
    let before = |day| (format!("2026-05-0{}", 1 + day), Some("scripted"), BTreeMap::from(GOOD));
    let after = |day| (format!("2026-05-0{}", 1 + day), Some("other"), BTreeMap::from(BESIDE_THE_POINT));
    let expected: Vec<_> = (0..BEFORE).map(before).chain((BEFORE..WEEK).map(after)).collect();
    assert_eq!(days, expected);
    assert!(counted.by.iter().all(|by| (by.companion.as_str(), by.trigger) == ("aria", Trigger::DirectAddress)));
    assert!(!counted.incomplete);
    // The last 24 hours, which the metric shows, are of one model.
    let newest = of_query(&world, ReceptionQuery::default()).await;
    assert_eq!(sum(&newest), BESIDE_THE_POINT.into());
    // A restart loses nothing and counts nothing twice.
    let world = world.crash().await;
    assert_eq!(receptions(&world, None).await, counted);
    assert_eq!(receptions(&world, Some(2)).await.by, counted.by[WEEK - 2..]);
}

#[tokio::test(start_paused = true)]
async fn erased_people_messages_and_rooms_leave_nothing() {
    let world = week().await;
    let all = sum(&receptions(&world, None).await);

    world.forget("Ben", false).await.unwrap();
    let without_ben = sum(&receptions(&world, None).await);
    let statement = newest_statement(&world).await;
    world.backend.messages.delete(&room("lobby"), statement).await.unwrap();
    let deleted = sum(&receptions(&world, None).await);
    world.forget("Ana", true).await.unwrap();
    let without_ana = receptions(&world, None).await;

    let days = WEEK as u64;
    let (good, other) = (BEFORE as u64, days - BEFORE as u64);
    assert_eq!(all[&Replied], good);
    // Who replied, and one of two who talked past it, is gone.
    assert_eq!(without_ben.get(&Replied), None);
    assert_eq!((all[&TalkedPast], without_ben[&TalkedPast]), (2 * other, other));
    assert_eq!((all[&NothingSeen], without_ben[&NothingSeen]), (days + good, days + good + good + other));
    assert_eq!((without_ben.get(&Deleted), deleted[&Deleted]), (None, 1));
    // What Aria answered to Ben is still there.
    assert_eq!(sum(&without_ana), [(NothingSeen, good)].into(), "the other answers were erased with the questions");

    let world = week().await;
    world.delete_room("lobby").await;
    assert_eq!(receptions(&world, None).await.by, []);
}

#[tokio::test(start_paused = true)]
async fn a_room_with_more_events_than_are_read_is_counted_from_its_newest_events() {
    let world = world().await;
    exchange(&world, 0, false).await;
    for _ in 0..20 {
        world.pass(3_600.0).await;
        for _ in 0..60 {
            world.say("lobby", "Nothing new.").await;
        }
    }
    exchange(&world, 0, false).await;

    let counted = receptions(&world, None).await;

    assert!(counted.incomplete);
    assert_eq!(sum(&counted), [(Answered, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_guild_is_refused_and_one_without_statements_has_no_rows() {
    let world = world().await;
    let query = ReceptionQuery { guild: Some("hoem".into()), days: Some(14) };

    let unknown = world.backend.records.receptions(query).await;
    let all = world.backend.records.receptions(ReceptionQuery::default()).await.unwrap();

    assert!(matches!(unknown, Err(Refused::NotFound(_))));
    assert_eq!(receptions(&world, None).await.by, []);
    assert!(all.guilds.is_empty());
}

/// A room in which Aria answers when she is spoken to.
async fn world() -> World {
    let world = World::with_lobby().await;
    world.side.answer_by(|request| {
        let is_addressed = matches!(purpose(request), Purpose::Vote { trigger: Trigger::DirectAddress });
        Some(Ok(if is_addressed { "Me.\nYES" } else { "No.\nNO" }.to_owned()))
    });
    world
}

/// A week of a made-up guild. From its middle on another model answers.
async fn week() -> World {
    let world = world().await;
    for day in 0..WEEK {
        if day == BEFORE {
            world.main.rename("other");
        }
        for number in 0..EXCHANGES {
            exchange(&world, number, day >= BEFORE).await;
            world.pass(1_800.0).await;
        }
        let until_noon = DAY - (world.context.clock.now().as_micros() + DAY / 2) % DAY;
        if day + 1 < WEEK {
            world.pass(until_noon as f64 / 1e6).await;
        }
    }
    world
}

/// Ana asks Aria, and something happens to the answer.
async fn exchange(world: &World, number: usize, is_beside_the_point: bool) {
    world.say_then_pass("lobby", &format!("Aria, what about matter {number}?"), 10.0).await;
    let says = |from: &'static str, text: &'static str| say(world, json!({ "from": from, "text": text }));
    match (number, is_beside_the_point) {
        (0, false) => says("Ana", "That helps a lot.").await,
        (1, false) => says("Ana", "👍").await,
        (2, false) => {
            let statement = newest_statement(world).await;
            say(world, json!({ "from": "Ben", "text": "Good idea.", "reply_to": statement })).await;
        }
        (3, false) => says("Ana", "And for how long?").await,
        (0, true) => {
            says("Ben", "Is there lunch?").await;
            says("Dora", "Soon.").await;
        }
        (1, true) => says("Ana", "stop").await,
        (2, true) => say(world, json!({ "from": "Ana", "text": "What do you think, Ben?", "mentions": ["Ben"] })).await,
        (3, true) => {
            for paused in [true, false] {
                world.patch("lobby", json!({ "companions": { "aria": { "paused": paused } } })).await.unwrap();
                world.pass(10.0).await;
            }
        }
        _ => {}
    }
}

async fn say(world: &World, message: Value) {
    world.say_with("lobby", message).await;
    world.pass(10.0).await;
}

async fn newest_statement(world: &World) -> Seq {
    let history = world.try_history("lobby").await.unwrap();
    history.messages.iter().rfind(|message| message.ai).unwrap().seq
}

/// The counts of the guild `home` in the last days, 14 by default.
async fn receptions(world: &World, days: Option<u32>) -> GuildReceptions {
    of_query(world, ReceptionQuery { guild: Some("home".into()), days: days.or(Some(14)) }).await
}

async fn of_query(world: &World, query: ReceptionQuery) -> GuildReceptions {
    world.backend.records.receptions(query).await.unwrap().guilds.remove(0)
}

fn sum(counted: &GuildReceptions) -> BTreeMap<Reception, u64> {
    let mut sums = BTreeMap::new();
    for (reception, count) in counted.by.iter().flat_map(|by| &by.received) {
        *sums.entry(*reception).or_default() += count;
    }
    sums
}
