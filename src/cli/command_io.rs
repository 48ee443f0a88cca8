//! Shared by the commands: loads the settings, prints results, and returns the exit code.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use serde_json::Value;

use super::check;
use super::failure::Failure;
use super::visible;
use crate::settings::{self, Loaded, Overlay, Sources};

/// Loads the settings and runs a command with them. Errors go to standard error.
pub fn run_with_settings(sources: &Sources, run: impl FnOnce(Loaded) -> Result<(), Failure>) -> ExitCode {
    run_with_settings_as(sources, false, run)
}

/// Like [`run_with_settings`]. With `json`, problems with the settings are also printed to standard output as one JSON object.
pub fn run_with_settings_as(sources: &Sources, json: bool, run: impl FnOnce(Loaded) -> Result<(), Failure>) -> ExitCode {
    let loaded = match settings::load_with(sources, &Overlay::new()) {
        Ok(loaded) => loaded,
        Err(problems) => return check::refuse(&problems, json),
    };
    for problem in &loaded.broken {
        eprintln!("tertulia: left out: {}", visible::line(&problem.to_string()));
    }
    // The store's warnings are for people. An already installed subscriber receives them instead.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(tracing::level_filters::LevelFilter::WARN)
        .without_time()
        .with_target(false)
        .try_init();
    match run(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints the result: one JSON object, or a sentence.
pub fn report(json: bool, object: &Value, sentence: &str) -> Result<(), Failure> {
    if json { print_json(object) } else { print(&visible::lines(sentence)) }
}

pub fn print_json(json: &dyn std::fmt::Display) -> Result<(), Failure> {
    print(&visible::json(&json.to_string()))
}

/// Prints one or more lines to standard output. A closed pipe is not a failure.
pub fn print(text: &dyn std::fmt::Display) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Failed(format!("standard output: {error}"))),
        _ => Ok(()),
    }
}
