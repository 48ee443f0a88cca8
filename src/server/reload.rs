//! Reads the settings and reloads the companions, at SIGHUP and after a change on the page. Files are read on a separate thread, so that a folder that does not respond (a
//! hung mount) blocks nothing else.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::actors::companion::brief_writing;
use crate::actors::runtime::context::ActorContext;
use crate::backend::loading::reload_companions;
use crate::domain::id::CompanionId;
use crate::journal::reader::{ReadError, Reader as StoreReader};
use crate::journal::record::CompanionRecord;
use crate::ports::backend::keeping::{FailedReload, SkippedCompanion};
use crate::ports::store::Store;
use crate::server::lore;
use crate::settings::companion::Companion;
use crate::settings::kept::Kept;
use crate::settings::{self, InPlace, Loaded, Overlay, Sources};

/// The timeout for reading the settings.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads companions and puts them into force.
pub(super) struct Reloading {
    context: ActorContext,
    sources: Sources,
    reader: Reader,
    /// Held while companions are reloaded or changed, so that each change is based on the companions in force.
    changes: Arc<Mutex<()>>,
}

/// The lock for reloading companions and for changing their files and records.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Reloading {
    pub(super) fn new(context: ActorContext, sources: Sources) -> Self {
        Self { context, sources, reader: Reader::default(), changes: Arc::default() }
    }

    /// Waits for the lock.
    pub(super) async fn turn(&self) -> Turn {
        self.changes.clone().lock_owned().await
    }

    /// Reads the companions and puts them into force. Errors are logged, shown on the page and returned.
    pub(super) async fn reload(&self, turn: &Turn) -> Vec<String> {
        let context = &self.context;
        let mut is_in_force = false;
        let problems = match self.read(turn, None, |_| ()).await {
            Ok(mut loaded) => {
                let companions = self.with_kept(&mut loaded);
                let files = std::mem::take(&mut loaded.lore);
                let refused = apply(context, companions, loaded.skipped).err();
                is_in_force = refused.is_none();
                lore::load(context, files).await;
                loaded.broken.iter().map(ToString::to_string).chain(refused).collect()
            }
            Err(problems) => problems,
        };
        // One quoted line for each problem: files may contain text from other people.
        for problem in &problems {
            tracing::error!(problem, "not reloaded; what it is about stays as it was");
        }
        load_briefs(context).await;
        *context.failed_reload.lock() =
            (!problems.is_empty()).then(|| FailedReload { at: context.clock.now().into(), problems: problems.clone() });
        if is_in_force {
            tracing::info!(companions = context.memberships.companions().len(), "companions were reloaded");
        }
        problems
    }

    /// Reads the settings and the companions, with these settings of the page instead of the stored ones, and with `change` applied to the companions
    /// of the store.
    pub(super) async fn read(
        &self,
        _: &Turn,
        kept: Option<Kept>,
        change: impl FnOnce(&mut Overlay),
    ) -> Result<Loaded, Vec<String>> {
        let sources = self.sources.clone();
        let mut overlay = overlay(&*self.context.store)
            .await
            .map_err(|error| vec![format!("the companions in the store cannot be read: {error}")])?;
        change(&mut overlay);
        let read = move || settings::load_with_kept(&sources, &overlay, kept.as_ref()).and_then(Loaded::known);
        match self.reader.read(read).await {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(problems)) => Err(problems.0.iter().map(ToString::to_string).collect()),
            Err(error) => Err(vec![format!("the settings cannot be read: {error}")]),
        }
    }

    /// The companions that were read. A companion whose files have errors stays as it was.
    pub(super) fn with_kept(&self, loaded: &mut Loaded) -> BTreeMap<CompanionId, Companion> {
        let before = self.context.memberships.companions();
        let kept = loaded.left_out.iter().filter_map(|id| Some((id.clone(), before.get(id)?.clone())));
        let mut companions = std::mem::take(&mut loaded.companions);
        companions.extend(kept);
        companions
    }
}

/// The companions in the store. They take precedence over files.
///
/// # Errors
/// Returns an error if they cannot be read. A companion that cannot be decoded is left out of the roster.
pub(super) async fn overlay(store: &dyn Store) -> Result<Overlay, ReadError> {
    let records = StoreReader::new(store).companions().await?;
    let in_place = |(id, record): (CompanionId, Result<CompanionRecord, String>)| {
        let place = format!("the companion {id} in the store");
        let text = record.map(|record| record.text.to_string());
        let text = text.map_err(|error| format!("cannot be read: {error}; restore a backup"));
        (id, Some(InPlace { place, text }))
    };
    Ok(records.into_iter().map(in_place).collect())
}

/// The first of these companions with a model that is not loaded. Models are loaded only at the start.
pub(super) fn without_models<'a>(
    context: &ActorContext,
    companions: &'a BTreeMap<CompanionId, Companion>,
) -> Option<&'a Companion> {
    let has_models =
        |companion: &&Companion| [&companion.model.main, &companion.model.side].iter().all(|name| context.pool.has(name));
    companions.values().find(|companion| !has_models(companion))
}

/// Puts the companions into force.
///
/// # Errors
/// Returns a message that says why they cannot be put into force.
fn apply(
    context: &ActorContext,
    companions: BTreeMap<CompanionId, Companion>,
    skipped: Vec<(CompanionId, PathBuf)>,
) -> Result<(), String> {
    if let Some(companion) = without_models(context, &companions) {
        return Err(format!(
            "{} names a model that was not in the settings when the server started; restart the server",
            companion.id
        ));
    }
    let before = context.memberships.companions();
    reload_companions(context, companions).map_err(|error| format!("these companions cannot be used: {error}"))?;
    // Folders that never were a companion's are ignored.
    let mut lost = context.skipped_companions.lock();
    let was_one = |id: &CompanionId| before.contains_key(id) || lost.iter().any(|lost| lost.id == *id);
    let skipped = skipped.into_iter().filter(|(id, _)| was_one(id) && !context.memberships.companions().contains_key(id));
    *lost = skipped.map(|(id, folder)| SkippedCompanion { id, folder: folder.display().to_string().into() }).collect();
    for SkippedCompanion { id, folder } in &*lost {
        tracing::warn!(
            companion = %id,
            folder = &**folder,
            "a companion has left its rooms: its folder has neither companion.toml nor persona files (*.md); add them and send SIGHUP again, \
             or remove the folder"
        );
    }
    Ok(())
}

/// Reads the stored briefs of the configured companions. Missing ones are made again by the side model.
pub(super) async fn load_briefs(context: &ActorContext) {
    if let Err(error) = brief_writing::load(context).await {
        tracing::warn!(%error, "the briefs of long personas cannot be read");
    }
}

/// Reads on a separate thread, one read at a time.
struct Reader {
    free: Arc<Semaphore>,
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
enum NotRead {
    #[error(
        "reading took more than {} seconds and was abandoned; check whether the settings folder, or the mount that holds it, responds, and \
         send SIGHUP again",
        READ_TIMEOUT.as_secs()
    )]
    TooSlow,
    #[error(
        "the previous read still waits for the settings folder; check the mount that holds it, and send SIGHUP again once it responds"
    )]
    StillReading,
    #[error("reading panicked; the log says where")]
    Panicked,
    #[error("no thread can be started: {0}; send SIGHUP again")]
    NoThread(#[from] io::Error),
}

impl Default for Reader {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(1)) }
    }
}

impl Reader {
    /// Returns the result of `read`, if it arrives in time. A hung thread cannot be ended: it is abandoned, and further reads are refused until it
    /// ends.
    async fn read<T: Send + 'static>(&self, read: impl FnOnce() -> T + Send + 'static) -> Result<T, NotRead> {
        let permit = self.free.clone().try_acquire_owned().map_err(|_| NotRead::StillReading)?;
        let (reply, answer) = oneshot::channel();
        // Not one of the runtime's threads, because the shutdown of the runtime waits for them.
        thread::Builder::new().name("settings".into()).spawn(move || {
            let outcome = read();
            drop::<OwnedSemaphorePermit>(permit);
            // After a timeout, the result has no receiver.
            let _ = reply.send(outcome);
        })?;
        match tokio::time::timeout(READ_TIMEOUT, answer).await {
            Ok(outcome) => outcome.map_err(|_| NotRead::Panicked),
            Err(_) => Err(NotRead::TooSlow),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hung_read_times_out_and_blocks_further_reads_until_it_ends() {
        let reader = Reader::default();
        let (answer, hung) = mpsc::channel::<u8>();
        let (ended, thread_ended) = oneshot::channel();

        let first = reader
            .read(move || {
                let answer = hung.recv();
                drop(ended);
                answer
            })
            .await;
        let second = reader.read(|| 2).await;

        assert!(matches!(first, Err(NotRead::TooSlow)), "{first:?}");
        assert!(matches!(second, Err(NotRead::StillReading)), "{second:?}");
        answer.send(1).unwrap();
        // Its thread continues to its end.
        let _ = thread_ended.await as Result<(), _>;
        let _free = reader.free.acquire().await.unwrap();
    }

    #[tokio::test]
    async fn a_read_in_time_returns_its_result() {
        let reader = Reader::default();

        assert_eq!((reader.read(|| 1).await.unwrap(), reader.read(|| 2).await.unwrap()), (1, 2));
    }
}
