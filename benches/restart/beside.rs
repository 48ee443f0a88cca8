//! How long decisions take in a guild, before, while and after another one dies again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tertulia::actors::places::ChannelPlace;
use tertulia::ports::house::House;
use tokio::time::{Instant, sleep};

use super::World;
use super::system::{millis, room};

/// How long is measured at a time.
const PHASE: Duration = Duration::from_secs(5);
/// The rooms of the guild that dies, talked in all the while.
const DOOMED: [&str; 4] = ["pit", "well", "mine", "cave"];
/// Between two looks whether there is somebody to be killed.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

pub(super) async fn measure(on_disk: bool) -> anyhow::Result<()> {
    let mut world = World::new(on_disk).await?;
    for id in DOOMED {
        let plan = serde_json::from_value(json!({ "guild": "doomed", "companions": ["aria"] }))?;
        world.house.put_room(&room(id), plan).await?;
        world.talk(id, Duration::from_millis(10));
    }
    println!(
        "\nmilliseconds from saying something to the decision on it, beside a guild with {} rooms that are talked in",
        DOOMED.len()
    );
    println!("that guild      decisions      50 %      99 %      max     deaths  quarantines");
    sleep(Duration::from_secs(1)).await;
    let before = world.phase().await?;
    tell("lives", &before, (0, 0));
    let (deaths, quarantines) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let felling = tokio::spawn({
        let (house, directory) = (world.house.clone(), world.kit.directory.clone());
        let (deaths, quarantines) = (deaths.clone(), quarantines.clone());
        async move {
            loop {
                for id in DOOMED {
                    if let Some(channel) = directory.find(&ChannelPlace(room(id).channel())) {
                        channel.kill();
                        deaths.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // Kept away it would be no trouble any more: it is let go at once.
                if house.release("doomed").await.is_ok() {
                    quarantines.fetch_add(1, Ordering::Relaxed);
                }
                sleep(LOOK_AGAIN).await;
            }
        }
    });
    let during = world.phase().await?;
    felling.abort();
    tell("dies and dies", &during, (deaths.load(Ordering::Relaxed), quarantines.load(Ordering::Relaxed)));
    sleep(Duration::from_secs(1)).await;
    let after = world.phase().await?;
    tell("is back", &after, (0, 0));
    println!("during to before: 50 % {:.2}, 99 % {:.2}", ratio(&during, &before, 0.5), ratio(&during, &before, 0.99));
    world.end().await;
    Ok(())
}

impl World {
    /// Decision after decision for a while: how long each took, sorted.
    async fn phase(&mut self) -> anyhow::Result<Vec<Duration>> {
        let (began, mut took) = (Instant::now(), Vec::new());
        while began.elapsed() < PHASE {
            took.push(self.decided(&format!("{} of {:?}", took.len(), began)).await?.1);
        }
        took.sort_unstable();
        Ok(took)
    }
}

fn ratio(during: &[Duration], before: &[Duration], part: f64) -> f64 {
    millis(during, part) / millis(before, part)
}

fn tell(name: &str, took: &[Duration], (deaths, quarantines): (u64, u64)) {
    let [a, b, c] = [0.5, 0.99, 1.0].map(|part| millis(took, part));
    println!("{name:<14} {:>10} {a:>9.2} {b:>9.2} {c:>8.2} {deaths:>10} {quarantines:>12}", took.len());
}
