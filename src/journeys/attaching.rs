//! Files of messages: stored with their message, and gone with it.

use serde_json::json;

use super::retaining::left_of;
use super::world::{World, channel_key};
use crate::actors::erasure::deletion::delete_messages;
use crate::actors::erasure::retention;
use crate::actors::inbound::Inbound;
use crate::actors::messages::writer::Refused;
use crate::domain::attachment::{Attachment, with_lines};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::message::Author;
use crate::ports::inbound_events::{InboundMessage, StoredFile};

/// The bytes of a file that has three parts in the store, each with the word "zebra".
fn stripes() -> Vec<u8> {
    b"zebra ".iter().copied().cycle().take(150_000).collect()
}

/// Zoe posts a file.
async fn post(world: &World, bytes: Vec<u8>) -> Result<Seq, Refused> {
    let description = "a zebra".into();
    let file = Attachment { description, ..Attachment::new("0".into(), "image/png".into(), "z.png".into(), bytes.len() as u64) };
    let text = with_lines("Look!", std::slice::from_ref(&file));
    let files = vec![StoredFile { media_type: "image/png".into(), bytes: bytes.into() }];
    let message = InboundMessage { attachments: vec![file], files, ..InboundMessage::new(Author::of_name("Zoe".into()), text) };
    let accepted = Inbound::new(world.context.clone()).say(&channel_key("lobby"), message, None).await?;
    Ok(accepted.expect("people are admitted").seq)
}

async fn stored(world: &World, seq: Seq) -> Option<Vec<u8>> {
    world.reader().file(&channel_key("lobby"), seq, 0).await.unwrap().map(|(_, bytes)| bytes)
}

#[tokio::test(start_paused = true)]
async fn a_file_is_stored_with_its_message_and_survives_a_crash() {
    let world = World::with_lobby().await;
    let seq = post(&world, stripes()).await.unwrap();

    let world = world.crash().await;

    assert_eq!(stored(&world, seq).await, Some(stripes()));
    let Event::Said { message, .. } = &world.journal(&channel_key("lobby")).await[1].event else { panic!() };
    assert_eq!((&*message.text, message.attachments.len()), ("Look!\n[image: z.png, described as \"a zebra\"]", 1));
    assert_eq!(stored(&world, Seq(seq.0 + 1)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_file_is_gone_with_its_message_its_person_its_room_and_its_time() {
    for way in ["deleted", "forgotten", "room", "expired"] {
        let world = World::with_lobby_settings(json!({ "storage": { "retention_days": 2 } })).await;
        let seq = post(&world, stripes()).await.unwrap();
        assert!(left_of("zebra", &world).await >= 4, "the message and three parts");
        world.pass(3.0 * 86_400.0).await;
        world.say_then_pass("lobby", "news", 1_000.0).await;

        match way {
            "deleted" => delete_messages(&world.context, &channel_key("lobby"), &[seq].into()).await.unwrap(),
            "forgotten" => drop(world.forget("Zoe", false).await.unwrap()),
            "room" => world.delete_room("lobby").await,
            _ => assert_eq!(retention::pass(&world.context).await.failed, 0),
        }

        assert_eq!((left_of("zebra", &world).await, left_of("image/png", &world).await), (0, 0), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn files_that_do_not_fit_into_the_room_are_refused_with_the_setting() {
    let world = World::with_lobby_settings(json!({ "storage": { "room_files_mb": 1 } })).await;
    post(&world, vec![1; 700_000]).await.unwrap();

    let refused = post(&world, vec![1; 400_000]).await.unwrap_err();

    assert!(refused.to_string().contains("storage.room_files_mb"), "{refused}");
    assert!(post(&world, vec![1; 300_000]).await.is_ok());
}
