//! Growth.
//!
//! * The memory of a channel, asleep and awake.
//! * The time of a start with large histories.
//! * Time per message, memory, start, disk and `/metrics`, by the number of channels, guilds and companions, and by the length of histories.
//!
//! `cargo bench --bench growth -- [memory] [start] [channels] [guilds] [companions] [history] [--to LIMIT]`. Without names everything is measured.
//! `--to 10000` leaves out larger sizes.
//!
//! Histories are written to the store directly, as the writer would write them. All channels have the same history.

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

// Counts allocated bytes exactly.
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

/// Currently allocated bytes.
fn allocated() -> f64 {
    ALLOCATED.allocated() as f64
}
