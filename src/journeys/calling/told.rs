//! What `why` tells of spoken words.

use std::time::Duration;

use super::super::world::{World, room};
use super::{call, inbound, lobby, says, segment};
use crate::domain::id::Seq;
use crate::ports::backend::decisions::{Why, WhyAt};
use crate::ports::inbound_events::Acceptance;
use crate::ports::voice_call::CallEvents;

async fn why(world: &World, seq: Seq) -> Why {
    let at = Some(WhyAt::Message(seq.to_string().into()));
    world.why("lobby", None, at).await.unwrap()
}

async fn noise(world: &World) -> Seq {
    let mut noise = segment(world, "ben", "uh");
    noise.segment.voiced = Some(Duration::from_millis(100));
    match inbound(world).heard(&lobby(), noise).await.unwrap() {
        Acceptance::New(seq) => seq,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn why_tells_what_became_of_a_segment() {
    let world = call(&["ana", "ben"]).await;
    let first = says(&world, "ana", "the tide").await;
    let noise = noise(&world).await;

    let waiting = why(&world, first).await;
    world.pass(10.0).await;
    let handed_over = why(&world, first).await;
    let no_words = why(&world, noise).await;
    let cleared = says(&world, "ana", "is turning").await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(10.0).await;
    let cleared = why(&world, cleared).await;

    let told = |why: &Why| why.story.iter().map(|line| line.event.to_string()).collect::<Vec<_>>();
    let message = super::spoken(&world).await[0].0.seq;
    assert_eq!(told(&waiting), ["segment", "waiting"]);
    assert_eq!(handed_over.message, Some(message));
    assert_eq!(handed_over.story[0].text, "ana Doe said in the voice call: “the tide”");
    assert_eq!(handed_over.story[1].text, format!("The words became a part of message {message}."));
    assert!(told(&handed_over).contains(&"message".to_owned()), "{handed_over:?}");
    assert_eq!(told(&no_words), ["segment", "rule"]);
    assert!(no_words.story[1].text.contains("taken for noise"), "{no_words:?}");
    assert_eq!(told(&cleared), ["segment", "cleared"]);
}
