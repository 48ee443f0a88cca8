//! Compacts the store automatically, because deleted texts stay readable in its file until then.
//!
//! The server compacts before it serves: at a start, or after it stopped its actors in the configured hour. Meanwhile the console reports that the
//! server is alive and not ready, and shows the progress.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::{Ended, address, cannot_serve};
use crate::adapters::console::{Console, Served};
use crate::adapters::store::backup::Copied;
use crate::adapters::store::sled::{self, OpenOptions, SledStore, disk_bytes, disk_free};
use crate::adapters::system::{SystemClock, SystemRng};
use crate::domain::moment::Moment;
use crate::journal::erased;
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::settings::Settings;
use crate::settings::server::Server;
use crate::settings::storage::Storage;
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::Metrics;

/// A store up to this size in bytes is compacted at every start after deletions, which takes a few seconds.
const QUICK_BYTES: u64 = 64 << 20;
/// How often a running server checks whether it must compact.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The delay after a failed attempt or a lack of disk space. It prevents a second attempt in the same hour.
const RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// The interval between log lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Whether to compact before serving: texts were deleted, and compaction is due or the store is small.
pub(super) fn is_due_at_start(store: &Arc<SledStore>, storage: &Storage) -> Result<bool, Ended> {
    if !storage.compacts() {
        return Ok(false);
    }
    let runtime = runtime()?;
    let oldest = runtime.block_on(erased::oldest(&**store)).unwrap_or_else(|error| {
        tracing::warn!(%error, "the deletions since the last compaction cannot be read");
        None
    });
    let bytes = store.disk_bytes().unwrap_or(u64::MAX);
    Ok(oldest.is_some_and(|oldest| bytes <= QUICK_BYTES || storage.is_compaction_due(oldest, SystemClock.now())))
}

/// Waits until the running server must stop and compact: the deletions are old enough, it is the configured hour, no copy is being written, and
/// there is disk space.
pub(super) async fn due(
    store: &dyn Store,
    clock: &dyn Clock,
    storage: &Storage,
    is_copying: impl Fn() -> bool,
    failed: &AtomicBool,
) {
    if !storage.compacts() {
        return std::future::pending().await;
    }
    if failed.load(Ordering::Relaxed) {
        sleep(RETRY_AFTER).await;
    }
    loop {
        let now = clock.now();
        let mut pause = CHECK_INTERVAL;
        if storage.is_compact_hour(now) && is_overdue(store, storage, now).await {
            if is_copying() {
                tracing::info!("the store is not compacted during a backup; checking again in a minute");
            } else if has_room_for_copy(&storage.path).await {
                return;
            } else {
                failed.store(true, Ordering::Relaxed);
                pause = RETRY_AFTER;
            }
        }
        sleep(pause).await;
    }
}

/// Runs [`has_room`] on a blocking thread, because it reads the whole data folder.
async fn has_room_for_copy(data: &Path) -> bool {
    let data = data.to_path_buf();
    // A panic must not prevent the compaction, which checks the space again.
    tokio::task::spawn_blocking(move || has_room(&data)).await.unwrap_or(true)
}

async fn is_overdue(store: &dyn Store, storage: &Storage, now: Moment) -> bool {
    match erased::oldest(store).await {
        Ok(oldest) => oldest.is_some_and(|oldest| storage.is_compaction_due(oldest, now)),
        // Other code reports records that cannot be read.
        Err(_) => false,
    }
}

/// Whether there is disk space for a copy, which can be as large as the store.
fn has_room(data: &Path) -> bool {
    let (Ok(needed), Ok(free)) = (disk_bytes(data), disk_free(data)) else { return true };
    if free < needed {
        tracing::warn!(
            needed,
            free,
            "there is not enough disk space to compact the store: make room; deleted words stay readable in its file until then"
        );
    }
    free >= needed
}

/// Compacts the store, which must be closed. Returns false if it failed or lacked disk space. This is logged, and the store is unchanged.
///
/// # Errors
/// Returns an error if the console's address cannot be bound, because the server could not serve either.
pub(super) fn compact(settings: &Settings, telemetry: &Telemetry, options: &OpenOptions) -> Result<bool, Ended> {
    let data = &settings.storage.path;
    if !has_room(data) {
        return Ok(false);
    }
    runtime()?.block_on(async {
        let copied = Arc::new(AtomicU64::new(0));
        let (folder, options, counted) = (data.clone(), options.clone(), copied.clone());
        let progress = move |records| counted.store(records, Ordering::Relaxed);
        let work = async {
            tracing::info!(
                bytes = disk_bytes(data).unwrap_or_default(),
                "compacting the store to remove deleted words from its file"
            );
            let compacting = tokio::task::spawn_blocking(move || sled::compact(&folder, &options, (), erased::is_mark, progress));
            tokio::select! {
                outcome = compacting => outcome,
                never = log_progress(&copied) => never,
            }
        };
        let outcome = while_closed(&settings.server, data, telemetry.metrics(), copied.clone(), work).await?;
        let failed = "the store could not be compacted; deleted words stay readable in its file";
        Ok(match outcome {
            Ok(Ok(Copied { records, bytes_before, bytes_after, .. })) => {
                tracing::info!(
                    records,
                    bytes_before,
                    bytes_after,
                    "the store was compacted; deleted words are no longer in its file"
                );
                true
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "{failed}");
                false
            }
            Err(panic) => {
                tracing::error!(%panic, "{failed}");
                false
            }
        })
    })
}

/// Runs work while the console reports that the store is being compacted.
async fn while_closed<T>(
    settings: &Server,
    data: &Path,
    metrics: Metrics,
    copied: Arc<AtomicU64>,
    work: impl Future<Output = T>,
) -> Result<T, Ended> {
    let progress = move || {
        let copied = copied.load(Ordering::Relaxed);
        format!("compacting: {copied} records are copied; the server is ready afterwards")
    };
    let closed = Served::Closed(Box::new(progress));
    let console =
        Console::bind(settings, closed, Arc::new(SystemRng), Arc::new(SystemClock), metrics).await.map_err(cannot_serve)?;
    let _note =
        address::write(data, console.address()).context("the server's address file cannot be written").map_err(Ended::Failed)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(console.serve(async { drop(stopped.await) }));
    let done = work.await;
    drop(stop);
    // The console's task has no result.
    let _ = serving.await;
    Ok(done)
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Ended> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.context("the runtime cannot be created").map_err(Ended::Failed)
}

async fn log_progress<T>(copied: &AtomicU64) -> T {
    let mut ticks = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tracing::info!(records = copied.load(Ordering::Relaxed), "compacting the store");
    }
}

#[cfg(test)]
mod tests;
