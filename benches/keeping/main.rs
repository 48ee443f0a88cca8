//! What keeping costs: committing in groups and message by message, side by side in one run; reading a channel back, by how long its
//! history is and by how much came after its snapshot; and the whole way of a message, through the inbound port, with a model that answers
//! at once.
//!
//! `cargo bench --bench keeping -- [ROUNDS]`: 3 rounds unless told otherwise. In each every way is measured once, so that what else the
//! machine does meets them alike. Everything is stored on the disk of the temporary folder.

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
        let Command::Bench(asked) = cli.asked() else { anyhow::bail!("that is asked for above") };
        let code = bench::run(&sources, &asked);
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The middle of some values, the least and the most.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (middle, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    let digits = if middle < 100.0 { 1 } else { 0 };
    format!("{middle:.digits$} ({least:.digits$} – {most:.digits$})")
}
