//! `tertulia history copy`: moves the store to another engine.

use clap::ValueEnum;
use serde_json::json;

use super::records;
use crate::adapters::store::sled::{self, OpenOptions};
use crate::adapters::store::transfer;
use crate::cli::access;
use crate::cli::client::block_on;
use crate::cli::command_io::report;
use crate::cli::failure::Failure;
use crate::server::offline::open_options;
use crate::server::{holds_a_store, open_engine};
use crate::settings::Loaded;
use crate::settings::storage::Engine;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The data folder (storage.path)
    Sled,
    /// The database (storage.url, storage.url_file)
    Postgres,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Sled => Self::Sled,
            EngineName::Postgres => Self::Postgres,
        }
    }
}

/// Copies the store of one engine into the empty one of the other, and checks the copy.
pub(super) fn copy(loaded: &Loaded, from: EngineName, to: EngineName, json: bool) -> Result<(), Failure> {
    if from == to {
        return Err(Failure::Usage("--from and --to name the same store: name two".into()));
    }
    let storage = &loaded.settings.storage;
    let data = &storage.path;
    access::require_offline(data, "copy")?;
    if from == EngineName::Sled && !holds_a_store(data) {
        return Err(Failure::Store(format!(
            "there is no store in {}: set storage.path or --config as for the server",
            data.display()
        )));
    }
    // Both stores lock the folder.
    let held = Some(sled::lock(data).map_err(|error| Failure::Store(error.to_string()))?);
    let open = |engine: EngineName| {
        let options = OpenOptions { held: held.clone(), ..open_options() };
        open_engine(engine.into(), storage, &options).map(|opened| opened.store())
    };
    let (source, target) = (open(from)?, open(to)?);
    let copied = block_on(async {
        let copied = transfer::copy(&*source, &*target, records("copying"), records("checking")).await;
        copied.map_err(|error| Failure::Store(error.to_string()))
    })?;
    let name = match to {
        EngineName::Sled => "sled",
        EngineName::Postgres => "postgres",
    };
    let object = json!({ "entries": copied.records, "bytes": copied.bytes, "sha256": copied.sha256 });
    let sentence = format!(
        "copied and checked: {} records, {} bytes, SHA-256 {}; now set storage.engine = \"{name}\", and never start a server on the old store again",
        copied.records, copied.bytes, copied.sha256
    );
    report(json, &object, &sentence)
}
