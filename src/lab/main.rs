//! The laboratory: measures decisions against recorded group chat. It is a program of its own, so that the server is without it.

mod evaluate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tertulia::cli::{self, Place, check};

use self::evaluate::Evaluate;

// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures how well companions decide when they speak.
#[derive(Clone, Debug, Parser)]
#[command(name = "tertulia-lab", version)]
struct Lab {
    #[command(flatten)]
    place: Place,

    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Measure decisions against what people did in recorded group chat
    Evaluate(Evaluate),
}

fn main() -> ExitCode {
    let lab: Lab = cli::begin();
    match (lab.place.sources(), lab.command) {
        (Ok(sources), Command::Evaluate(options)) => evaluate::run(&sources, &options),
        (Err(problems), _) => check::complain(&problems),
    }
}
