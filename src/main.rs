//! The program: parses the command line, runs the command and returns its exit code.

use std::process::ExitCode;

use tertulia::cli::{Cli, Command, bench, check, discord, health, history, replay, serve, usage, why};
use tertulia::server::growing;

// With the system's allocator, a fifth of the cost of a message was allocation (docs/capacity.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Two libraries may each bring a provider. Without a default, the first use of TLS panics.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // All files that are written, by sled too, are readable by their owner only.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::read();
    growing::fail_softly();
    let sources = match cli.sources() {
        Ok(sources) => sources,
        Err(problem) => return check::complain(&problem),
    };
    match cli.asked() {
        Command::Bench(asked) => bench::run(&sources, &asked),
        Command::Check { json } => check::run(&sources, json),
        Command::Discord(asked) => discord::run(&sources, asked),
        Command::Replay { file, json } => replay::run(&file, json),
        Command::Why(asked) => why::run(&sources, asked),
        Command::Health { server, json } => health::run(&sources, server.as_deref(), json),
        Command::History(asked) => history::run(&sources, asked),
        Command::Usage(asked) => usage::run(&sources, &asked),
        Command::Serve { accept_loss } => serve::run(&sources, accept_loss),
    }
}
