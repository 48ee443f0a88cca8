//! The memory of a channel, asleep, awake, and asleep again; and of a guild.
//!
//! Time is paused and advances when nothing is left to do, and the store is in memory. So every run gives the same figures. The memory that counts
//! is what the system frees when it ends; the store's content does not count. The figure is the difference of two systems, one with ten times as
//! many channels, so that fixed costs do not count.

use std::sync::Arc;
use std::time::Duration;

use tertulia::actors::runtime::actor_keys::ChannelActorKey;
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::system::SystemClock;
use tertulia::domain::id::ChannelId;
use tertulia::domain::moment::Moment;
use tertulia::ports::clock::Clock;
use tokio::time::Instant;

use super::allocated;
use super::stock::Stock;
use super::world::World;

/// The number of channels: at most as many as may wait for a model, so that all questions are answered.
const CHANNELS: usize = 1_000;
/// The interval of checks whether all channels sleep.
const NAP: Duration = Duration::from_secs(60);
/// After this time all questions are answered, and there is no lull yet.
const PAUSE: Duration = Duration::from_secs(1);
const GUILDS: usize = 1_000;

/// When memory is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// When the last message is handled. Questions still wait in the queue, with their prompts.
    AtOnce,
    /// When all questions are answered.
    Answered,
    /// When all channels sleep.
    Asleep,
}

pub fn measure(limit: usize) -> anyhow::Result<()> {
    let channels = CHANNELS.min(limit);
    let stock = Stock { channels, guilds: (channels / 50).max(1), companions: 1, messages: 40 };
    println!("\nmemory of a channel, bytes: {channels} channels, 50 in a guild, each with a companion and 40 messages before");
    let line = |what: &str, bytes: f64| println!("{what:<64} {bytes:>9.0}");
    line("asleep since the start", each(stock, 0, When::AtOnce)?);
    for messages in [1, 10, 40, 200] {
        line(&format!("awake, after {messages} more messages at once"), each(stock, messages, When::AtOnce)?);
        line("    a second later, when all questions are answered", each(stock, messages, When::Answered)?);
    }
    line("asleep again, its guild still awake", each(stock, 40, When::Asleep)?);
    line(
        "awake with eight companions, a second after 40 more messages",
        each(Stock { companions: 8, ..stock }, 40, When::Answered)?,
    );
    let guilds = GUILDS.min(limit);
    let stock = Stock { channels: guilds, guilds, companions: 3, messages: 1 };
    line(&format!("a guild of {guilds}, each with one channel and the same three companions"), each(stock, 0, When::AtOnce)?);
    Ok(())
}

/// Bytes per channel, including its share of its guild.
fn each(stock: Stock, messages: usize, when: When) -> anyhow::Result<f64> {
    let few = Stock { channels: stock.channels / 10, guilds: (stock.guilds / 10).max(1), ..stock };
    let more = held(stock, messages, when)? - held(few, messages, when)?;
    Ok(more / (stock.channels - few.channels) as f64)
}

/// Bytes that a system uses after this number of messages in each channel.
fn held(stock: Stock, messages: usize, when: When) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(Apace { began: Instant::now(), at: SystemClock.now() });
        let store = Arc::new(MemoryStore::new());
        stock.put(&*store, clock.now()).await?;
        let world = World::on(store.clone(), stock, Some(clock)).await?;
        world.talk(0..stock.channels, messages).await?;
        if when == When::Answered {
            tokio::time::sleep(PAUSE).await;
        }
        let (memberships, directory) = (&world.context.memberships, &world.context.directory);
        let is_awake = |channel: &ChannelId| directory.find(&ChannelActorKey(channel.clone())).is_some();
        let awake = || memberships.all().iter().filter(|(channel, _)| is_awake(channel)).count();
        while when == When::Asleep && awake() > 0 {
            tokio::time::sleep(NAP).await;
        }
        let held = allocated();
        let awake = awake();
        let expected = if messages > 0 && when != When::Asleep { stock.channels } else { 0 };
        if awake != expected {
            eprintln!("{awake} of {} channels are awake after {messages} messages, not {expected}", stock.channels);
        }
        world.end().await?;
        // Actors stop asynchronously.
        tokio::time::sleep(NAP).await;
        let left = allocated();
        drop(store);
        Ok(held - left)
    })
}

/// The time of day according to the paused clock.
struct Apace {
    began: Instant,
    at: Moment,
}

impl Clock for Apace {
    fn now(&self) -> Moment {
        self.at + self.began.elapsed()
    }
}
