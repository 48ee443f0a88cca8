//! A channel that dies whenever it goes on from its record: it is left alone for a while, shown, and tried again when the operator wants it.

use std::time::Duration;

use super::world::{World, room, said};
use crate::actors::places::{GuildPlace, ScribePlace};
use crate::actors::reaching::look;
use crate::actors::scribe::{Administer, Reply, ScribeMessage};
use crate::domain::conversation::poison;
use crate::domain::id::Ward;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::Reader;
use crate::journal::record::encode_snapshot;
use crate::ports::house::keeping::Quarantine;
use crate::ports::house::{House, Refused};
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Value, Write};

#[tokio::test(start_paused = true)]
async fn a_channel_that_dies_of_its_snapshot_is_left_alone_shown_and_takes_nobody_along() {
    let (mut world, place, no, harmless) = poisoned().await;
    world.expect_deaths();
    world.side.answers([Ok("They mean me.\nYES")]);
    world.pass(250.0).await;
    world.say("den", "Bruno?").await;
    world.say("lobby", "Ari?").await;
    world.pass(40.0).await;

    let quarantine = world.house.quarantine().await.unwrap();
    assert_eq!((quarantine.guilds, quarantine.messages), (Vec::new(), Vec::new()), "the guild is not kept away");
    assert_eq!(world.spans.named("supervisor.escalate").len(), 1, "somebody can see what happened");
    let [alone] = &quarantine.channels[..] else { panic!("not one is left alone: {:?}", quarantine.channels) };
    assert_eq!((&*alone.id, alone.guild.as_str(), &*alone.room), ("channel:console:lobby", "home", "lobby"));
    assert_eq!(alone.until.0.since(alone.since.0), Duration::from_secs(300));
    assert!(alone.detail.contains("console:lobby") && alone.detail.contains("panicked"), "{}", alone.detail);
    assert!(world.history("den").await.contains(&("bruno".into(), "Hello!".into())));
    assert!(look(&world.kit, &room("lobby").channel()).await.is_none(), "it is left alone");

    // Released too early, it dies again, and is left alone from then on.
    world.house.release(&alone.id).await.unwrap();
    assert_eq!(world.house.quarantine().await.unwrap().channels, []);
    assert!(matches!(world.house.release(&alone.id).await, Err(Refused::NotFound(_))));
    world.pass(250.0).await;
    let Quarantine { channels: again, messages, .. } = world.house.quarantine().await.unwrap();
    assert_eq!((again.len(), messages), (1, Vec::new()), "what was said meanwhile is not to blame");
    assert!(again[0].since.0 > alone.since.0, "it was tried");

    // As a backup would.
    put(&world, place.ward(), key::snapshot(place.ward(), no), harmless).await;
    let until = again[0].until.0.since(world.kit.clock.now());
    world.pass(until.as_secs_f64() - 1.0).await;
    assert!(look(&world.kit, &room("lobby").channel()).await.is_none(), "nobody tries it before");
    world.pass(61.0).await;
    assert!(world.history("lobby").await.ends_with(&said(&[("Ana", "Ari?"), ("aria", "Hello!")])));
    assert_eq!(world.house.quarantine().await.unwrap().channels, []);
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_left_alone_is_back_as_soon_as_the_operator_releases_it() {
    let (mut world, place, no, harmless) = poisoned().await;
    world.expect_deaths();
    world.side.answers([Ok("They mean me.\nYES")]);
    world.pass(250.0).await;
    world.say("lobby", "Ari?").await;

    put(&world, place.ward(), key::snapshot(place.ward(), no), harmless).await;
    let alone = world.house.quarantine().await.unwrap().channels.remove(0);
    world.house.release(&alone.id).await.unwrap();
    world.pass(20.0).await;

    assert!(world.history("lobby").await.ends_with(&said(&[("Ana", "Ari?"), ("aria", "Hello!")])));
    assert_eq!(world.house.quarantine().await.unwrap().channels, []);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_left_alone_and_deleted_is_listed_no_more() {
    let (mut world, ..) = poisoned().await;
    world.expect_deaths();
    world.pass(250.0).await;
    assert_eq!(world.house.quarantine().await.unwrap().channels.len(), 1);

    world.house.delete_room(&room("lobby")).await.unwrap();
    world.rest().await;

    assert_eq!(world.house.quarantine().await.unwrap().channels, []);
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_begins_anew_tries_whom_it_left_alone() {
    let (mut world, ..) = poisoned().await;
    world.expect_deaths();
    world.pass(250.0).await;
    let before = world.house.quarantine().await.unwrap().channels.remove(0);

    world.kit.directory.find(&GuildPlace("home".into())).unwrap().kill();
    world.pass(1.0).await;
    let meanwhile = world.house.quarantine().await.unwrap().channels;
    world.pass(250.0).await;

    assert_eq!(meanwhile, []);
    let after = world.house.quarantine().await.unwrap().channels;
    assert_eq!(after.len(), 1);
    assert!(after[0].since.0 > before.since.0);
}

/// A system in which `lobby` dies of its snapshot, what a harmless one of it is, and where it lies. In `den` nothing is wrong.
async fn poisoned() -> (World, Place, ChannelNo, Value) {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say("den", "no poison-pill").await;
    world.say("lobby", "harmless").await;
    let conversation = look(&world.kit, &room("lobby").channel()).await.expect("it is awake").conversation;
    let place = Place::new(&"home".into(), &room("lobby").channel());
    let reader = Reader::new(&*world.kit.store);
    let (no, head) = (reader.channel_no(&place).await.unwrap().unwrap(), reader.head(&place).await.unwrap().last);
    let harmless = encode_snapshot(head, &conversation);
    let deadly = String::from_utf8(harmless.clone()).unwrap().replace("harmless", poison::GONE_ON).into_bytes();
    put(&world, place.ward(), key::snapshot(place.ward(), no), deadly).await;
    (world.crash().await, place, no, harmless)
}

/// Puts a value where nobody who means well would.
async fn put(world: &World, ward: Ward, key: Key, value: Value) {
    let (reply, done) = Reply::awaited();
    let administer = Administer { ward, writes: vec![Write::Put(key, value)], fresh: Vec::new(), reply };
    world.kit.directory.find(&ScribePlace()).unwrap().cast(ScribeMessage::Administer(administer)).unwrap();
    done.await.unwrap().unwrap();
}
