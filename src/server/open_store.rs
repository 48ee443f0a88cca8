//! Opens the configured store, in either engine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::compacting::runtime;
use super::{Ended, with_newest_backup};
use crate::adapters::store::manifest::FORMAT;
use crate::adapters::store::postgres::PostgresStore;
use crate::adapters::store::sled::{self, OpenOptions, SledStore, Upgraded};
use crate::adapters::store::transfer;
use crate::adapters::store::{Identity, OpenError};
use crate::journal::inspection::Inspection;
use crate::journal::upgrade;
use crate::ports::store::maintenance::StoreMaintenance;
use crate::ports::store::{Store, StoreError};
use crate::settings::private_file;
use crate::settings::storage::{Engine, Storage};

/// An open store.
#[derive(Clone)]
pub enum OpenStore {
    Sled(Arc<SledStore>),
    Postgres(Arc<PostgresStore>),
}

/// The marker file in the data folder of a store that was moved to a database. `history copy` writes it.
const MOVED: &str = "moved";
/// The marker file in a data folder while `history copy` copies a database into it. It is removed when the copy is complete.
const COPYING: &str = "copying";
/// How long a command waits to see whether the node that owns the database is still alive.
const OWNER_PATIENCE: Duration = Duration::from_secs(6);

impl OpenStore {
    /// Takes ownership of a database, for a command that writes to it or copies it.
    ///
    /// # Errors
    /// Returns an error with the owner if a running node owns the database.
    pub async fn own(&self) -> Result<(), String> {
        let Self::Postgres(store) = self else { return Ok(()) };
        store.own(Some(OWNER_PATIENCE)).await.map_err(|error| match error {
            StoreError::Failed(owner) => owner,
            error => error.to_string(),
        })
    }

    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sled(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    pub fn maintenance(&self) -> Arc<dyn StoreMaintenance> {
        match self {
            Self::Sled(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// The store, if other nodes may own it.
    pub(super) fn shared(&self) -> Option<&Arc<PostgresStore>> {
        match self {
            Self::Sled(_) => None,
            Self::Postgres(store) => Some(store),
        }
    }

    /// The store on disk, which the server backs up and compacts. For a database the server does neither.
    pub(super) fn on_disk(&self) -> Option<&Arc<SledStore>> {
        match self {
            Self::Sled(store) => Some(store),
            Self::Postgres(_) => None,
        }
    }
}

/// Opens the configured store.
pub(super) fn open(storage: &Storage, options: &OpenOptions, node: &Identity) -> Result<OpenStore, Ended> {
    if storage.engine == Engine::Sled {
        check_folder(&storage.path).map_err(|message| Ended::Store(anyhow::anyhow!(message)))?;
    }
    let opened = open_engine(storage.engine, storage, options, node)?;
    runtime()?.block_on(check_copies(&*opened.store()))?;
    Ok(opened)
}

/// Returns an error if the store is an incomplete copy, or if it was copied and servers use the copy instead.
pub(super) async fn check_copies(store: &dyn Store) -> Result<(), Ended> {
    const HALF: &str = "the store is half a copy, because `tertulia history copy` was interrupted: give the same command again, which finishes it";
    const MOVED: &str = "the store in the database was moved to files with `tertulia history copy`: set storage.engine to \"sled\"; to go back to PostgreSQL, copy the \
                         files into an empty database";
    let unreadable = |error: StoreError| match error {
        StoreError::Damaged(_) => Ended::Store(error.into()),
        _ => Ended::Failed(error.into()),
    };
    let message = match () {
        () if transfer::is_unfinished(store).await.map_err(unreadable)? => HALF,
        () if transfer::is_moved(store).await.map_err(unreadable)? => MOVED,
        () => return Ok(()),
    };
    Err(Ended::Store(anyhow::anyhow!(message)))
}

/// Opens the store in this engine, independent of the configured one. A store in an older format is first rewritten in this version's format.
///
/// # Errors
/// Returns [`Ended::Store`], or [`Ended::Failed`] if a database cannot be reached.
pub fn open_engine(engine: Engine, storage: &Storage, options: &OpenOptions, node: &Identity) -> Result<OpenStore, Ended> {
    match engine {
        Engine::Sled => open_on_disk(&storage.path, options).map(OpenStore::Sled),
        Engine::Postgres => {
            let url = storage.url().map_err(|problem| Ended::Store(anyhow::anyhow!("storage.{problem}")))?;
            let opened = PostgresStore::open(&storage.path, &url, options, node);
            let opened = opened.map_err(|error| match error {
                // The database may be reachable again later, so the exit code lets the service manager retry.
                OpenError::Unreachable(_) => Ended::Failed(error.into()),
                _ => Ended::Store(error.into()),
            });
            opened.map(|store| OpenStore::Postgres(Arc::new(store)))
        }
    }
}

/// Marks the store in this folder as moved to a database, so that no server starts on it and answers old messages a second time.
///
/// # Errors
/// Returns an error if the marker file cannot be written.
pub fn note_moved_folder(data: &Path) -> std::io::Result<()> {
    const TEXT: &[u8] =
        b"This store was moved to PostgreSQL with `tertulia history copy`. No server starts on it while this file is here.\n";
    private_file::write(&data.join(MOVED), TEXT)
}

/// Marks the beginning of a copy into this folder, or its completion.
///
/// # Errors
/// Returns an error if the marker file cannot be written or removed.
pub fn note_copying(data: &Path, is_copying: bool) -> std::io::Result<()> {
    const TEXT: &[u8] =
        b"`tertulia history copy` copies a store into this folder. No server starts on it while this file is here.\n";
    let note = data.join(COPYING);
    if is_copying { private_file::write(&note, TEXT) } else { private_file::remove(&note) }
}

/// Whether a copy into this folder was interrupted.
pub fn is_half_copied(data: &Path) -> bool {
    data.join(COPYING).exists()
}

/// Checks that the store in this folder is neither an incomplete copy nor moved away.
///
/// # Errors
/// Returns a message that says which of these applies.
pub fn check_folder(data: &Path) -> Result<(), String> {
    let folder = data.display();
    if is_half_copied(data) {
        return Err(format!(
            "the store in {folder} is half a copy, because `tertulia history copy --from postgres --to sled` was interrupted: give the same command again, \
             which begins anew and finishes it"
        ));
    }
    if is_moved_folder(data) {
        return Err(format!(
            "the store in {folder} was moved to PostgreSQL: set storage.engine to \"postgres\"; to use these files nevertheless, delete {}",
            data.join(MOVED).display()
        ));
    }
    Ok(())
}

/// Whether the store in this folder was moved to a database.
pub fn is_moved_folder(data: &Path) -> bool {
    data.join(MOVED).exists()
}

fn open_on_disk(data: &Path, options: &OpenOptions) -> Result<Arc<SledStore>, Ended> {
    let log_start = |records| tracing::info!(records, "rewriting the store in this version's format");
    match sled::upgrade(data, options, upgrade::upgraded_value, log_start).map_err(|error| unusable(&error, data))? {
        None => {}
        Some(Upgraded { from, records, left: 0, .. }) => {
            tracing::info!(from, to = FORMAT, records, "the store was rewritten in this version's format");
        }
        Some(Upgraded { from, records, left, first }) => {
            let first = first.unwrap_or_default();
            tracing::error!(
                from,
                to = FORMAT,
                records,
                left,
                first,
                "the store was rewritten in this version's format, without the records that cannot be read"
            );
        }
    }
    let opened = SledStore::open_inspected(data, options, Inspection);
    opened.map(Arc::new).map_err(|error| unusable(&error, data))
}

/// The error for a store that cannot be opened.
fn unusable(error: &OpenError, data: &Path) -> Ended {
    Ended::Store(anyhow::anyhow!(with_newest_backup(error, data)))
}
