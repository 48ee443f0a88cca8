//! How costs grow with one thing at a time, and the exponent of each.

use tertulia::adapters::store::sled::disk_bytes;
use tertulia::adapters::system::SystemClock;
use tertulia::ports::clock::Clock as _;
use tokio::time::Instant;

use super::allocated;
use super::stock::Stock;
use super::world::{World, open};

/// Rooms that are talked in, and messages in each of them.
const ROOMS: usize = 100;
const TIMES: usize = 200;

/// What is measured of each size.
const COSTS: [&str; 8] =
    ["start, ms", "memory, MiB", "disk, MiB", "a wake, ms", "awake, KiB", "µs a message", "processors, µs", "/metrics, KiB"];

pub fn measure(table: &str, limit: usize) -> anyhow::Result<()> {
    let (what, sizes): (_, Vec<(usize, Stock)>) = match table {
        "channels" => ("channels, in up to 2,000 guilds, 10 messages in each", {
            let stock = |channels: usize| Stock { channels, guilds: channels.min(2_000), companions: 1, messages: 10 };
            [100, 1_000, 10_000, 100_000].map(|channels| (channels, stock(channels))).to_vec()
        }),
        "guilds" => ("guilds, of 10,000 channels together, 10 messages in each", {
            let stock = |guilds| Stock { channels: 10_000, guilds, companions: 1, messages: 10 };
            [10, 100, 1_000, 10_000].map(|guilds| (guilds, stock(guilds))).to_vec()
        }),
        "companions" => ("companions in each of 100 channels of 10 guilds, 40 messages in each", {
            let stock = |companions| Stock { channels: 100, guilds: 10, companions, messages: 40 };
            [1, 2, 4, 8].map(|companions| (companions, stock(companions))).to_vec()
        }),
        _ => ("messages on record in each of 100 channels of 10 guilds", {
            let stock = |messages| Stock { channels: 100, guilds: 10, companions: 1, messages };
            [10, 100, 1_000, 10_000].map(|messages| (messages, stock(messages))).to_vec()
        }),
    };
    println!("\ngrowth with {what}; {ROOMS} channels are talked in, {TIMES} messages in each");
    print!("{:>9}", "");
    COSTS.iter().for_each(|cost| print!(" {cost:>15}"));
    println!();
    let mut rows = Vec::new();
    for (size, stock) in sizes.into_iter().filter(|(size, _)| *size <= limit) {
        let costs = of(stock)?;
        print!("{size:>9}");
        costs.iter().for_each(|cost| print!(" {cost:>15.2}"));
        println!();
        rows.push((size as f64, costs));
    }
    print!("{:>9}", "exponent");
    (0..COSTS.len()).for_each(|cost| print!(" {:>15.2}", exponent(rows.iter().map(|(size, costs)| (*size, costs[cost])))));
    println!();
    Ok(())
}

/// What a system costs that has this on record.
fn of(stock: Stock) -> anyhow::Result<[f64; COSTS.len()]> {
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    runtime.block_on(async { stock.put(&*open(&data)?, SystemClock.now()).await })?;
    let disk = disk_bytes(&data)? as f64;
    let before = allocated();
    runtime.block_on(async {
        let began = Instant::now();
        let world = World::on(open(&data)?, stock, None).await?;
        let start = began.elapsed();
        let memory = allocated() - before;
        let rooms = ROOMS.min(stock.channels);
        let began = Instant::now();
        world.talk(0..rooms, 1).await?;
        let wake = began.elapsed() / rooms as u32;
        let took = world.talk(0..rooms, TIMES).await?;
        let awake = (allocated() - before - memory) / rooms as f64;
        let exposition = world.metrics.exposition().map_err(anyhow::Error::msg)?.len();
        world.end().await?;
        let (mib, kib) = (f64::from(1 << 20), 1024.0);
        let millis = |span: std::time::Duration| span.as_secs_f64() * 1e3;
        Ok([
            millis(start),
            memory / mib,
            disk / mib,
            millis(wake),
            awake / kib,
            took.wall,
            took.processor,
            exposition as f64 / kib,
        ])
    })
}

/// The slope of the line through the logarithms: 0 does not grow, 1 grows as it must where each one costs something.
fn exponent(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<_> = points.map(|(size, cost)| (size.ln(), cost.max(f64::MIN_POSITIVE).ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let shared: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    shared / spread
}
