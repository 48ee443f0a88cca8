//! Backups that the running server makes by itself, in the folder `backups` of the data folder. If a server finds its store damaged, its error
//! message names the newest of them.
//!
//! A backup still contains texts that were erased after it was made. So a backup that is older than an erasure is replaced by a new one within a
//! day. If there is no disk space for a new one, or if backups are disabled, the old one is deleted nevertheless. While the store cannot be copied,
//! the old backup is kept, because it may be needed. The last backup from before a large expiry is kept for a week, unless a deletion is requested.

mod plan;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::adapters::store::backup::{Copied, CopyError};
use crate::adapters::store::sled::{SledStore, disk_bytes, disk_free};
use crate::domain::moment::Moment;
use crate::journal::erased;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock;
use crate::settings::storage::Storage;
use crate::telemetry::instruments::Instruments;

/// How often the server checks whether a backup must be made.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The delay after a failed backup.
const RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// The outcomes, as in the metric.
const MADE: &str = "made";
const SKIPPED: &str = "skipped";
const FAILED: &str = "failed";
/// The name of a backup. It contains the start time of the backup in UTC.
const NAME: &str = "tertulia-%Y%m%dT%H%M%SZ.backup";

/// Makes backups until it is dropped. A backup in progress is then aborted, and leaves no file.
pub(super) struct Backups {
    is_over: Arc<AtomicBool>,
}

impl Drop for Backups {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Backups {
    /// Starts to make backups of a store, if the settings enable them, and to delete old ones.
    pub(super) fn begin(store: Arc<SledStore>, clock: Arc<dyn Clock>, storage: Storage, instruments: Instruments) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let maker = Maker { store, clock, folder: folder(&storage.path), storage, instruments, is_over: is_over.clone() };
        tokio::spawn(maker.run());
        Self { is_over }
    }
}

struct Maker {
    store: Arc<SledStore>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    storage: Storage,
    instruments: Instruments,
    is_over: Arc<AtomicBool>,
}

impl Maker {
    async fn run(self) {
        let every = self.storage.backup_every;
        let check_interval = CHECK_INTERVAL.min(every.unwrap_or(CHECK_INTERVAL));
        let retry_after = RETRY_AFTER.min(every.unwrap_or(RETRY_AFTER));
        let mut has_warned = false;
        if let Err(error) = remove_parts(&self.folder) {
            tracing::warn!(%error, folder = ?self.folder, "unfinished backups cannot be deleted");
        }
        let mut pause = check_interval;
        loop {
            sleep(pause).await;
            pause = check_interval;
            let erased = match erased::last(&*self.store).await {
                Ok(erased) => erased,
                Err(error) => {
                    tracing::warn!(%error, "the time of the last deletion cannot be read; no backup is made or deleted");
                    continue;
                }
            };
            let plan = |found: &[Moment], now| plan::plan(now, every, self.storage.backups_kept, found, &erased);
            let now = self.clock.now();
            has_warned = has_warned || warn_of_those_ahead(&times(&self.folder), now);
            if plan(&times(&self.folder), now).makes {
                match self.make(now).await {
                    MADE => {}
                    SKIPPED => pause = retry_after,
                    // If the store cannot be copied, its old backups may be needed.
                    _ => {
                        pause = retry_after;
                        continue;
                    }
                }
            }
            for made in plan(&times(&self.folder), now).removes {
                let path = self.folder.join(file_name(made));
                match fs::remove_file(&path) {
                    Ok(()) => tracing::info!(backup = ?path, "an old backup was deleted"),
                    Err(error) => tracing::warn!(%error, backup = ?path, "an old backup cannot be deleted"),
                }
            }
        }
    }

    /// Makes a backup, logs and counts the outcome, and returns it.
    async fn make(&self, now: Moment) -> &'static str {
        let (data, folder) = (self.storage.path.clone(), self.folder.clone());
        let (store, is_over) = (self.store.clone(), self.is_over.clone());
        let to = self.folder.join(file_name(now));
        let target = to.clone();
        let made = spawn_blocking(move || {
            create(&folder).map_err(|error| CopyError::Unwritten { to: folder.clone(), error })?;
            let room = (disk_bytes(&data), disk_free(&folder));
            if let (Ok(needed), Ok(free)) = room
                && free < needed
            {
                return Ok(Made::NoRoom { needed, free });
            }
            store.backup_while(&target, || !is_over.load(Ordering::Relaxed)).map(Made::Complete)
        });
        let outcome = match made.await {
            Ok(Ok(Made::Complete(Copied { records, bytes_after, .. }))) => {
                tracing::info!(backup = ?to, records, bytes = bytes_after, "the store was backed up");
                MADE
            }
            Ok(Ok(Made::NoRoom { needed, free })) => {
                tracing::warn!(needed, free, folder = ?self.folder, "there is not enough disk space for a backup: make room");
                SKIPPED
            }
            // The server is stopping.
            Ok(Err(_)) if self.is_over.load(Ordering::Relaxed) => return FAILED,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store could not be backed up");
                FAILED
            }
            Err(panic) => {
                tracing::error!(%panic, "the store could not be backed up");
                FAILED
            }
        };
        self.instruments.backups.add(1, [outcome]);
        outcome
    }
}

enum Made {
    Complete(Copied),
    /// There is too little disk space. Sizes are in bytes.
    NoRoom {
        needed: u64,
        free: u64,
    },
}

/// The backup folder of a data folder.
fn folder(data: &Path) -> PathBuf {
    data.join("backups")
}

/// Warns of backups that are dated ahead of the clock. Returns whether there are any.
fn warn_of_those_ahead(found: &[Moment], now: Moment) -> bool {
    let Some(made) = found.iter().rfind(|made| plan::is_ahead(**made, now)) else { return false };
    let backup = file_name(*made);
    tracing::warn!(
        backup,
        now = rfc3339(now),
        "a backup is dated ahead of the clock, which is wrong now or was then: it does not count as the newest, and is deleted before others"
    );
    true
}

/// The newest backup of a data folder. A backup that is dated ahead of the clock is the newest only if there is no other.
pub(super) fn newest(data: &Path, now: Moment) -> Option<PathBuf> {
    let folder = folder(data);
    let made = times(&folder);
    let newest = made.iter().rfind(|made| !plan::is_ahead(**made, now)).or(made.last());
    newest.map(|made| folder.join(file_name(*made)))
}

/// Creates the folder with access for its owner only, unless it exists.
fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The times of the backups in a folder, in order. Other files are ignored.
fn times(folder: &Path) -> Vec<Moment> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut times: Vec<_> = entries.filter_map(|entry| time_of(entry.file_name().to_str()?)).collect();
    times.sort_unstable();
    times
}

/// Deletes unfinished backups of killed servers. This server holds the data folder's lock, so no process is writing them.
fn remove_parts(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file = entry.file_name();
        let name = file.to_str().and_then(|name| name.strip_suffix(".part"));
        if name.is_some_and(|name| time_of(name).is_some()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn file_name(made: Moment) -> String {
    let micros = i64::try_from(made.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX).strftime(NAME).to_string()
}

fn time_of(name: &str) -> Option<Moment> {
    let time = TimeZone::UTC.to_timestamp(DateTime::strptime(NAME, name).ok()?).ok()?;
    let moment = Moment::from_micros(u64::try_from(time.as_microsecond()).ok()?);
    (file_name(moment) == name).then_some(moment)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// 1 May 2026, 16:09:54.
    const MAY: Moment = Moment::from_micros(1_777_651_794_000_000);

    #[test]
    fn the_name_of_a_backup_says_when_it_was_made() {
        assert_eq!(file_name(MAY), "tertulia-20260501T160954Z.backup");
        assert_eq!(file_name(MAY + Duration::from_millis(900)), file_name(MAY));
        assert_eq!(time_of("tertulia-20260501T160954Z.backup"), Some(MAY));
        for other in ["tertulia-20260501T160954Z.backup.part", "tertulia-20261301T160954Z.backup", "monday.backup", ""] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_backups_and_their_parts_are_recognised() {
        let data = tempfile::tempdir().unwrap();
        let folder = folder(data.path());
        assert_eq!((newest(data.path(), MAY), remove_parts(&folder).is_ok()), (None, true));
        create(&folder).unwrap();
        create(&folder).unwrap();
        let later = MAY + Duration::from_secs(60);
        let part = format!("{}.part", file_name(MAY));
        for name in [file_name(later), file_name(MAY), part.clone(), "monday.backup".into(), "notes.part".into()] {
            fs::write(folder.join(name), "").unwrap();
        }

        remove_parts(&folder).unwrap();

        assert_eq!(times(&folder), [MAY, later]);
        assert_eq!(newest(data.path(), later), Some(folder.join(file_name(later))));
        let before = MAY - Duration::from_secs(3_590);
        assert_eq!(newest(data.path(), before), Some(folder.join(file_name(MAY))), "the other is dated ahead");
        assert!(!folder.join(part).exists() && folder.join("notes.part").exists() && folder.join("monday.backup").exists());
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
