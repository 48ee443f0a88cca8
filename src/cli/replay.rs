//! `tertulia replay`: runs a script and prints the events.

mod rehearsed;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use self::rehearsed::Rehearsed;
use super::failure::Failure;
use super::visible;
use crate::replay::{self, ReplayEvent, Script};
use crate::settings::{self, Sources};

/// Runs the script in this file. Prints one line, or one JSON object, for each event.
pub fn run(sources: &Sources, file: &Path, json: bool) -> ExitCode {
    if file.is_dir() {
        return complain(file, &"this is a folder: name a script in it, JSON or TOML");
    }
    // The settings are read only if the script names configured companions.
    let configured = || {
        settings::load(sources)
            .and_then(settings::Loaded::complete)
            .map(|loaded| loaded.companions)
            .map_err(|problems| problems.to_string())
    };
    let script = match Script::read(file, &configured) {
        Ok(script) => script,
        Err(error) => return complain(file, &error),
    };
    for note in &script.notes {
        eprintln!("note: {}", visible::line(note));
    }
    if !script.unscripted.is_empty() {
        let roles = script.unscripted.iter().map(|role| format!("models.{}", role.as_str())).collect::<Vec<_>>().join(" and ");
        eprintln!("note: the script has no answers in {roles}, so the built-in model rehearsal answers");
    }
    match replay::run_with(&script, &mut Rehearsed::of(&script)) {
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
