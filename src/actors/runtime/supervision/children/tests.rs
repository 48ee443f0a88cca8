use std::sync::atomic::Ordering;

use ractor::ActorStatus;

use self::world::{ChildStatus, Order, World, names};
use super::super::child::RestartType;
use super::*;

mod world;

/// How a child ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Fails,
    Panics,
    IsKilled,
    IsKilledWhileItWaits,
    Stops(Option<&'static str>),
}

#[tokio::test(start_paused = true)]
async fn how_a_child_ends_and_its_type_decide_whether_it_is_restarted_at_once_or_not_at_all() {
    use RestartType::{Bulkhead, Permanent, Transient};
    for (restart_type, end, is_restarted, told) in [
        (Transient, End::Fails, true, "failed: asked to"),
        // A panic's message may quote what people said.
        (Transient, End::Panics, true, "panicked"),
        (Transient, End::IsKilled, true, "killed"),
        (Transient, End::IsKilledWhileItWaits, true, "killed"),
        (Transient, End::Stops(Some("asleep")), false, "stopped: asleep"),
        (Permanent, End::Stops(None), true, "stopped"),
        (Bulkhead, End::Fails, true, "failed: asked to"),
        (Bulkhead, End::Stops(None), false, "stopped"),
    ] {
        let mut world = World::new().await;
        world.start("a", restart_type).await;
        world.send("a", Order::Remember("what was said")).await;

        match end {
            End::Fails => world.fail("a").await,
            End::Panics => world.send("a", Order::Panic).await,
            End::IsKilled => world.child("a").await.kill(),
            End::IsKilledWhileItWaits => {
                world.send("a", Order::Hang).await;
                world.child("a").await.kill();
            }
            End::Stops(why) => world.child("a").await.stop(why.map(str::to_owned)),
        }

        if is_restarted {
            assert_eq!(world.next().await, format!("a restarts after 0 ms ({told})"), "{end:?}");
            assert_eq!(world.next().await, "a is up", "{end:?}");
            assert_eq!(world.elapsed_ms(), 0, "{end:?}");
            assert_eq!(world.recall("a").await, "what was said", "its pre_start restores it: {end:?}");
        } else {
            assert_eq!(world.next().await, format!("a ended ({told})"), "{end:?}");
            assert_eq!(world.status("a").await, ChildStatus::Gone, "{end:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_in_a_row_are_delayed_by_the_policy() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    let mut delays = Vec::new();

    for _ in 0..4 {
        let died = world.elapsed_ms();
        world.fail_and_restart("a").await;
        delays.push(world.elapsed_ms() - died);
    }

    // The delays are 0, 1,000, 2,000 and 4,000 ms; the fraction of 0.5 adds a quarter.
    for (delay, expected) in delays.into_iter().zip([0, 1_250, 2_500, 5_000]) {
        assert!((expected..=expected + 1).contains(&delay), "{delay} ms instead of {expected} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_restart_is_retried_until_it_succeeds() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    world.controls.refusals.store(2, Ordering::SeqCst);

    world.fail("a").await;

    assert_eq!(world.next().await, "a restarts after 0 ms (failed: asked to)");
    assert_eq!(world.next().await, "a restarts after 1250 ms (did not start: Actor panicked during startup 'no store')");
    assert_eq!(world.next().await, "a restarts after 2500 ms (did not start: Actor panicked during startup 'no store')");
    assert_eq!(world.next().await, "a is up");
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_pre_start_panics_is_retried() {
    let mut world = World::new().await;
    world.controls.panics.store(true, Ordering::SeqCst);

    world.launch("a", RestartType::Transient).await;

    assert!(world.next().await.starts_with("a restarts after 0 ms (did not start: "));
    assert_eq!(world.next().await, "a is up");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_fails_at_its_deadline() {
    let mut world = World::new().await;
    world.controls.hangs.store(true, Ordering::SeqCst);

    world.launch("a", RestartType::Transient).await;

    assert_eq!(world.next().await, "a restarts after 0 ms (did not start within 30 s)");
}

#[test]
fn only_a_start_that_hangs_is_counted_as_a_hang() {
    let metrics = crate::telemetry::metrics::Metrics::local();
    let not_started = Ending::NotStarted { message: "boom".into() };

    [Ending::Hung(Duration::ZERO), Ending::Killed, not_started]
        .iter()
        .for_each(|ending| ending.measure("channel", &metrics.instruments()));

    assert_eq!(metrics.total("tertulia_actor_hangs_total", &[("actor_sort", "channel")]), 1.0);
    assert_eq!(metrics.total("tertulia_actor_hangs_total", &[]), 1.0);
}

/// The supervisor decides. That of the guilds restarts it as a whole once, and then puts it in quarantine.
#[test]
fn a_bulkhead_over_its_own_limit_is_not_restarted() {
    let over_limit = Ending::Failed { message: String::new(), is_panic: false, escalated: true, dependency_lost: false };

    assert!(!over_limit.calls_for_restart(RestartType::Bulkhead));
    assert!(over_limit.calls_for_restart(RestartType::Transient));
}

#[tokio::test(start_paused = true)]
async fn healthy_siblings_are_untouched_by_a_crash_loop() {
    let mut world = World::new().await;
    let siblings = names("sibling", 300);
    for sibling in &siblings {
        world.start(sibling, RestartType::Transient).await;
    }
    world.start("a", RestartType::Transient).await;
    let mut before = Vec::new();
    for sibling in &siblings {
        before.push(world.child(sibling).await.get_id());
    }

    for _ in 0..4 {
        world.fail_and_restart("a").await;
    }

    for (sibling, id) in siblings.iter().zip(before) {
        let actor = world.child(sibling).await;
        assert_eq!((actor.get_id(), actor.get_status()), (id, ActorStatus::Running));
    }
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_children_that_die_together_are_all_restarted() {
    let mut world = World::new().await;
    let names = names("child", 400);
    for name in &names {
        world.start(name, RestartType::Transient).await;
    }

    for name in &names {
        world.child(name).await.kill();
    }

    world.all_restarted(&names).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_over_the_limit_fails_the_supervisor_with_its_reason() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    world.start("b", RestartType::Transient).await;
    let sibling = world.child("b").await;

    for _ in 0..4 {
        world.fail_and_restart("a").await;
    }
    world.fail("a").await;

    assert_eq!(world.next().await, "escalated: a child died too often (\"a\" failed: asked to)");
    let ending = world.endings.recv().await.expect("the parent supervisor reports");
    assert!(matches!(ending, Ending::Failed { escalated: true, .. }), "{ending:?}");
    assert!(sibling.wait(None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_restart_is_cancelled_with_its_supervisor() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    world.fail_and_restart("a").await;
    world.fail("a").await;
    assert_eq!(world.next().await, "a restarts after 1250 ms (failed: asked to)");
    let starts = world.controls.starts.load(Ordering::SeqCst);

    world.supervisor.stop_and_wait(None, None).await.expect("it stops");
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!(world.controls.starts.load(Ordering::SeqCst), starts);
}

#[tokio::test(start_paused = true)]
async fn a_start_in_progress_is_cancelled_with_its_supervisor() {
    let mut world = World::new().await;
    world.controls.hangs.store(true, Ordering::SeqCst);
    world.launch("a", RestartType::Permanent).await;
    world.controls.begun.notified().await;

    world.supervisor.kill_and_wait(None).await.expect("it ends");
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!(world.controls.starts.load(Ordering::SeqCst), 1);
    assert_eq!(world.reports.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_dismissed_child_is_not_restarted() {
    let mut world = World::new().await;
    world.start("a", RestartType::Permanent).await;

    let actor = world.dismiss("a").await.expect("it is up");
    actor.kill();

    assert_eq!(world.next().await, "a ended (killed)");
    assert_eq!(world.status("a").await, ChildStatus::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_restart_can_be_cancelled() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    world.fail_and_restart("a").await;
    world.fail("a").await;
    world.next().await;
    assert_eq!(world.status("a").await, ChildStatus::Down);
    let starts = world.controls.starts.load(Ordering::SeqCst);

    assert!(world.dismiss("a").await.is_none());
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!((world.controls.starts.load(Ordering::SeqCst), world.status("a").await), (starts, ChildStatus::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_right_after_its_start_is_noticed() {
    let mut world = World::new().await;
    world.controls.fail_early.lock().insert("a");

    world.launch("a", RestartType::Transient).await;

    let mut seen = Vec::new();
    while !seen.ends_with(&["a restarts after 0 ms (failed: too early)".to_owned(), "a is up".to_owned()]) {
        seen.push(world.next().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_that_is_reported_before_the_start_is_noticed() {
    let mut world = World::new().await;
    let names = names("child", 200);
    world.controls.fail_early.lock().extend(&names);

    for name in &names {
        world.launch(name, RestartType::Transient).await;
    }

    world.all_restarted(&names).await;
    for name in &names {
        assert_eq!(world.recall(name).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_child_of_the_same_name_is_rejected() {
    let mut world = World::new().await;
    world.start("a", RestartType::Transient).await;
    let first = world.child("a").await.get_id();

    world.launch("a", RestartType::Transient).await;

    assert_eq!(world.child("a").await.get_id(), first);
    assert_eq!(world.controls.starts.load(Ordering::SeqCst), 1);
}
