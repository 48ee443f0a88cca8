//! How long a start takes with a million messages on record, of which a hundred channels have one that nobody has handled.

use std::path::Path;
use std::time::Duration;

use tertulia::adapters::system::SystemClock;
use tertulia::ports::clock::Clock as _;
use tokio::time::Instant;

use super::stock::Stock;
use super::world::{World, open};

/// Starts that are measured, after an orderly end, and as after a kill.
const STARTS: usize = 5;
/// Channels in which somebody waits.
const PENDING: usize = 100;
/// Between two looks at how far it is.
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
        "\na start with {} messages in {channels} channels of {} guilds, {PENDING} of them pending; milliseconds (put on record in {:.0} s)",
        channels * stock.messages,
        stock.guilds,
        began.elapsed().as_secs_f64()
    );
    println!("{:<24} {:>12} {:>12} {:>16} {:>16}", "", "store open", "actors there", "first decision", "all decisions");
    for _ in 0..STARTS {
        runtime.block_on(async { stock.call(&*open(&data).await?, PENDING, SystemClock.now()).await })?;
        tell("after an orderly end", runtime.block_on(start(&data, stock))?);
    }
    for _ in 0..STARTS {
        let killed = folder.path().join("killed");
        runtime.block_on(async {
            let store = open(&data).await?;
            stock.call(&*store, PENDING, SystemClock.now()).await?;
            copy(&data, &killed)
        })?;
        tell("as after a kill", runtime.block_on(start(&killed, stock))?);
        // It is pending there, too; nobody waits in it for the next start.
        runtime.block_on(start(&data, stock))?;
        std::fs::remove_dir_all(&killed)?;
    }
    Ok(())
}

fn tell(how: &str, [opened, begun, first, all]: [Duration; 4]) {
    let [opened, begun, first, all] = [opened, begun, first, all].map(|span| span.as_secs_f64() * 1e3);
    println!("{how:<24} {opened:>12.0} {begun:>12.0} {first:>16.0} {all:>16.0}");
}

/// Starts on what is there: since the beginning, until the store is open, the actors are there, the first decision and the last are on
/// record.
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

/// As the folder is at this moment.
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
