//! Opens a database on disk: checks its files before sled opens them, opens sled on a separate thread, and checks the result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use super::closing::attempt;
use super::committer::panic_text;
use super::facts::Facts;
use super::{OpenOptions, commit_log, copy, files, layout, records, repair};
use crate::OpenError;
use crate::audit::{self, Audit};
use crate::domain::text::one_line;
use crate::manifest::{self, Checksums, FORMAT, Manifest};
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::Inspect;

/// sled fills its file in segments of this many bytes (its default), and truncates whole empty ones at the end.
pub(super) const SEGMENT_BYTES: u64 = 512 * 1024;

// sled truncates few segments at a time, and the next group updates the manifest. After a crash in between, the file is shorter
// than in the manifest by at most this many segments.
const TRUNCATED_SEGMENTS: u64 = 4;

// How long an earlier opening in this process may still hold sled's lock while it ends.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

// The maximum length of a shown panic message. Some of sled's contain its whole state.
const SHOWN_CHARS: usize = 200;

// The read speed of the slowest disk, in bytes per second.
const SLOWEST_READING: u64 = 4 << 20;

/// A database that was opened and checked.
pub(super) struct Opened {
    pub(super) db: sled::Db,
    pub(super) facts: Facts,
    /// The new manifest, which is not written yet.
    pub(super) manifest: Manifest,
    pub(super) lock: files::FolderLock,
}

/// A report of the opening thread.
enum Report {
    /// Still working, on a step that may take long.
    Working,
    /// Waiting for sled's own lock.
    Waiting,
    Ended(Result<(sled::Db, Facts), OpenError>),
}

/// Opens the database of a data folder, or creates one, and counts the opening. If a loss is accepted, each record is checked
/// with `inspect`.
pub(super) fn open(data: &Path, options: &OpenOptions, inspect: impl Inspect + Send + 'static) -> Result<Opened, OpenError> {
    let lock = options.lock(data)?;
    let (recorded, is_unknown) = match manifest::read(data) {
        Err(OpenError::Damaged(why)) if options.accept_loss => {
            tracing::warn!(why, "continuing without the manifest");
            (None, true)
        }
        outcome => (outcome?, false),
    };
    if recorded.is_none() && files::is_half_restored(data) {
        if !options.accept_loss {
            return Err(OpenError::HalfRestored { folder: data.to_path_buf() });
        }
        tracing::warn!(folder = ?data, "a restore was interrupted: the backup's records are missing, and the store begins anew");
    }
    files::check_writable(data)?;
    files::recover(data)?;
    let found = files::db_bytes(data)?;
    // A database that never contained anything may be created again.
    let recorded = recorded.filter(|recorded| found.is_some() || recorded.counts.groups > 0);
    if found.is_none() {
        let path = layout::db(&layout::sled_folder(data));
        if let Some(recorded) = &recorded {
            return Err(OpenError::Missing { path, manifest: recorded.db_bytes });
        }
        if is_unknown {
            return Err(OpenError::damaged(data, "`store/db` is missing, and its manifest cannot be read"));
        }
    }
    let fits = match &recorded {
        Some(recorded) => match check_length(data, recorded, found) {
            Err(OpenError::Truncated { .. }) if options.accept_loss => false,
            outcome => outcome?,
        },
        None => found.is_none(),
    };

    let closed = recorded.as_ref().and_then(|recorded| recorded.files.as_ref());
    let changed = closed.map_or(Ok(None), |closed| changed_file(data, closed))?;
    if let Some(path) = &changed {
        let changed = OpenError::doubtful(data, format!("`store/{path}` has changed or is missing since it was closed"));
        if !options.accept_loss {
            return Err(changed);
        }
        tracing::warn!(%changed, "continuing with what sled can read");
    }
    // A crash leaves files without checksums.
    let is_doubtful = !fits || changed.is_some() || recorded.is_some() && closed.is_none();
    let is_snapshot_wrong = !fits || changed.is_some_and(|path| path.starts_with(files::SNAPSHOT));
    if is_snapshot_wrong && options.accept_loss {
        // sled's snapshot may refer to data that no longer exists.
        files::remove_snapshots(data, "").map_err(|error| OpenError::of(data, error))?;
    }

    if let Some(recorded) = recorded.as_ref().filter(|recorded| recorded.files.is_some()) {
        // sled writes from now on. After a crash, the changed folder must not count as damaged.
        let opening = Manifest { files: None, ..recorded.clone() };
        manifest::write(data, &opening).map_err(|error| OpenError::of(data, error))?;
    }

    let audit = if options.accept_loss { Some(Audit::inspecting(inspect)) } else { is_doubtful.then(Audit::default) };
    let deadline = opening_timeout(options, found.unwrap_or_default());
    if options.accept_loss {
        let up_to_secs = deadline.as_secs();
        tracing::info!(folder = ?data, up_to_secs, "the store is read completely; opening fails after this long without progress");
    }
    let (db, facts) = open_guarded(data, options, deadline, audit)?;

    let (db, db_bytes) = attempt(db, |_| {
        if let Some(recorded) = &recorded {
            check_facts(data, recorded, &facts, options.accept_loss)?;
        } else if found.is_some() {
            tracing::warn!(folder = ?data, found = %facts.counts, "the manifest was missing and has been recreated");
        }
        Ok::<_, OpenError>(files::db_bytes(data)?.unwrap_or_default())
    })?;
    let manifest = Manifest { format: facts.format, store: facts.store.clone(), counts: facts.counts, db_bytes, files: None };
    Ok(Opened { db, facts, manifest, lock })
}

/// The time limit for opening without progress. sled reports no progress, and without a usable snapshot, it reads the whole file.
/// An operator who accepts a loss is present, and prefers to wait.
fn opening_timeout(options: &OpenOptions, bytes: u64) -> Duration {
    let reading_time = Duration::from_secs(bytes / SLOWEST_READING);
    if options.accept_loss { options.deadline + reading_time } else { options.deadline }
}

/// The settings for opening or creating any database.
pub(super) fn config(folder: &Path, cache_bytes: u64) -> sled::Config {
    // The committer flushes after every group, so sled need not flush periodically.
    sled::Config::new().path(folder).segment_size(SEGMENT_BYTES as usize).cache_capacity(cache_bytes).flush_every_ms(None)
}

/// Rejects a database that is shorter than in the manifest. False: sled itself may have shortened it.
fn check_length(data: &Path, recorded: &Manifest, found: Option<u64>) -> Result<bool, OpenError> {
    let bytes = found.unwrap_or_default();
    let truncated_by_sled = found.is_some()
        && recorded.files.is_none()
        && bytes.is_multiple_of(SEGMENT_BYTES)
        && bytes.saturating_add(TRUNCATED_SEGMENTS * SEGMENT_BYTES) >= recorded.db_bytes;
    if bytes >= recorded.db_bytes || truncated_by_sled {
        return Ok(bytes >= recorded.db_bytes);
    }
    let path = layout::db(&layout::sled_folder(data));
    Err(OpenError::Truncated { path, manifest: recorded.db_bytes, found: bytes })
}

/// The first file of a closed database that has changed or is missing.
fn changed_file(data: &Path, closed: &Checksums) -> Result<Option<String>, OpenError> {
    let folder = layout::sled_folder(data);
    let found = files::checksums(&folder).map_err(|error| OpenError::of(&folder, error))?;
    Ok(closed.iter().find(|(path, checksum)| found.get(*path) != Some(checksum)).map(|(path, _)| path.clone()))
}

/// Rejects a database in which a channel ends before its last acknowledged event, or that lacks an acknowledged group. If a loss
/// is accepted, the heads of these channels are restored, so that no number is assigned twice. The events before them are
/// missing.
fn check_ends(data: &Path, db: &sled::Db, facts: &Facts, accept_loss: bool) -> Result<(), OpenError> {
    let acknowledged = commit_log::read(data, &facts.store).map_err(|error| OpenError::of(data, error))?;
    let found = commit_log::lasts_of(db).map_err(|error| explain(data, error))?;
    let last = |channel| found.get(channel).copied().unwrap_or_default();
    let short: Vec<_> = acknowledged.lasts.iter().filter(|(channel, acknowledged)| last(channel) < **acknowledged).collect();
    let detail = if let Some((channel @ (ward, no), acknowledged)) = short.first() {
        let (ends, channels) = (last(channel), short.len());
        format!(
            "{channels} channels lost their end, the first: channel {} of ward {} ends at event {ends}, not {acknowledged}",
            no.0, ward.0
        )
    } else if facts.counts.groups < acknowledged.group {
        format!("it has {} groups and had {}", facts.counts.groups, acknowledged.group)
    } else {
        return Ok(());
    };
    if !accept_loss {
        return Err(OpenError::doubtful(data, detail));
    }
    tracing::warn!(detail, folder = ?data, "continuing with less data than there was");
    let mut heads = sled::Batch::default();
    for ((ward, no), last) in short {
        heads.insert(Key::head(*ward, *no).as_bytes(), &last.0.to_be_bytes());
    }
    db.apply_batch(heads).map_err(|error| explain(data, error))
}

/// Rejects a database that contains less than the manifest says, or is another one.
fn check_facts(data: &Path, recorded: &Manifest, facts: &Facts, accept_loss: bool) -> Result<(), OpenError> {
    let refused = if facts.counts.is_less_than(recorded.counts) {
        OpenError::Lost { folder: data.to_path_buf(), manifest: recorded.counts, found: facts.counts }
    } else if facts.store != recorded.store {
        OpenError::doubtful(data, format!("its manifest belongs to the store {}, and this is {}", recorded.store, facts.store))
    } else {
        return Ok(());
    };
    if !accept_loss {
        return Err(refused);
    }
    tracing::warn!(manifest = %recorded.counts, found = %facts.counts, folder = ?data, "continuing with less data than there was");
    Ok(())
}

/// Opens sled in a separate thread, because it may panic or never return.
fn open_guarded(
    data: &Path,
    options: &OpenOptions,
    deadline: Duration,
    audit: Option<Audit>,
) -> Result<(sled::Db, Facts), OpenError> {
    let (reports, inbox) = mpsc::channel();
    let (folder, guarded) = (data.to_path_buf(), options.clone());
    let work = move || {
        let opened = catch_unwind(AssertUnwindSafe(|| open_sled(&folder, &guarded, audit, &reports)));
        let opened = opened.unwrap_or_else(|panic| {
            Err(OpenError::damaged(&folder, format!("sled: {}", one_line(panic_text(&*panic), SHOWN_CHARS))))
        });
        // The receiver is gone when the deadline has passed.
        let _ = reports.send(Report::Ended(opened));
    };
    std::thread::Builder::new().name("writer-open".into()).spawn(work).map_err(|error| OpenError::of(data, error))?;

    let stuck = || OpenError::Stuck { folder: data.to_path_buf(), after: deadline };
    let in_use = || OpenError::InUse { folder: data.to_path_buf() };
    let mut waiting = false;
    loop {
        let timeout = if waiting { deadline.min(LOCK_TIMEOUT) } else { deadline };
        match inbox.recv_timeout(timeout) {
            Ok(Report::Working) => waiting = false,
            Ok(Report::Waiting) => waiting = true,
            Ok(Report::Ended(opened)) => return opened,
            Err(RecvTimeoutError::Timeout) if waiting => return Err(in_use()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(stuck()),
        }
    }
}

fn open_sled(
    data: &Path,
    options: &OpenOptions,
    audit: Option<Audit>,
    reports: &Sender<Report>,
) -> Result<(sled::Db, Facts), OpenError> {
    let folder = layout::sled_folder(data);
    let config = config(&folder, options.cache_bytes);
    let open = || -> Result<sled::Result<sled::Db>, OpenError> {
        let opened = config.open();
        if !matches!(&opened, Err(sled::Error::Io(error)) if is_lock(error)) {
            return Ok(opened);
        }
        // We hold the lock of the data folder. So sled's lock is held by the end of an earlier opening, or by a foreign process.
        let _ = reports.send(Report::Waiting);
        let db = layout::db(&folder);
        files::wait_for_lock(&db).map_err(|error| OpenError::of(&db, error))?;
        let _ = reports.send(Report::Working);
        Ok(config.open())
    };
    let db = match open()? {
        Err(sled::Error::Corruption { .. }) if options.accept_loss => {
            // The snapshot of the database is damaged, and can be rebuilt from the rest.
            files::remove_snapshots(data, "").map_err(|error| OpenError::of(data, error))?;
            open()?
        }
        // A damaged snapshot can be rebuilt, without a backup.
        Err(error @ sled::Error::Corruption { .. }) => return Err(OpenError::doubtful(data, super::message_of(&error))),
        outcome => outcome,
    };
    let db = db.map_err(|error| explain(data, error))?;
    let (db, facts) = attempt(db, |db| facts_of(data, options, db))?;
    // The database is open. From here on there are progress reports.
    let working = || drop(reports.send(Report::Working));
    working();
    // Writing to a damaged database may lose more data, so all readable records are copied into a new one first.
    let db = if options.accept_loss && !db.is_empty() { copy::renew(data, options, db, working)? } else { db };
    attempt(db, |db| prepare(data, options, audit, db, facts, working))
}

/// The store's records about itself. An empty store gets new ones.
fn facts_of(data: &Path, options: &OpenOptions, db: &sled::Db) -> Result<Facts, OpenError> {
    let damaged = |why: String| OpenError::damaged(data, why);
    let facts = match Facts::read(db).map_err(damaged)? {
        Some(facts) => facts,
        None if db.is_empty() => Facts::new(options.new_id),
        None => return Err(damaged("it contains records, but not tertulia's own records about the store".into())),
    };
    if facts.format > FORMAT {
        return Err(OpenError::NewerVersion { path: layout::sled_folder(data), found: facts.format, known: FORMAT });
    }
    Ok(facts)
}

/// Checks an open database, completely if there is an audit, and counts the opening.
fn prepare(
    data: &Path,
    options: &OpenOptions,
    audit: Option<Audit>,
    db: &sled::Db,
    mut facts: Facts,
    working: impl Fn(),
) -> Result<Facts, OpenError> {
    check_ends(data, db, &facts, options.accept_loss)?;
    if let Some(audit) = audit {
        let report = read_through(data, db, options, audit, working)?;
        if options.accept_loss {
            repair::repair(db, &report, &mut facts).map_err(|error| explain(data, error))?;
        }
    }
    facts.term += 1;
    facts.write(db).map_err(|error| explain(data, error))?;
    Ok(facts)
}

/// Reads a whole store. Rejects it if it has a problem. If a loss is accepted, rejects it only if it cannot be read to its end.
fn read_through(
    data: &Path,
    db: &sled::Db,
    options: &OpenOptions,
    audit: Audit,
    working: impl Fn(),
) -> Result<audit::Report, OpenError> {
    let audit = if options.accept_loss { audit.keeping_all() } else { audit };
    let report = audit.run(records(db), |_| working()).map_err(|error| explain(data, error))?;
    match report.problems.first() {
        Some(first) if !options.accept_loss => {
            let detail = format!("{} problems were found in it, the first: {first}", report.problem_count);
            Err(OpenError::doubtful(data, detail))
        }
        _ => Ok(report),
    }
}

/// Whether an error means that another process holds the lock. sled has no separate kind of error for that.
fn is_lock(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

pub(super) fn explain(data: &Path, error: sled::Error) -> OpenError {
    match error {
        sled::Error::Io(error) if is_lock(&error) => OpenError::InUse { folder: data.to_path_buf() },
        sled::Error::Io(error) => match OpenError::of(data, error) {
            OpenError::Io { error, .. } => OpenError::damaged(data, error),
            known => known,
        },
        other => OpenError::damaged(data, super::message_of(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;

    #[test]
    fn accepting_a_loss_allows_enough_time_to_read_a_slow_disk() {
        let (bytes, slow) = (24 << 30, 8 << 20);
        let accepting = OpenOptions { accept_loss: true, ..options() };

        assert!(opening_timeout(&accepting, bytes).as_secs() > bytes / slow);
        assert_eq!(opening_timeout(&options(), bytes), options().deadline);
    }
}
