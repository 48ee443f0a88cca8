//! What a channel takes: asleep, awake, and asleep again; and a guild.
//!
//! Time is paused and goes on by itself when nothing is left to do, and the store is in memory, so that all of it is the same every time.
//! What is counted is what the system lets go when it ends: what is stored stays, and does not count. Of two systems, one of which has ten
//! times as many channels, the difference is taken: what there is only once does not count either.

use std::sync::Arc;
use std::time::Duration;

use tertulia::actors::runtime::directory::Sort;
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::system::SystemClock;
use tertulia::domain::moment::Moment;
use tertulia::ports::clock::Clock;
use tokio::time::Instant;

use super::allocated;
use super::stock::Stock;
use super::world::World;

/// Channels that are counted: no more than may wait for a model, so that whatever was asked is answered.
const CHANNELS: usize = 1_000;
/// After so long it is looked whether all of them sleep.
const NAP: Duration = Duration::from_secs(60);
/// After so long whatever was asked is answered, and no lull is over yet.
const PAUSE: Duration = Duration::from_secs(1);
/// Guilds that are counted.
const GUILDS: usize = 1_000;

/// When it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// When the last message is handled: what was asked meanwhile still waits for its turn, prompts and all.
    AtOnce,
    /// When all that was asked is answered.
    Answered,
    /// When all channels sleep.
    Asleep,
}

pub fn measure(limit: usize) -> anyhow::Result<()> {
    let channels = CHANNELS.min(limit);
    let stock = Stock { channels, guilds: (channels / 50).max(1), companions: 1, messages: 40 };
    println!("\nwhat a channel takes, bytes: {channels} channels, 50 in a guild, each with a companion and 40 messages before");
    let line = |what: &str, bytes: f64| println!("{what:<64} {bytes:>9.0}");
    line("asleep since the start", each(stock, 0, When::AtOnce)?);
    for messages in [1, 10, 40, 200] {
        line(&format!("awake, after {messages} more messages at once"), each(stock, messages, When::AtOnce)?);
        line("    a second later, when all questions are answered", each(stock, messages, When::Answered)?);
    }
    line("asleep again, its guild still awake", each(stock, 40, When::Asleep)?);
    let guilds = GUILDS.min(limit);
    let stock = Stock { channels: guilds, guilds, companions: 3, messages: 1 };
    line(&format!("a guild of {guilds}, each with one channel and the same three companions"), each(stock, 0, When::AtOnce)?);
    Ok(())
}

/// Bytes for each channel, with its part of its guild.
fn each(stock: Stock, messages: usize, when: When) -> anyhow::Result<f64> {
    let few = Stock { channels: stock.channels / 10, guilds: (stock.guilds / 10).max(1), ..stock };
    let more = held(stock, messages, when)? - held(few, messages, when)?;
    Ok(more / (stock.channels - few.channels) as f64)
}

/// Bytes that a system holds after so many messages were said in each channel.
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
        while when == When::Asleep && world.context.directory.alive().any(|(sort, count)| sort == Sort::Channel && count > 0) {
            tokio::time::sleep(NAP).await;
        }
        let held = allocated();
        let awake =
            world.context.directory.alive().filter(|(sort, _)| *sort == Sort::Channel).map(|(_, count)| count).sum::<usize>();
        let expected = if messages > 0 && when != When::Asleep { stock.channels } else { 0 };
        if awake != expected {
            eprintln!("{awake} of {} channels are awake after {messages} messages, not {expected}", stock.channels);
        }
        world.end().await?;
        // Whoever is told to stop does so by and by.
        tokio::time::sleep(NAP).await;
        let left = allocated();
        drop(store);
        Ok(held - left)
    })
}

/// The time of day, as the paused clock has it.
struct Apace {
    began: Instant,
    at: Moment,
}

impl Clock for Apace {
    fn now(&self) -> Moment {
        self.at + self.began.elapsed()
    }
}
