//! What every command about stored data begins and ends with.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use serde_json::Value;

use super::check;
use super::failure::Failure;
use super::visible;
use crate::settings::{self, Loaded, Sources};

/// Reads the settings and does this with them; errors go to standard error.
pub(super) fn ask_with(sources: &Sources, ask: impl FnOnce(Loaded) -> Result<(), Failure>) -> ExitCode {
    let loaded = match settings::load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => return check::complain(&problems),
    };
    // What the store warns of is for people; whoever set up a subscriber before hears it there.
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(tracing::level_filters::LevelFilter::WARN)
        .without_time()
        .with_target(false)
        .try_init();
    match ask(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Prints what came of it: one JSON object, or a sentence.
pub(super) fn report(json: bool, object: &Value, sentence: &str) -> Result<(), Failure> {
    if json { print_json(object) } else { print(&visible::lines(sentence)) }
}

/// Prints JSON to standard output.
pub(super) fn print_json(json: &dyn std::fmt::Display) -> Result<(), Failure> {
    print(&visible::json(&json.to_string()))
}

/// Prints a line, or several, to standard output. A reader that is gone is no failure.
pub(super) fn print(text: &dyn std::fmt::Display) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Failed(format!("standard output: {error}"))),
        _ => Ok(()),
    }
}
