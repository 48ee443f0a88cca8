//! Rooms in which there are minors (docs/design/safety.md N-11).

use serde_json::{Value, json};

use super::world::{World, room};
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Greeting;

const LOBBY: &str = "lobby";

/// The lobby with Aria, and Velvet, who is for adults only.
async fn lobby(safety: Value) -> World {
    let listen = json!({ "listen": "0.0.0.0:7878", "admin_token": "a-token-that-nobody-guesses" });
    let world = World::with_lobby_settings(json!({ "server": listen, "safety": safety })).await;
    world.reload_companion(json!({ "id": "velvet", "adult": true, "greetings": ["Hello, you."] }));
    world
}

impl World {
    /// Somebody says something to Aria, and she answers. Returns how often people were told by then.
    async fn told_after(&self, secs: f64) -> usize {
        self.pass(secs).await;
        self.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
        self.say_with(LOBBY, json!({ "from": "Ana", "text": "Aria, one" })).await;
        self.pass(60.0).await;
        self.recorded(LOBBY, "disclosed").await.len()
    }
}

fn conflict<T>(outcome: Result<T, Refused>) -> String {
    match outcome {
        Err(Refused::Conflict(detail)) => detail.to_string(),
        _ => panic!("it is not refused"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_companion_for_adults_leaves_a_room_with_minors_and_comes_back_after_them() {
    let world = lobby(json!({})).await;
    world.open(LOBBY, &["aria", "velvet"]).await;

    let marked = world.patch(LOBBY, json!({ "minors": true })).await.unwrap();
    world.say(LOBBY, "Velvet, are you there?").await;
    let state = world.state(LOBBY).await;
    let greeting = Greeting { companion: "velvet".into(), text: "Hello, you.".into(), anyway: true };
    let greeted = conflict(world.backend.messages.greet(&room(LOBBY), greeting).await);
    let why = world.why(LOBBY, Some("velvet"), None).await.unwrap();
    world.patch(LOBBY, json!({ "minors": false })).await.unwrap();
    world.rest().await;

    assert!(marked.minors && greeted.starts_with("velvet is for adults only"), "{greeted}");
    let waiting = "Velvet takes no part: Velvet is for adults only, and there are minors in this room.";
    assert!(serde_json::to_string(&why).unwrap().contains(waiting), "{why:?}");
    let excluded = marked.companions.iter().map(|companion| (companion.id.as_str(), companion.kept_out));
    assert_eq!(excluded.collect::<Vec<_>>(), [("aria", false), ("velvet", true)]);
    assert_eq!(world.side.asked_for("velvet"), 0);
    assert_eq!(state.companions.iter().map(|companion| companion.id.as_str()).collect::<Vec<_>>(), ["aria"]);
    assert_eq!(world.recorded(LOBBY, "left").await.len(), 1);
    assert_eq!(world.recorded(LOBBY, "joined").await.len(), 3, "Velvet joined twice");
}

#[tokio::test(start_paused = true)]
async fn a_companion_for_adults_cannot_be_added_where_there_are_minors() {
    let world = lobby(json!({ "minors": ["school"] })).await;
    let plan = |guild: &str| json!({ "guild": guild, "companions": ["aria", "velvet"] });
    world.patch(LOBBY, json!({ "minors": true })).await.unwrap();

    let of_room = conflict(world.put_room(LOBBY, plan("home")).await);
    let of_guild = conflict(world.put_room("class", plan("school")).await);
    world.put_room("class", json!({ "guild": "school", "companions": ["aria"] })).await.unwrap();
    let unmarked = conflict(world.patch("class", json!({ "minors": false })).await);

    assert_eq!(
        of_room,
        "velvet is for adults only (adult = true), and there are minors in this room; choose another companion, or another room"
    );
    assert_eq!(of_guild, of_room);
    assert!(unmarked.contains("guild school") && unmarked.contains("safety.minors"), "{unmarked}");
    assert!(world.put_room("bar", plan("home")).await.is_ok());
    let world = world.crash().await;
    assert!(world.open(LOBBY, &["aria"]).await.minors, "it is on record");
}

#[tokio::test(start_paused = true)]
async fn where_there_are_minors_people_are_told_each_hour_and_companions_speak_only_when_spoken_to() {
    let world = lobby(json!({ "notice": "off" })).await;
    let without = world.told_after(0.0).await;
    world.patch(LOBBY, json!({ "minors": true })).await.unwrap();

    let told = [world.told_after(0.0).await, world.told_after(3_400.0).await, world.told_after(200.0).await];
    let asked = world.side.asked.lock().len();
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "It rains." })).await;
    world.pass(3_600.0).await;

    assert_eq!((without, told), (0, [1, 1, 2]));
    assert_eq!(world.side.asked.lock().len(), asked, "the lull is not asked about");
    let decisions = world.decisions(LOBBY).await;
    assert_eq!(decisions.last().unwrap()["reason"], "no_initiative", "{decisions:?}");
    let is_told = |request: &crate::ports::language_model::Request| format!("{request:?}").contains("There are minors here");
    let prompts = |asked: &[crate::ports::language_model::Request]| asked.iter().map(is_told).collect::<Vec<_>>();
    assert_eq!(prompts(&world.main.asked.lock()), [false, true, true, true]);
    assert_eq!(prompts(&world.side.asked.lock())[..2], [false, true]);
}
