//! The program: reads the command line, runs the command, and returns its exit code.

use std::process::ExitCode;

use tertulia::cli::{self, Cli, Command, check, discord, health, history, models, replay, serve, token, tools, usage, why};

// With the system's allocator, a fifth of the cost of a message was allocation (docs/capacity.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli: Cli = cli::begin();
    let sources = match cli.place.sources() {
        Ok(sources) => sources,
        Err(problem) => return check::complain(&problem),
    };
    match cli.command_or_default() {
        Command::Check { json } => check::run(&sources, json),
        Command::Discord(command) => discord::run(&sources, command),
        Command::Models(command) => models::run(&sources, command),
        Command::Replay { file, json } => replay::run(&sources, &file, json),
        Command::Why(options) => why::run(&sources, options),
        Command::Health { server, json } => health::run(&sources, server.as_deref(), json),
        Command::History(command) => history::run(&sources, command),
        Command::Token(command) => token::run(&sources, &command),
        Command::Tools(command) => tools::run(&sources, &command),
        Command::Usage(options) => usage::run(&sources, &options),
        Command::Serve { accept_loss } => serve::run(&sources, accept_loss),
    }
}
