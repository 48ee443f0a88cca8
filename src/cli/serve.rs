//! `tertulia serve`: settings → telemetry → server → exit code.

use std::process::ExitCode;

use super::failure::Failure;
use super::{check, visible};
use crate::server;
use crate::settings::{self, Loaded, Overlay, Sources};
use crate::telemetry;

pub fn run(sources: &Sources, accept_loss: bool) -> ExitCode {
    // Without a store, a companion that has no file does not exist.
    let known = |loaded: Loaded| if server::has_store(&loaded.settings.storage) { Ok(loaded) } else { loaded.known() };
    let loaded = settings::load_with(sources, &Overlay::new()).and_then(known).and_then(|loaded| loaded.serve().map(|()| loaded));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => return check::complain(&problems),
    };
    let telemetry = match telemetry::init(&loaded.settings.telemetry) {
        Ok(telemetry) => telemetry,
        Err(error) => return Failure::Usage(error.to_string()).report(),
    };
    let data = &loaded.settings.storage.path;
    let data = std::path::absolute(data).unwrap_or_else(|_| data.clone());
    let settings = loaded.sources.join(", ");
    tracing::info!(version = env!("CARGO_PKG_VERSION"), settings, data = %visible::path(&data), "starting");
    if !sources.folder.is_dir() {
        let names = loaded.companions.values().map(|companion| &*companion.name).collect::<Vec<_>>().join(", ");
        tracing::info!(
            companions = names,
            "there is no folder {} here, so the built-in settings and companions are used",
            sources.folder.display()
        );
    }
    if !server::has_store(&loaded.settings.storage) {
        tracing::info!(data = %visible::path(&data), "a new store begins; histories of another folder are found with storage.path");
    }
    for problem in &loaded.broken {
        let problem = problem.to_string();
        tracing::error!(problem, "a companion is left out, because its files have errors; mend them and send SIGHUP");
    }
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    let outcome = server::run(loaded, sources, &telemetry, accept_loss);
    telemetry.shutdown();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(ended) => Failure::from(ended).report(),
    }
}
