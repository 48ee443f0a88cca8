//! Connections to platforms: each runs on its own, and its failures affect no other part.

use std::sync::Arc;
use std::time::Duration;

use tracing::Level;

use super::world::World;
use crate::actors::runtime::actor_keys::{GuildsKey, WriterKey};
use crate::actors::runtime::directory::ActorKey;
use crate::ports::gateway::Disconnected;
use crate::ports::gateway::fake::{End, FakeGateway};
use crate::telemetry::fake::Logged;

#[tokio::test(start_paused = true)]
async fn there_are_as_many_connections_as_the_platform_says() {
    let (gateway, world) = connected(3).await;

    assert_eq!(gateway.alive(), [(0, 3), (1, 3), (2, 3)]);
    assert_eq!(gateway.asked(), 1);
    drop(world);
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_does_not_answer_is_asked_again_less_and_less_often() {
    let (gateway, world) = counting([later(None), later(None), later(Some(300)), Ok(1)]).await;

    let mut asked = Vec::new();
    for _ in 0..4 {
        world.pass(1.3).await;
        asked.push(gateway.asked());
    }
    world.pass(297.0).await;
    let before = gateway.alive();
    world.pass(5.0).await;

    assert_eq!(asked, [2, 2, 3, 3]);
    assert_eq!((before, gateway.alive()), (vec![], vec![(0, 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ended_for_now_is_run_again_after_the_requested_time() {
    let (gateway, world) = connected(1).await;

    gateway.ends(0, End::Returns(not_now(Some(300))));
    world.pass(299.0).await;
    let before = gateway.lived(0);
    world.pass(2.0).await;

    assert_eq!((before, gateway.lived(0)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_lasts_is_run_less_and_less_often() {
    let (gateway, world) = connected(1).await;
    for _ in 0..1_000 {
        gateway.ends(0, End::Returns(not_now(Some(0))));
    }
    world.pass(60.0).await;
    let with_requested_delay = gateway.lived(0);

    let (gateway, world) = connected(1).await;
    for _ in 0..1_000 {
        gateway.ends(0, End::Returns(not_now(None)));
    }
    world.pass(600.0).await;

    assert!((50..=62).contains(&with_requested_delay), "{with_requested_delay}");
    assert!((8..=16).contains(&gateway.lived(0)), "{}", gateway.lived(0));
}

#[tokio::test(start_paused = true)]
async fn connections_that_need_a_person_to_repair_them_are_paused_for_a_long_while() {
    let (gateway, world) = connected(2).await;

    refuse_both(&gateway);
    world.pass(590.0).await;
    let before = (gateway.alive(), gateway.asked(), gateway.lived(0));
    world.pass(20.0).await;

    assert_eq!(before, (vec![], 1, 1));
    assert_eq!((gateway.alive(), gateway.asked(), gateway.lived(0)), (vec![(0, 2), (1, 2)], 2, 2));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_needs_a_person_is_logged_once_and_again_when_it_recurs() {
    let logged = Logged::from(Level::ERROR);
    let error_count = || logged.read().lines().filter(|line| line.contains("the token is wrong")).count();
    let (gateway, world) = connected(2).await;

    let mut times = Vec::new();
    refuse_both(&gateway);
    world.pass(1.0).await;
    times.push(error_count());
    // They are opened again after a while, and refused at once.
    refuse_both(&gateway);
    world.pass(700.0).await;
    times.push(error_count());
    // Then they last, until the next failure.
    world.pass(1_000.0).await;
    assert_eq!(gateway.alive().len(), 2);
    refuse_both(&gateway);
    world.pass(1.0).await;
    times.push(error_count());

    assert_eq!(times, [1, 1, 2], "{}", logged.read());
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_refuses_is_asked_again_after_a_long_while() {
    let (gateway, world) = counting([Err(refused()), Ok(1)]).await;

    world.pass(590.0).await;
    let before = gateway.asked();
    world.pass(20.0).await;

    assert_eq!((before, gateway.asked(), gateway.alive()), (1, 2, vec![(0, 1)]));
}

#[tokio::test(start_paused = true)]
async fn connections_with_another_number_end_when_the_platform_wants_more() {
    let (gateway, world) = counting([Ok(2), Ok(4)]).await;
    world.pass(1.0).await;

    gateway.ends(0, End::Returns(Disconnected::Never("more connections are needed".into())));
    world.pass(700.0).await;

    assert_eq!(gateway.alive(), [(0, 4), (1, 4), (2, 4), (3, 4)]);
}

#[tokio::test(start_paused = true)]
async fn connections_that_keep_dying_affect_no_other_part() {
    let (gateway, mut world) = connected(2).await;
    world.expect_deaths();
    let others = others(&world);
    for _ in 0..10_000 {
        gateway.ends(1, End::Panics);
    }

    world.pass(6.0 * 3_600.0).await;

    let escalations = world.spans.named("supervisor.escalate");
    assert!(!escalations.is_empty(), "restarts do not help any more");
    assert_eq!(self::others(&world), others);
    assert!(gateway.lived(1) < 1_000, "{}", gateway.lived(1));
    assert!(gateway.lived(0) > 1 && gateway.alive().contains(&(0, 2)));
}

#[tokio::test(start_paused = true)]
async fn readiness_shows_the_state_of_the_connections_and_does_not_depend_on_it() {
    let (gateway, world) = counting([Err(refused())]).await;
    world.pass(1.0).await;

    let readiness = world.backend.maintenance.readiness().await;
    gateway.blocks_readiness();
    let held_up = world.backend.maintenance.readiness().await;

    assert!(readiness.ready && !held_up.ready);
    let part = readiness.parts.iter().find(|part| &*part.part == "fake").expect("the part is listed");
    assert_eq!((part.ready, part.detail.as_str()), (false, "0 connections"));
}

/// A system with a platform that gives these numbers of connections.
async fn counting(counts: impl IntoIterator<Item = Result<u32, Disconnected>>) -> (Arc<FakeGateway>, World) {
    let gateway = FakeGateway::counting(counts);
    let world = World::with_gateway(gateway.clone()).await;
    (gateway, world)
}

async fn connected(count: u32) -> (Arc<FakeGateway>, World) {
    let (gateway, world) = counting([Ok(count)]).await;
    world.pass(1.0).await;
    (gateway, world)
}

fn refused() -> Disconnected {
    Disconnected::Never("the token is wrong".into())
}

fn refuse_both(gateway: &FakeGateway) {
    for shard in [0, 1] {
        gateway.ends(shard, End::Returns(refused()));
    }
}

fn not_now(after: Option<u64>) -> Disconnected {
    Disconnected::Later { after: after.map(Duration::from_secs), detail: "gone".into() }
}

fn later(after: Option<u64>) -> Result<u32, Disconnected> {
    Err(not_now(after))
}

/// The ids of actors that would have other ids if they had been restarted.
fn others(world: &World) -> Vec<ractor::ActorId> {
    fn id<P: ActorKey>(world: &World, key: &P) -> ractor::ActorId {
        world.context.directory.find(key).expect("the actor is running").get_id()
    }
    vec![world.root().get_id(), id(world, &WriterKey()), id(world, &GuildsKey())]
}
