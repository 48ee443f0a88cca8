//! The program: reads what it is asked for, does it, and says with its exit code how that went.

use std::process::ExitCode;

use clap::Parser;
use tertulia::cli::{Cli, Command, check, replay};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let sources = match cli.sources() {
        Ok(sources) => sources,
        Err(problem) => return check::complain(&problem),
    };
    match cli.asked() {
        Command::Check { json } => check::run(&sources, json),
        Command::Replay { file, json } => replay::run(&file, json),
        // To be filled: the server (settings → telemetry → server → exit code).
        Command::Serve => not_yet("serve"),
    }
}

fn not_yet(command: &str) -> ExitCode {
    eprintln!("tertulia {command} is not there yet; tertulia check is");
    ExitCode::FAILURE
}
