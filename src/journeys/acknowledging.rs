//! Events that must be acknowledged, and conversations that begin out of silence while their channels sleep.

use serde_json::{Value, json};

use super::world::{World, lines, room};
use crate::actors::runtime::actor_keys::SwitchboardKey;
use crate::actors::writer::requests::look;
use crate::domain::id::Seq;
use crate::domain::message::Author;
use crate::ports::inbound_events::InboundMessage;

/// The silence after which Aria may start a conversation, in seconds.
const SILENCE: f64 = 1_800.0;

#[tokio::test(start_paused = true)]
async fn an_event_is_acknowledged_without_a_question_once_and_forgotten_with_its_person() {
    let world = World::with_lobby().await;
    world.main.answers([Ok("Welcome, Tomé!")]);

    let first = happen(&world, "lobby", "raid1", "Tomé").await;
    let again = happen(&world, "lobby", "raid1", "Ana").await;
    world.pass(30.0).await;

    assert_eq!(first, again);
    let said = lines(&[("Tomé", "Tomé raids"), ("aria", "Welcome, Tomé!")]);
    assert_eq!((world.history("lobby").await, world.side.asked_for("aria")), (said, 0));
    assert_eq!(reasons(&world, "lobby").await, ["event YES event"]);

    assert_eq!(world.forget("Tomé", true).await.unwrap().messages, 2);
    assert_eq!(world.history("lobby").await, []);
}

#[tokio::test(start_paused = true)]
async fn an_event_over_the_budget_waits_and_why_says_how_long() {
    let world = World::with_salon(json!({ "gate": { "acknowledgements_per_minute": 1 } })).await;
    for id in ["raid1", "raid2"] {
        happen(&world, "salon", id, "Tomé").await;
        world.pass(20.0).await;
    }

    let waiting = world.why("salon", Some("bruno"), None).await.unwrap().waiting_for.unwrap();

    assert_eq!(waiting.text, "Bruno says something about it in 20 seconds, or when somebody speaks to Bruno.");
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_channel_is_woken_when_a_silence_is_over_even_if_the_switchboard_died() {
    for dies in [false, true] {
        let mut world = World::with_lobby().await;
        begin(&world, "lobby").await;
        if dies {
            world.kill(&SwitchboardKey()).await;
        }

        world.pass(SILENCE - 600.0 - 5.0).await;
        let before = (is_asleep(&world, "lobby").await, reasons(&world, "lobby").await);
        world.side.answers([Ok("It is too quiet here.\nYES")]);
        world.pass(20.0).await;

        assert_eq!(before, (true, vec!["lull NO model_no".to_owned()]), "dies: {dies}");
        assert_eq!(reasons(&world, "lobby").await, ["lull NO model_no", "silence YES model_yes"], "dies: {dies}");
        assert_eq!(world.history("lobby").await, lines(&[("Ana", "The boats are out."), ("aria", "Hello!")]));
        world.pass(4.0 * SILENCE).await;
        assert_eq!(reasons(&world, "lobby").await.len(), 2, "once, until a person says something");
        assert!(is_asleep(&world, "lobby").await);
    }
}

#[tokio::test(start_paused = true)]
async fn overdue_silences_of_many_rooms_are_spread_over_time() {
    const ROOMS: usize = 30;
    let world = World::new().await;
    let names: Vec<String> = (0..ROOMS).map(|number| format!("room{number}")).collect();
    world.open_in("home", names.clone()).await;
    for name in &names {
        start_after(&world, name).await;
        world.say(name, "The boats are out.").await;
    }
    world.pass(600.0).await;
    world.set_clock(24 * 3_600);

    let world = world.crash().await;
    // An answer takes a second.
    world.pass(2.0).await;
    let at_first = silences(&world, &names).await;
    world.pass(10.0).await;

    assert!((1..=15).contains(&at_first), "{at_first} of {ROOMS} rooms ask in the first second");
    assert_eq!(silences(&world, &names).await, ROOMS);
}

async fn happen(world: &World, name: &str, id: &str, who: &str) -> Seq {
    let from = Author::of_name(who.into());
    let raid = InboundMessage::new(from, format!("{who} raids").into());
    let raid = InboundMessage { id: Some(id.into()), kind: Some("raid".into()), ..raid };
    world.backend.messages.say(&room(name), raid).await.unwrap()
}

async fn start_after(world: &World, name: &str) {
    world.patch(name, json!({ "companions": { "aria": { "starts_after": SILENCE } } })).await.unwrap();
}

/// Says something in a room whose companion may start conversations, and lets the room fall asleep: ten minutes.
async fn begin(world: &World, name: &str) {
    start_after(world, name).await;
    world.say_then_pass(name, "The boats are out.", 600.0).await;
}

async fn is_asleep(world: &World, name: &str) -> bool {
    look(&world.context, &room(name).channel()).await.is_none()
}

async fn silences(world: &World, names: &[String]) -> usize {
    let mut count = 0;
    for name in names {
        count += reasons(world, name).await.iter().filter(|reason| reason.starts_with("silence")).count();
    }
    count
}

/// Trigger, decision and reason of each decision.
async fn reasons(world: &World, name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |of: &Value| ["trigger", "decision", "reason"].map(|key| text(&of[key])).join(" ");
    world.decisions(name).await.iter().map(line).collect()
}
