//! A companion greets the first person who enters a call.

use serde_json::json;

use super::super::calling::events;
use super::{Caller, world_with};
use crate::actors::runtime::actor_keys::VoiceCallKey;
use crate::domain::event::Event;
use crate::domain::message::Modality;
use crate::journeys::world::World;

/// The events of a call that were put on record, and what was said aloud to them.
async fn greetings(world: &World) -> (Vec<String>, Vec<String>) {
    let (mut entered, mut said) = (Vec::new(), Vec::new());
    for recorded in events(world).await {
        match recorded.event {
            Event::Said { message, .. } if message.kind.as_deref() == Some("voice_call") => {
                entered.push(message.text.to_string())
            }
            Event::Said { message, reply: Some(_), .. } if message.modality == Modality::Voice => {
                said.push(message.text.to_string())
            }
            _ => {}
        }
    }
    (entered, said)
}

#[tokio::test(start_paused = true)]
async fn the_first_person_in_a_call_is_greeted_aloud_and_once() {
    let mut world = world_with(json!({ "voice": { "greeting": true } })).await;

    let ana = Caller::enter(&world, "ana").await;
    ana.listen(&world, 20.0).await;

    let greeting = "Hello there. It is good to hear you.";
    assert_eq!(greetings(&world).await, (vec!["ana has entered the voice call".to_owned()], vec![greeting.to_owned()]));
    assert!(!ana.page.packets.lock().is_empty());

    let ben = Caller::enter(&world, "ben").await;
    world.kill(&VoiceCallKey(super::channel())).await;
    world.pass(2.0).await;
    assert_eq!(
        greetings(&world).await.0.len(),
        1,
        "neither who comes later is greeted, nor anybody again after a restart of the call"
    );

    drop((ana, ben));
    world.pass(60.0).await;
    let ben = Caller::enter(&world, "ben").await;
    ben.listen(&world, 20.0).await;
    let (entered, said) = greetings(&world).await;
    assert_eq!(entered, ["ana has entered the voice call", "ben has entered the voice call"]);
    assert_eq!(said, [greeting, greeting]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_greeted_unless_it_is_wanted() {
    let world = world_with(json!({})).await;

    let ana = Caller::enter(&world, "ana").await;
    ana.listen(&world, 20.0).await;

    assert_eq!(greetings(&world).await, (vec![], vec![]));
}
