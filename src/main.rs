//! The program: reads what it is asked for, does it, and says with its exit code how that went.

use std::process::ExitCode;

use clap::Parser;
use tertulia::cli::{Cli, Command, check};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let sources = match cli.sources() {
        Ok(sources) => sources,
        Err(problem) => return check::complain(&problem),
    };
    match cli.asked() {
        Command::Check { json } => check::run(&sources, json),
        // To be filled: the server (settings → telemetry → server → exit code).
        Command::Serve => not_yet("serve"),
        // To be filled: the replay of a script.
        Command::Replay { .. } => not_yet("replay"),
    }
}

fn not_yet(command: &str) -> ExitCode {
    eprintln!("tertulia {command} is not there yet; tertulia check is");
    ExitCode::FAILURE
}
