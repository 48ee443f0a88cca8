//! How everything grows: what a channel takes, asleep and awake; how long a start takes with much on record; and time per message, memory,
//! start, disk and `/metrics` by the number of channels, guilds and companions, and by the length of histories.
//!
//! `cargo bench --bench growth -- [memory] [start] [channels] [guilds] [companions] [history] [--to LIMIT]`: all of it unless told
//! otherwise. `--to 10000` leaves out what is larger than that.
//!
//! Channels are put on record without being run: what they have lived through is the same for all, and is written to the store as the
//! writer would have written it.

mod memory;
#[path = "../deciding/room.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod room;
mod starting;
mod stock;
#[path = "../shared/system.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod system;
mod tables;
mod world;

use std::alloc::System;

// What is allocated is told to the byte.
#[global_allocator]
static ALLOCATED: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

const ALL: [&str; 6] = ["memory", "start", "channels", "guilds", "companions", "history"];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let limit = match arguments.iter().position(|argument| argument == "--to") {
        Some(at) => arguments.get(at + 1).and_then(|limit| limit.replace('_', "").parse().ok()).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [tables::PUT, table, size] => return tables::put(table, size.parse()?),
        [tables::ROW, table, size] => return tables::row(table, size.parse()?),
        _ => {}
    }
    let named: Vec<_> = ALL.into_iter().filter(|part| arguments.iter().any(|argument| argument == part)).collect();
    for part in if named.is_empty() { ALL.to_vec() } else { named } {
        match part {
            "memory" => memory::measure(limit)?,
            "start" => starting::measure(limit)?,
            table => tables::measure(table, limit)?,
        }
    }
    Ok(())
}

/// Bytes that are allocated now.
fn allocated() -> f64 {
    ALLOCATED.allocated() as f64
}
