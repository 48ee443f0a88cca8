//! Spoken messages.

use super::*;
use crate::domain::message::Modality;
use crate::journeys::world::of_json;

#[tokio::test(start_paused = true)]
async fn an_utterance_that_ends_a_lull_is_asked_about_at_once_and_one_that_may_continue_after_the_voice_lull_timeout() {
    for lull_endpoint in [true, false] {
        let world = world().await;
        let spoken = ana(&world, "1", "the tide is turning");
        let spoken = InboundMessage { modality: Modality::Voice, lull_endpoint, ..spoken };

        let seq = say_in(&world, &general(), spoken).await;
        let at_once = world.side.asked_for("aria");
        world.pass(6.0).await;

        let sent = message(&world, &general(), seq).await;
        assert_eq!((sent.modality, sent.lull_endpoint), (Modality::Voice, lull_endpoint));
        assert_eq!((at_once, world.side.asked_for("aria")), (usize::from(lull_endpoint), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_console_room_can_pass_on_spoken_words() {
    let world = World::with_lobby().await;
    let sent: InboundMessage = of_json(json!({ "from": "Ana", "text": "the tide is turning" }));
    let spoken = InboundMessage { modality: Modality::Voice, lull_endpoint: true, ..sent };

    world.backend.messages.say(&room("lobby"), spoken).await.unwrap();
    world.rest().await;

    assert_eq!(world.side.asked_for("aria"), 1);
}
