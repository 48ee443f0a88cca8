//! Events from platforms that are not ours: accepted once, resolved, edited, deleted.

mod deletion;
mod gone;
mod late;
mod reacting;
mod replying;
mod spoken;
mod suspended;
mod turning;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::abroad::{self, ana, channel_ref, direct, general, is_of_discord};
use super::world::{World, lines, room};
use crate::actors::inbound::Inbound;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::domain::event::Event;
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{Author, Message, Role};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::messages::HistoryQuery;
use crate::ports::chat_platform::fake::FakePlatform;
use crate::ports::inbound_events::{
    Acceptance, Answered, ChannelRef, InboundError, InboundEvents, InboundMessage, Reached, ReplyTo,
};

/// Another channel of the guild.
fn other() -> ChannelRef {
    ChannelRef { channel: "discord:20".into(), ..general() }
}

fn thread() -> ChannelRef {
    abroad::thread("discord:11")
}

/// A system in which Aria and Bruno are members of the channel.
async fn world() -> World {
    with(World::new().await).await
}

async fn with(world: World) -> World {
    for companion in ["aria", "bruno"] {
        admit(&world, &general(), companion).await;
    }
    world
}

async fn admit(world: &World, channel_ref: &ChannelRef, companion: &str) {
    world.backend.rooms.admit(channel_ref, &companion.into()).await.unwrap();
    world.rest().await;
}

/// Aria and Bruno leave the channel.
async fn dismiss_all(world: &World) {
    for companion in ["aria", "bruno"] {
        world.backend.rooms.dismiss(&general(), &companion.into()).await.unwrap();
    }
}

fn channel_key(channel_ref: &ChannelRef) -> ChannelKey {
    ChannelKey::new(&channel_ref.guild, &channel_ref.channel)
}

fn inbound_events(world: &World) -> Inbound {
    Inbound::new(world.context.clone())
}

fn by(user: &str, inbound_message: InboundMessage) -> InboundMessage {
    InboundMessage {
        from: Author { id: format!("discord:{user}").into(), name: user.into(), role: Role::Person },
        ..inbound_message
    }
}

/// Ana sends a message to the channel, and it is new.
async fn say(world: &World, id: &str, text: &str) -> Seq {
    say_in(world, &general(), ana(world, id, text)).await
}

async fn say_in(world: &World, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Seq {
    let taken = inbound_events(world).said(channel_ref, inbound_message).await.unwrap();
    world.rest().await;
    match taken {
        Acceptance::New(seq) => seq,
        other => panic!("not new: {other:?}"),
    }
}

/// The message of this number as it is on record.
async fn message(world: &World, channel_ref: &ChannelRef, seq: Seq) -> Message {
    match world.reader().event(&channel_key(channel_ref), seq).await.unwrap().map(|recorded| recorded.event) {
        Some(Event::Said { message, .. }) => message,
        other => panic!("{other:?} is no message"),
    }
}

/// A lobby on a platform on which Aria's answer to the message 100 has two parts, 1 and 2.
async fn answering_in_two_parts() -> (Arc<FakePlatform>, World, ChannelRef) {
    let platform = Arc::new(FakePlatform::default());
    let world = World::with_platform(platform.clone()).await;
    platform.takes_at_most(32);
    let lobby = channel_ref("home", "console:lobby");
    world.main.answers([Ok("First comes a sentence. Then there is another one.")]);
    world.side.answers([Ok("Me.\nYES"), Ok("No.\nNO")]);
    say_in(&world, &lobby, ana(&world, "100", "Ari?")).await;
    (platform, world, lobby)
}

/// The number of a channel's events.
async fn events(world: &World, channel_ref: &ChannelRef) -> usize {
    world.journal(&channel_key(channel_ref)).await.len()
}

#[tokio::test(start_paused = true)]
async fn a_message_received_twice_is_on_record_once_also_after_a_crash() {
    let world = world().await;
    let seq = say(&world, "100", "hello").await;

    let again = inbound_events(&world).said(&general(), ana(&world, "100", "hello, changed")).await.unwrap();
    let world = world.crash().await;
    let after_a_crash = inbound_events(&world).said(&general(), ana(&world, "100", "hello")).await.unwrap();
    let elsewhere = inbound_events(&world).said(&thread(), ana(&world, "100", "hello")).await.unwrap();

    assert_eq!([again, after_a_crash], [Acceptance::Duplicate(seq); 2]);
    assert!(matches!(elsewhere, Acceptance::New(_)), "{elsewhere:?}");
    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "hello")]));
}

#[tokio::test(start_paused = true)]
async fn messages_in_flight_when_the_writer_dies_are_on_record_once_after_a_resend() {
    for tick in 0..6 {
        let mut world = world().await;
        let inbound = inbound_events(&world);
        let pending: Vec<_> = (0..20)
            .map(|number| {
                let (inbound, inbound_message) =
                    (inbound.clone(), ana(&world, &number.to_string(), &format!("message {number}")));
                tokio::spawn(async move { inbound.said(&general(), inbound_message).await })
            })
            .collect();
        for _ in 0..tick {
            tokio::task::yield_now().await;
        }
        world.kill(&WriterKey()).await;
        world.expect_deaths();

        for (number, pending) in pending.into_iter().enumerate() {
            let mut outcome = pending.await.unwrap();
            while let Err(InboundError::Later { after, .. }) = outcome {
                world.pass(after.as_secs_f64()).await;
                let again = ana(&world, &number.to_string(), &format!("message {number}"));
                outcome = inbound.said(&general(), again).await;
            }
            outcome.unwrap();
        }

        let mut texts: Vec<_> = world.history("discord:10").await.into_iter().map(|(_, text)| text).collect();
        texts.sort();
        let mut expected: Vec<_> = (0..20).map(|number| format!("message {number}")).collect();
        expected.sort();
        assert_eq!(texts, expected, "killed after {tick}");
    }
}

#[tokio::test(start_paused = true)]
async fn messages_sent_one_after_the_other_are_on_record_in_that_order_in_every_channel() {
    let world = world().await;
    admit(&world, &other(), "aria").await;

    let talk = |channel_ref: ChannelRef| {
        let (inbound, world) = (inbound_events(&world), &world);
        async move {
            for number in 0..50 {
                inbound.said(&channel_ref, ana(world, &number.to_string(), &number.to_string())).await.unwrap();
            }
        }
    };
    tokio::join!(talk(general()), talk(other()), talk(thread()), talk(direct()));

    for id in ["discord:10", "discord:20", "discord:11", "discord:77"] {
        let history = world.history(id).await;
        let numbers: Vec<u32> = history.iter().filter(|(from, _)| from == "Ana").map(|(_, text)| text.parse().unwrap()).collect();
        assert_eq!(numbers, (0..50).collect::<Vec<u32>>(), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_channel_without_members_nothing_is_accepted_or_stored() {
    let world = world().await;
    let elsewhere = ChannelRef { guild: "discord:2".into(), ..general() };

    let inbound = inbound_events(&world);
    for channel_ref in [other(), elsewhere.clone(), ChannelRef { parent: Some(other().channel), ..thread() }] {
        assert!(!inbound.listens(&channel_ref));
        assert_eq!(inbound_events(&world).said(&channel_ref, ana(&world, "100", "Ari?")).await, Ok(Acceptance::Ignored));
        assert_eq!(inbound_events(&world).reached(&channel_ref).await, Ok(None));
        assert_eq!(inbound_events(&world).caught_up(&channel_ref, 3, None).await, Ok(()));
        assert_eq!(inbound_events(&world).edited(&channel_ref, "100", "Ari!".into()).await, Ok(()));
        assert_eq!(inbound_events(&world).deleted(&channel_ref, &["100".into()]).await, Ok(()));
    }

    for channel_ref in [other(), elsewhere.clone(), thread()] {
        assert_eq!(events(&world, &channel_ref).await, 0);
    }
    assert_eq!(world.reader().channel_no(&channel_key(&elsewhere)).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_thread_and_a_direct_message_become_rooms_with_the_first_message() {
    let world = world().await;
    assert!(inbound_events(&world).listens(&thread()) && inbound_events(&world).listens(&direct()));

    let in_thread = say_in(&world, &thread(), ana(&world, "1", "Bruno?")).await;
    let directly = say_in(&world, &direct(), InboundMessage { to_all: true, ..ana(&world, "1", "hello") }).await;

    assert_eq!(message(&world, &thread(), in_thread).await.address.companions, ["bruno".into()]);
    assert_eq!(message(&world, &direct(), directly).await.address.companions, ["aria".into()]);
    world.side.answers([Ok("Me.\nYES"), Ok("Me.\nYES"), Ok("No.\nNO")]);
    world.pass(60.0).await;
    assert!(world.history("discord:77").await.iter().any(|(from, _)| from == "aria"));
}

#[tokio::test(start_paused = true)]
async fn the_position_of_a_channel_is_its_newest_id() {
    let world = world().await;
    let since = world.context.memberships.get(&general().channel).unwrap().created_at;
    let nothing = inbound_events(&world).reached(&general()).await.unwrap();
    say(&world, "100", "one").await;
    say(&world, "101", "two").await;
    for _ in 0..200 {
        inbound_events(&world).caught_up(&general(), 1, None).await.unwrap();
    }

    let reached = inbound_events(&world).reached(&general()).await.unwrap();
    let of_thread = inbound_events(&world).reached(&thread()).await.unwrap();

    assert_eq!(nothing, Some(Reached { newest: None, since }));
    assert_eq!(reached, Some(Reached { newest: Some("101".into()), since }));
    assert_eq!(of_thread, Some(Reached { newest: None, since }));
    inbound_events(&world).deleted(&general(), &["101".into()]).await.unwrap();
    let newest = inbound_events(&world).reached(&general()).await.unwrap().unwrap().newest;
    assert_eq!(newest.as_deref(), Some("100"), "a deleted message is requested again, and is missing");
}

#[tokio::test(start_paused = true)]
async fn messages_sent_while_a_channel_had_no_members_are_not_requested() {
    let world = world().await;
    say(&world, "100", "one").await;
    say_in(&world, &thread(), ana(&world, "1", "two")).await;
    dismiss_all(&world).await;
    assert_eq!(inbound_events(&world).reached(&general()).await, Ok(None));

    world.pass(3_600.0).await;
    let since = world.context.clock.now();
    admit(&world, &general(), "aria").await;
    world.pass(60.0).await;
    admit(&world, &general(), "bruno").await;

    for channel_ref in [general(), thread()] {
        let reached = inbound_events(&world).reached(&channel_ref).await.unwrap().unwrap();
        assert_eq!(reached.since, since, "{channel_ref:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_guilds_of_a_platform_are_those_with_members() {
    let world = world().await;
    world.open("lobby", &["aria"]).await;
    let far = ChannelRef { guild: "discord:3".into(), channel: "discord:30".into(), parent: None };
    admit(&world, &far, "aria").await;
    say_in(&world, &direct(), ana(&world, "1", "hello")).await;

    assert_eq!(inbound_events(&world).guilds(is_of_discord), ["discord:1", "discord:3", "dm:discord:77"].map(Into::into));
    assert_eq!(inbound_events(&world).guilds(|_| false), []);

    world.backend.rooms.dismiss(&far, &"aria".into()).await.unwrap();
    assert_eq!(inbound_events(&world).guilds(is_of_discord), ["discord:1", "dm:discord:77"].map(Into::into));
}

#[tokio::test(start_paused = true)]
async fn empty_messages_are_not_accepted() {
    let world = world().await;

    assert_eq!(inbound_events(&world).said(&general(), ana(&world, "1", " \n")).await, Ok(Acceptance::Ignored));
    assert_eq!(world.history("discord:10").await, []);
}

#[tokio::test(start_paused = true)]
async fn messages_sent_without_members_are_not_read_when_a_companion_returns() {
    let world = world().await;
    say_in(&world, &thread(), ana(&world, "1", "hello")).await;
    let since =
        async |channel_ref: ChannelRef| inbound_events(&world).reached(&channel_ref).await.unwrap().map(|reached| reached.since);
    let before = since(general()).await.unwrap();
    dismiss_all(&world).await;
    world.pass(3_600.0).await;
    assert_eq!((since(general()).await, since(thread()).await), (None, None));

    let back = world.context.clock.now();
    for companion in ["bruno", "aria"] {
        world.backend.rooms.admit(&general(), &companion.into()).await.unwrap();
        world.pass(1.0).await;
    }

    let world = world.crash().await;
    let since = async |channel_ref: ChannelRef| inbound_events(&world).reached(&channel_ref).await.unwrap().unwrap().since;
    assert!(before < back);
    assert!(since(general()).await >= back && since(thread()).await >= back);
    assert_eq!(since(general()).await, since(thread()).await);
    assert!(since(general()).await.since(back) < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn statements_do_not_hide_messages_that_were_missed() {
    let world = World::with_platform(Arc::new(FakePlatform::default())).await;
    let lobby = channel_ref("home", "console:lobby");
    world.side.answers([Ok("Me.\nYES"), Ok("No.\nNO")]);
    say_in(&world, &lobby, ana(&world, "0", "Ari?")).await;
    world.pass(20.0).await;

    let reached = inbound_events(&world).reached(&lobby).await.unwrap().unwrap();

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    assert_eq!(reached.newest.as_deref(), Some("0"));
}
