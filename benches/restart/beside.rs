//! How long a guild takes to accept a message and to decide about it, beside a healthy guild and beside one that keeps dying, alternating in one
//! run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tertulia::actors::runtime::actor_keys::ChannelActorKey;
use tokio::time::{Instant, sleep};

use super::World;
use super::system::{millis, room};

/// The duration of one measurement, and the number of measurements of each.
const PHASE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
/// The rooms of the guild that dies. They get messages all the time.
const DOOMED: [&str; 4] = ["pit", "well", "mine", "cave"];
/// The interval of checks for actors to kill.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

pub(super) async fn measure(on_disk: bool) -> anyhow::Result<()> {
    println!(
        "\nmilliseconds from a message until it is accepted, and until the decision about it, beside a guild with {} busy rooms",
        DOOMED.len()
    );
    println!("that guild      messages  accepted: 50 %    99 %      max  decided: 50 %    99 %      max     deaths  quarantines");
    let (mut beside_living, mut beside_dying, mut ratios) = (Took::default(), Took::default(), Vec::new());
    let (mut deaths, mut quarantines) = (0, 0);
    for _ in 0..ROUNDS {
        let (living, ..) = beside(on_disk, false).await?;
        let (dying, died, kept_away) = beside(on_disk, true).await?;
        let part = |took: &Took, part| millis(&took.decided, part);
        ratios.push([0.5, 0.99].map(|at| part(&dying, at) / part(&living, at)));
        beside_living.extend(living);
        beside_dying.extend(dying);
        deaths += died;
        quarantines += kept_away;
    }
    print_row("lives", beside_living, (0, 0));
    print_row("keeps dying", beside_dying, (deaths, quarantines));
    let [half, most] = [0, 1].map(|which| {
        let mut ratios: Vec<f64> = ratios.iter().map(|ratio| ratio[which]).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1])
    });
    println!(
        "decided, dying to living, median of {ROUNDS} rounds: 50 % {:.2} ({:.2} to {:.2}), 99 % {:.2} ({:.2} to {:.2})",
        half.0, half.1, half.2, most.0, most.1, most.2
    );
    Ok(())
}

/// How long messages took, sorted.
#[derive(Default)]
struct Took {
    accepted: Vec<Duration>,
    decided: Vec<Duration>,
}

impl Took {
    fn extend(&mut self, other: Self) {
        self.accepted.extend(other.accepted);
        self.decided.extend(other.decided);
        self.sort();
    }

    fn sort(&mut self) {
        self.accepted.sort_unstable();
        self.decided.sort_unstable();
    }
}

/// Measures decisions beside a busy guild. If the guild should die, its channels are killed whenever they are alive. Returns the times, the number of
/// kills, and the number of quarantines.
async fn beside(on_disk: bool, dies: bool) -> anyhow::Result<(Took, u64, u64)> {
    let mut world = World::new(on_disk).await?;
    for id in DOOMED {
        let plan = serde_json::from_value(json!({ "guild": "doomed", "companions": ["aria"] }))?;
        world.backend.rooms.put(&room(id), plan).await?;
        world.talk(id, Duration::from_millis(10));
    }
    sleep(PHASE / 8).await;
    let (deaths, quarantines) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (backend, directory) = (world.backend.clone(), world.context.directory.clone());
    let (died, kept_away) = (deaths.clone(), quarantines.clone());
    if dies {
        world.busy.spawn(async move {
            loop {
                for id in DOOMED {
                    if let Some(channel) = directory.find(&ChannelActorKey(room(id).channel())) {
                        channel.kill();
                        died.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // A quarantined guild would not disturb anything, so it is released at once.
                if backend.maintenance.release("doomed").await.is_ok() {
                    kept_away.fetch_add(1, Ordering::Relaxed);
                }
                sleep(LOOK_AGAIN).await;
            }
        });
    }
    let took = world.phase().await?;
    world.end().await;
    Ok((took, deaths.load(Ordering::Relaxed), quarantines.load(Ordering::Relaxed)))
}

impl World {
    /// Sends messages one after the other for a while.
    async fn phase(&mut self) -> anyhow::Result<Took> {
        let (began, mut took) = (Instant::now(), Took::default());
        while began.elapsed() < PHASE {
            let (accepted, decided) = self.decided(&format!("{} of {began:?}", took.decided.len())).await?;
            took.accepted.push(accepted);
            took.decided.push(decided);
        }
        took.sort();
        Ok(took)
    }
}

fn print_row(name: &str, took: Took, (deaths, quarantines): (u64, u64)) {
    let [a, b, c] = [0.5, 0.99, 1.0].map(|part| millis(&took.accepted, part));
    let [d, e, f] = [0.5, 0.99, 1.0].map(|part| millis(&took.decided, part));
    println!(
        "{name:<14} {:>9} {a:>15.2} {b:>7.2} {c:>8.2} {d:>14.2} {e:>7.2} {f:>8.2} {deaths:>10} {quarantines:>12}",
        took.decided.len()
    );
}
