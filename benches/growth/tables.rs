//! How costs grow with one thing at a time, and the exponent of each.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// Where a row's store is, in its folder.
const DATA: &str = "data";

/// What is measured of each size.
const COSTS: [&str; 7] =
    ["start, ms", "memory, MiB", "disk, MiB", "a wake, ms", "µs a message", "processors, µs", "/metrics, KiB"];

/// What a process of its own is asked for, in a folder: to put on record what a row begins with.
pub const PUT: &str = "put";
/// The same, to measure that row: nothing of another row, nor of what was put on record, is in its memory.
pub const ROW: &str = "row";

/// What grows in a table.
fn grown(table: &str, size: usize) -> Stock {
    match table {
        "channels" => Stock { channels: size, guilds: size.min(2_000), companions: 1, messages: 10 },
        "guilds" => Stock { channels: 10_000, guilds: size, companions: 1, messages: 10 },
        "companions" => Stock { channels: 100, guilds: 10, companions: size, messages: 40 },
        _ => Stock { channels: 100, guilds: 10, companions: 1, messages: size },
    }
}

pub fn measure(table: &str, limit: usize) -> anyhow::Result<()> {
    let (what, sizes) = match table {
        "channels" => ("channels, in up to 2,000 guilds, 10 messages in each", [100, 1_000, 10_000, 100_000]),
        "guilds" => ("guilds, of 10,000 channels together, 10 messages in each", [10, 100, 1_000, 10_000]),
        "companions" => ("companions in each of 100 channels of 10 guilds, 40 messages in each", [1, 2, 4, 8]),
        _ => ("messages on record in each of 100 channels of 10 guilds", [10, 100, 1_000, 10_000]),
    };
    println!("\ngrowth with {what}; {ROOMS} channels are talked in, {TIMES} messages in each");
    print!("{:>9}", "");
    COSTS.iter().for_each(|cost| print!(" {cost:>15}"));
    println!();
    let mut rows = Vec::new();
    for size in sizes.into_iter().filter(|size| *size <= limit) {
        let folder = tempfile::tempdir()?;
        ask(folder.path(), [PUT, table, &size.to_string()])?;
        let costs = ask(folder.path(), [ROW, table, &size.to_string()])?;
        let costs: Vec<f64> = costs.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        anyhow::ensure!(costs.len() == COSTS.len(), "the row of {size} told {costs:?}");
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

/// What a process of its own tells.
fn ask(folder: &Path, asked: [&str; 3]) -> anyhow::Result<String> {
    let mut process = Command::new(std::env::current_exe()?);
    let told = process.args(asked).current_dir(folder).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(told.status.success(), "{} failed", asked.join(" "));
    Ok(String::from_utf8(told.stdout)?)
}

/// Puts on record what a row begins with, in this folder.
pub fn put(table: &str, size: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async { grown(table, size).put(&*open(Path::new(DATA)).await?, SystemClock.now()).await })
}

/// One row of a table, told as numbers: what a system costs that has this on record.
pub fn row(table: &str, size: usize) -> anyhow::Result<()> {
    let (stock, data) = (grown(table, size), Path::new(DATA));
    let disk = disk_bytes(data)? as f64;
    let runtime = tokio::runtime::Runtime::new()?;
    let costs = runtime.block_on(async {
        let before = allocated();
        let began = Instant::now();
        let world = World::on(open(data).await?, stock, None).await?;
        let start = began.elapsed();
        let memory = allocated() - before;
        let rooms = ROOMS.min(stock.channels);
        let began = Instant::now();
        world.talk(0..rooms, 1).await?;
        let wake = began.elapsed() / rooms as u32;
        let took = world.talk(0..rooms, TIMES).await?;
        let exposition = world.metrics.exposition().map_err(anyhow::Error::msg)?.len();
        world.end().await?;
        let (mib, kib) = (f64::from(1 << 20), 1024.0);
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let exposition = exposition as f64 / kib;
        anyhow::Ok([millis(start), memory / mib, disk / mib, millis(wake), took.wall, took.processor, exposition])
    })?;
    costs.iter().for_each(|cost: &f64| println!("{cost}"));
    Ok(())
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
