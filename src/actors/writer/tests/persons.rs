//! The index of persons.

use std::collections::BTreeSet;

use super::world::{World, channel_key, new, retry};
use super::*;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{RedactEvents, RemoveFromIndex, Request, WriteError};
use crate::domain::id::PersonId;
use crate::journal::key;
use crate::journal::redaction::redact;
use crate::journal::speakers::STRETCH;
use crate::ports::store::key::ChannelNo;

const LOBBY: ChannelNo = ChannelNo(0);

impl World {
    /// The messages of a person in the lobby, found through the index.
    async fn said_by(&self, person: &str) -> Vec<u64> {
        let (reader, person) = (self.reader(), PersonId::from(person));
        let listed = reader.listed(&"home".into(), &person).await.unwrap();
        let stretches = listed.get(&LOBBY).into_iter().flat_map(|stretches| stretches.keys());
        let said = reader.messages_by(channel_key("lobby").ward(), LOBBY, stretches, &person).await.unwrap().messages;
        said.into_iter().map(|seq| seq.0).collect()
    }

    /// The stretches of the lobby in which the index lists a person.
    async fn listed(&self, person: &str) -> Vec<u64> {
        let listed = self.reader().listed(&"home".into(), &person.into()).await.unwrap();
        listed.get(&LOBBY).into_iter().flat_map(|stretches| stretches.keys()).map(|first| first.0).collect()
    }

    /// Redacts events of the lobby.
    pub(super) async fn redact(&self, seqs: impl IntoIterator<Item = u64>) {
        let (mut events, (reply, answer)) = (Vec::new(), Reply::awaited());
        for seq in seqs {
            events.push(redact(&self.reader().event(&channel_key("lobby"), Seq(seq)).await.unwrap().unwrap()));
        }
        let redaction = RedactEvents { channel_key: channel_key("lobby"), events, writes: Vec::new(), reply };
        self.send(Request::RedactEvents(redaction));
        answer.await.unwrap().unwrap();
    }

    async fn remove_from_index(&self, stretch: u64, below: u64, people: &[&str]) -> Result<(), WriteError> {
        let people: BTreeSet<_> = people.iter().map(|person| PersonId::from(*person)).collect();
        let removal = IndexRemoval { stretch: Seq(stretch), below: Seq(below), people: &people, notes: &[] };
        remove_from_index(&*self.store, &self.writer, &channel_key("lobby"), removal).await
    }

    fn request_removal(
        &self,
        stretch: u64,
        person: &str,
        as_of: u64,
    ) -> tokio::sync::oneshot::Receiver<Result<bool, WriteError>> {
        let (reply, answer) = Reply::awaited();
        let keys = vec![key::person(&"home".into(), &person.into(), LOBBY, Seq(stretch))];
        self.send(Request::RemoveFromIndex(RemoveFromIndex {
            channel_key: channel_key("lobby"),
            stretch: Seq(stretch),
            keys,
            as_of: Seq(as_of),
            reply,
        }));
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn a_persons_messages_are_found_by_one_entry_per_stretch() {
    let world = World::new().await;
    for number in 1..=600 {
        let person = if number % 100 == 0 { "ben" } else { "ana" };
        world.accept_from(person, "lobby", "hi", None).await.unwrap().unwrap();
    }

    assert_eq!(world.said_by("ben").await, [100, 200, 300, 400, 500, 600]);
    assert_eq!(world.said_by("ana").await.len(), 594);
    assert_eq!(world.listed("ana").await, [0, STRETCH, 2 * STRETCH]);
    assert_eq!(world.listed("zoe").await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_person_whose_first_message_is_refused_is_listed_with_the_next() {
    let world = World::with_one().await;
    world.store.hold();
    let busy = world.accept("attic", "hi", None);
    world.finish().await;

    let duplicate = world.accept_from("ben", "lobby", "one", Some("a"));
    let next = world.accept_from("ben", "lobby", "two", None);
    world.finish().await;
    world.store.release();

    assert_eq!((busy.await.unwrap(), duplicate.await.unwrap(), next.await.unwrap()), (Ok(new(1)), Ok(retry(1)), Ok(new(2))));
    assert_eq!(world.said_by("ben").await, [2]);
}

#[tokio::test(start_paused = true)]
async fn people_without_messages_in_a_stretch_are_removed_and_others_stay() {
    let world = World::new().await;
    for person in ["ana", "ben", "ana"] {
        world.accept_from(person, "lobby", "hi", None).await.unwrap().unwrap();
    }
    world.redact([1, 2]).await;

    world.remove_from_index(3, 0, &["ana", "ben", "zoe"]).await.unwrap();

    assert_eq!((world.said_by("ana").await, world.listed("ben").await), (vec![3], vec![]));
    // Messages below the number do not count.
    world.remove_from_index(3, 4, &["ana"]).await.unwrap();
    assert_eq!(world.listed("ana").await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_speaks_after_the_removal_is_listed_again() {
    let world = World::with_one().await;
    world.redact([1]).await;
    world.remove_from_index(0, 0, &["ana"]).await.unwrap();

    world.accept("lobby", "two", None).await.unwrap().unwrap();

    assert_eq!(world.said_by("ana").await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_speaks_meanwhile_is_not_removed() {
    let world = World::with_one().await;
    world.redact([1]).await;
    world.store.hold();

    let meanwhile = world.accept("lobby", "two", None);
    let removed = world.request_removal(0, "ana", 1);
    world.finish().await;
    world.store.release();

    assert_eq!((meanwhile.await.unwrap(), removed.await.unwrap()), (Ok(new(2)), Ok(false)));
    assert_eq!(world.said_by("ana").await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_person_is_removed_from_a_full_stretch_whatever_is_said_now() {
    let world = World::new().await;
    for seq in 1..STRETCH {
        world.accept("lobby", "hi", None).await.unwrap().unwrap();
        world.redact([seq]).await;
    }
    world.accept("lobby", "hi", None).await.unwrap().unwrap();

    let removed = world.request_removal(0, "ana", STRETCH - 1).await.unwrap();

    assert_eq!((removed, world.said_by("ana").await), (Ok(true), vec![STRETCH]));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_speaks_at_the_end_of_a_stretch_is_not_removed_when_it_is_full() {
    let world = World::with_one().await;
    world.redact([1]).await;
    for _ in 2..=STRETCH {
        world.accept("lobby", "more", None).await.unwrap().unwrap();
    }

    let removed = world.request_removal(0, "ana", 1).await.unwrap();

    assert_eq!((removed, world.said_by("ana").await.len()), (Ok(false), STRETCH as usize - 1));
}
