//! `tertulia replay`: runs a script and prints the events.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
use super::visible;
use crate::replay::{self, ReplayEvent, Script};

/// Runs the script in this file. Prints one line, or one JSON object, for each event.
pub fn run(file: &Path, json: bool) -> ExitCode {
    if file.is_dir() {
        return complain(file, &"this is a folder: name a script in it, JSON or TOML");
    }
    let script = match Script::read(file) {
        Ok(script) => script,
        Err(error) => return complain(file, &error),
    };
    for note in &script.notes {
        eprintln!("note: {}", visible::line(note));
    }
    match replay::run(&script) {
        Ok(events) => match print(&events, json) {
            // The reader closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => Failure::Failed(format!("standard output: {error}")).report(),
            Ok(()) => ExitCode::SUCCESS,
        },
        Err(error) => complain(file, &error),
    }
}

fn print(events: &[ReplayEvent], json: bool) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for event in events {
        if json {
            writeln!(out, "{}", visible::json(&serde_json::to_string(event)?))?;
        } else {
            writeln!(out, "{event}")?;
        }
    }
    out.flush()
}

fn complain(file: &Path, error: &dyn std::fmt::Display) -> ExitCode {
    Failure::Usage(format!("{}: {error}", visible::path(file))).report()
}
