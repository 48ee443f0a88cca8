//! Notes that platforms store.

use super::world::World;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::backend::notes::StoredNotes;
use crate::domain::id::GuildId;
use crate::ports::notes::Notes;

#[tokio::test(start_paused = true)]
async fn a_note_is_read_as_it_was_written_and_survives_a_crash() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..=255).collect();
    write(&world, Some(&guild()), &[("session", Some(&bytes)), ("empty", Some(&[]))]).await;
    write(&world, None, &[("session", Some(b"of nobody"))]).await;
    write(&world, Some(&guild()), &[("session", Some(&bytes[1..]))]).await;

    let world = world.crash().await;

    assert_eq!(read(&world, Some(&guild()), "session").await.as_deref(), Some(&bytes[1..]));
    assert_eq!(read(&world, Some(&guild()), "empty").await.as_deref(), Some(&[][..]));
    assert_eq!(read(&world, None, "session").await.as_deref(), Some(&b"of nobody"[..]));
    assert_eq!(read(&world, Some(&"discord:6".into()), "session").await, None);
    assert_eq!(read(&world, None, "sess").await, None);
}

#[tokio::test(start_paused = true)]
async fn notes_are_listed_by_prefix_in_the_order_of_names() {
    let world = World::new().await;
    let names = ["heard/2", "heard/10", "heard", "heard/", "hear", "heardless", "i", "heard/é"];
    let notes: Vec<(&str, Option<&[u8]>)> = names.iter().map(|name| (*name, Some(name.as_bytes()))).collect();
    write(&world, Some(&guild()), &notes).await;
    write(&world, Some(&"discord:50".into()), &[("heard/3", Some(b""))]).await;
    write(&world, None, &[("heard/4", Some(b""))]).await;

    assert_eq!(all(&world, "heard/").await, ["heard/", "heard/10", "heard/2", "heard/é"]);
    assert_eq!(all(&world, "").await.len(), names.len());
    assert_eq!(all(&world, "nothing").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_note_is_removed_and_others_are_written_in_one_request() {
    let world = World::new().await;
    write(&world, None, &[("one", Some(b"1"))]).await;

    write(&world, None, &[("one", None), ("two", Some(b"2")), ("three", None)]).await;
    write(&world, None, &[]).await;

    assert_eq!((read(&world, None, "one").await, read(&world, None, "two").await), (None, Some(b"2".to_vec())));
}

#[tokio::test(start_paused = true)]
async fn other_deletions_do_not_remove_notes() {
    let world = World::with_lobby().await;
    world.say("lobby", "hi").await;
    write(&world, Some(&"home".into()), &[("Ana", Some(b"kept"))]).await;

    world.forget("Ana", false).await.unwrap();
    world.delete_room("lobby").await;

    assert_eq!(read(&world, Some(&"home".into()), "Ana").await.as_deref(), Some(&b"kept"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_note_that_cannot_be_written_is_an_error() {
    let mut world = World::new().await;
    let notes = StoredNotes::new(world.context.clone());
    world.context.directory.find(&WriterKey()).unwrap().kill();
    world.expect_deaths();

    assert!(notes.write(None, vec![("one".into(), Some(vec![]))]).await.is_err());
    world.rest().await;
    assert!(notes.write(None, vec![("one".into(), Some(vec![]))]).await.is_ok());
}

fn guild() -> GuildId {
    "discord:5".into()
}

async fn write(world: &World, guild: Option<&GuildId>, notes: &[(&str, Option<&[u8]>)]) {
    let notes = notes.iter().map(|(name, note)| ((*name).to_owned(), note.map(<[u8]>::to_vec))).collect();
    StoredNotes::new(world.context.clone()).write(guild, notes).await.unwrap();
}

async fn read(world: &World, guild: Option<&GuildId>, name: &str) -> Option<Vec<u8>> {
    StoredNotes::new(world.context.clone()).read(guild, name).await.unwrap()
}

/// The names of a guild's notes with this prefix. Each note contains its own name.
async fn all(world: &World, beginning: &str) -> Vec<String> {
    let notes = StoredNotes::new(world.context.clone()).all(Some(&guild()), beginning).await.unwrap();
    notes.iter().for_each(|(name, note)| assert_eq!(name.as_bytes(), note));
    notes.into_iter().map(|(name, _)| name).collect()
}
