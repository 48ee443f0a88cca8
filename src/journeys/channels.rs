//! Channels of other platforms: who is admitted to them, threads, and direct messages.

use serde_json::{Value, json};

use super::abroad::{ana, direct, general, thread};
use super::world::{World, of_json, room};
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::domain::id::{CompanionId, Seq};
use crate::ports::backend::Refused;
use crate::ports::inbound_events::{Acceptance, ChannelRef, InboundEvents};

async fn admit(world: &World, channel_ref: &ChannelRef, companion: &str) -> Result<bool, Refused> {
    let admitted = world.backend.rooms.admit(channel_ref, &companion.into()).await.map(|(_, is_new)| is_new);
    world.rest().await;
    admitted
}

/// A system in which Aria is a member of the channel.
async fn with_aria() -> World {
    let world = World::new().await;
    admit(&world, &general(), "aria").await.unwrap();
    world
}

async fn dismiss(world: &World, channel_ref: &ChannelRef, companion: &str) -> bool {
    let dismissed = world.backend.rooms.dismiss(channel_ref, &companion.into()).await.unwrap();
    world.rest().await;
    dismissed
}

async fn open(world: &World, channel_ref: &ChannelRef) -> bool {
    let expected = changes::would_open(&world.context, channel_ref);
    let opened = changes::ensure_room(&world.context, channel_ref).await.unwrap();
    assert_eq!(opened, expected, "`would_open` predicts what `ensure_room` does");
    world.rest().await;
    opened
}

/// Joins and leaves on record, oldest first.
async fn moves(world: &World, id: &str) -> Vec<(String, String)> {
    let seen = world.watch(id, Some(0)).await.seen().await;
    let moves = seen.iter().filter(|event| event["event"] == "joined" || event["event"] == "left");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    moves.map(|event| (text(&event["event"]), text(&event["companion"]))).collect()
}

fn came(moves: &[(&str, &str)]) -> Vec<(String, String)> {
    moves.iter().map(|(what, who)| ((*what).to_owned(), (*who).to_owned())).collect()
}

async fn say(world: &World, channel_ref: &ChannelRef, id: &str, text: &str) -> Seq {
    let accepted = Inbound::new(world.context.clone()).said(channel_ref, ana(world, id, text)).await.unwrap();
    world.rest().await;
    match accepted {
        Acceptance::New(seq) | Acceptance::Duplicate(seq) => seq,
        Acceptance::Ignored => Seq::NONE,
    }
}

/// Long enough for every channel to fall asleep.
async fn sleep(world: &World) {
    world.pass(3_600.0).await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_becomes_a_room_with_the_first_admitted_companion_and_survives_a_crash() {
    let world = World::new().await;

    assert!(!changes::would_open(&world.context, &general()));
    assert_eq!(admit(&world, &general(), "aria").await, Ok(true));
    assert_eq!(admit(&world, &general(), "aria").await, Ok(false));
    let world = world.crash().await;

    assert_eq!(world.present("discord:10").await, ["aria"]);
    assert_eq!(moves(&world, "discord:10").await, came(&[("joined", "aria")]));
    assert!(open(&world, &general()).await);
    assert!(dismiss(&world, &general(), "aria").await);
    assert!(!dismiss(&world, &general(), "aria").await);
    assert!(!open(&world, &general()).await);
    assert_eq!(world.present("discord:10").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn companions_admitted_at_the_same_time_are_all_members() {
    let world = World::new().await;
    let (aria, bruno, cleo) = (CompanionId::from("aria"), CompanionId::from("bruno"), CompanionId::from("cleo"));
    let channel_ref = general();

    let (first, second, third) = tokio::join!(
        world.backend.rooms.admit(&channel_ref, &aria),
        world.backend.rooms.admit(&channel_ref, &bruno),
        world.backend.rooms.admit(&channel_ref, &cleo)
    );
    let (gone, back) =
        tokio::join!(world.backend.rooms.dismiss(&channel_ref, &bruno), world.backend.rooms.admit(&channel_ref, &bruno));

    assert!([first, second, third, back].iter().all(|admitted| matches!(admitted, Ok((_, true)))));
    assert_eq!(gone, Ok(true));
    world.rest().await;
    assert_eq!(world.present("discord:10").await, ["aria", "bruno", "cleo"]);
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_cannot_be_admitted_is_refused_with_a_way_out() {
    let world = with_aria().await;
    let elsewhere = ChannelRef { channel: "discord:11".into(), ..general() };
    let console = ChannelRef { channel: "console:lobby".into(), ..general() };
    let foreign = ChannelRef { guild: "discord:2".into(), ..general() };

    let unknown = admit(&world, &general(), "nobody").await;
    let namesake = admit(&world, &elsewhere, "twin").await;
    let console = admit(&world, &console, "aria").await;
    let foreign = admit(&world, &foreign, "bruno").await;

    assert!(matches!(unknown, Err(Refused::NotFound(detail)) if detail.contains("there are aria, bruno")));
    assert!(
        matches!(namesake, Err(Refused::Conflict(detail)) if &*detail == "twin and aria, who is in this guild, share the name \"ari\"; remove aria from all its channels here first")
    );
    assert!(matches!(console, Err(Refused::Invalid { .. })));
    assert!(matches!(foreign, Err(Refused::Conflict(detail)) if detail.contains("discord:1")));
    assert!(
        matches!(world.backend.rooms.get(&room("discord:11")).await, Err(Refused::NotFound(detail)) if detail.contains("/tertulia join"))
    );
    dismiss(&world, &general(), "aria").await;
    assert_eq!(admit(&world, &elsewhere, "twin").await, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_thread_becomes_a_room_with_the_members_of_its_channel() {
    let world = with_aria().await;
    world.patch("discord:10", json!({ "paused": true, "companions": { "aria": { "interjection": "quiet" } } })).await.unwrap();
    let elsewhere = ChannelRef { parent: Some("discord:99".into()), ..thread("discord:20") };
    let foreign = ChannelRef { guild: "discord:2".into(), ..thread("discord:20") };

    assert!(!open(&world, &elsewhere).await);
    assert!(!open(&world, &foreign).await);
    assert!(open(&world, &thread("discord:20")).await);

    let found = world.backend.rooms.get(&room("discord:20")).await.unwrap();
    assert_eq!((found.guild.as_str(), found.paused), ("discord:1", true));
    assert_eq!((&*found.companions[0].interjection, found.companions[0].paused), ("quiet", true));
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria")]));
}

#[tokio::test(start_paused = true)]
async fn a_change_to_a_channel_applies_to_its_threads_until_the_thread_itself_is_changed() {
    let world = with_aria().await;
    let (asleep, awake, own) = (thread("discord:20"), thread("discord:21"), thread("discord:22"));
    for channel_ref in [&asleep, &own] {
        open(&world, channel_ref).await;
    }
    world.patch("discord:22", json!({ "companions": { "aria": { "interjection": "eager" } } })).await.unwrap();
    sleep(&world).await;
    open(&world, &awake).await;
    let mut watching = world.watch("discord:20", None).await;

    admit(&world, &general(), "bruno").await.unwrap();
    dismiss(&world, &general(), "aria").await;
    world.patch("discord:10", json!({ "companions": { "bruno": { "interjection": "quiet" } } })).await.unwrap();

    assert_eq!(world.present("discord:20").await, ["bruno"]);
    assert_eq!(world.present("discord:21").await, ["bruno"]);
    assert_eq!(world.present("discord:22").await, ["aria"]);
    assert_eq!(&*world.backend.rooms.get(&room("discord:20")).await.unwrap().companions[0].interjection, "quiet");
    let seen = watching.seen().await;
    assert!(seen.iter().any(|event| event["event"] == "tempered" && event["channel"] == "discord:20"), "{seen:?}");
    let moved = came(&[("joined", "aria"), ("joined", "bruno"), ("left", "aria")]);
    assert_eq!(moves(&world, "discord:21").await, moved);
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria")]));
    let world = world.crash().await;
    assert!(open(&world, &asleep).await);
    assert!(open(&world, &asleep).await);
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria"), ("left", "aria"), ("joined", "bruno")]));
    assert_eq!(moves(&world, "discord:22").await, came(&[("joined", "aria")]));
}

#[tokio::test(start_paused = true)]
async fn a_companion_dismissed_from_a_thread_stays_in_the_channel_and_returns_only_by_name() {
    let world = with_aria().await;
    admit(&world, &general(), "bruno").await.unwrap();

    assert!(dismiss(&world, &thread("discord:20"), "aria").await);
    assert_eq!(admit(&world, &thread("discord:21"), "cleo").await, Ok(true));
    assert_eq!(admit(&world, &thread("discord:23"), "aria").await, Ok(false));
    dismiss(&world, &general(), "bruno").await;

    assert_eq!(world.present("discord:10").await, ["aria"]);
    assert_eq!(world.present("discord:20").await, ["bruno"]);
    assert_eq!(world.present("discord:21").await, ["aria", "bruno", "cleo"]);
    assert_eq!(world.present("discord:23").await, ["aria"]);
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_returns_to_a_channel_receives_messages_of_its_awake_threads_at_once() {
    let world = with_aria().await;
    admit(&world, &general(), "bruno").await.unwrap();
    let channel_ref = thread("discord:20");
    say(&world, &channel_ref, "1", "hello").await;
    sleep(&world).await;
    dismiss(&world, &general(), "aria").await;
    Inbound::new(world.context.clone()).edited(&channel_ref, "1", "hello!".into()).await.unwrap();
    world.rest().await;

    for is_asleep in [false, true] {
        if is_asleep {
            sleep(&world).await;
        }
        admit(&world, &general(), "aria").await.unwrap();
        say(&world, &channel_ref, if is_asleep { "3" } else { "2" }, "Ari?").await;
        world.pass(5.0).await;

        let asked = world.side.asked_for("aria");
        dismiss(&world, &general(), "aria").await;
        assert_eq!(asked, if is_asleep { 3 } else { 2 }, "asleep: {is_asleep}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_channel_and_its_threads_have_no_members_any_more() {
    let world = with_aria().await;
    open(&world, &thread("discord:20")).await;

    world.backend.rooms.delete(&room("discord:10")).await.unwrap();
    world.rest().await;

    assert!(!changes::would_open(&world.context, &general()));
    assert!(!open(&world, &thread("discord:20")).await);
    assert!(!open(&world, &thread("discord:21")).await);
    assert_eq!(world.present("discord:20").await, [""; 0]);
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria")]), "it may be undone");
    assert!(matches!(admit(&world, &general(), "bruno").await, Err(Refused::Conflict(_))));
    world.pass(60.0).await;
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria"), ("left", "aria")]));
    admit(&world, &general(), "bruno").await.unwrap();
    assert_eq!(world.present("discord:20").await, ["bruno"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_channel_takes_its_threads_along_and_nothing_of_another_guild() {
    let world = with_aria().await;
    open(&world, &thread("discord:20")).await;
    dismiss(&world, &thread("discord:21"), "aria").await;
    let mut watching = world.watch("discord:20", None).await;

    changes::gone(&world.context, &"discord:2".into(), &general().channel).await.unwrap();
    assert_eq!(world.present("discord:20").await, ["aria"]);
    for _ in 0..2 {
        changes::gone(&world.context, &general().guild, &general().channel).await.unwrap();
    }

    assert!(watching.is_over().await);
    assert!(world.backend.rooms.list().await.unwrap().rooms.is_empty());
    assert!(world.crash().await.backend.rooms.list().await.unwrap().rooms.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_settings_name_the_companions_that_answer_direct_messages() {
    let first = World::new().await;
    let named = World::with_overlay(json!({ "discord": { "direct_companions": ["bruno", "gone"] } })).await;
    let nobody = World::with_overlay(json!({ "discord": { "direct_companions": [] } })).await;

    assert!(open(&first, &direct()).await);
    assert!(open(&named, &direct()).await);
    assert!(!open(&nobody, &direct()).await);

    assert_eq!(first.present("discord:77").await, ["aria"]);
    assert_eq!(named.present("discord:77").await, ["bruno"]);
    assert_eq!(first.backend.rooms.get(&room("discord:77")).await.unwrap().guild.as_str(), "dm:discord:77");
    assert!(matches!(nobody.backend.rooms.get(&room("discord:77")).await, Err(Refused::NotFound(_))));
    dismiss(&first, &direct(), "aria").await;
    assert!(!open(&first, &direct()).await);
}

#[tokio::test(start_paused = true)]
async fn a_thread_opened_twice_at_the_same_time_is_opened_once() {
    let world = with_aria().await;
    let channel_ref = thread("discord:20");

    let opened =
        tokio::join!(changes::ensure_room(&world.context, &channel_ref), changes::ensure_room(&world.context, &channel_ref));

    world.rest().await;
    assert_eq!(opened, (Ok(true), Ok(true)));
    assert_eq!(moves(&world, "discord:20").await, came(&[("joined", "aria")]));
}

#[tokio::test(start_paused = true)]
async fn rooms_of_another_platform_cannot_be_changed_through_the_console() {
    let world = with_aria().await;
    let (id, backend) = ("discord:10", &world.backend.messages);
    let sent = || json!({ "from": "Ana", "text": "hi" });
    let seq = say(&world, &general(), "1", "hello").await;
    let vote = json!({ "from": "aria", "messageId": "1", "state": "speak", "importance": 1, "selected": false });
    let zed = json!([{ "id": "zed", "external": true }]);

    let refused = [
        world.try_say(id, sent()).await.map(drop),
        backend.edit(&room(id), seq, of_json(json!({ "text": "ho" }))).await.map(drop),
        backend.delete(&room(id), seq).await.map(drop),
        world.vote(id, vote).await,
        world.speak(id, json!({ "from": "aria", "message_id": "1", "text": "hi" })).await.map(drop),
        world.put_room(id, json!({ "guild": "discord:1", "companions": zed })).await.map(drop),
        world.put_room(id, json!({ "guild": "home", "companions": [] })).await.map(drop),
        world.put_room("discord:11", json!({ "guild": "discord:1", "companions": ["aria"] })).await.map(drop),
    ];

    for refused in refused {
        assert!(matches!(&refused, Err(Refused::Conflict(_))), "{refused:?}");
    }
    assert!(matches!(world.try_say("discord:11", sent()).await, Err(Refused::NotFound(_))));
    let plan = of_json(json!({ "guild": "discord:1", "companions": ["bruno"] }));
    let (changed, is_new) = world.backend.rooms.put(&room(id), plan).await.unwrap();
    assert_eq!((changed.companions[0].id.as_str(), is_new), ("bruno", false));
    assert_eq!(moves(&world, "discord:10").await, came(&[("joined", "aria"), ("left", "aria"), ("joined", "bruno")]));
}
