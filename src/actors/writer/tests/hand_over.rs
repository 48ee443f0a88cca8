//! Hand-overs of a voice call: one batch, and one message to the channel.

use super::world::{World, channel_key, jitter, made_event, said};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Committed, HandOver, Request, WriteError};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::message::Role;
use tokio::sync::oneshot::Receiver;

fn hand_over(world: &World, handled: Seq, messages: Vec<Event>) -> Receiver<Result<Committed, WriteError>> {
    let (reply, answer) = Reply::awaited();
    let channel_key = channel_key("lobby");
    world.send(Request::HandOver(HandOver { channel_key, at: None, handled, messages, reply }));
    answer
}

fn two() -> Vec<Event> {
    vec![said("the tide", Role::Person), said("it is", Role::Person)]
}

#[tokio::test]
async fn the_messages_of_a_hand_over_are_one_batch_and_one_message_to_the_channel() {
    let world = World::with_one().await;

    let committed = hand_over(&world, Seq(1), two()).await.unwrap();

    assert_eq!(committed, Ok(Committed { first: Seq(2), last: Seq(3) }));
    assert_eq!(world.texts("lobby").await[1..], [(2, "the tide".into()), (3, "it is".into())]);
    assert_eq!(world.batches_delivered(), [vec![1], vec![2, 3]]);
    assert!(world.is_pending("lobby").await);
}

#[tokio::test]
async fn words_of_a_channel_that_was_deleted_meanwhile_are_not_stored() {
    let world = World::with_one().await;
    world.delete("lobby").await.unwrap().unwrap();

    let refused = hand_over(&world, Seq::NONE, two()).await.unwrap();

    assert_eq!(refused, Err(WriteError::Deleted));
    assert_eq!(world.texts("lobby").await, []);
}

#[tokio::test]
async fn a_hand_over_with_an_event_that_is_not_inbound_stores_nothing() {
    let world = World::new().await;
    let mut messages = two();
    messages.push(made_event(Seq::NONE, jitter(3)).event);

    let refused = hand_over(&world, Seq::NONE, messages).await.unwrap();

    assert!(matches!(refused, Err(WriteError::Unfit(_))), "{refused:?}");
    assert_eq!(world.texts("lobby").await, []);
    assert_eq!(hand_over(&world, Seq::NONE, two()).await.unwrap(), Ok(Committed { first: Seq(1), last: Seq(2) }));
}
