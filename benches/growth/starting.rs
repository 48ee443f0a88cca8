//! The time of a start with a million journaled messages, and one unhandled message in each of a hundred channels.

use std::path::Path;
use std::time::Duration;

use tertulia::adapters::system::SystemClock;
use tertulia::ports::clock::Clock as _;
use tokio::time::Instant;

use super::stock::Stock;
use super::world::{World, open};

/// Measured starts, after a clean stop and after a kill each.
const STARTS: usize = 5;
/// Channels with an unhandled message.
const PENDING: usize = 100;
/// The interval of checks of the progress.
const LOOK_EVERY: Duration = Duration::from_micros(500);

pub fn measure(limit: usize) -> anyhow::Result<()> {
    let channels = 10_000.min(limit);
    let stock = Stock { channels, guilds: (channels / 5).max(1), companions: 1, messages: 100 };
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let began = Instant::now();
    runtime.block_on(async { stock.put(&*open(&data).await?, SystemClock.now()).await })?;
    println!(
        "\na start with {} messages in {channels} channels of {} guilds, {PENDING} of them pending; milliseconds (stored in {:.0} s)",
        channels * stock.messages,
        stock.guilds,
        began.elapsed().as_secs_f64()
    );
    println!("{:<24} {:>12} {:>12} {:>16} {:>16}", "", "store open", "actors run", "first decision", "all decisions");
    for _ in 0..STARTS {
        runtime.block_on(async { stock.call(&*open(&data).await?, PENDING, SystemClock.now()).await })?;
        print_row("after a clean stop", runtime.block_on(start(&data, stock))?);
    }
    for _ in 0..STARTS {
        let killed = folder.path().join("killed");
        runtime.block_on(async {
            let store = open(&data).await?;
            stock.call(&*store, PENDING, SystemClock.now()).await?;
            copy(&data, &killed)
        })?;
        print_row("after a kill", runtime.block_on(start(&killed, stock))?);
        // The message is pending in the original too. Handle it, so that the next start begins without pending messages.
        runtime.block_on(start(&data, stock))?;
        std::fs::remove_dir_all(&killed)?;
    }
    Ok(())
}

fn print_row(how: &str, [opened, begun, first, all]: [Duration; 4]) {
    let [opened, begun, first, all] = [opened, begun, first, all].map(|span| span.as_secs_f64() * 1e3);
    println!("{how:<24} {opened:>12.0} {begun:>12.0} {first:>16.0} {all:>16.0}");
}

/// Starts on this data folder. Returns the times until the store is open, until the actors run, and until the first and the last decision are
/// journaled.
async fn start(data: &Path, stock: Stock) -> anyhow::Result<[Duration; 4]> {
    let began = Instant::now();
    let store = open(data).await?;
    let opened = began.elapsed();
    let world = World::on(store, stock, None).await?;
    let begun = began.elapsed();
    let mut first = None;
    loop {
        let decided = world.metrics.total("tertulia_decisions_total", &[]);
        if decided > 0.0 {
            first.get_or_insert_with(|| began.elapsed());
        }
        if decided >= PENDING as f64 {
            break;
        }
        anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "{decided} of {PENDING} have decided");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let all = began.elapsed();
    world.end().await?;
    Ok([opened, begun, first.unwrap_or(all), all])
}

/// Copies the folder as it is now.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
