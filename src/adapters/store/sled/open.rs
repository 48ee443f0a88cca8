//! Opening a database on disk: what can be found out before sled touches it, sled itself under guard, and what came of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use super::committer::panic_text;
use super::facts::Facts;
use super::letting_go::attempt;
use super::readable::Readable;
use super::stand_ins::StandIns;
use super::{OpenOptions, files, layout, log, mend};
use crate::adapters::store::OpenError;
use crate::adapters::store::audit::{self, Audit, Problem};
use crate::adapters::store::manifest::{self, FORMAT, Manifest};
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::Reconstruct;

// sled gives back few of them at a time, and the manifest learns of it with the next group. A crash in between leaves a file that is
// shorter than the manifest says by as many.
const SEGMENTS_GIVEN_BACK: u64 = 4;

// How long the last work of an earlier opening in this process may hold sled's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

// Bytes a second that the slowest of disks reads.
const SLOWEST_READING: u64 = 4 << 20;

/// A database that was found fit.
pub(super) struct Opened {
    pub(super) db: sled::Db,
    pub(super) facts: Facts,
    /// What holds from now on; not written yet.
    pub(super) manifest: Manifest,
    pub(super) lock: files::FolderLock,
}

/// What becomes of a database that lost something, where that is accepted.
pub(super) enum Rest {
    /// It is refused where places cannot be read: what is written would have to go there. Else it is left as it is.
    Refused,
    /// It is opened as it is, for a copy of the rest.
    Copied,
    /// It is refused where places cannot be read. Else what the rest tells of what was lost is made anew, and what the journals miss then
    /// counts as deleted.
    Mended(Box<dyn Reconstruct + Send>),
}

/// What sled is to open, and what is to be done with it then.
struct Reading {
    /// Whether everything in it has to be right.
    must_read_well: bool,
    rest: Rest,
    /// Only until it is open.
    stand_ins: Option<StandIns>,
}

/// What the guarded thread reports.
enum Report {
    /// Still at work, on something that may take long.
    Working,
    /// Somebody holds sled's own lock.
    Waiting,
    Ended(Result<(sled::Db, Facts), OpenError>),
}

/// Opens the database of a data folder, or creates one, and counts the opening.
pub(super) fn open(data: &Path, options: &OpenOptions, rest: Rest) -> Result<Opened, OpenError> {
    let lock = options.lock(data)?;
    let known = match manifest::read(data) {
        Err(OpenError::Damaged(why)) if options.accept_loss => {
            tracing::warn!(why, "going on without the manifest");
            None
        }
        outcome => outcome?,
    };
    if known.is_none() && !options.accept_loss && files::is_half_restored(data) {
        return Err(OpenError::HalfRestored { folder: data.to_path_buf() });
    }
    files::check_writable(data)?;
    files::settle(data)?;
    let found = files::db_bytes(data)?;
    // A database that never held anything may be made again.
    let known = known.filter(|known| found.is_some() || known.counts.groups > 0);
    let fits = match &known {
        Some(known) => match check_length(data, known, found) {
            Err(OpenError::Truncated { .. }) if options.accept_loss => false,
            outcome => outcome?,
        },
        None => found.is_none(),
    };

    let is_flawless = match check_log(data, known.as_ref()) {
        Err(OpenError::Damaged(why)) if options.accept_loss => {
            tracing::warn!(why, "going on with what is left of the log");
            false
        }
        outcome => outcome?,
    };
    let is_doubtful = !(fits && is_flawless);
    let stand_ins = if is_doubtful && options.accept_loss {
        // What sled noted points to what may no longer be there.
        let outcome = files::remove_notes(data).and_then(|()| StandIns::put(&layout::sled_folder(data)));
        Some(outcome.map_err(|error| OpenError::of(data, error))?)
    } else {
        None
    };

    if let Some(known) = known.as_ref().filter(|known| known.closed.is_some()) {
        // From now on sled writes, and whoever finds the folder after a crash must not take that for damage.
        let opening = Manifest { closed: None, ..known.clone() };
        manifest::write(data, &opening).map_err(|error| OpenError::of(data, error))?;
    }

    let must_read_well = is_doubtful && !options.accept_loss;
    let deadline = patience(options, found.unwrap_or_default());
    if options.accept_loss {
        let up_to_secs = deadline.as_secs();
        tracing::info!(folder = ?data, up_to_secs, "the store is read through; without a sign it is waited for so long");
    }
    // sled has noted where its log ends by now: whoever starts again would look at nothing before that, and find no flaw.
    let look_again = |refused| match refused {
        OpenError::Damaged(_) | OpenError::Lost { .. } if must_read_well => {
            files::remove_notes(data).err().map_or(refused, |error| OpenError::of(data, error))
        }
        refused => refused,
    };
    let reading = Reading { must_read_well, rest, stand_ins };
    let (db, facts) = open_guarded(data, options, deadline, reading).map_err(look_again)?;

    let opened = attempt(db, |_| {
        if let Some(known) = &known {
            check_facts(data, known, &facts, options.accept_loss)?;
        } else if found.is_some() {
            tracing::warn!(folder = ?data, found = %facts.counts, "the manifest was missing and has been made anew");
        }
        Ok(files::db_bytes(data)?.unwrap_or_default())
    });
    let (db, db_bytes) = opened.map_err(look_again)?;
    let manifest = Manifest { format: facts.format, store: facts.store.clone(), counts: facts.counts, db_bytes, closed: None };
    Ok(Opened { db, facts, manifest, lock })
}

/// How long it is waited for a sign that the opening goes on. sled itself gives none, and where its notes cannot be relied on, it reads the whole
/// file. Whoever accepts a loss is there, and would rather wait.
fn patience(options: &OpenOptions, bytes: u64) -> Duration {
    let reading = Duration::from_secs(bytes / SLOWEST_READING);
    if options.accept_loss { options.deadline + reading } else { options.deadline }
}

/// The settings under which every database is opened or made.
pub(super) fn config(folder: &Path, cache_bytes: u64) -> sled::Config {
    // The committer flushes after every group: sled need not do it by the clock.
    sled::Config::new().path(folder).cache_capacity(cache_bytes).flush_every_ms(None)
}

/// Refuses a database that is shorter than the manifest says. False if it may have been sled itself that shortened it.
fn check_length(data: &Path, known: &Manifest, found: Option<u64>) -> Result<bool, OpenError> {
    let bytes = found.unwrap_or_default();
    let given_back = found.is_some()
        && known.closed.is_none()
        && bytes.is_multiple_of(log::SEGMENT_BYTES)
        && bytes.saturating_add(SEGMENTS_GIVEN_BACK * log::SEGMENT_BYTES) >= known.db_bytes;
    if bytes >= known.db_bytes || given_back {
        return Ok(bytes >= known.db_bytes);
    }
    let path = layout::db(&layout::sled_folder(data));
    Err(OpenError::Truncated { path, manifest: known.db_bytes, found: bytes })
}

/// Refuses a database of which sled would pass over something. False if that may be because of a crash.
fn check_log(data: &Path, known: Option<&Manifest>) -> Result<bool, OpenError> {
    let closed = known.and_then(|known| known.closed);
    if known.is_some_and(|known| known.counts.groups > 0) && files::db_bytes(data)?.is_none() {
        return Err(OpenError::doubtful(data, "`store/db` is missing"));
    }
    let flaw = log::first_flaw(&layout::sled_folder(data), closed).map_err(|error| OpenError::of(data, error))?;
    let Some(flaw) = flaw else { return Ok(true) };
    // Notes are written in one step, and after what they tell of.
    if closed.is_some() || matches!(flaw, log::Flaw::Notes { .. } | log::Flaw::Short { .. } | log::Flaw::Noted { .. }) {
        return Err(OpenError::doubtful(data, flaw));
    }
    tracing::warn!(%flaw, folder = ?data, "a crash may have left the database so; it is read through");
    Ok(false)
}

/// Refuses a database that holds less than the manifest says, or is another one.
fn check_facts(data: &Path, known: &Manifest, facts: &Facts, accept_loss: bool) -> Result<(), OpenError> {
    let refused = if facts.counts.is_less_than(known.counts) {
        OpenError::Lost { folder: data.to_path_buf(), manifest: known.counts, found: facts.counts }
    } else if facts.store != known.store {
        OpenError::doubtful(data, format!("its manifest belongs to the store {}, and this is {}", known.store, facts.store))
    } else {
        return Ok(());
    };
    if !accept_loss {
        return Err(refused);
    }
    tracing::warn!(manifest = %known.counts, found = %facts.counts, folder = ?data, "going on with less than there was");
    Ok(())
}

/// Lets sled open the folder in a thread of its own, which may panic or never return.
fn open_guarded(
    data: &Path,
    options: &OpenOptions,
    deadline: Duration,
    reading: Reading,
) -> Result<(sled::Db, Facts), OpenError> {
    let (reports, inbox) = mpsc::channel();
    let (folder, guarded) = (data.to_path_buf(), options.clone());
    let work = move || {
        let opened = catch_unwind(AssertUnwindSafe(|| open_sled(&folder, &guarded, reading, &reports)));
        let opened = opened.unwrap_or_else(|panic| Err(OpenError::damaged(&folder, format!("sled: {}", panic_text(&*panic)))));
        // Nobody listens any more when the deadline has passed.
        let _ = reports.send(Report::Ended(opened));
    };
    std::thread::Builder::new().name("writer-open".into()).spawn(work).map_err(|error| OpenError::of(data, error))?;

    let stuck = || OpenError::Stuck { folder: data.to_path_buf(), after: deadline };
    let in_use = || OpenError::InUse { folder: data.to_path_buf() };
    let mut waiting = false;
    loop {
        let patience = if waiting { deadline.min(LOCK_PATIENCE) } else { deadline };
        match inbox.recv_timeout(patience) {
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
    reading: Reading,
    reports: &Sender<Report>,
) -> Result<(sled::Db, Facts), OpenError> {
    let folder = layout::sled_folder(data);
    let config = config(&folder, options.cache_bytes);
    let db = match config.open() {
        Err(sled::Error::Io(error)) if is_lock(&error) => {
            // The lock of the data folder is ours, so this is sled's own work of a moment ago, or a stranger.
            let _ = reports.send(Report::Waiting);
            let db = layout::db(&folder);
            files::wait_for_lock(&db).map_err(|error| OpenError::of(&db, error))?;
            let _ = reports.send(Report::Working);
            config.open()
        }
        outcome => outcome,
    };
    let db = db.map_err(|error| explain(data, error))?;
    let Reading { must_read_well, rest, stand_ins } = reading;
    drop(stand_ins);
    attempt(db, |db| prepare(data, options, (must_read_well, rest), db, reports))
}

/// Takes a database for whoever opens it, once it is fit.
fn prepare(
    data: &Path,
    options: &OpenOptions,
    (must_read_well, rest): (bool, Rest),
    db: &sled::Db,
    reports: &Sender<Report>,
) -> Result<Facts, OpenError> {
    let damaged = |why: String| OpenError::damaged(data, why);

    let mut facts = match Facts::read(db).map_err(damaged)? {
        Some(facts) => facts,
        None if db.is_empty() => Facts::new(options.new_id),
        None => return Err(damaged("it holds records, and not what tertulia keeps about itself".into())),
    };
    if facts.format > FORMAT {
        return Err(OpenError::NewerVersion { path: layout::sled_folder(data), found: facts.format, known: FORMAT });
    }
    // It is open; from here on there are signs.
    let _ = reports.send(Report::Working);
    match rest {
        Rest::Mended(mut complete) => mended(data, db, &mut *complete, &mut facts, reports)?,
        rest if must_read_well || options.accept_loss => {
            let report = read_through(data, db, options.accept_loss, reports)?;
            match report.problems.iter().find(|problem| matches!(problem, Problem::Unreadable(_))) {
                Some(_) if matches!(rest, Rest::Copied) => return Ok(facts),
                Some(first) => return Err(holes(data, report.holes(), first)),
                None => {}
            }
        }
        Rest::Refused | Rest::Copied => {}
    }
    facts.term += 1;
    facts.write(db).map_err(|error| explain(data, error))?;
    Ok(facts)
}

/// Makes a store consistent again that may have lost something.
fn mended(
    data: &Path,
    db: &sled::Db,
    complete: &mut dyn Reconstruct,
    facts: &mut Facts,
    reports: &Sender<Report>,
) -> Result<(), OpenError> {
    let goes_on = || drop(reports.send(Report::Working));
    if let Some((count, first)) = mend::noted(db, complete, goes_on) {
        return Err(holes(data, count, &Problem::Unreadable(first)));
    }
    mend::restored(db, complete, facts, goes_on).map_err(|error| explain(data, error))
}

fn holes(data: &Path, holes: usize, first: &Problem) -> OpenError {
    OpenError::Holes { folder: data.to_path_buf(), holes, first: first.to_string() }
}

/// Reads a store through whose manifest does not vouch for it.
fn read_through(data: &Path, db: &sled::Db, accept_loss: bool, reports: &Sender<Report>) -> Result<audit::Report, OpenError> {
    let records = Readable::of(db).map(|entry| entry.map(|(key, value)| (Key::from_bytes(&key), value.to_vec())));
    let audit = if accept_loss { Audit::keeping_all() } else { Audit::default() };
    let report = audit.run_on(records, |_| drop(reports.send(Report::Working)));
    match report.problems.first() {
        Some(first) if !accept_loss => {
            let detail = format!("{} problems were found in it, the first: {first}", report.problem_count);
            Err(OpenError::doubtful(data, detail))
        }
        _ => Ok(report),
    }
}

/// sled reports a lock that somebody else holds as an error without a kind of its own.
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
        other => OpenError::damaged(data, super::told(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;

    #[test]
    fn whoever_accepts_a_loss_waits_until_a_slow_disk_is_read() {
        let (bytes, slow) = (24 << 30, 8 << 20);
        let accepting = OpenOptions { accept_loss: true, ..options() };

        assert!(patience(&accepting, bytes).as_secs() > bytes / slow);
        assert_eq!(patience(&options(), bytes), options().deadline);
    }
}
