//! The cost of storage.
//!
//! * Committing in groups, and message by message.
//! * Reading a channel back, by the length of its history and by the number of messages after its snapshot.
//! * The whole path of a message through the inbound port, with a model that answers at once.
//!
//! `cargo bench --bench keeping -- [ROUNDS]`. The default is 3 rounds. Each round measures every variant once, so that other work of the machine
//! affects them alike. Everything is stored on the disk of the temporary folder.

mod appending;
mod recovering;

use std::process::ExitCode;

use clap::Parser as _;
use tertulia::cli::{Cli, Command, bench};

fn main() -> anyhow::Result<ExitCode> {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(3);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(appending::measure(rounds))?;
    runtime.block_on(recovering::measure(rounds))?;
    drop(runtime);
    println!("\nthe whole way of a message, 1,000 rooms with a companion each (tertulia bench)");
    for load in ["--rate=1000", "--flat-out=512"] {
        println!("\n{load}");
        let cli = Cli::try_parse_from(["tertulia", "bench", "--secs=5", "--warm-up-secs=2", load])?;
        let sources = cli.sources().map_err(|problems| anyhow::anyhow!("{problems}"))?;
        let Command::Bench(asked) = cli.command_or_default() else { anyhow::bail!("the command above is bench") };
        let code = bench::run(&sources, &asked);
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The median, the minimum and the maximum.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (middle, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    let digits = if middle < 100.0 { 1 } else { 0 };
    format!("{middle:.digits$} ({least:.digits$} – {most:.digits$})")
}
