//! The machine's clock is set while a room is awake. Timers fire as if it had not been set.

use super::world::World;

const HOUR: i64 = 3_600;

#[tokio::test(start_paused = true)]
async fn a_lull_is_decided_in_time_although_the_clock_was_set_after_the_sleep_timer() {
    for set_by in [HOUR, 48 * HOUR, -HOUR] {
        let world = World::with_lobby().await;
        world.say_then_pass("lobby", "one", 60.0).await;
        assert_eq!(triggers(&world).await, ["lull"], "by now the only timer is the one for falling asleep");

        world.set_clock(set_by);
        world.say_then_pass("lobby", "two", 10.0 + 1.0 + 0.5).await;

        assert_eq!(triggers(&world).await, ["lull"; 2], "set by {set_by} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_lull_is_decided_in_time_although_the_clock_is_set_meanwhile() {
    for set_by in [HOUR, -HOUR] {
        let world = World::with_lobby().await;
        world.say_then_pass("lobby", "one", 5.0).await;

        world.set_clock(set_by);
        world.pass(5.0 + 1.0 + 0.5).await;

        assert_eq!(triggers(&world).await, ["lull"], "set by {set_by} s");
    }
}

/// The triggers of the decisions.
async fn triggers(world: &World) -> Vec<String> {
    let decisions = world.decisions("lobby").await;
    decisions.iter().map(|decision| decision["trigger"].as_str().unwrap_or_default().to_owned()).collect()
}
